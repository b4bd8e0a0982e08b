"""The latent Gaussian model between kernel and labels: train documents in, mean and variance out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.features import DocumentFeatures
from textkernels.labels import stratified_sample
from textkernels.posterior import LeaveOneOut, NNGPPosterior, NTKPosterior, Prediction
from textkernels.selection import DiagRegSelection, select_diag_reg, select_diag_reg_primal
from textkernels.solvers import CholeskyFactor, LowerTriangle, PrimalRidge
from textkernels.solvers.primal import LARGEST_FEATURES
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

    def _predict(self, documents: Any) -> Prediction:
        variance = self.kernel.diagonal(documents)
        if self.train is None:
            nngp, ntk = documents.nngp, documents.ntk
        else:
            nngp, ntk = self.kernel.block(documents, self.train, self.ntk)
        if isinstance(self.posterior, NTKPosterior):
            return self.posterior.predict(ntk, nngp, variance)
        return self.posterior.predict(nngp, variance)

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
        solver: "primal" or "cholesky".
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
    """Factor the kernel of the training documents and fit the posterior.

    A kernel that is linear in fewer features than documents is solved in its features (primal ridge), any other
    through a Cholesky factor in n^2 / 2 float64 numbers (the NTK keeps the NNGP matrix beside it).

    Args:
        kernel: see LatentModel.
        train: n prepared documents.
        class_index: (n,) integers.
        n_classes: at least 2.
        ntk: NTK rather than NNGP.
        diag_reg: in units of the mean diagonal, or "auto": by leave-one-out squared error.
        seed: of subsets.
        progress: show progress bars.

    Raises:
        ValueError: a diag_reg that is neither, or a kernel that is no covariance; the message says what to do.
    """
    targets = encode_targets(class_index, n_classes)
    solver: CholeskyFactor | PrimalRidge
    if linear_in_few_features(kernel, train):
        solver, selection, posterior = _fit_primal(train, targets, ntk, diag_reg)
        kept = None
    else:
        solver, selection, posterior = _fit_dual(kernel, train, targets, ntk, diag_reg, seed, progress)
        kept = train
    rows = stratified_sample(class_index, LEAVE_ONE_OUT_ROWS, seed)
    return LatentFit(
        LatentModel(kernel, kept, posterior, float(np.sqrt(kernel.diagonal(train).mean()))),
        selection,
        posterior.leave_one_out(targets, rows, progress),
        posterior.log_marginal_likelihood(targets) if isinstance(posterior, NNGPPosterior) else None,
        solver.diag_reg,
        solver.jitter,
        "cholesky" if kept is not None else "primal",
    )


def linear_in_few_features(kernel: Any, train: Any) -> bool:
    """Whether the primal solver applies: explicit features to the end, fewer than documents."""
    if not isinstance(train, DocumentFeatures) or not kernel.architecture.linear:
        return False
    return max(train.nngp.shape[1], train.ntk.shape[1]) < min(len(train), LARGEST_FEATURES)


def _fit_primal(
    train: DocumentFeatures, targets: np.ndarray, ntk: bool, diag_reg: float | str
) -> tuple[PrimalRidge, DiagRegSelection | None, NNGPPosterior | NTKPosterior]:
    ridge = PrimalRidge.factor(train.ntk if ntk else train.nngp, 1.0)
    selection = select_diag_reg_primal(ridge, targets) if diag_reg == "auto" else None
    ridge = ridge.with_diag_reg(selection.diag_reg if selection else _number(diag_reg))
    posterior = NTKPosterior.fit(ridge, train.nngp, targets) if ntk else NNGPPosterior.fit(ridge, targets)
    return ridge, selection, posterior


def _fit_dual(
    kernel: Any, train: Any, targets: np.ndarray, ntk: bool, diag_reg: float | str, seed: int, progress: bool
) -> tuple[CholeskyFactor, DiagRegSelection | None, NNGPPosterior | NTKPosterior]:
    nngp, tangent = gram_triangles(kernel, train, ntk, progress)
    matrix = nngp if tangent is None else tangent
    selection = select_diag_reg(matrix, targets, seed=seed, progress=progress) if diag_reg == "auto" else None
    factor = CholeskyFactor.factor(matrix, selection.diag_reg if selection else _number(diag_reg), progress=progress)
    posterior = NTKPosterior.fit(factor, nngp, targets) if ntk else NNGPPosterior.fit(factor, targets)
    return factor, selection, posterior


def gram_triangles(
    kernel: Any, train: Any, ntk: bool, progress: bool = False
) -> tuple[LowerTriangle, LowerTriangle | None]:
    """K and, if asked for, Theta of the training documents in one pass, as lower triangles."""
    from tqdm import tqdm

    n = len(train)
    nngp = LowerTriangle.zeros(n)
    tangent = LowerTriangle.zeros(n) if ntk else None
    blocks = list(nngp.blocks())
    for rows, columns in tqdm(blocks, "Gram matrix", unit="block", disable=not progress, delay=1):
        same = 0 if rows.start == columns.start else None
        for triangle, block in zip((nngp, tangent), kernel.block(train[rows], train[columns], ntk, same), strict=True):
            if triangle is not None:
                triangle.set_block(rows, columns, block)
    return nngp, tangent


def _number(diag_reg: float | str) -> float:
    try:
        value = float(diag_reg)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value < np.inf:
        raise ValueError(f"expected diag_reg to be 'auto' or a number >= 0, got {diag_reg!r}")
    return value
