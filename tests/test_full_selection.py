"""Leave-one-out for a grid by factorizations: the same table as by one eigendecomposition and by explicit refits."""

from functools import partial

import numpy as np
import pytest
from cases import documents

import textkernels as tk
from textkernels import solving
from textkernels.engines import choose_kernel
from textkernels.full_selection import select_diag_reg_full
from textkernels.selection import select_diag_reg
from textkernels.solvers import LowerTriangle
from textkernels.targets import encode_targets

GRID = (1e-7, 1e-4, 1e-2, 1e-1, 1.0)
N = 37


def problem(rank: int = N) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    phi = random.standard_normal((N, rank))
    return phi @ phi.T, np.where(phi[:, :1] + random.standard_normal((N, 1)) > 0, 0.5, -0.5)


@pytest.mark.parametrize("columns", [1, 3])
def test_table_equals_explicit_refits(columns: int) -> None:
    kernel, y = problem()
    y = y if columns == 1 else np.eye(3)[np.arange(N) % 3] - 1 / 3
    table = select_diag_reg_full(LowerTriangle.from_dense(kernel, block=8), y, GRID).table
    for score in table:
        noise = score.diag_reg * np.trace(kernel) / N
        residual = np.empty_like(y)
        for out in range(N):
            rest = np.delete(np.arange(N), out)
            inside = kernel[np.ix_(rest, rest)] + noise * np.eye(N - 1)
            residual[out] = y[out] - kernel[out, rest] @ np.linalg.solve(inside, y[rest])
        assert score.mse == pytest.approx(np.square(residual).mean(), rel=1e-8)


def test_some_rows_are_left_out_against_all_others() -> None:
    kernel, y = problem()
    triangle, rows = LowerTriangle.from_dense(kernel, block=8), np.array([3, 8, 30])
    score = select_diag_reg_full(triangle, y, [0.1], rows=rows).table[0]
    residual = []
    for out in rows:
        rest = np.delete(np.arange(N), out)
        inside = kernel[np.ix_(rest, rest)] + 0.1 * np.trace(kernel) / N * np.eye(N - 1)
        residual.append(y[out] - kernel[out, rest] @ np.linalg.solve(inside, y[rest]))
    assert score.mse == pytest.approx(np.square(residual).mean(), rel=1e-8)
    assert score.accuracy == np.mean([np.sign(y[i] - r) == np.sign(y[i]) for i, r in zip(rows, residual, strict=True)])


def test_same_choice_as_the_eigendecomposition_and_the_kernel_stays() -> None:
    kernel, y = problem()
    triangle = LowerTriangle.from_dense(kernel, block=8)
    ours, theirs = select_diag_reg_full(triangle, y, GRID), select_diag_reg(kernel, y, GRID)
    assert ours.diag_reg == theirs.diag_reg
    np.testing.assert_allclose([s.mse for s in ours.table], [s.mse for s in theirs.table], rtol=1e-9)
    assert [s.accuracy for s in ours.table] == [s.accuracy for s in theirs.table]
    assert ours.n_documents == N
    np.testing.assert_array_equal(triangle.to_dense(), kernel)


@pytest.mark.parametrize("start", GRID)
def test_a_walk_ends_where_the_whole_grid_does(start: float) -> None:
    triangle = LowerTriangle.from_dense(problem()[0])
    y = problem()[1]
    whole, walk = select_diag_reg_full(triangle, y, GRID), select_diag_reg_full(triangle, y, GRID, start=start)
    assert walk.diag_reg == whole.diag_reg
    assert set(walk.table) <= set(whole.table)
    at = GRID.index(whole.diag_reg)
    if start == whole.diag_reg:
        assert [s.diag_reg for s in walk.table] == list(GRID[max(at - 1, 0) : at + 2])


def test_kernels_that_are_no_covariances() -> None:
    kernel, y = problem(rank=5)
    shifted = LowerTriangle.from_dense(kernel - 0.03 * np.eye(N))
    table = select_diag_reg_full(shifted, y, GRID).table
    assert [np.isinf(score.mse) for score in table] == [True, True, False, False, False]
    with pytest.raises(ValueError, match="smallest eigenvalue of -"):
        select_diag_reg_full(shifted, y, (1e-7, 1e-6))


def test_auto_full_is_the_best_value_on_all_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subset of 20 documents is where the walk over all 120 starts."""
    texts, codes = documents(lengths=[3, 5, 2, 7, 4] * 24), np.arange(120) % 2
    kernel = choose_kernel(tk.named_architecture("gap-fcn"))
    train, targets = kernel.prepare(texts), encode_targets(codes, 2)
    nngp = solving.gram_triangles(kernel, train, False)[0]
    best = select_diag_reg_full(nngp, targets)
    monkeypatch.setattr(solving, "select_diag_reg", partial(select_diag_reg, max_documents=20))
    part, whole = (solving.solve(kernel, train, targets, False, how).selection for how in ("auto", "auto-full"))
    assert part.n_documents == 20
    assert whole.n_documents == 120
    assert whole.diag_reg == best.diag_reg
