"""What the infinitely wide network predicts: NNGP and NTK posteriors, their evidence and leave-one-out.

Kreg = K + noise I, noise = diag_reg trace(K) / n. Everything is float64. A posterior is built from a solver; the rows
it is given at prediction are rows of the test against the training kernel for a `CholeskyFactor`, features for a
`PrimalRidge`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from textkernels.solvers import SOLVERS, Ensemble, LowerTriangle, Solver

# Kernels in float32 leave variances wrong by up to about 1e-3 of the prior's at the smallest diag_reg of the grid.
ROUNDING_SHARE = 1e-2


class Prediction(NamedTuple):
    """Latent mean (b, C), C = 1 for two classes, and variance (b,), without noise and shared by all columns."""

    mean: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions for training documents from all the others, the noise held fixed.

    Attributes: `mean` (r, C); `variance` (r,), without noise; `residual` (r, C), target minus mean; `rows` (r,).
    """

    mean: np.ndarray
    variance: np.ndarray
    residual: np.ndarray
    rows: np.ndarray

    def __getitem__(self, places: np.ndarray) -> "LeaveOneOut":
        """Some of them."""
        return LeaveOneOut(self.mean[places], self.variance[places], self.residual[places], self.rows[places])


@dataclass(frozen=True)
class NNGPPosterior:
    """The Gaussian process of the infinitely wide network: mean K_* Kreg^-1 y, variance k_** - K_* Kreg^-1 K_*^T.

    Attributes:
        solver: of K.
        coef: dual coefficients Kreg^-1 y (n, C), or weights (m, C) for a `PrimalRidge`.
    """

    solver: Solver
    coef: np.ndarray

    @classmethod
    def fit(cls, solver: Solver, targets: np.ndarray) -> "NNGPPosterior":
        """Args: `solver`; `targets` (n, C) from `encode_targets`."""
        return cls(solver, _coefficients(solver, targets))

    def mean(self, test: np.ndarray) -> np.ndarray:
        """Latent mean alone. Args: K_* (b, n), or features (b, m). Returns: (b, C)."""
        return _mean(test, self.coef)

    def predict(self, test: np.ndarray, k_test_diag: np.ndarray) -> Prediction:
        """Latent mean and variance.

        Args: `test`: K_* (b, n), or features (b, m); `k_test_diag`: k_** (b,), the prior variance.
        Raises: ValueError for the wrong number of columns, or a variance that is negative by more than rounding.
        """
        mean = self.mean(test)
        return Prediction(mean, _clip(self.solver.variance(test, k_test_diag), k_test_diag))

    def log_marginal_likelihood(self, targets: np.ndarray) -> float:
        """log p(y) = -y^T Kreg^-1 y / 2 - log det(Kreg) / 2 - n log(2 pi) / 2, summed over the columns of (n, C)."""
        n, columns = targets.shape
        quadratic = float(np.einsum("ij,ij->", targets, self.solver.solve(targets)))
        return -0.5 * (quadratic + columns * (self.solver.log_determinant + n * float(np.log(2.0 * np.pi))))

    def leave_one_out(self, targets: np.ndarray, rows: np.ndarray | None = None, progress: bool = False) -> LeaveOneOut:
        """Predict training documents from all others, without refitting.

        With B = Kreg^-1: residual [B y]_i / B_ii and variance 1 / B_ii - noise (Rasmussen and Williams, equation 5.12).

        Args: `targets` (n, C); `rows`: which documents, None for all (n^3 / 3 flops, r rows n^2 r / 3);
        `progress`: show a bar.
        """
        rows = np.arange(len(targets)) if rows is None else np.asarray(rows)
        inverse = self.solver.inverse_diagonal(rows, progress)
        variance = np.maximum(1.0 / inverse - self.solver.noise, 0.0)
        return _leave_one_out(self.solver, targets, rows, inverse, variance)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; `from_arrays` reads them back."""
        return {"coef": self.coef, **_prefixed(f"solver.{self.solver.name}", self.solver.arrays())}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "NNGPPosterior":
        """The posterior that `arrays` described, ready to predict."""
        return cls(_solver(arrays), arrays["coef"])


@dataclass(frozen=True)
class NTKPosterior:
    """The ensemble of infinitely wide networks trained to the end by gradient flow on squared loss.

    Mean Theta_* Thetareg^-1 y; variance K_** + P K P^T - 2 P K_*^T with P = Theta_* Thetareg^-1 and K without noise.

    Attributes:
        solver: of Theta.
        coef: dual coefficients Thetareg^-1 y (n, C), or weights (p, C) for a `PrimalRidge`.
        ensemble: the variance, from K of the training documents.
    """

    solver: Solver
    coef: np.ndarray
    ensemble: Ensemble

    @classmethod
    def fit(cls, solver: Solver, nngp: LowerTriangle | np.ndarray, targets: np.ndarray) -> "NTKPosterior":
        """Args:
        solver: of Theta.
        nngp: K (n, n) as a `LowerTriangle` with a `CholeskyFactor`; features Phi (n, m) with a `PrimalRidge`.
        targets: (n, C) from `encode_targets`.
        """
        return cls(solver, _coefficients(solver, targets), solver.ensemble(nngp))

    def mean(self, test: np.ndarray) -> np.ndarray:
        """Latent mean alone. Args: Theta_* (b, n), or tangent features (b, p). Returns: (b, C)."""
        return _mean(test, self.coef)

    def predict(self, test: np.ndarray, nngp_test: np.ndarray, k_test_diag: np.ndarray) -> Prediction:
        """Latent mean and variance.

        Args: `test`: Theta_* (b, n), or tangent features (b, p); `nngp_test`: K_* (b, n), or NNGP features (b, m);
        `k_test_diag`: k_** of the NNGP (b,).
        Raises: ValueError for the wrong number of columns, or a variance that is negative by more than rounding.
        """
        mean = self.mean(test)
        return Prediction(mean, _clip(self.ensemble.variance(test, nngp_test, k_test_diag), k_test_diag))

    def leave_one_out(self, targets: np.ndarray, rows: np.ndarray | None = None, progress: bool = False) -> LeaveOneOut:
        """Predict training documents from all others, without refitting; see `NNGPPosterior.leave_one_out`.

        The variance is that of the ensemble and costs 4 n^2 flops a row: give `rows` when n is large.
        """
        rows = np.arange(len(targets)) if rows is None else np.asarray(rows)
        inverse = self.solver.inverse_diagonal(rows, progress)
        variance = np.maximum(self.ensemble.leave_one_out_variance(rows, progress), 0.0)
        return _leave_one_out(self.solver, targets, rows, inverse, variance)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; `from_arrays` reads them back."""
        ensemble = _prefixed("ensemble", self.ensemble.arrays())
        return {"coef": self.coef, **_prefixed(f"solver.{self.solver.name}", self.solver.arrays()), **ensemble}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "NTKPosterior":
        """The posterior that `arrays` described, ready to predict."""
        solver = _solver(arrays)
        return cls(solver, arrays["coef"], solver.ensemble_from_arrays(_part("ensemble", arrays)))


@dataclass(frozen=True)
class LeftOut:
    """Latent means of any documents, each predicted from all training documents but one.

    With B = Kreg^-1 and residual r_i of document i left out, the coefficients without it are B y - B_i r_i.

    Attributes:
        posterior: of all training documents.
        columns: B_i of the r documents that can be left out, (n, r), or (m, r) for a `PrimalRidge`.
        residual: (r, C).
    """

    posterior: NNGPPosterior | NTKPosterior
    columns: np.ndarray
    residual: np.ndarray

    @classmethod
    def of(cls, posterior: NNGPPosterior | NTKPosterior, held_out: LeaveOneOut) -> "LeftOut":
        """Those that `held_out`, from the same posterior, predicts."""
        one_hot = np.zeros((posterior.solver.n, len(held_out.rows)))
        one_hot[held_out.rows, np.arange(len(held_out.rows))] = 1.0
        return cls(posterior, posterior.solver.coefficients(one_hot), held_out.residual)

    def mean(self, test: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Args: `test`: as for `posterior.mean`, (b, n) or (b, m); `place` (b,): which of the r documents is left out.
        Returns: (b, C).
        """
        weight = np.einsum("ij,ji->i", test, self.columns[:, place])
        return self.posterior.mean(test) - weight[:, None] * self.residual[place]


def _coefficients(solver: Solver, targets: np.ndarray) -> np.ndarray:
    if targets.ndim != 2 or len(targets) != solver.n:
        raise ValueError(f"expected targets of shape ({solver.n}, classes), got {targets.shape}; use encode_targets")
    return solver.coefficients(targets)


def _mean(test: np.ndarray, coef: np.ndarray) -> np.ndarray:
    if test.ndim != 2 or test.shape[1] != len(coef):
        raise ValueError(
            f"expected {len(coef)} columns, got shape {test.shape}; give test rows against training columns"
        )
    return np.asarray(test, dtype=np.float64) @ coef


def _leave_one_out(
    solver: Solver, targets: np.ndarray, rows: np.ndarray, inverse: np.ndarray, variance: np.ndarray
) -> LeaveOneOut:
    residual = solver.solve(targets)[rows] / inverse[:, None]
    return LeaveOneOut(targets[rows] - residual, variance, residual, rows)


def _clip(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Variances that rounding made negative become zero; anything worse is a mistake in the kernels."""
    wrong = np.flatnonzero(variance < -ROUNDING_SHARE * np.asarray(prior))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"expected a variance of at least 0, got {variance[row]:.3g} in row {row} (prior {prior[row]:.3g}); "
            "compute training and test kernels with one architecture, in float64, or raise diag_reg"
        )
    return np.maximum(variance, 0.0)


def _prefixed(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}.{key}": value for key, value in arrays.items()}


def _part(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.removeprefix(f"{name}."): value for key, value in arrays.items() if key.startswith(f"{name}.")}


def _solver(arrays: Mapping[str, np.ndarray]) -> Solver:
    own = _part("solver", arrays)
    name = next(iter(own)).split(".")[0]
    return SOLVERS[name].from_arrays(_part(name, own))
