"""Leave-one-out against all training documents for a grid of regularizers, by a factorization a value.

With B = (K + noise I)^-1 the leave-one-out residual is [B y]_i / B_ii; a Cholesky factor costs n^3 / 3 flops and the
diagonal of B as much again. One eigendecomposition K = V diag(w) V^T would serve all values, but takes about 9 n^3
flops, half of them at the speed of memory, three n x n matrices, and a library call far above the size that is safe
(see `solvers.blocks`). Up to a few thousand documents it is faster for a grid of eight values all the same, and is what
a fit uses, on a subset (`selection`); for all of 25,000 documents this module is the way. benchmarks/leave_one_out.py
measures both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tqdm import tqdm

from textkernels.selection import DIAG_REG_GRID, DiagRegSelection, LeaveOneOutScore
from textkernels.solvers import CholeskyFactor, LowerTriangle
from textkernels.solvers.cholesky import smallest_relative_pivot
from textkernels.solvers.diagnosis import smallest_eigenvalue
from textkernels.solvers.factorization import factorize_in_place
from textkernels.targets import predicted_class


def select_diag_reg_full(
    kernel: LowerTriangle,
    targets: np.ndarray,
    grid: Sequence[float] = DIAG_REG_GRID,
    start: float | None = None,
    rows: np.ndarray | None = None,
    progress: bool = False,
) -> DiagRegSelection:
    """Least leave-one-out squared error over all n documents; needs the memory of a second triangle.

    Arguments:
        kernel: K or Theta of the training documents, without noise; not changed.
        targets: (n, C) from `encode_targets`.
        grid: values of diag_reg, in units of the mean diagonal.
        start: None scores the whole grid. A value of the grid, such as the choice on a subset, is where a walk starts
            that goes on to whichever neighbor is better until none is: three or four values instead of eight, and the
            same result wherever the error falls and then rises along the grid. Smaller values are tried first: the
            more documents, the smaller the best one tends to be.
        rows: leave out these documents only, each predicted from all n - 1 others; a few thousand of 25,000 save half
            of the work. None: all.
        progress: show a bar.
    Returns: the table holds the values that were scored, in the order of the grid; an infinite error where K with this
        noise is not positive definite.
    Raises: ValueError when no value scored makes the kernel positive definite, or when `start` is not in the grid.
    """
    values = sorted(float(value) for value in grid)
    scores: dict[float, LeaveOneOutScore] = {}
    with tqdm(total=len(values), desc="Choosing diag_reg", unit="value", disable=not progress, delay=1) as bar:

        def scored(place: int) -> float:
            if not 0 <= place < len(values):
                return np.inf
            if values[place] not in scores:
                scores[values[place]] = _score(kernel, targets, values[place], rows, progress)
                bar.update()
            return scores[values[place]].mse

        if start is None:
            for place in reversed(range(len(values))):
                scored(place)
        else:
            _walk(scored, values.index(float(start)))
    best = min(scores.values(), key=lambda row: (row.mse, -row.diag_reg))
    lowest = smallest_eigenvalue(kernel) / kernel.mean_diagonal
    if not np.isfinite(best.mse):
        raise ValueError(
            f"expected a positive semi-definite kernel, got a smallest eigenvalue of {lowest:.3g} times the mean "
            "diagonal; compute the kernel in float64"
        )
    table = tuple(scores[float(value)] for value in grid if float(value) in scores)
    return DiagRegSelection(best.diag_reg, table, kernel.n, lowest)


def _walk(scored: Callable[[int], float], place: int) -> None:
    """To the better neighbor until there is none."""
    here = scored(place)
    for step in (-1, 1):
        moved = False
        while scored(place + step) < here:
            place, here, moved = place + step, scored(place + step), True
        if moved:
            return


def _score(
    kernel: LowerTriangle, targets: np.ndarray, diag_reg: float, rows: np.ndarray | None, progress: bool
) -> LeaveOneOutScore:
    noise, lower = diag_reg * kernel.mean_diagonal, kernel.copy()
    lower.add_diagonal(noise)
    if not factorize_in_place(lower, smallest_relative_pivot(kernel.n) * kernel.mean_diagonal, progress):
        return LeaveOneOutScore(diag_reg, float("inf"), 0.0)
    factor = CholeskyFactor(lower, noise, diag_reg, 0.0)
    chosen = slice(None) if rows is None else rows
    residual = factor.solve(targets)[chosen] / factor.inverse_diagonal(rows, progress)[:, None]
    target = targets[chosen]
    accuracy = float((predicted_class(target - residual) == predicted_class(target)).mean())
    return LeaveOneOutScore(diag_reg, float(np.square(residual).mean()), accuracy)
