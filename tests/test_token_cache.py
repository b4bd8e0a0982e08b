"""The cache of token vectors. Oracle: a dictionary; then everything that can go wrong on a disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from embeddings import token_cache
from embeddings.token_cache import TokenCache

DIM = 3


def key(number):
    return number.to_bytes(16, "big")


def vectors(number):
    return np.random.default_rng(number).standard_normal((1 + number % 5, DIM)).astype(np.float32)


OPENED = []


@pytest.fixture(autouse=True)
def closed():
    yield
    for cache in OPENED:
        cache.close()
    OPENED.clear()


def opened(folder, dtype=np.float32):
    cache = TokenCache(folder, DIM, np.dtype(dtype))
    OPENED.append(cache)
    cache.refresh()
    return cache


def assert_holds(cache, numbers):
    for number in numbers:
        assert key(number) in cache
        np.testing.assert_array_equal(cache.read(key(number), len(vectors(number))), vectors(number))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def filled(folder, numbers):
    cache = opened(folder)
    for number in numbers:
        cache.write(key(number), vectors(number))
    return cache


def test_what_is_written_is_read(folder):
    cache = filled(folder, range(20))
    assert_holds(cache, range(20))
    assert_holds(opened(folder), range(20))
    assert len(opened(folder)) == 20
    assert cache.read(key(99), 1) is None
    assert cache.read(key(3), 9) is None
    assert sum(path.suffix == ".vectors" for path in folder.iterdir()) == 1


def test_a_key_is_kept_once(folder):
    cache = filled(folder, [1])
    size = sum(path.stat().st_size for path in folder.iterdir())
    cache.write(key(1), vectors(1))
    assert sum(path.stat().st_size for path in folder.iterdir()) == size == 32 + vectors(1).nbytes


def test_half_precision(folder):
    cache = opened(folder, np.float16)
    cache.write(key(1), vectors(1).astype(np.float16))
    values = opened(folder, np.float16).read(key(1), 2)
    assert values.dtype == np.float16
    np.testing.assert_array_equal(values, vectors(1).astype(np.float16))


def test_nothing_is_made_before_something_is_kept(folder):
    assert opened(folder).read(key(1), 1) is None
    assert not folder.exists()


@pytest.mark.parametrize("cut", [1, 16, 31])
def test_half_a_record_is_no_record(folder, cut):
    """Killed while it wrote the index: the next process writes whole records again."""
    filled(folder, range(5)).close()
    (index,) = folder.glob("*.index")
    os.truncate(index, index.stat().st_size - cut)
    cache = opened(folder)
    assert_holds(cache, range(4))
    assert key(4) not in cache
    for number in (4, 5):
        cache.write(key(number), vectors(number))
    assert_holds(opened(folder), range(6))
    assert [path.name for path in folder.glob("*.index")] == [index.name]


@pytest.mark.parametrize("spoil", ["cut", "flip", "remove"])
def test_damaged_vectors_are_made_again(folder, spoil):
    filled(folder, range(5)).close()
    (shard,) = folder.glob("*.vectors")
    if spoil == "cut":
        os.truncate(shard, shard.stat().st_size - 4)
    elif spoil == "remove":
        shard.unlink()
    else:
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
    cache = opened(folder)
    assert cache.read(key(4), len(vectors(4))) is None
    assert key(4) not in cache
    cache.write(key(4), vectors(4))
    assert_holds(opened(folder), [4])
    if spoil != "remove":
        assert_holds(opened(folder), range(5))


def test_a_damaged_index_gives_no_wrong_vectors(folder):
    filled(folder, range(5)).close()
    (index,) = folder.glob("*.index")
    rng = np.random.default_rng(0)
    for _ in range(30):
        data = bytearray(index.read_bytes())
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        index.write_bytes(data)
    cache = opened(folder)
    for number in range(5):
        values = cache.read(key(number), len(vectors(number)))
        assert values is None or np.array_equal(values, vectors(number))


def test_processes_write_to_files_of_their_own(folder):
    first, second = opened(folder), opened(folder)
    for number in range(10):
        (first, second)[number % 2].write(key(number), vectors(number))
    assert len(list(folder.glob("*.index"))) == 2
    assert_holds(opened(folder), range(10))
    assert key(1) not in first
    first.refresh()
    assert_holds(first, range(10))


def test_a_file_whose_writer_has_ended_is_written_on(folder):
    for number in range(4):
        filled(folder, [number]).close()
    assert len(list(folder.glob("*.index"))) == 1
    assert_holds(opened(folder), range(4))


def test_a_forked_child_leaves_its_parents_file_alone(folder):
    cache = filled(folder, range(3))
    # Forked in a process of its own, since threads of libraries live in this one.
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from test_token_cache import *\n"
        "cache = filled(Path(sys.argv[1]), range(10, 13))\n"
        "child = os.fork()\n"
        "for number in range(20, 60): cache.write(key(number + 100 * (child == 0)), vectors(number))\n"
        "assert_holds(cache, range(10, 13))\n"
        "if child == 0: os._exit(0)\n"
        "sys.exit(os.waitpid(child, 0)[1])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder), os.path.dirname(__file__)], check=True)
    whole = opened(folder)
    assert_holds(whole, [*range(3), *range(10, 13), *range(20, 60)])
    for number in range(20, 60):
        np.testing.assert_array_equal(whole.read(key(number + 100), len(vectors(number))), vectors(number))
    assert_holds(cache, range(3))
    assert len(list(folder.glob("*.index"))) == 3


def test_killed_at_any_moment(folder):
    """A process that writes without end is killed again and again; what is there is right, and goes on."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from itertools import count; from test_token_cache import *\n"
        "cache = opened(Path(sys.argv[1]))\n"
        "print(len(cache), flush=True)\n"
        "for number in count(len(cache)): cache.write(key(number), vectors(number)); print(number, flush=True)\n"
    )
    done = 0
    for enough in (5, 40, 111):
        command = [sys.executable, "-c", code, str(folder), os.path.dirname(__file__)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert int(process.stdout.readline()) >= done
            while done < enough:
                done = int(process.stdout.readline()) + 1
            process.send_signal(signal.SIGKILL)
        whole = opened(folder)
        assert len(whole) >= done
        assert_holds(whole, range(len(whole)))
    assert len(list(folder.glob("*.index"))) == 1


def test_a_full_disk_is_one_warning(folder, monkeypatch):
    cache = filled(folder, range(3))
    monkeypatch.setattr(token_cache, "FREE_BYTES", 1 << 60)
    with pytest.warns(UserWarning, match=r"not kept for next time: the disk is nearly full; make room in .*cache"):
        cache.write(key(3), vectors(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.write(key(4), vectors(4))
    assert_holds(cache, range(3))
    assert key(3) not in cache


def test_a_folder_that_cannot_be_made_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    cache = opened(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="not kept for next time"):
        cache.write(key(1), vectors(1))
    cache.write(key(2), vectors(2))


def test_an_emptied_cache_is_filled_again(folder):
    cache = filled(folder, range(3))
    assert_holds(cache, [0])
    for path in folder.iterdir():
        path.unlink()
    cache.refresh()
    assert len(opened(folder)) == 0
    assert_holds(filled(folder, range(3)), range(3))
