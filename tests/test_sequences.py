"""Sequences. Oracles: arrays written out by hand, and the list of documents they were made from."""

import subprocess
import sys

import numpy as np
import pytest

from embeddings import Sequences


def documents(lengths, dim=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, dim)).astype(dtype) for length in lengths]


CASES = [[1], [3, 1, 2], [5, 5, 5], [1, 40, 2, 7]]


def test_layout_by_hand():
    docs = Sequences.from_arrays([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])
    np.testing.assert_array_equal(docs.values, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(docs.lengths, [1, 2])
    np.testing.assert_array_equal(docs.offsets, [0, 1, 3])
    assert (len(docs), docs.dim, docs.dtype) == (2, 2, np.float64)
    assert docs.lengths.dtype == docs.offsets.dtype == np.int64
    assert docs.values.flags.c_contiguous


@pytest.mark.parametrize("lengths", CASES)
def test_indexing_slicing_and_taking_follow_the_list(lengths):
    arrays = documents(lengths)
    docs, n = Sequences.from_arrays(arrays), len(arrays)
    for got, want in zip(docs, arrays, strict=True):
        np.testing.assert_array_equal(got, want)
    for index in (*range(n), *range(-n, 0)):
        np.testing.assert_array_equal(docs[index], arrays[index])
        assert np.shares_memory(docs[index], docs.values)
    for part in (slice(None), slice(1, None), slice(0, -1), slice(None, None, -1), slice(2, 1), slice(0, n, 2)):
        assert_documents(docs[part], arrays[part])
    chosen = [n - 1, 0, n - 1, -1]
    assert_documents(docs.take(chosen), [arrays[index] for index in chosen])
    mask = np.arange(n) % 2 == 0
    assert_documents(docs.take(mask), arrays[::2])
    assert_documents(docs.take([]), [])


def assert_documents(docs, arrays):
    assert len(docs) == len(arrays)
    for got, want in zip(docs, arrays, strict=True):
        np.testing.assert_array_equal(got, want)


def test_bad_indices():
    docs = Sequences.from_arrays(documents([2, 1]))
    for call in (lambda: docs[2], lambda: docs.take([2]), lambda: docs.take(np.array([True]))):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError):
        docs.take([0.5])


@pytest.mark.parametrize("lengths", CASES)
@pytest.mark.parametrize("extra", [0, 1, 500])
def test_padding_is_zero_behind_the_end_and_comes_off_again(lengths, extra):
    arrays = documents(lengths)
    docs = Sequences.from_arrays(arrays)
    width = max(lengths) + extra
    values, mask = docs.padded(width)
    assert values.shape == (len(lengths), width, 3)
    assert mask.shape == (len(lengths), width)
    assert mask.dtype == bool
    for row, array in enumerate(arrays):
        np.testing.assert_array_equal(values[row, : len(array)], array)
        assert not values[row, len(array) :].any()
        np.testing.assert_array_equal(mask[row], np.arange(width) < len(array))
    assert_documents(Sequences.from_padded(values, mask), arrays)
    assert docs.padded()[0].shape[1] == max(lengths)
    with pytest.raises(ValueError, match="at least"):
        docs.padded(max(lengths) - 1)


def test_masked_values_are_ignored_whatever_they_are():
    """B03: no number means padding; only the mask does."""
    values = np.array([[[np.nan, np.inf], [1.0, 100.0]], [[0.0, 0.0], [7.0, np.nan]]])
    mask = np.array([[False, True], [True, False]])
    docs = Sequences.from_padded(values, mask)
    np.testing.assert_array_equal(docs.values, [[1, 100], [0, 0]])
    np.testing.assert_array_equal(docs.lengths, [1, 1])
    with pytest.raises(ValueError, match="boolean"):
        Sequences.from_padded(values, mask.astype(int))
    with pytest.raises(ValueError, match=r"row 1: .*empty"):
        Sequences.from_padded(values, np.array([[False, True], [False, False]]))
    with pytest.raises(ValueError, match=r"row 0: .*NaN"):
        Sequences.from_padded(values, np.array([[True, True], [True, False]]))
    with pytest.raises(ValueError, match="mask"):
        Sequences.from_padded(values, mask[:1])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones((1, 2)), np.ones((0, 2))], "row 1: .*empty document"),
        ([np.ones((1, 2)), np.ones(2)], r"row 1: .*shape \(1, d\)"),
        ([np.ones((1, 2, 2))], "row 0: .*shape"),
        ([np.ones((1, 2)), np.ones((1, 3))], "row 1: .*dimension 2.*got 3"),
        ([np.ones((3, 2)), np.array([[1.0, 2.0], [1.0, np.nan]])], "row 1: .*token 1"),
        ([np.array([[np.inf, 0.0]])], "row 0: .*token 0"),
        ([np.array([["a"]])], "row 0: .*real numbers"),
        ([np.array([[1j]])], "row 0: .*real numbers"),
    ],
)
def test_bad_arrays_name_the_row(arrays, message):
    with pytest.raises(ValueError, match=message):
        Sequences.from_arrays(arrays)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([np.float32], np.float32),
        ([np.float64], np.float64),
        ([np.float16], np.float32),
        ([np.int64], np.float64),
        ([np.uint8], np.float64),
        ([bool], np.float64),
        ([np.float32, np.float64], np.float64),
        ([np.float16, np.float32], np.float32),
    ],
)
def test_dtypes(given, kept):
    docs = Sequences.from_arrays([np.ones((2, 3), dtype) for dtype in given])
    assert docs.dtype == kept
    assert docs.astype(np.float32).dtype == np.float32
    assert Sequences.from_arrays(list(docs), dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="float32 or float64"):
        docs.astype(np.int64)


def test_numbers_too_large_for_float32_are_refused_not_made_infinite():
    docs = Sequences.from_arrays([[[1e300]]])
    with pytest.raises(ValueError, match="row 0"):
        docs.astype(np.float32)
    with pytest.raises(ValueError, match="row 0"):
        Sequences.from_arrays([[[1e300]]], dtype=np.float32)


def test_no_documents():
    none = Sequences.from_arrays([])
    some = Sequences.from_arrays(documents([2]))
    assert len(none) == len(list(none)) == 0
    np.testing.assert_array_equal(none.offsets, [0])
    assert none.padded()[0].shape == (0, 0, 0)
    assert_documents(Sequences.concatenate([none, some, none]), list(some))
    assert some[:0].dim == 3


def test_concatenate():
    arrays = documents([2, 1, 4])
    docs = Sequences.from_arrays(arrays)
    assert_documents(Sequences.concatenate([docs[1:], docs[:1]]), [arrays[1], arrays[2], arrays[0]])
    with pytest.raises(ValueError, match="equal dimension"):
        Sequences.concatenate([docs, Sequences.from_arrays(documents([1], dim=2))])
    with pytest.raises(ValueError, match="at least one"):
        Sequences.concatenate([])


@pytest.mark.parametrize(
    ("values", "lengths", "message"),
    [
        (np.ones((3, 2)), [1, 1], "sum to 3"),
        (np.ones((3, 2)), [3, 0], "row 1"),
        (np.ones((3, 2), np.int64), [3], "from_arrays"),
        (np.ones(3), [3], "tokens, d"),
        (np.ones((3, 2)), [1.5, 1.5], "integers"),
        (np.array([[1.0], [np.nan]]), [1, 1], "row 1"),
    ],
)
def test_the_constructor_checks_too(values, lengths, message):
    with pytest.raises(ValueError, match=message):
        Sequences(values, np.array(lengths))


def test_importing_embeddings_is_light():
    heavy = "gensim pandas jax scipy sklearn pyarrow tensorflow textkernels"
    code = f"import sys, embeddings; embeddings.get_encoder; print([m for m in {heavy.split()} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
