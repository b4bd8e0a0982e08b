"""How good are the predictions, and how honest the probabilities."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

BINS = 15

# Probabilities read back from a file have lost digits.
SUM_TOLERANCE = 1e-3


def evaluate(
    y_true: Iterable[Any], y_pred: Iterable[Any], probabilities: np.ndarray, classes: Sequence[Any] | np.ndarray
) -> dict[str, Any]:
    """All metrics of one test set; only numbers, text, lists and dictionaries, ready for JSON.

    - accuracy, macro_f1: F1 is averaged over the classes that occur in `y_true` or `y_pred`.
    - log_loss: natural logarithm.
    - brier: see `brier_score`; one column for two classes.
    - ece: 15 equal-width bins of the top probability, see `expected_calibration_error`; reliability: its table.
    - confusion: one row a true class, one column a predicted class, in the order of classes.
    - per_class: precision, recall, f1 and support by class name.
    - n: rows; classes: names in order.

    A true label the model does not know counts as wrong with probability 0 and gets a class of its own, with a warning.

    Args:
        y_true, y_pred: n labels.
        probabilities: (n, C), columns in the order of `classes`; rows sum to 1, up to the digits of a file.
        classes: the C labels that the model knows.
    Raises: ValueError for lengths that differ, no rows, numbers that are no probabilities, a prediction outside
        `classes`, or when the model knows none of the true labels.
    """
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss

    probabilities = np.asarray(probabilities, dtype=np.float64)
    known = [_plain(label) for label in classes]
    names, true = _codes(y_true, known, extend=True)
    _, predicted = _codes(y_pred, known, extend=False)
    _check(true, predicted, probabilities, known)
    padded = np.pad(probabilities / probabilities.sum(axis=1, keepdims=True), ((0, 0), (0, len(names) - len(known))))
    table = reliability(true == predicted, padded.max(axis=1))
    labels = list(range(len(names)))
    return {
        "accuracy": float(accuracy_score(true, predicted)),
        "macro_f1": float(f1_score(true, predicted, average="macro", zero_division=0.0)),
        "log_loss": float(log_loss(true, padded, labels=labels)),
        "brier": brier_score(true, padded, halve=len(known) == 2),
        "ece": expected_calibration_error(table),
        "confusion": confusion_matrix(true, predicted, labels=labels).tolist(),
        "per_class": _per_class(true, predicted, names),
        "n": len(true),
        "classes": names,
        "reliability": table,
    }


def brier_score(class_index: np.ndarray, probabilities: np.ndarray, halve: bool) -> float:
    """Mean of sum_c (p_c - y_c)^2 (Brier, 1950), 0 to 2; halved, it is mean (p_1 - y)^2 for two classes."""
    errors = probabilities.copy()
    errors[np.arange(len(class_index)), class_index] -= 1.0
    return float(np.square(errors).sum(axis=1).mean()) * (0.5 if halve else 1.0)


def reliability(correct: np.ndarray, top_probability: np.ndarray, bins: int = BINS) -> list[dict[str, Any]]:
    """The reliability table: one row for each of `bins` equal intervals (lower, upper] of the top probability.

    Args: `correct` (n,) booleans; `top_probability` (n,); `bins`.
    Returns: rows with lower, upper, count, confidence (mean top probability), accuracy; None where nothing is.
    """
    index = np.clip(np.ceil(np.asarray(top_probability) * bins).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(index, minlength=bins)
    confidence = np.bincount(index, weights=top_probability, minlength=bins)
    right = np.bincount(index, weights=correct, minlength=bins)
    return [
        {
            "lower": row / bins,
            "upper": (row + 1) / bins,
            "count": int(counts[row]),
            "confidence": float(confidence[row] / counts[row]) if counts[row] else None,
            "accuracy": float(right[row] / counts[row]) if counts[row] else None,
        }
        for row in range(bins)
    ]


def expected_calibration_error(table: list[dict[str, Any]]) -> float:
    """sum_b count_b / n |accuracy_b - confidence_b| over a `reliability` table (Guo et al., 2017)."""
    rows = [row for row in table if row["count"]]
    total = sum(row["count"] for row in rows)
    return float(sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in rows) / total)


def _per_class(true: np.ndarray, predicted: np.ndarray, names: list[Any]) -> dict[str, dict[str, float]]:
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(true, predicted, labels=list(range(len(names))), zero_division=0.0)
    keys = ("precision", "recall", "f1")
    table = {}
    for index, name in enumerate(names):
        table[str(name)] = {key: float(column[index]) for key, column in zip(keys, columns, strict=False)}
        table[str(name)]["support"] = int(columns[3][index])
    return table


def _codes(labels: Iterable[Any], known: list[Any], extend: bool) -> tuple[list[Any], np.ndarray]:
    """Labels as positions in `known`; with `extend`, labels not in it are appended, with a warning."""
    names = list(known)
    position = {name: index for index, name in enumerate(names)}
    plain = [_plain(label) for label in labels]
    unknown = sorted({label for label in plain if label not in position}, key=str)
    if unknown and (not extend or all(label not in position for label in plain)):
        raise ValueError(
            f"expected labels among {known}, got {unknown[:5]}; use the spelling and type of the training labels"
        )
    if unknown:
        count = sum(label not in position for label in plain)
        warnings.warn(
            f"{count} of {len(plain)} rows have a label the model was not trained on, {unknown[:5]}: counted as wrong",
            stacklevel=3,
        )
        position.update({name: len(names) + index for index, name in enumerate(unknown)})
        names += unknown
    return names, np.array([position[label] for label in plain], dtype=np.int64)


def _check(true: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray, known: list[Any]) -> None:
    if not len(true) == len(predicted) == len(probabilities) or len(true) == 0:
        raise ValueError(
            f"expected as many labels as predictions and probabilities, at least one, got {len(true)}, "
            f"{len(predicted)} and {len(probabilities)}"
        )
    if probabilities.ndim != 2 or probabilities.shape[1] != len(known):
        raise ValueError(f"expected one column for each of {len(known)} classes, got shape {probabilities.shape}")
    wrong = (np.abs(probabilities.sum(axis=1) - 1.0) > SUM_TOLERANCE) | ~(probabilities >= 0.0).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"expected probabilities that sum to 1, got {probabilities[row].tolist()} in row {row}")


def _plain(label: Any) -> Any:
    """A Python object in place of a NumPy scalar, so that JSON can write it."""
    return label.item() if isinstance(label, np.generic) else label
