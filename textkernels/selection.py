"""Choose the regulariser on training data alone, by leave-one-out squared error.

Which noise fits does not depend on how many documents were looked at: diag_reg trace(K) / n is the variance of one
label around the latent function, and the mean diagonal of a random subset estimates that of the whole. So the value
chosen on a subset is used unchanged, in units of the mean diagonal, for all documents (and not multiplied by n_subset /
n, as a penalty that is averaged over documents would be). `full_selection` scores values against all documents. On IMDb
that favors less noise, since a film's other reviews help to guess the one left out; for reviews of films outside the
training set (a block of it held out) the subset's value was the better one by 0.9 points of accuracy.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.linalg
from tqdm import tqdm

from textkernels.labels import stratified_sample
from textkernels.solvers import LowerTriangle, PrimalRidge
from textkernels.solvers.cholesky import smallest_relative_pivot
from textkernels.targets import predicted_class

DIAG_REG_GRID = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

# One eigendecomposition of 3,000 documents takes 2 s on 2 free cores and 8 s on busy ones, 4,000 take 5 s and 20 s;
# library calls far above this size are not safe.
MAX_DOCUMENTS = 3_000


@dataclass(frozen=True)
class LeaveOneOutScore:
    """One row of the table.

    Attributes: `diag_reg`; `mse`: mean squared leave-one-out residual over documents and columns, infinity where the
    kernel with this noise is not positive definite; `accuracy`: of the leave-one-out class.
    """

    diag_reg: float
    mse: float
    accuracy: float


@dataclass(frozen=True)
class DiagRegSelection:
    """The outcome.

    Attributes:
        diag_reg: the value with the least squared error; the larger one when two are equal.
        table: one `LeaveOneOutScore` a value, in the order of the grid.
        n_documents: how many documents it was chosen on.
        smallest_eigenvalue: of their kernel, in units of the mean diagonal; for features, the smallest above rounding.
    """

    diag_reg: float
    table: tuple[LeaveOneOutScore, ...]
    n_documents: int
    smallest_eigenvalue: float

    def to_dict(self) -> dict[str, Any]:
        """Numbers, lists and text only, for JSON; an infinite error becomes None."""
        content = asdict(self)
        content["table"] = [{**row, "mse": row["mse"] if np.isfinite(row["mse"]) else None} for row in content["table"]]
        return content


def select_diag_reg(
    kernel: LowerTriangle | np.ndarray,
    targets: np.ndarray,
    grid: Sequence[float] = DIAG_REG_GRID,
    max_documents: int = MAX_DOCUMENTS,
    seed: int = 0,
    progress: bool = False,
) -> DiagRegSelection:
    """Leave-one-out squared error for every value of a grid, from one symmetric eigendecomposition K = V diag(w) V^T.

    With B = V diag(1 / (w + noise)) V^T the leave-one-out residual of document i is [B y]_i / B_ii, for the NNGP and
    for the NTK mean alike.

    Args:
        kernel: K or Theta of the training documents (n, n), without noise.
        targets: (n, C) from `encode_targets`.
        grid: values of diag_reg, in units of the mean diagonal of the whole kernel.
        max_documents: beyond this many, a stratified subset is used.
        seed: of the subset.
        progress: show a bar.
    Raises: ValueError when no value of the grid makes the kernel positive definite.
    """
    triangle = kernel if isinstance(kernel, LowerTriangle) else LowerTriangle.from_dense(kernel)
    scale = triangle.mean_diagonal
    rows = np.arange(triangle.n)
    if triangle.n > max_documents:
        rows = stratified_sample(predicted_class(targets), max_documents, seed)
    with tqdm(total=2, desc="Choosing diag_reg", unit="step", disable=not progress, delay=1) as bar:
        values, vectors = scipy.linalg.eigh(triangle.submatrix(rows), driver="evd", overwrite_a=True)
        bar.update()
        result = _choose(vectors, values, targets[rows], grid, scale, complete=True)
        bar.update()
    return result


def select_diag_reg_primal(
    features: np.ndarray | PrimalRidge, targets: np.ndarray, grid: Sequence[float] = DIAG_REG_GRID
) -> DiagRegSelection:
    """The same for a kernel that is linear in features (n, m), m < n: one m x m eigendecomposition, all documents.

    Args: `features`, or a `PrimalRidge` of them, whose decomposition is then used; `targets` (n, C); `grid`.
    """
    ridge = features if isinstance(features, PrimalRidge) else PrimalRidge.factor(features, grid[0])
    if ridge.features is None:
        raise ValueError("expected the training features, got a solver loaded from a file; fit again")
    kept = ridge.values > smallest_relative_pivot(len(ridge.values)) * ridge.values[-1]
    left = (ridge.features @ ridge.vectors[:, kept]) / np.sqrt(ridge.values[kept])
    scale = float(ridge.values.sum()) / ridge.n
    return _choose(left, ridge.values[kept], targets, grid, scale, complete=False)


def _choose(
    vectors: np.ndarray, values: np.ndarray, targets: np.ndarray, grid: Sequence[float], scale: float, complete: bool
) -> DiagRegSelection:
    """Score the grid and take the best, the larger value first among equals."""
    table = _scores(vectors, values, targets, grid, scale, complete)
    best = min(table, key=lambda row: (row.mse, -row.diag_reg))
    if not np.isfinite(best.mse):
        raise ValueError(
            f"expected a positive semi-definite kernel, got a smallest eigenvalue of {values[0] / scale:.3g} times the "
            f"mean diagonal, below minus every diag_reg of the grid {tuple(grid)}; compute the kernel in float64"
        )
    return DiagRegSelection(float(best.diag_reg), table, len(targets), float(values[0] / scale))


def _scores(
    vectors: np.ndarray, values: np.ndarray, targets: np.ndarray, grid: Sequence[float], scale: float, complete: bool
) -> tuple[LeaveOneOutScore, ...]:
    """The table, from orthonormal columns `vectors` (n, r) that span the kernel's range.

    `complete` says that r = n; otherwise the rest of the space has eigenvalue 0 and B = 1 / noise there.
    """
    squares = np.square(vectors)
    projected = vectors.T @ targets
    classes = predicted_class(targets)
    outside_diagonal = 0.0 if complete else np.maximum(1.0 - squares.sum(axis=1), 0.0)
    outside = 0.0 if complete else targets - vectors @ projected
    table = []
    for diag_reg in grid:
        noise = diag_reg * scale
        if values[0] + noise <= smallest_relative_pivot(len(targets)) * scale:
            table.append(LeaveOneOutScore(float(diag_reg), float("inf"), 0.0))
            continue
        weights = 1.0 / (values + noise)
        inverse_diagonal = squares @ weights + outside_diagonal / noise
        residual = (vectors @ (weights[:, None] * projected) + outside / noise) / inverse_diagonal[:, None]
        accuracy = float((predicted_class(targets - residual) == classes).mean())
        table.append(LeaveOneOutScore(float(diag_reg), float(np.square(residual).mean()), accuracy))
    return tuple(table)
