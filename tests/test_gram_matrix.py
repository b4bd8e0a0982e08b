"""Gram matrices of token pairs as users compute them: engines, tiles, memory, folders, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import oracle
import pytest
from cases import documents

import textkernels as tk
from embeddings import Sequences
from textkernels import gram_tiles
from textkernels.engines import choose_kernel
from textkernels.gram_estimate import pair_cost, seconds_per_cost
from textkernels.gram_tiles import PairCost, Tiling
from textkernels.memory_budget import memory_bytes, readable, readable_time

CNN = tk.named_architecture("cnn-gap", width=3)
STRUCT = tk.named_architecture("cnn-struct", depth=2, attention=2, width=3)
TOLERANCE = 2e-5


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of three documents."""
    monkeypatch.setattr(gram_tiles, "DOCUMENTS", 3)


def assert_close(matrix: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", ["nngp", "ntk", "both"])
def test_tiles_make_the_matrix(kind: str) -> None:
    texts = documents()
    expected = oracle.gram(STRUCT, list(texts))
    result = tk.gram(STRUCT, texts, kind=kind)
    wanted = {"nngp": expected[:1], "ntk": expected[1:], "both": expected}[kind]
    for matrix, reference in zip(result if kind == "both" else [result], wanted, strict=True):
        assert matrix.dtype == np.float64
        assert_close(matrix, reference)
        np.testing.assert_array_equal(matrix, matrix.T)
    cross = tk.gram(STRUCT, texts[:4], texts[3:], kind=kind, dtype=np.float32)
    rows, columns = list(texts[:4]), list(texts[3:])
    references = oracle.gram(STRUCT, rows, columns)
    wanted = {"nngp": references[:1], "ntk": references[1:], "both": references}[kind]
    for matrix, reference in zip(cross if kind == "both" else [cross], wanted, strict=True):
        assert matrix.dtype == np.float32
        assert_close(matrix, reference)


def test_the_engine_is_chosen() -> None:
    assert type(choose_kernel(tk.named_architecture("struct"))).__name__ == "FeatureKernel"
    assert type(choose_kernel(CNN).engine).__name__ == "NumbaEngine"
    assert type(choose_kernel(CNN, "jax").engine).__name__ == "JaxEngine"
    struct, texts = tk.named_architecture("struct-fcn"), documents()
    assert_close(tk.gram(struct, texts, engine="numba"), tk.gram(struct, texts, engine="features"))
    with pytest.raises(NotImplementedError, match="layer 0"):
        tk.gram(CNN, texts, engine="features")


def test_padding_company_and_dtype_do_not_leak() -> None:
    texts = documents(np.float64)
    alone = tk.gram(STRUCT, texts[5:6], kind="both")
    together = tk.gram(STRUCT, texts, kind="both")
    for width in (7, 30):
        values, mask = texts[5:6].padded(width)
        padded = tk.gram(STRUCT, Sequences.from_padded(np.where(mask[..., None], values, np.nan), mask), kind="both")
        for matrix, expected, whole in zip(padded, alone, together, strict=True):
            np.testing.assert_array_equal(matrix, expected)
            np.testing.assert_allclose(matrix[0, 0], whole[5, 5], rtol=1e-6)
    for matrix, expected in zip(tk.gram(STRUCT, texts.astype(np.float32), kind="both"), together, strict=True):
        assert_close(matrix, expected, 1e-6)


# Memory and time


def test_a_budget_that_is_too_small_is_refused_with_numbers_and_ways_out() -> None:
    texts = documents()
    with pytest.raises(ValueError, match=r"at least .* GB|MB.*got 1.0 MB.*fewer rows.*shorter.*pool earlier"):
        tk.gram(CNN, texts, memory_budget="1MB")
    with pytest.raises(ValueError, match="memory_budget"):
        tk.gram(CNN, texts, memory_budget="plenty")
    assert_close(tk.gram(CNN, texts, memory_budget="1GB"), tk.gram(CNN, texts))


def test_memory_of_explicit_features_is_known_before() -> None:
    """Absolute positions in values have more columns, the farther documents reach."""
    positions = tk.Positions("absolute", scale=5, in_values=True)
    kernel = choose_kernel(tk.Architecture([tk.SelfAttention(positions=positions), tk.GlobalAveragePool(), tk.Dense()]))
    texts = documents(lengths=(3, 700))
    prepared = kernel.prepare(texts, 700)
    kept, _ = kernel.memory_need(texts.lengths, texts.dim, (700, 700), True)
    size = sum(array.nbytes for array in prepared.arrays().values())
    assert 8 * len(texts) * 200 < size <= kept < 2 * size


@pytest.mark.parametrize("name", ["struct", "struct-fcn", "cnn-gap", "cnn-struct"])
def test_numbers_that_no_float_holds_are_an_error(name: str) -> None:
    texts = documents(np.float32)
    texts = Sequences(texts.values * np.float32(1e30), texts.lengths)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"can hold.*unit variance"):
        tk.gram(tk.named_architecture(name), texts, kind="both")
    for kernel in tk.gram(tk.named_architecture("gap-fcn"), texts, kind="both"):  # pools in float64
        assert np.isfinite(kernel).all()


def test_arguments_of_other_types_are_refused() -> None:
    texts = documents()
    with pytest.raises(TypeError, match="expected documents as Sequences, got list; encode texts"):
        tk.gram(CNN, ["a good film"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected documents as Sequences, got ndarray"):
        tk.gram(CNN, texts, texts.values)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an Architecture, got 'cnn-gap'"):
        tk.gram("cnn-gap", texts)  # type: ignore[arg-type]
    for dtype in (int, complex, np.float16):
        with pytest.raises(ValueError, match="expected dtype to be float32 or float64"):
            tk.gram(CNN, texts, dtype=dtype)


def test_what_was_asked_of_others_is_refused_before_it_starts() -> None:
    # 300 documents of 500 tokens are nothing, 300,000 are more than any machine has.
    lengths = np.full(300_000, 500)
    values = np.broadcast_to(np.float32(1), (int(lengths.sum()), 1))
    texts = Sequences._trusted(values, lengths)
    with pytest.raises(ValueError, match=r"720\.0 GB for the result"):
        tk.gram(CNN, texts, memory_budget="100GB")


def test_budgets_are_read() -> None:
    assert memory_bytes("4GB") == memory_bytes("4 gb") == memory_bytes(4e9) == 4 * 10**9
    assert memory_bytes("1.5 GiB") == 3 * 2**29
    assert 0 < memory_bytes(None) < 10**13
    for wrong in ("4 bananas", "GB", ".", "1.2.3", -1, True, float("nan")):
        with pytest.raises(ValueError, match="memory_budget"):
            memory_bytes(wrong)
    assert readable(720_000) == "720 kB"
    assert readable(4.2e9) == "4.2 GB"
    assert readable_time(0.2) == "less than a second"
    assert readable_time(720) == "12 minutes"


def test_the_address_space_counts() -> None:
    # A soft limit of this process alone, as `ulimit -v` sets it.
    code = (
        "import resource, psutil; from textkernels.memory_budget import free_memory;"
        "used = psutil.Process().memory_info().vms;"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 10**8, resource.RLIM_INFINITY));"
        "print(free_memory())"
    )
    free = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert free <= 10**8


def test_costs_follow_token_pairs() -> None:
    lengths = np.array([10, 20, 5])
    tiling = Tiling((0, 2, 3), (0, 2, 3), True)
    assert tiling.costs(lengths, lengths, PairCost(True)) == [30 * 30 / 2, 5 * 30, 25 / 2]
    assert tiling.costs(lengths, lengths, PairCost(False)) == [2, 2, 0.5]
    cubes = tiling.costs(lengths, lengths, PairCost(True, 0.1))
    assert cubes[1] == pytest.approx(sum(5 * n * (1 + 0.1 * (5 + n)) for n in (10, 20)))
    assert pair_cost(choose_kernel(tk.named_architecture("struct"))) == PairCost(False)
    assert pair_cost(choose_kernel(STRUCT)).attention > pair_cost(choose_kernel(CNN)).attention == 0
    sides = Tiling.of(np.array([60_000, 10, 10, 70_000, 1]), None, tokens=True).rows
    assert sides == (0, 3, 4, 5)


def test_time_is_measured_on_a_sample() -> None:
    texts, kernel = documents(), choose_kernel(CNN)
    rate = seconds_per_cost(kernel, kernel.prepare(texts), texts.lengths, pair_cost(kernel), True)
    assert 0 < rate < 1


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    tk.gram(CNN, documents(), progress=True)
    captured = capsys.readouterr()
    assert "gram" in captured.err
    assert not captured.out


# Folders


@pytest.mark.usefixtures("small_tiles")
def test_a_folder_keeps_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, folder = documents(), tmp_path / "tiles"
    expected = tk.gram(CNN, texts, kind="both")
    first = tk.gram(CNN, texts, kind="both", folder=folder)
    files = sorted(folder.glob("tile-*"))
    assert len(files) == 6
    files[1].unlink()
    files[2].write_bytes(b"damaged")
    (folder / ".partial-1-tile").write_bytes(b"half")
    computed = []
    block = type(choose_kernel(CNN)).block
    monkeypatch.setattr("textkernels.pairs.kernel.PairKernel.block", lambda *each: computed.append(1) or block(*each))
    # Other tile sizes than those of the folder would give other bits.
    monkeypatch.setattr(gram_tiles, "DOCUMENTS", 5)
    again = tk.gram(CNN, texts, kind="both", folder=folder, dtype=np.float32)
    assert len(computed) == 2
    for matrix, wanted, same in zip(first, expected, again, strict=True):
        np.testing.assert_array_equal(matrix, wanted)
        np.testing.assert_array_equal(same, wanted.astype(np.float32))
    assert not list(folder.glob(".partial*"))


def test_a_folder_of_another_computation_is_refused(tmp_path: Path) -> None:
    texts = documents()
    tk.gram(CNN, texts, folder=tmp_path)
    for match, call in (
        ("architecture", lambda: tk.gram(STRUCT, texts, folder=tmp_path)),
        ("documents", lambda: tk.gram(CNN, texts[:5], folder=tmp_path)),
        ("documents", lambda: tk.gram(CNN, texts.astype(np.float32), folder=tmp_path)),
        ("other documents", lambda: tk.gram(CNN, texts, texts, folder=tmp_path)),
        ("kind", lambda: tk.gram(CNN, texts, kind="ntk", folder=tmp_path)),
        ("engine", lambda: tk.gram(CNN, texts, engine="jax", folder=tmp_path)),
    ):
        with pytest.raises(ValueError, match=rf"differs in: .*{match}"):
            call()
    (tmp_path / "manifest.json").write_text("nonsense")
    with pytest.raises(ValueError, match=r"manifest\.json"):
        tk.gram(CNN, texts, folder=tmp_path)


KILLED = """
import sys
import numpy as np
import textkernels as tk
from embeddings import Sequences
from textkernels import gram_tiles
gram_tiles.DOCUMENTS = 2
generator = np.random.default_rng(0)
texts = Sequences.from_arrays([generator.standard_normal((n, 6)) for n in range(1, 41)])
tk.gram(tk.named_architecture("cnn-struct", width=3), texts, kind="both", folder=sys.argv[1])
"""


def test_a_killed_computation_goes_on_and_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tiles"
    generator = np.random.default_rng(0)
    texts = Sequences.from_arrays([generator.standard_normal((n, 6)) for n in range(1, 41)])
    architecture = tk.named_architecture("cnn-struct", width=3)
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)])
    deadline = time.monotonic() + 100
    while len(list(folder.glob("tile-*"))) < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(folder.glob("tile-*")))
    assert 5 <= finished < 210
    rows = json.loads((folder / "manifest.json").read_text())["rows"]
    assert len(rows) == 21
    resumed = tk.gram(architecture, texts, kind="both", folder=folder)
    monkeypatch.setattr(gram_tiles, "DOCUMENTS", 2)
    for matrix, uninterrupted in zip(resumed, tk.gram(architecture, texts, kind="both"), strict=True):
        np.testing.assert_array_equal(matrix, uninterrupted)
