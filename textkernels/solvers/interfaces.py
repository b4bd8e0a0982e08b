"""What a solver and the ensemble beside it must have."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np


class Ensemble(Protocol):
    """Variance of infinitely wide networks trained to the end; see `textkernels.solvers.ensemble`."""

    def variance(self, ntk_test: np.ndarray, nngp_test: np.ndarray, k_test_diag: np.ndarray) -> np.ndarray:
        """At test documents, (b,), from their rows against the training documents, or their features."""

    def leave_one_out_variance(self, rows: np.ndarray, progress: bool = False) -> np.ndarray:
        """At training documents, (r,), of the ensembles trained on all others."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays beyond the solver's own."""


class Solver(Protocol):
    """(K + noise I)^-1 of n training documents.

    Attributes:
        name: in saved models and reports.
        n: training documents.
        noise: (diag_reg + jitter) trace(K) / n; diag_reg, jitter: in units of trace(K) / n.
        log_determinant: of K + noise I.
    """

    name: ClassVar[str]

    @property
    def n(self) -> int: ...
    @property
    def noise(self) -> float: ...
    @property
    def diag_reg(self) -> float: ...
    @property
    def jitter(self) -> float: ...
    @property
    def log_determinant(self) -> float: ...

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """What the rows of test documents are multiplied with for the mean, (columns, C)."""

    def variance(self, test: np.ndarray, k_test_diag: np.ndarray) -> np.ndarray:
        """Posterior variance (b,) from the same rows and the prior variance (b,)."""

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + noise I)^-1 B."""

    def inverse_diagonal(self, rows: np.ndarray | None = None, progress: bool = False) -> np.ndarray:
        """Diagonal of (K + noise I)^-1, for all rows or some."""

    def ensemble(self, nngp: Any) -> Ensemble:
        """The ensemble with this solver's Theta and the NNGP, in the solver's own form."""

    def ensemble_from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Ensemble:
        """The ensemble that its ``arrays`` described."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; the class reads them back with ``from_arrays``."""
