"""Variance of the NTK ensemble: infinitely wide networks trained to the end from random starts.

With P = Theta_* Thetareg^-1 the outputs of the ensemble at the test documents have covariance

    K_** + P K P^T - P K_*^T - K_* P^T,

K being the NNGP without diag_reg (Lee et al., "Wide neural networks of any depth evolve as linear models under gradient
descent", 2019, equation 16 at t = infinity). It is the variance of a fixed combination of prior draws, f_* - P f.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from textkernels.solvers.lower_triangle import LowerTriangle

if TYPE_CHECKING:
    from textkernels.solvers.cholesky import CholeskyFactor
    from textkernels.solvers.primal import PrimalRidge

# 200 MB for each of the three blocks at 25,000 documents.
COLUMNS_AT_ONCE = 1_000


@dataclass(frozen=True)
class DenseEnsemble:
    """The ensemble by n x n matrices.

    Attributes: `factor`: of Theta with its noise; `nngp`: K of the training documents, (n, n), without noise.
    """

    factor: CholeskyFactor
    nngp: LowerTriangle

    def variance(self, ntk_test_train: np.ndarray, k_test_train: np.ndarray, k_test_diag: np.ndarray) -> np.ndarray:
        """Not clipped. Args: Theta_* (b, n), K_* (b, n), diagonal of K_** (b,). Returns: (b,); 4 n^2 b flops."""
        weights = self.factor.solve(np.asarray(ntk_test_train).T)
        difference = self.nngp.matmul(weights) - 2.0 * np.asarray(k_test_train, dtype=np.float64).T
        return np.asarray(k_test_diag, dtype=np.float64) + np.einsum("ij,ij->j", weights, difference)

    def leave_one_out_variance(self, rows: np.ndarray, progress: bool = False) -> np.ndarray:
        """[B K B]_ii / B_ii^2 with B = Thetareg^-1: the variance at document i of the ensemble trained on all others.

        Leaving i out, f_i - P f is the combination B_i. / B_ii of prior draws. Costs 4 n^2 flops a row.
        """
        rows = np.asarray(rows)
        out = np.empty(len(rows))
        with tqdm(total=len(rows), desc="Ensemble variance", unit="row", disable=not progress, delay=1) as bar:
            for first in range(0, len(rows), COLUMNS_AT_ONCE):
                part = rows[first : first + COLUMNS_AT_ONCE]
                columns = np.arange(len(part))
                unit = np.zeros((self.factor.n, len(part)))
                unit[part, columns] = 1.0
                inverse = self.factor.solve(unit)
                inverse /= inverse[part, columns]
                out[first : first + len(part)] = np.einsum("ij,ij->j", inverse, self.nngp.matmul(inverse))
                bar.update(len(part))
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays beyond the factor's own."""
        return self.nngp.arrays()

    @classmethod
    def from_arrays(cls, factor: CholeskyFactor, arrays: Mapping[str, np.ndarray]) -> DenseEnsemble:
        """The ensemble that `arrays` described."""
        return cls(factor, LowerTriangle.from_arrays(arrays))


@dataclass(frozen=True)
class PrimalEnsemble:
    """The ensemble when both kernels are linear: K = Phi Phi^T (m features), Theta = Psi Psi^T (p features).

    P = Psi_* A Psi^T with A = (Psi^T Psi + s I)^-1, so the variance is the square |phi_* - M psi_*|^2, M = Phi^T Psi A.

    Attributes: `factor`: of Psi; `projection`: M (m, p); `features`: Phi (n, m), None after loading.
    """

    factor: PrimalRidge
    projection: np.ndarray
    features: np.ndarray | None = None

    @classmethod
    def factor_with(cls, factor: PrimalRidge, nngp_features: np.ndarray) -> PrimalEnsemble:
        """Args: `factor`: of Psi, with its training features; `nngp_features`: Phi (n, m)."""
        phi = np.asarray(nngp_features, dtype=np.float64)
        return cls(factor, factor.coefficients(phi).T, phi)

    def variance(
        self, ntk_features: np.ndarray, nngp_features: np.ndarray, k_test_diag: np.ndarray | None = None
    ) -> np.ndarray:
        """Args: psi_* (b, p), phi_* (b, m); `k_test_diag` is |phi_*|^2 and not needed. Returns: (b,), >= 0."""
        difference = np.asarray(nngp_features, dtype=np.float64) - np.asarray(ntk_features) @ self.projection.T
        return np.einsum("ij,ij->i", difference, difference)

    def leave_one_out_variance(self, rows: np.ndarray, progress: bool = False) -> np.ndarray:
        """|phi_i - M psi_i|^2 / (s B_ii)^2, which is [B K B]_ii / B_ii^2; quick, so `progress` is not needed."""
        if self.features is None or self.factor.features is None:
            raise ValueError(
                "expected the training features, got a posterior loaded from a file; fit again for this quantity"
            )
        shrunk = self.variance(self.factor.features[rows], self.features[rows])
        return shrunk / np.square(self.factor.noise * self.factor.inverse_diagonal(rows))

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays beyond the factor's own."""
        return {"projection": self.projection}

    @classmethod
    def from_arrays(cls, factor: PrimalRidge, arrays: Mapping[str, np.ndarray]) -> PrimalEnsemble:
        """The ensemble that `arrays` described, ready to predict."""
        return cls(factor, arrays["projection"])
