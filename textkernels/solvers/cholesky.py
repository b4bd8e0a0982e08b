"""Cholesky: factor the n x n kernel once, solve many times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from tqdm import tqdm

from textkernels.solvers.blocks import add_product, solve_triangular
from textkernels.solvers.diagnosis import duplicate_rows, ritz_values, smallest_eigenvalue
from textkernels.solvers.ensemble import DenseEnsemble
from textkernels.solvers.factorization import factorize_in_place
from textkernels.solvers.lower_triangle import LowerTriangle

# In units of the mean diagonal. Float64 kernels with repeated documents need 1e-12 to 1e-10; float32 ones round each
# entry by 6e-8, which moves eigenvalues by about 6e-8 sqrt(n), 1e-5 at n = 25,000. Whatever needs more than 1e-4 is no
# covariance.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def jitters_for(diag_reg: float, n: int) -> Iterator[float]:
    """The jitters worth trying in turn: none, then those that `diag_reg` and the rounding of n rows would not drown.

    Raises: ValueError for a `diag_reg` that is negative or not a number.
    """
    if not 0.0 <= diag_reg < np.inf:
        raise ValueError(f"expected diag_reg >= 0, got {diag_reg}; use 'auto' or a value such as 1e-3")
    yield 0.0
    yield from (jitter for jitter in JITTERS[1:] if jitter >= max(diag_reg, smallest_relative_pivot(n)))


def smallest_relative_pivot(n: int) -> float:
    """n times the float64 unit of rounding: a pivot below this share of the mean diagonal carries no information."""
    return float(n * np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CholeskyFactor:
    """L with L L^T = K + noise I, and what was added to get there.

    Attributes:
        lower: L, (n, n), as panels.
        noise: the number added to the diagonal: (diag_reg + jitter) trace(K) / n.
        diag_reg: the regulariser asked for, in units of trace(K) / n.
        jitter: what had to be added to it so that the factorisation exists, same unit; 0.0 if nothing.
    """

    name: ClassVar = "cholesky"

    lower: LowerTriangle
    noise: float
    diag_reg: float
    jitter: float

    @classmethod
    def factor(
        cls, matrix: LowerTriangle, diag_reg: float, overwrite: bool = True, progress: bool = False
    ) -> "CholeskyFactor":
        """Factorise K + (diag_reg + jitter) trace(K) / n I, with the first jitter of `JITTERS` that works.

        Args:
            matrix: K, symmetric.
            diag_reg: at least 0, in units of trace(K) / n.
            overwrite: work inside `matrix`, which then holds L (or K again after an error); False copies it first.
            progress: show a bar.
        Raises: ValueError naming the cause when K is not a covariance matrix: no positive diagonal, or an eigenvalue
        that is
            negative by more than rounding.
        """
        lower = matrix if overwrite else matrix.copy()
        diagonal, scale = lower.diagonal(), lower.mean_diagonal
        if not (scale > 0.0 and (diagonal >= 0.0).all()):
            raise ValueError(
                f"expected variances on the kernel's diagonal, got mean {scale:.3g} and minimum {diagonal.min():.3g}; "
                "look for documents without tokens, or an architecture that maps everything to zero"
            )
        for jitter in jitters_for(diag_reg, lower.n):
            noise = (diag_reg + jitter) * scale
            lower.set_diagonal(diagonal + noise)
            if factorize_in_place(lower, smallest_relative_pivot(lower.n) * scale, progress):
                return cls(lower, noise, diag_reg, jitter)
        lower.set_diagonal(diagonal)
        raise ValueError(_not_positive(lower, diag_reg))

    @property
    def n(self) -> int:
        """Training documents."""
        return self.lower.n

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.lower.nbytes

    @property
    def log_determinant(self) -> float:
        """log det(K + noise I)."""
        return float(2.0 * np.log(self.lower.diagonal()).sum())

    def smallest_eigenvalue(self) -> float:
        """Estimate of the smallest eigenvalue of K (without noise), by Lanczos on the inverse: 30 solves, never too low
        by more than rounding."""
        return float(1.0 / ritz_values(self.n, self.solve, steps=30)[-1] - self.noise)

    def ensemble(self, nngp: LowerTriangle) -> DenseEnsemble:
        """The ensemble of networks with this Theta and the NNGP K of the training documents."""
        return DenseEnsemble(self, nngp)

    def ensemble_from_arrays(self, arrays: Mapping[str, np.ndarray]) -> DenseEnsemble:
        """The ensemble that its `arrays` described."""
        return DenseEnsemble.from_arrays(self, arrays)

    def half_solve(self, right: np.ndarray) -> np.ndarray:
        """L^-1 B. Args: B (n, m) or (n,), any float dtype. Returns: float64, same shape, C order; n^2 m flops."""
        right = np.asarray(right)
        out = np.array(right.reshape(self.n, -1), dtype=np.float64, order="C")
        self._forward(out)
        return out.reshape(right.shape)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + noise I)^-1 B. Args: B (n, m) or (n,), any float dtype. Returns: float64, same shape."""
        right = np.asarray(right)
        out = np.array(right.reshape(self.n, -1), dtype=np.float64, order="C")
        self._forward(out)
        for start, panel in reversed(list(self.lower.columns())):
            stop = start + panel.shape[1]
            here = out[start:stop]
            add_product(here, panel[panel.shape[1] :], out[stop:], -1.0, transpose_left=True)
            solve_triangular(panel[: panel.shape[1]], here, transpose=True)
        return out.reshape(right.shape)

    def inverse_diagonal(self, rows: np.ndarray | None = None, progress: bool = False) -> np.ndarray:
        """The diagonal of (K + noise I)^-1, exactly: squared column norms of L^-1.

        Args:
            rows: which entries; None for all. All cost n^3 / 3 flops, r of them, spread evenly, n^2 r / 3; memory is
                n x block.
            progress: show a bar.
        Returns: (n,) or (len(rows),).
        """
        rows = np.arange(self.n) if rows is None else np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        out = np.empty(len(rows))
        with tqdm(total=len(rows), desc="Leave-one-out", unit="row", disable=not progress, delay=1) as bar:
            for start in range(0, self.n, self.lower.block):
                # L^-1 of a unit vector is zero above its row: begin at its panel, which saves two thirds of the work.
                part = order[slice(*np.searchsorted(rows[order], (start, start + self.lower.block)))]
                unit = np.zeros((self.n - start, len(part)))
                unit[rows[part] - start, np.arange(len(part))] = 1.0
                self._forward(unit, start)
                out[part] = np.einsum("ij,ij->j", unit, unit)
                bar.update(len(part))
        return out

    def variance(self, k_test_train: np.ndarray, k_test_diag: np.ndarray) -> np.ndarray:
        """k_** - K_* (K + noise I)^-1 K_*^T, for (b, n) and (b,); not clipped. Returns: (b,) float64."""
        half = self.half_solve(np.asarray(k_test_train).T)
        return np.asarray(k_test_diag, dtype=np.float64) - np.einsum("ij,ij->j", half, half)

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Dual coefficients A (n, C): the posterior mean is K_* A. Args: targets (n, C)."""
        return self.solve(targets)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; `from_arrays` reads them back."""
        return {**self.lower.arrays(), "regularization": np.array([self.noise, self.diag_reg, self.jitter])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "CholeskyFactor":
        """The factor that `arrays` described."""
        noise, diag_reg, jitter = (float(number) for number in arrays["regularization"])
        return cls(LowerTriangle.from_arrays(arrays), noise, diag_reg, jitter)

    def _forward(self, out: np.ndarray, first: int = 0) -> None:
        """out <- L^-1 out for the rows from `first`, a multiple of the block, on."""
        for start, panel in self.lower.columns():
            if start >= first:
                width = panel.shape[1]
                here = out[start - first : start - first + width]
                solve_triangular(panel[:width], here)
                add_product(out[start - first + width :], panel[width:], here, -1.0)


def _not_positive(matrix: LowerTriangle, diag_reg: float) -> str:
    smallest = smallest_eigenvalue(matrix) / matrix.mean_diagonal
    return (
        f"expected a positive semi-definite kernel, got a smallest eigenvalue of {smallest:.3g} times the mean "
        f"diagonal (n = {matrix.n}, {duplicate_rows(matrix)} documents repeat an earlier one); diag_reg {diag_reg:g} "
        f"and a jitter of up to {JITTERS[-1]:g} do not cover that: compute the kernel in float64, or raise diag_reg"
    )
