"""Large files of vectors the second time, with some of their words, and from gensim-data. Oracle: read_vector_file."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import urllib.request

import numpy as np
import pytest

from embeddings import get_encoder, load_vector_file, read_vector_file, vector_cache
from embeddings.gensim_data import find_gensim_data

ROWS = "good 1 0\nbad 0 2\nGreat 3 4\n. . . 5 6\nn't 7 8\n"


@pytest.fixture(autouse=True)
def all_files_are_large(monkeypatch):
    monkeypatch.setattr(vector_cache, "SMALL_BYTES", 1)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "vectors.txt").write_text(ROWS)
    return tmp_path / "vectors.txt"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def readings(monkeypatch):
    calls = []
    monkeypatch.setattr(
        vector_cache, "read_vector_file", lambda *args, **options: calls.append(1) or read_vector_file(*args, **options)
    )
    return calls


def assert_equal_tables(actual, desired):
    assert actual.words == desired.words
    np.testing.assert_array_equal(actual.vectors, desired.vectors)
    assert actual.vectors.dtype == desired.vectors.dtype
    assert actual.report == desired.report
    assert actual.checksum == desired.checksum


def test_the_second_time_it_is_mapped(path, cache, readings):
    for _ in range(3):
        vectors = load_vector_file(path, cache_dir=cache)
        assert_equal_tables(vectors, read_vector_file(path))
        assert isinstance(vectors.vectors.base, np.memmap)
        assert vectors.vectors.flags.c_contiguous
    assert len(readings) == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("options", [{"cache_dir": False}, {}])
def test_small_files_and_no_cache_folder(path, options, readings, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    if not options:
        monkeypatch.setattr(vector_cache, "SMALL_BYTES", 1 << 20)
    for _ in range(2):
        assert_equal_tables(load_vector_file(path, **options), read_vector_file(path))
    assert len(readings) == 2
    assert not (tmp_path / "user").exists()


def test_a_changed_file_is_read_again(path, cache, readings):
    load_vector_file(path, cache_dir=cache)
    path.write_text(ROWS.replace("good 1", "good 9"))
    os.utime(path, ns=(0, 0))
    assert load_vector_file(path, cache_dir=cache).vectors[0, 0] == 9
    assert len(readings) == 2
    assert len(list(cache.iterdir())) == 1  # the earlier table made room


def test_a_damaged_cache_is_made_again(path, cache, readings):
    load_vector_file(path, cache_dir=cache)
    (folder,) = cache.iterdir()
    os.truncate(folder / "vectors.npy", 100)
    with pytest.warns(UserWarning, match="damaged cache, the file is read again"):
        vectors = load_vector_file(path, cache_dir=cache)
    assert_equal_tables(vectors, read_vector_file(path))
    load_vector_file(path, cache_dir=cache)
    assert len(readings) == 2


def test_a_folder_that_cannot_be_made_is_no_failure(path, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="not kept in a faster form"):
        vectors = load_vector_file(path, cache_dir=tmp_path / "file" / "cache")
    assert_equal_tables(vectors, read_vector_file(path))


def test_warnings_are_repeated(tmp_path, cache):
    (tmp_path / "bad.txt").write_text("good 1 2\nbad 1\nfilm 1 2\n")
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 bad rows skipped"):
            load_vector_file(tmp_path / "bad.txt", on_bad_row="skip", cache_dir=cache)
    with pytest.raises(ValueError, match="line 2"):
        load_vector_file(tmp_path / "bad.txt", cache_dir=cache)


@pytest.mark.parametrize("loaded_before", [False, True])
def test_only_the_words_that_are_needed(path, cache, loaded_before, readings):
    if loaded_before:
        load_vector_file(path, cache_dir=cache)
    vectors = load_vector_file(path, vocabulary=["GOOD", "Great", "zxqwv"], cache_dir=cache)
    assert vectors.words == ["good", "Great", "n't"]
    np.testing.assert_array_equal(vectors.vectors, [[1, 0], [3, 4], [7, 8]])
    assert vectors.report.n_unneeded == 2
    assert "3 words of dimension 2 from 5 rows, 0 skipped, 0 duplicated, 2 not needed." in vectors.report.summary()
    assert not isinstance(vectors.vectors.base, np.memmap)
    assert len(readings) == 1


def test_binary_files_with_some_words(tmp_path):
    rows = b"".join(word + b" " + np.array([n, n], "<f4").tobytes() for n, word in enumerate([b"a", b"b", b"c"]))
    (tmp_path / "vectors.bin").write_bytes(b"3 2\n" + rows)
    vectors = load_vector_file(tmp_path / "vectors.bin", vocabulary={"c", "a"}, cache_dir=False)
    assert vectors.words == ["a", "c"]
    np.testing.assert_array_equal(vectors.vectors, [[0, 0], [2, 2]])


def test_words_that_are_not_needed_do_not_fill_memory(tmp_path):
    numbers = np.random.default_rng(0).integers(0, 10, (8000, 200))
    rows = [f"word{n} {' '.join(map(str, vector))}\n" for n, vector in enumerate(numbers.tolist())]
    (tmp_path / "large.txt").write_text("".join(rows))
    tracemalloc.start()
    vectors = load_vector_file(tmp_path / "large.txt", vocabulary={"word7"}, cache_dir=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(vectors.vectors[0], numbers[7])
    assert peak < 4 * numbers.size / 1.5  # the whole table and more, otherwise


def test_a_vocabulary_without_a_word_of_the_table(path, cache):
    rows = "good 1 0\nbad 0 2\n"
    path.write_text(rows)
    with pytest.raises(ValueError, match="expected a word of the vocabulary, found none of them in 2 rows"):
        load_vector_file(path, vocabulary={"x"}, cache_dir=cache)
    load_vector_file(path, cache_dir=cache)
    with pytest.raises(ValueError, match="vocabulary with words of the table, got none"):
        load_vector_file(path, vocabulary={"x"}, cache_dir=cache)
    with pytest.raises(TypeError, match="got one string"):
        load_vector_file(path, vocabulary="x", cache_dir=cache)


def test_an_encoder_with_some_words(path, cache):
    encoder = get_encoder(path, vocabulary={"good"}, cache_dir=cache, scale="none").fit(["good"])
    assert encoder.tokenizer == "treebank"
    assert encoder.encode(["bad good", "bad"]).status.tolist() == ["ok", "no_known_tokens"]


@pytest.fixture
def gensim_folder(tmp_path, monkeypatch):
    import gensim.downloader

    def no_network(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(gensim.downloader, "BASE_DIR", str(tmp_path / "gensim-data"))
    monkeypatch.setattr(gensim.downloader, "urlopen", no_network)
    return tmp_path / "gensim-data"


def test_gensim_data_that_is_there(gensim_folder, cache):
    (gensim_folder / "tiny-vectors").mkdir(parents=True)
    with gzip.open(gensim_folder / "tiny-vectors" / "tiny-vectors.gz", "wt") as stream:
        stream.write("5 2\n" + ROWS)
    encoder = get_encoder("gensim:tiny-vectors", scale="none", cache_dir=cache).fit(["good"])
    np.testing.assert_array_equal(encoder.encode(["good"]).documents[0], [[1, 0]])
    assert encoder.name == "tiny-vectors.gz"


def test_gensim_data_without_a_network(gensim_folder, capfd):
    with pytest.raises(OSError, match=r"gensim:glove-wiki-gigaword-100 is downloaded once.*connect to the Internet"):
        get_encoder("gensim:glove-wiki-gigaword-100")
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_gensim_data_has_names(gensim_folder, monkeypatch):
    import gensim.downloader

    monkeypatch.setattr(
        gensim.downloader, "info", lambda: {"models": {"glove-twitter-25": {}}, "corpora": {"text8": {}}}
    )
    for name in ("text8", "glove"):
        with pytest.raises(ValueError, match=f"no vectors named '{name}'; it has glove-twitter-25"):
            find_gensim_data(name)
