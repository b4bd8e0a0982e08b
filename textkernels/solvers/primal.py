"""Ridge regression in m features: the same posterior without the n x n matrix."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.linalg

from textkernels.solvers.cholesky import jitters_for, smallest_relative_pivot
from textkernels.solvers.ensemble import PrimalEnsemble

# One eigendecomposition of this size takes about 9 s on 2 cores; far larger ones are not safe in every library.
LARGEST_FEATURES = 5_000
ROWS_AT_ONCE = 8_192


@dataclass(frozen=True)
class PrimalRidge:
    """The solver for a kernel that is linear in explicit features, K = Phi Phi^T, with m columns for n documents.

    With Phi^T Phi = V diag(w) V^T, one m x m eigendecomposition serves every regulariser:

        (K + s I)^-1 = (I - Phi V diag(1 / (w + s)) V^T Phi^T) / s.

    Attributes:
        values: w (m,), ascending, at least 0.
        vectors: V (m, m), columns.
        n: training documents.
        noise: s = (diag_reg + jitter) trace(K) / n.
        diag_reg: the regulariser asked for, in units of trace(K) / n.
        jitter: what was added to it: K has rank m < n, so diag_reg = 0 needs one.
        features: Phi (n, m) float64; None after loading, when only test documents are still to come.
    """

    name: ClassVar = "primal"

    values: np.ndarray
    vectors: np.ndarray
    n: int
    noise: float
    diag_reg: float
    jitter: float
    features: np.ndarray | None = None

    @classmethod
    def factor(cls, features: np.ndarray, diag_reg: float) -> "PrimalRidge":
        """Decompose Phi^T Phi, n m^2 + 9 m^3 flops.

        Args:
            features: Phi (n, m), float32 or float64, m at most 5,000.
            diag_reg: at least 0, in units of trace(K) / n = mean |phi_i|^2.
        Raises: ValueError for values that are not finite, features that are all zero, or too many columns.
        """
        features = np.ascontiguousarray(features, dtype=np.float64)
        n, m = features.shape
        if m > LARGEST_FEATURES:
            raise ValueError(
                f"expected at most {LARGEST_FEATURES:,} features, got {m:,}; use CholeskyFactor on the Gram"
            )
        second_moment = np.zeros((m, m))
        for start in range(0, n, ROWS_AT_ONCE):
            part = features[start : start + ROWS_AT_ONCE]
            second_moment += part.T @ part
        trace = float(np.trace(second_moment))
        if not 0.0 < trace < np.inf:
            raise ValueError(
                f"expected finite features that are not all zero, got trace {trace}; look for empty documents, "
                "or a layer with w_std = 0"
            )
        values, vectors = scipy.linalg.eigh(second_moment, driver="evd", overwrite_a=True)
        decomposed = cls(np.maximum(values, 0.0), vectors, n, 0.0, 0.0, 0.0, features)
        return decomposed.with_diag_reg(diag_reg)

    def with_diag_reg(self, diag_reg: float) -> "PrimalRidge":
        """The same decomposition with another regulariser, at no cost."""
        smallest = smallest_relative_pivot(self.n)
        jitter = next(jitter for jitter in jitters_for(diag_reg, self.n) if diag_reg + jitter >= smallest)
        noise = (diag_reg + jitter) * float(self.values.sum()) / self.n
        return replace(self, noise=noise, diag_reg=diag_reg, jitter=jitter)

    def ensemble(self, nngp: np.ndarray) -> PrimalEnsemble:
        """The ensemble of networks with these features of Theta and NNGP features (n, m) of the training documents."""
        return PrimalEnsemble.factor_with(self, nngp)

    def ensemble_from_arrays(self, arrays: Mapping[str, np.ndarray]) -> PrimalEnsemble:
        """The ensemble that its `arrays` described, ready to predict."""
        return PrimalEnsemble.from_arrays(self, arrays)

    @property
    def nbytes(self) -> int:
        """Memory of what prediction needs, in bytes."""
        return int(self.values.nbytes + self.vectors.nbytes)

    @property
    def log_determinant(self) -> float:
        """log det(K + s I) = sum log(w + s) + (n - m) log s (the determinant lemma)."""
        return float(np.log(self.values + self.noise).sum() + (self.n - len(self.values)) * np.log(self.noise))

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Weights (m, C): the posterior mean is Phi_* times them. Args: targets (n, C)."""
        return self.vectors @ ((self.vectors.T @ (self._phi.T @ targets)) / (self.values + self.noise)[:, None])

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + s I)^-1 B for B (n, C): the residual of the fit over s."""
        right = np.asarray(right, dtype=np.float64)
        return (
            right - self._phi @ self.coefficients(right.reshape(self.n, -1)).reshape(-1, *right.shape[1:])
        ) / self.noise

    def inverse_diagonal(self, rows: np.ndarray | None = None, progress: bool = False) -> np.ndarray:
        """The diagonal of (K + s I)^-1: (1 - leverage) / s, for all rows or some. `progress` is not needed here."""
        phi = self._phi if rows is None else self._phi[rows]
        leverage = np.square(phi @ self.vectors) @ (1.0 / (self.values + self.noise))
        return np.maximum(1.0 - leverage, smallest_relative_pivot(self.n)) / self.noise

    def variance(self, features: np.ndarray, k_test_diag: np.ndarray | None = None) -> np.ndarray:
        """s phi_*^T (Phi^T Phi + s I)^-1 phi_* for features (b, m): the same number as the n x n formula, without its
        subtraction. `k_test_diag` is |phi_*|^2 and not needed. Returns: (b,) float64."""
        rotated = np.asarray(features, dtype=np.float64) @ self.vectors
        return np.square(rotated) @ (self.noise / (self.values + self.noise))

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; `from_arrays` reads them back (without the training features)."""
        numbers = np.array([self.noise, self.diag_reg, self.jitter])
        return {"values": self.values, "vectors": self.vectors, "n": np.array([self.n]), "regularization": numbers}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "PrimalRidge":
        """The solver that `arrays` described, ready to predict."""
        noise, diag_reg, jitter = (float(number) for number in arrays["regularization"])
        return cls(arrays["values"], arrays["vectors"], int(arrays["n"][0]), noise, diag_reg, jitter)

    @property
    def _phi(self) -> np.ndarray:
        if self.features is None:
            raise ValueError(
                "expected the training features, got a solver loaded from a file; fit again for this quantity"
            )
        return self.features
