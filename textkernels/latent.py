"""The latent Gaussian model between kernel and labels: train documents in, mean and variance out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.labels import stratified_sample
from textkernels.posterior import LeaveOneOut, LeftOut, NNGPPosterior, NTKPosterior, Prediction
from textkernels.selection import DiagRegSelection
from textkernels.solving import solve
from textkernels.targets import encode_targets

# Training documents whose leave-one-out predictions set the scale of probabilities: enough for one number.
LEAVE_ONE_OUT_ROWS = 2_500
# Test rows at a time: 1,000 rows against 25,000 training documents are 200 MB.
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class LatentModel:
    """A fitted posterior together with the training documents that its kernel rows are taken against.

    Args:
        kernel: gives blocks of the Gram matrix, see :class:`textkernels.feature_kernel.FeatureKernel`.
        train: the n prepared training documents; None where the posterior works on features (primal).
        posterior: NNGPPosterior or NTKPosterior.
        prior_std: root of the mean prior variance of the training documents.
    """

    kernel: Any
    train: Any
    posterior: NNGPPosterior | NTKPosterior
    prior_std: float

    @property
    def ntk(self) -> bool:
        """Whether predictions are those of trained networks rather than of random ones."""
        return isinstance(self.posterior, NTKPosterior)

    def predict(self, documents: Any) -> Prediction:
        """Latent mean (b, C) and variance (b,) of prepared documents, a bounded number at a time."""
        parts = [
            self._predict(documents[start : start + ROWS_AT_ONCE]) for start in range(0, len(documents), ROWS_AT_ONCE)
        ]
        if not parts:
            return Prediction(np.zeros((0, self.posterior.coef.shape[1])), np.zeros(0))
        return Prediction(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def mean(self, documents: Any) -> np.ndarray:
        """Latent mean (b, C) alone, which takes a fraction of the time."""
        return self.posterior.mean(self._rows(documents)[0])

    def predict_left_out(self, documents: Any, left_out: LeftOut, place: np.ndarray) -> Prediction:
        """Latent mean of documents made from training documents, each without the one it was made from.

        The variance is that of all training documents: at prediction there is no other.

        Args: `documents` (b), prepared; `place` (b,): of the training document in `left_out`.
        """
        rows, nngp = self._rows(documents)
        return Prediction(left_out.mean(rows, place), self._posterior(documents, rows, nngp).variance)

    def _predict(self, documents: Any) -> Prediction:
        return self._posterior(documents, *self._rows(documents))

    def _rows(self, documents: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the solver works with, rows of the kernel or features, and the same of the NNGP."""
        if self.train is None:
            nngp, ntk = documents.nngp, documents.ntk
        else:
            nngp, ntk = self.kernel.block(documents, self.train, self.ntk)
        return (ntk if self.ntk else nngp), nngp

    def _posterior(self, documents: Any, rows: np.ndarray, nngp: np.ndarray) -> Prediction:
        variance = self.kernel.diagonal(documents)
        if isinstance(self.posterior, NTKPosterior):
            return self.posterior.predict(rows, nngp, variance)
        return self.posterior.predict(rows, variance)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; ``from_arrays`` reads them back."""
        arrays = {f"posterior.{key}": value for key, value in self.posterior.arrays().items()}
        if self.train is not None:
            arrays |= {f"train.{key}": value for key, value in self.train.arrays().items()}
        return {**arrays, "prior_std": np.array([self.prior_std])}

    @classmethod
    def from_arrays(cls, kernel: Any, ntk: bool, arrays: Mapping[str, np.ndarray]) -> LatentModel:
        """The model that ``arrays`` described, for the same architecture."""
        own = {key.removeprefix("posterior."): value for key, value in arrays.items() if key.startswith("posterior.")}
        train = {key.removeprefix("train."): value for key, value in arrays.items() if key.startswith("train.")}
        posterior = (NTKPosterior if ntk else NNGPPosterior).from_arrays(own)
        return cls(kernel, kernel.restore(train) if train else None, posterior, float(arrays["prior_std"][0]))


@dataclass(frozen=True)
class LatentFit:
    """A fitted model and what was learned on the way.

    Args:
        model: the model.
        selection: the table behind an automatic diag_reg, or None.
        leave_one_out: predictions of some training documents from all others.
        log_marginal_likelihood: of the NNGP, or None for the NTK, which has none.
        diag_reg, jitter: in units of the mean diagonal of the kernel.
        solver: its name, see :data:`textkernels.solvers.SOLVERS`.
    """

    model: LatentModel
    selection: DiagRegSelection | None
    leave_one_out: LeaveOneOut
    log_marginal_likelihood: float | None
    diag_reg: float
    jitter: float
    solver: str


def fit_latent(
    kernel: Any,
    train: Any,
    class_index: np.ndarray,
    n_classes: int,
    ntk: bool,
    diag_reg: float | str,
    seed: int = 0,
    progress: bool = False,
) -> LatentFit:
    """Fit the posterior of the training documents by the solver that suits them, see :mod:`textkernels.solving`.

    Args:
        kernel: see LatentModel.
        train: n prepared documents.
        class_index: (n,) integers.
        n_classes: at least 2.
        ntk: NTK rather than NNGP.
        diag_reg: in units of the mean diagonal, "auto" or "auto-full", see :func:`textkernels.solving.solve`.
        seed: of subsets.
        progress: show progress bars.

    Raises:
        ValueError: a diag_reg that is neither, or a kernel that is no covariance; the message says what to do.
    """
    targets = encode_targets(class_index, n_classes)
    solved = solve(kernel, train, targets, ntk, diag_reg, seed, progress)
    posterior = solved.posterior
    rows = stratified_sample(class_index, LEAVE_ONE_OUT_ROWS, seed)
    return LatentFit(
        LatentModel(kernel, solved.train, posterior, float(np.sqrt(kernel.diagonal(train).mean()))),
        solved.selection,
        posterior.leave_one_out(targets, rows, progress),
        posterior.log_marginal_likelihood(targets) if isinstance(posterior, NNGPPosterior) else None,
        posterior.solver.diag_reg,
        posterior.solver.jitter,
        posterior.solver.name,
    )
