"""Why a kernel matrix cannot be factorised: repeated documents, or eigenvalues below zero."""

from collections.abc import Callable

import numpy as np

from textkernels.solvers.lower_triangle import LowerTriangle

# Up to here a full eigendecomposition costs less than a second.
DENSE_LIMIT = 1_500


def duplicate_rows(matrix: LowerTriangle, tolerance: float = 1e-6) -> int:
    """How many documents repeat an earlier one, up to scale: K_ij = sqrt(K_ii K_jj) within a relative tolerance.

    The tolerance is above the rounding of float32 kernels. Cost: one look at every entry.
    """
    root = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    repeats = np.zeros(matrix.n, dtype=bool)
    for start, panel in matrix.columns():
        width = panel.shape[1]
        columns = root[start : start + width]
        for row in range(0, len(panel), width):
            rows = root[start + row : start + row + width]
            equal = panel[row : row + width] >= (1.0 - tolerance) * rows[:, None] * columns[None, :]
            equal &= (rows[:, None] > 0.0) & (columns[None, :] > 0.0)
            if row == 0:
                equal = np.tril(equal, -1)
            repeats[start + row : start + row + width] |= equal.any(axis=1)
    return int(repeats.sum())


def smallest_eigenvalue(matrix: LowerTriangle) -> float:
    """The smallest eigenvalue of a symmetric matrix: exact up to 1,500 rows, an upper bound from a few Lanczos steps
    beyond.

    Lanczos finds an isolated negative eigenvalue fast; for one lost in a cluster near zero the sign is what matters,
    and its Ritz value is never below the true one.
    """
    if matrix.n <= DENSE_LIMIT:
        return float(np.linalg.eigvalsh(matrix.to_dense())[0])
    return float(ritz_values(matrix.n, matrix.matmul)[0])


def ritz_values(n: int, product: Callable[[np.ndarray], np.ndarray], steps: int = 60) -> np.ndarray:
    """Ritz values, ascending, of a symmetric operator: Lanczos with full orthogonalisation from a seeded start.

    They lie between the operator's smallest and largest eigenvalue and close in on both ends.
    Args: `n`: rows; `product`: a vector (n,) -> its image (n,); `steps`: how many products to spend.
    """
    steps = min(steps, n)
    basis = np.zeros((steps, n))
    diagonal, off_diagonal = np.zeros(steps), np.zeros(steps)
    vector = np.random.default_rng(0).standard_normal(n)
    vector /= np.linalg.norm(vector)
    for step in range(steps):
        basis[step] = vector
        image = product(vector)
        diagonal[step] = vector @ image
        for _ in range(2):
            image -= basis[: step + 1].T @ (basis[: step + 1] @ image)
        off_diagonal[step] = np.linalg.norm(image)
        if off_diagonal[step] <= 1e-14 * abs(diagonal[: step + 1]).max():
            steps = step + 1
            break
        vector = image / off_diagonal[step]
    tridiagonal = (
        np.diag(diagonal[:steps]) + np.diag(off_diagonal[: steps - 1], 1) + np.diag(off_diagonal[: steps - 1], -1)
    )
    return np.asarray(np.linalg.eigvalsh(tridiagonal))
