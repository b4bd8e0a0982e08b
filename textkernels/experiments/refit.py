"""A winner on all training rows and the test set, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.labels import stratified_sample
from textkernels.latent import LEAVE_ONE_OUT_ROWS, ROWS_AT_ONCE, LatentModel
from textkernels.posterior import NNGPPosterior, NTKPosterior
from textkernels.probability import class_probabilities, fit_residual_variance
from textkernels.solving import solve
from textkernels.targets import encode_targets, predicted_class

Posterior = NNGPPosterior | NTKPosterior


@dataclass(frozen=True)
class Refit:
    """What a refitted network says about the test documents.

    Attributes:
        predicted: class of each test document, (b,) integers.
        probabilities: (b, C), or None where they were not asked for.
        log_marginal_likelihood: of all training documents, NNGP only.
        diag_reg, jitter: in units of the mean diagonal.
        solver: its name, see :data:`textkernels.solvers.SOLVERS`.
    """

    predicted: np.ndarray
    probabilities: np.ndarray | None
    log_marginal_likelihood: float | None
    diag_reg: float
    jitter: float
    solver: str


def refit(
    kernel: FeatureKernel,
    train: DocumentFeatures,
    test: DocumentFeatures,
    codes: np.ndarray,
    n_classes: int,
    ntk: bool,
    diag_reg: float,
    uncertainty: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Refit:
    """Fit all training documents and predict the test documents, a block of rows at a time.

    Args:
        kernel: of the network.
        train, test: documents prepared for it.
        codes: (n,) classes of the training documents.
        n_classes: at least 2.
        ntk: the NTK's ensemble rather than the NNGP.
        diag_reg: in units of the mean diagonal.
        uncertainty: predict variances and class probabilities, too; they cost n^2 flops a test row (the NTK 4 n^2).
        seed: of the training rows that set the scale of the probabilities.
        progress: show progress bars.
    """
    targets = encode_targets(codes, n_classes)
    posterior, _, kept = solve(kernel, train, targets, ntk, diag_reg, seed, progress)
    probabilities = None
    if uncertainty:
        model = LatentModel(kernel, kept, posterior, float(np.sqrt(kernel.diagonal(train).mean())))
        mean, probabilities = _with_probabilities(model, test, targets, codes, seed, progress)
    else:
        mean = _means(kernel, kept, posterior, test, progress)
    return Refit(
        predicted_class(mean),
        probabilities,
        posterior.log_marginal_likelihood(targets) if isinstance(posterior, NNGPPosterior) else None,
        posterior.solver.diag_reg,
        posterior.solver.jitter,
        posterior.solver.name,
    )


def _means(
    kernel: FeatureKernel,
    train: DocumentFeatures | None,
    posterior: Posterior,
    test: DocumentFeatures,
    progress: bool,
) -> np.ndarray:
    """Latent means alone, (b, C): a matrix product where a variance needs a triangular solve."""
    ntk = isinstance(posterior, NTKPosterior)
    starts = range(0, len(test), ROWS_AT_ONCE)
    means = [np.zeros((0, posterior.coef.shape[1]))]
    for start in tqdm(starts, "  test rows", unit="block", disable=not progress, delay=2, leave=False):
        documents = test[start : start + ROWS_AT_ONCE]
        pair: tuple[Any, Any] = (
            (documents.nngp, documents.ntk) if train is None else kernel.block(documents, train, ntk)
        )
        means.append(posterior.mean(pair[ntk]))
    return np.concatenate(means)


def _with_probabilities(
    model: LatentModel,
    test: DocumentFeatures,
    targets: np.ndarray,
    codes: np.ndarray,
    seed: int,
    progress: bool,
) -> tuple[np.ndarray, np.ndarray]:
    rows = stratified_sample(codes, LEAVE_ONE_OUT_ROWS, seed)
    held_out = model.posterior.leave_one_out(targets, rows, progress)
    scale = fit_residual_variance(held_out.mean, held_out.variance, codes[rows])
    prediction = model.predict(test)
    return prediction.mean, class_probabilities(prediction.mean, prediction.variance, scale)
