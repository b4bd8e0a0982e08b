"""Choosing diag_reg: every entry of the table against explicit refits, and the choice against plain reading of it."""

import json

import numpy as np
import pytest

from textkernels.labels import stratified_sample
from textkernels.selection import DIAG_REG_GRID, select_diag_reg, select_diag_reg_primal
from textkernels.solvers import LowerTriangle, PrimalRidge
from textkernels.targets import encode_targets, predicted_class

N = 24


def noisy_problem(n: int, n_classes: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of labels that follow a few of the features, with errors."""
    random = np.random.default_rng(seed)
    features = random.standard_normal((n, columns))
    signal = features[:, :n_classes] + 0.7 * random.standard_normal((n, n_classes))
    return features, encode_targets(signal.argmax(axis=1), n_classes)


def refits(kernel: np.ndarray, y: np.ndarray, diag_reg: float) -> np.ndarray:
    """Leave-one-out means by solving n systems of n - 1 equations, the noise held fixed."""
    n = len(kernel)
    noise = diag_reg * np.trace(kernel) / n
    means = np.empty_like(y)
    for row in range(n):
        rest = np.delete(np.arange(n), row)
        inner = kernel[np.ix_(rest, rest)] + noise * np.eye(n - 1)
        means[row] = kernel[row, rest] @ np.linalg.solve(inner, y[rest])
    return means


@pytest.mark.parametrize("n_classes", [2, 3])
def test_table_is_refitting_without_one(n_classes: int) -> None:
    features, y = noisy_problem(N, n_classes, 40)
    kernel = features @ features.T
    result = select_diag_reg(kernel, y)
    assert [row.diag_reg for row in result.table] == list(DIAG_REG_GRID)
    for row in result.table:
        means = refits(kernel, y, row.diag_reg)
        assert row.mse == pytest.approx(np.square(y - means).mean(), rel=1e-8)
        assert row.accuracy == np.mean(predicted_class(means) == predicted_class(y))
    best = min(result.table, key=lambda row: row.mse)
    assert result.diag_reg == best.diag_reg
    assert result.n_documents == N
    scale = np.trace(kernel) / N
    assert result.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(kernel)[0] / scale, abs=1e-12)


def test_primal_table_is_the_dense_one() -> None:
    features, y = noisy_problem(60, 3, 7)
    # A column that repeats another: the second moments are singular, and so is the kernel.
    features[:, 6] = features[:, 0]
    grid = (1e-5, 1e-3, 1e-1, 1.0)
    primal = select_diag_reg_primal(features, y, grid)
    dense = select_diag_reg(features @ features.T, y, grid)
    for left, right in zip(primal.table, dense.table, strict=True):
        assert left.mse == pytest.approx(right.mse, rel=1e-8)
        assert left.accuracy == right.accuracy
    assert primal.diag_reg == dense.diag_reg
    assert select_diag_reg_primal(PrimalRidge.factor(features, 0.3), y, grid) == primal


@pytest.mark.parametrize(("labels", "expected"), [("noise", 1.0), ("exact", 1e-7)])
def test_noise_in_the_labels_decides(labels: str, expected: float) -> None:
    features, _ = noisy_problem(120, 2, 4)
    random = np.random.default_rng(1)
    y = features[:, :1] if labels == "exact" else random.permutation(np.repeat([-0.5, 0.5], 60))[:, None]
    grid = (1e-7, 1e-3, 1.0)
    assert select_diag_reg(features @ features.T, y, grid).diag_reg == expected
    assert select_diag_reg_primal(features, y, grid).diag_reg == expected


def test_the_larger_of_two_equal_values_wins() -> None:
    # Documents that share nothing: leave-one-out predicts 0 whatever the noise.
    y = encode_targets(np.arange(8) % 2, 2)
    assert select_diag_reg(np.eye(8), y).diag_reg == max(DIAG_REG_GRID)


def test_subset_beyond_the_limit() -> None:
    features, y = noisy_problem(150, 3, 5)
    kernel = features @ features.T + np.eye(150)
    triangle = LowerTriangle.from_dense(kernel, 40)
    result = select_diag_reg(triangle, y, max_documents=60, seed=3)
    rows = stratified_sample(predicted_class(y), 60, 3)
    assert result.n_documents == len(rows) == 60
    # The unit is the mean diagonal of the whole kernel, so that the value can be used for it unchanged.
    part = kernel[np.ix_(rows, rows)]
    ratio = np.trace(kernel) / 150 / (np.trace(part) / 60)
    for row in result.table:
        expected = np.square(y[rows] - refits(part, y[rows], row.diag_reg * ratio)).mean()
        assert row.mse == pytest.approx(expected, rel=1e-8)
    assert select_diag_reg(triangle, y, max_documents=60, seed=3) == result
    assert select_diag_reg(triangle, y, max_documents=60, seed=4) != result
    np.testing.assert_array_equal(triangle.to_dense(), kernel)


def test_values_below_a_negative_eigenvalue_are_not_chosen() -> None:
    features, y = noisy_problem(N, 2, 40)
    kernel = features @ features.T
    values, vectors = np.linalg.eigh(kernel)
    kernel -= (values[0] + 2e-5 * np.trace(kernel) / N) * np.outer(vectors[:, 0], vectors[:, 0])
    result = select_diag_reg(kernel, y)
    assert [np.isfinite(row.mse) for row in result.table] == [False, False, False, True, True, True, True, True]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["table"][0]["mse"] is None
    assert result.diag_reg >= 1e-4
    with pytest.raises(ValueError, match="positive semi-definite"):
        select_diag_reg(kernel - 3.0 * np.trace(kernel) / N * np.outer(vectors[:, 0], vectors[:, 0]), y)
