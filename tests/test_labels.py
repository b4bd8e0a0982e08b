"""Labels come back as they went in (CASES B24). Oracles: NumPy's unique, counts by hand."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textkernels.label_values import label_kind
from textkernels.labels import check_labels, is_missing_label, match_labels, stratified_sample

GOOD: list[tuple[Any, list[Any], type]] = [
    (["pos", "neg", "pos"], ["neg", "pos"], str),
    ([1, -1, 1], [-1, 1], np.integer),
    ([0, 1], [0, 1], np.integer),
    (["1", "0"], ["0", "1"], str),
    (["10", "9"], ["10", "9"], str),
    ([10, 9], [9, 10], np.integer),
    ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], np.integer),
    ([True, False], [False, True], np.bool_),
    ([0.5, 2.0], [0.5, 2.0], np.floating),
    (np.array([3, 1], np.int8), [1, 3], np.int8),
    (np.array(["b", "a"]), ["a", "b"], str),
    (pd.Series(["b", "a"]), ["a", "b"], str),
    (pd.Series([2, 1]), [1, 2], np.int64),
    (pd.Series([2, 1], dtype=object), [1, 2], np.integer),
    (pd.Series(["b", "a"], dtype="category"), ["a", "b"], str),
]


@pytest.mark.parametrize(("labels", "classes", "kind"), GOOD)
def test_labels_come_back_as_they_went_in(labels: Any, classes: list[Any], kind: type) -> None:
    found, codes = check_labels(labels)
    assert found.tolist() == classes
    assert all(isinstance(value, kind) for value in found)
    assert found[codes].tolist() == list(labels)


@given(st.lists(st.integers(-50, 50), min_size=2).filter(lambda v: len(set(v)) > 1 and not {-1, 0, 1} <= set(v)))
def test_numbers_are_coded_as_by_numpy(labels: list[int]) -> None:
    classes, codes = check_labels(labels)
    expected, inverse = np.unique(labels, return_inverse=True)
    assert np.array_equal(classes, expected)
    assert np.array_equal(codes, inverse)


BAD: list[tuple[Any, str]] = [
    ([], "got none"),
    (["pos", "pos"], "at least two classes, got one: all 2 rows have the label 'pos'"),
    (np.array([1, 1]), "all 2 rows have the label 1"),
    (["pos", None, "neg", ""], r"2 of 4 rows without one \(rows 2, 4\).*--drop-unlabeled"),
    ([1.0, float("nan"), 0.0], r"1 of 3 rows without one \(row 2\)"),
    (pd.Series([1, None, 0], dtype="Int64"), r"\(row 2\)"),
    (["a", "b", " "], r"\(row 3\)"),
    ([1, "1", 0], r"number \(1 in row 1\) and text \('1' in row 2\)"),
    ([True, 0, 1], r"boolean \(True in row 1\) and number \(0 in row 2\)"),
    ([["a"], ["b"]], "texts, numbers or booleans, got list"),
    (np.zeros((3, 2)), r"one label a row, got an array of shape \(3, 2\)"),
    ([f"text {n}" for n in range(150)], "150 different labels in 150 rows"),
    (["a", "a\x00", "b"], r"do not end in a NUL character, got 'a\\x00', which NumPy would make 'a'"),
    (["a", "b\x00"], "NUL character"),
    ([2**53, 2**53 + 1, 0.5], "one NumPy array can hold, got 9007199254740993, which would become 9007199254740992.0"),
    ([np.int64(2**53), np.int64(2**53 + 1), 0.5], "got 9007199254740993"),
    ([2**63 + 1, -1], "got 9223372036854775809"),
]


@pytest.mark.parametrize(("labels", "words"), BAD)
def test_bad_labels(labels: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_labels(labels)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([-1, 0, 1], "does -1 mark rows without a label"),
        (["-1", "0", "1"], "does -1 mark rows without a label"),
        ([-1.0, 0.0, 1.0, 2.0], "does -1 mark rows without a label"),
        ([" Positive", "NEG"], "' Positive' has spaces around it"),
        (["Pos", "pos ", "neg"], "'Pos' and 'pos ' differ in spaces or letter case only"),
        (["1", "01", "2"], "'01' and '1' are one number in two spellings"),
        (["-1.0", "0", "1"], "does -1 mark rows without a label"),
    ],
)
def test_doubtful_labels_warn_and_stay(labels: list[Any], words: str) -> None:
    with pytest.warns(UserWarning, match=words):
        classes, codes = check_labels(labels)
    assert classes[codes].tolist() == labels


@pytest.mark.parametrize("labels", ["ab", b"ab", {"a": 1, "b": 2}, {"a", "b"}])
def test_labels_that_are_no_list(labels: Any) -> None:
    with pytest.raises(TypeError, match="expected a list of labels, one a row, got"):
        check_labels(labels)


@pytest.mark.parametrize("labels", [[2**53, 2**53 + 1], [2**64, 2**70], ["a\x00b", "ab"]])
def test_labels_that_an_array_holds_stay_apart(labels: list[Any]) -> None:
    classes, codes = check_labels(labels)
    assert classes[codes].tolist() == labels


@pytest.mark.parametrize("labels", [[-1, 1], [-2, -1, 0, 1, 2], [0, 1, 2], ["-1", "1"]])
def test_clear_labels_do_not_warn(labels: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_labels(labels)


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        *((value, True) for value in (None, float("nan"), np.nan, pd.NA, pd.NaT, "", " \t")),
        *((value, False) for value in ("nan", 0, False, -1, "0")),
    ],
)
def test_missing_labels(value: object, missing: bool) -> None:
    assert is_missing_label(value) is missing


@pytest.mark.parametrize(
    ("labels", "classes", "matched"),
    [
        (["1", "0"], [0, 1], [1, 0]),
        ([1, 0], ["0", "1"], ["1", "0"]),
        (["True", "False"], [False, True], [True, False]),
        (["pos", "odd"], ["neg", "pos"], ["pos", "odd"]),
        ([1, "0"], [0, 1], [1, 0]),
        (["Pos"], ["neg", "pos"], ["Pos"]),
        ([1, 0], np.array([0, 1]), [1, 0]),
        # Numbers, however a file spells them.
        (["1", "2.5", "5", "9"], np.array([1, 2.5, 4.5, 5]), [1.0, 2.5, 5.0, "9"]),
        (["1.0", "+5", " 5e0 ", "05"], [1, 5], [1, 5, 5, 5]),
        ([0.0, 1.0], ["0", "1"], ["0", "1"]),
        (["0.0", "1"], ["0", "1"], ["0", "1"]),
        (["0", "1"], [0.0, 1.0], [0.0, 1.0]),
        ([np.float32(0.1)], ["0.1", "1"], ["0.1"]),
        (["0.1"], np.array([0.1, 1], np.float32), [np.float32(0.1)]),
        (["9007199254740993"], [2**53, 2**53 + 1], [2**53 + 1]),
        ([-0.0], ["0", "1"], ["0"]),
        # Texts that are no numbers beside one that is: only a number is compared as one.
        (["1.0", 1.0, "x"], ["1", "unknown"], ["1.0", "1", "x"]),
        (["nan", "inf", "1_0", "\u0661"], [1, 10], ["nan", "inf", "1_0", "\u0661"]),
        (["01", "1"], ["01", "1"], ["01", "1"]),
        # Booleans.
        (["true", "FALSE", "1"], [False, True], [True, False, True]),
        ([True, False], ["false", "true"], ["true", "false"]),
        ([True, False], ["0", "1"], ["1", "0"]),
        ([True, 1, 1.0], [0, 1], [1, 1, 1]),
        ([1, True], ["1", "true"], ["1", "true"]),
    ],
)
def test_labels_of_another_type_are_matched(labels: Any, classes: Any, matched: list[Any]) -> None:
    found = match_labels(labels, classes)
    assert found == matched
    assert [label_kind(label) for label in found] == [label_kind(label) for label in matched]  # True == 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(), min_size=1, unique=True))
def test_the_spelling_of_a_number_finds_it(numbers: list[float]) -> None:
    assert match_labels(map(str, numbers), numbers) == numbers
    assert match_labels(numbers, map(str, numbers)) == [str(number) for number in numbers]


@pytest.mark.parametrize(
    ("labels", "classes", "words"),
    [
        ([2, 1], ["1", "01", "2"], r"got 1 in row 2, which may be '1' or '01'"),
        (["1.0"], ["1", "01"], r"got '1.0' in row 1, which may be '1' or '01'"),
        ([True], ["True", "true"], r"got True in row 1, which may be 'True' or 'true'"),
        (["a", ["b"]], ["a", "b"], r"got list in row 2"),
    ],
)
def test_labels_that_may_be_two_classes_are_an_error(labels: Any, classes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        match_labels(labels, classes)


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    share=st.floats(0, 1),
    seed=st.integers(0, 5),
    shuffled=st.booleans(),
)
def test_samples_keep_the_shares(counts: list[int], share: float, seed: int, shuffled: bool) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    if shuffled:
        np.random.default_rng(0).shuffle(labels)
    limit = max(len(counts), round(share * len(labels)))
    rows = stratified_sample(labels, limit, seed)
    assert len(rows) == min(limit, len(labels))
    assert (np.diff(rows) > 0).all()
    drawn = Counter(labels[rows].tolist())
    assert set(drawn) == set(range(len(counts)))
    lifted = sum(1 for count in counts if count * limit < len(labels))
    for name, count in enumerate(counts):
        quota = count * limit / len(labels)
        # At most the rounding, and the rows taken to give small classes their one.
        assert drawn[name] <= count
        assert -1 - lifted < drawn[name] - quota < 1 or drawn[name] == 1
    assert np.array_equal(rows, stratified_sample(labels, limit, seed))


def test_sample_by_hand() -> None:
    # 8 of 12 rows in shares 6 : 4 : 2 are 4, 2.67, 1.33: the largest remainder gets the last row.
    labels = ["a"] * 6 + ["b"] * 4 + ["c"] * 2
    rows = stratified_sample(labels, 8, seed=1)
    assert Counter(labels[row] for row in rows) == {"a": 4, "b": 3, "c": 1}
    assert any(not np.array_equal(rows, stratified_sample(labels, 8, seed)) for seed in range(2, 6))


def test_limit_below_the_number_of_classes_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 3, one row a class, got 2"):
        stratified_sample(["a", "b", "c", "a"], 2, seed=0)


def test_limit_above_the_rows_takes_all() -> None:
    assert stratified_sample(["a", "b", "a"], 10, seed=0).tolist() == [0, 1, 2]
