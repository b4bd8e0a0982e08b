"""Metrics by hand and against scikit-learn."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from textkernels.evaluation import BINS, evaluate, expected_calibration_error, reliability

KEYS = ["accuracy", "macro_f1", "log_loss", "brier", "ece", "confusion", "per_class", "n", "classes", "reliability"]

CLASSES = {
    "strings": np.array(["neg", "pos"]),
    "integers": np.array([-1, 1]),
    "booleans": np.array([False, True]),
    "digits": np.array(["0", "1"]),
    "stars": np.array([1, 2, 3, 4, 5]),
    "three": np.array(["a", "b", "c"]),
}


def predictions(classes: np.ndarray, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(len(classes))
    probabilities = random.dirichlet(np.ones(len(classes)), n)
    true = classes[np.where(random.random(n) < 0.6, probabilities.argmax(axis=1), random.integers(0, len(classes), n))]
    return true, classes[probabilities.argmax(axis=1)], probabilities


@pytest.mark.parametrize("name", CLASSES)
def test_metrics_are_scikit_learns(name: str) -> None:
    classes = CLASSES[name]
    true, predicted, probabilities = predictions(classes)
    got = evaluate(true, predicted, probabilities, classes)
    assert list(got) == KEYS
    assert got["accuracy"] == metrics.accuracy_score(true, predicted)
    assert got["macro_f1"] == pytest.approx(metrics.f1_score(true, predicted, average="macro"))
    assert got["log_loss"] == pytest.approx(metrics.log_loss(true, probabilities, labels=classes))
    one_hot = true[:, None] == classes[None]
    if len(classes) == 2:
        assert got["brier"] == pytest.approx(metrics.brier_score_loss(one_hot[:, 1], probabilities[:, 1]))
    else:
        assert got["brier"] == pytest.approx(np.square(probabilities - one_hot).sum(axis=1).mean())
    assert got["confusion"] == metrics.confusion_matrix(true, predicted, labels=classes).tolist()
    report = metrics.classification_report(true, predicted, output_dict=True)
    for label in classes:
        row, expected = got["per_class"][str(label)], report[str(label)]
        assert row["precision"] == pytest.approx(expected["precision"])
        assert row["recall"] == pytest.approx(expected["recall"])
        assert row["f1"] == pytest.approx(expected["f1-score"])
        assert row["support"] == expected["support"]
    assert got["n"] == 300
    assert got["classes"] == classes.tolist()


@pytest.mark.parametrize("name", CLASSES)
def test_everything_is_json(name: str) -> None:
    true, predicted, probabilities = predictions(CLASSES[name])
    got = evaluate(true.tolist(), list(predicted), probabilities.astype(np.float32), list(CLASSES[name]))
    assert json.loads(json.dumps(got, allow_nan=False)) == got


def test_calibration_by_hand() -> None:
    # (0.6, 0.667] holds 0.65, 0.65, 0.61 with one right; (0.933, 1] holds 1.0 and 0.95, both right.
    top = np.array([0.65, 0.65, 0.61, 1.0, 0.95])
    correct = np.array([True, False, False, True, True])
    table = reliability(correct, top)
    assert [row["count"] for row in table] == [0] * 9 + [3] + [0] * 4 + [2]
    assert table[9]["confidence"] == pytest.approx(1.91 / 3)
    assert table[9]["accuracy"] == pytest.approx(1 / 3)
    assert table[0]["accuracy"] is None
    assert expected_calibration_error(table) == pytest.approx((3 * abs(1 / 3 - 1.91 / 3) + 2 * 0.025) / 5)


def test_bins_are_equal_and_closed_above() -> None:
    table = reliability(np.ones(3, dtype=bool), np.array([0.0, 9 / 15, 1.0]))
    assert len(table) == BINS == 15
    assert [index for index, row in enumerate(table) if row["count"]] == [0, 8, 14]
    assert table[8]["upper"] == pytest.approx(0.6)


def test_perfect_and_calibrated_extremes() -> None:
    true = np.array(["neg", "pos", "pos"])
    got = evaluate(true, true, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), ["neg", "pos"])
    assert (got["accuracy"], got["macro_f1"], got["brier"], got["ece"]) == (1.0, 1.0, 0.0, 0.0)
    assert got["log_loss"] == pytest.approx(0.0, abs=1e-12)
    wrong = evaluate(true, ["pos", "neg", "neg"], np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), ["neg", "pos"])
    assert (wrong["accuracy"], wrong["brier"], wrong["ece"]) == (0.0, 1.0, 1.0)
    assert np.isfinite(wrong["log_loss"])


def test_a_class_that_does_not_occur_is_listed_and_not_averaged() -> None:
    true, probabilities = ["a", "b"], np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]])
    got = evaluate(true, true, probabilities, ["a", "b", "c"])
    assert got["macro_f1"] == 1.0
    assert got["per_class"]["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
    assert got["confusion"] == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_an_unseen_label_counts_as_wrong_with_a_warning() -> None:
    true, predicted = ["neg", "mixed", "pos", "mixed"], ["neg", "pos", "pos", "neg"]
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    with pytest.warns(UserWarning, match=r"2 of 4 rows have a label the model was not trained on, \['mixed'\]"):
        got = evaluate(true, predicted, probabilities, ["neg", "pos"])
    assert got["accuracy"] == 0.5
    assert got["n"] == 4
    assert got["classes"] == ["neg", "pos", "mixed"]
    assert got["confusion"] == [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert got["per_class"]["mixed"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2}
    # Halved as for two classes: (0.1^2 + 0.1^2 + 0.3^2 + 0.3^2 + (0.2^2 + 0.8^2 + 1) + (0.6^2 + 0.4^2 + 1)) / 4 / 2.
    assert got["brier"] == pytest.approx((0.02 + 0.18 + 1.68 + 1.52) / 8)
    assert np.isfinite(got["log_loss"])


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([0, 1], ["0", "1"], r"expected labels among \['0', '1'\], got \[0, 1\]"),
        (["0", "1"], ["0", "2"], r"expected labels among \['0', '1'\], got \['2'\]"),
        (["0"], ["0", "1"], "as many labels as predictions"),
        ([], [], "at least one"),
    ],
)
def test_errors_say_what_is_wrong(true: list[Any], predicted: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(true, predicted, np.full((len(predicted), 2), 0.5), ["0", "1"])


@pytest.mark.parametrize("row", [[0.5, 0.4], [1.2, -0.2], [np.nan, 0.5]])
def test_numbers_that_are_no_probabilities(row: list[float]) -> None:
    with pytest.raises(ValueError, match=r"probabilities that sum to 1, got .* in row 1"):
        evaluate(["a", "b"], ["a", "b"], np.array([[0.7, 0.3], row]), ["a", "b"])


def test_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match="one column for each of 2 classes"):
        evaluate(["a"], ["a"], np.ones((1, 3)) / 3, ["a", "b"])
