"""One candidate on held-out training rows, in the paper's float32: which regularizer, how accurate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.solvers import PrimalRidge
from textkernels.solvers.single_precision import SingleCholesky
from textkernels.solving import linear_in_few_features
from textkernels.targets import encode_targets, predicted_class

BLOCK = 2_500  # documents a side of a block of a kernel: 50 MB in float64
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class GridScore:
    """One regularizer.

    Attributes:
        diag_reg: in units of the mean diagonal.
        accuracy, mse: on the validation rows; None where the factorization failed.
        log_marginal_likelihood: of the fitting rows, NNGP only.
    """

    diag_reg: float
    accuracy: float | None = None
    mse: float | None = None
    log_marginal_likelihood: float | None = None

    @property
    def failed(self) -> bool:
        """Whether float32 found the regularized kernel not positive definite."""
        return self.accuracy is None


@dataclass(frozen=True)
class Split:
    """Fitting and validation rows among prepared documents, and the classes of all of them."""

    fitting: np.ndarray
    validation: np.ndarray
    codes: np.ndarray
    n_classes: int

    def targets(self) -> np.ndarray:
        """Regression targets of the fitting rows, (n, C)."""
        return encode_targets(self.codes[self.fitting], self.n_classes)

    def score(self, diag_reg: float, mean: np.ndarray, evidence: float | None) -> GridScore:
        """Accuracy and squared error of latent means (n_validation, C)."""
        codes = self.codes[self.validation]
        if not np.isfinite(mean).all():
            return GridScore(diag_reg)
        accuracy = float((predicted_class(mean) == codes).mean())
        error = np.square(mean - encode_targets(codes, self.n_classes), dtype=np.float64)
        return GridScore(diag_reg, accuracy, float(error.mean()), evidence)


def best_score(table: Sequence[GridScore]) -> GridScore:
    """The most accurate value; of equals the one with less squared error.

    Raises:
        ValueError: every factorization failed.
    """
    scores = [score for score in table if not score.failed]
    if not scores:
        raise ValueError(
            "expected a regularizer for which the float32 kernel is positive definite, got none; look for documents "
            "with broken vectors"
        )
    return min(scores, key=lambda score: (-(score.accuracy or 0.0), score.mse))


def validate(
    kernel: FeatureKernel,
    documents: DocumentFeatures,
    split: Split,
    kinds: Sequence[str],
    grid: Sequence[float],
    progress: bool = False,
) -> dict[str, tuple[str, list[GridScore]]]:
    """Score every regularizer of a grid for the NNGP, the NTK or both, which share the kernel's computation.

    Kernels linear in fewer features than documents are solved in their features, once for the whole grid; that solver
    is float64. Any other kernel is rounded to float32, and factorization, solutions and predictions are float32.

    Args:
        kernel: of the candidate.
        documents: prepared for it, all training documents.
        split: which of them to fit, and which to predict.
        kinds: ``nngp``, ``ntk``.
        grid: values of diag_reg in units of the mean diagonal.
        progress: show progress bars.

    Returns: by kind, the solver's name and one score a value, in the order of the grid.
    """
    fitting = documents[split.fitting]
    if linear_in_few_features(kernel, fitting):
        return {kind: ("primal", _validate_primal(documents, split, kind, grid)) for kind in kinds}
    grams = single_grams(kernel, fitting, kinds, progress)
    solved = {}
    for kind in kinds:
        solved[kind] = _solve_grid(grams.pop(kind), split.targets(), kind, grid, progress)
    means = _stream_means(kernel, documents[split.validation], fitting, solved, progress)
    return {kind: ("float32 cholesky", _dense_scores(split, grid, solved[kind], means[kind])) for kind in kinds}


def _validate_primal(documents: DocumentFeatures, split: Split, kind: str, grid: Sequence[float]) -> list[GridScore]:
    features = documents.nngp if kind == "nngp" else documents.ntk
    targets = split.targets()
    ridge = PrimalRidge.factor(features[split.fitting], 1.0)
    scores = []
    for diag_reg in grid:
        ridge = ridge.with_diag_reg(diag_reg)
        evidence = log_evidence(targets, ridge.solve(targets), ridge.log_determinant) if kind == "nngp" else None
        scores.append(split.score(diag_reg, features[split.validation] @ ridge.coefficients(targets), evidence))
    return scores


def log_evidence(targets: np.ndarray, solved: np.ndarray, log_determinant: float) -> float:
    """log p(y) summed over columns, from Kreg^-1 y (n, C) and log det Kreg; see posterior.log_marginal_likelihood."""
    n, columns = targets.shape
    quadratic = float(np.einsum("ij,ij->", targets, solved, dtype=np.float64))
    return -0.5 * (quadratic + columns * (log_determinant + n * float(np.log(2.0 * np.pi))))


def single_grams(
    kernel: FeatureKernel, documents: DocumentFeatures, kinds: Sequence[str], progress: bool = False
) -> dict[str, np.ndarray]:
    """Gram matrices by kind, float32 (n, n); only the lower triangles are filled."""
    n = len(documents)
    grams = {kind: np.empty((n, n), dtype=np.float32) for kind in kinds}
    blocks = [(row, column) for row in range(0, n, BLOCK) for column in range(0, row + 1, BLOCK)]
    for row, column in tqdm(blocks, "  Gram", unit="block", disable=not progress, delay=2, leave=False):
        rows, columns = slice(row, row + BLOCK), slice(column, column + BLOCK)
        same = 0 if row == column else None
        pair = kernel.block(documents[rows], documents[columns], "ntk" in grams, same)
        for kind, block in zip(("nngp", "ntk"), pair, strict=True):
            if kind in grams:
                grams[kind][rows, columns] = block
    return grams


@dataclass(frozen=True)
class _Solved:
    """Coefficients (n, values, C) of the first values that could be factorized, and their evidence."""

    values: list[float]
    coefficients: list[np.ndarray]
    evidence: list[float | None]


def _solve_grid(gram: np.ndarray, targets: np.ndarray, kind: str, grid: Sequence[float], progress: bool) -> _Solved:
    """From large to small: where one value fails, so do all smaller ones, since their matrices are smaller."""
    workspace = np.empty_like(gram)
    scale = float(np.diagonal(gram).mean(dtype=np.float64))
    solved = _Solved([], [], [])
    descending = sorted(grid, reverse=True)
    for diag_reg in tqdm(descending, f"  {kind} solve", unit="value", disable=not progress, delay=2, leave=False):
        factor = SingleCholesky.factor(gram, diag_reg * scale, workspace)
        if factor is None:
            break
        coefficients = factor.solve(targets)
        evidence = log_evidence(targets, coefficients, factor.log_determinant) if kind == "nngp" else None
        solved.values.append(diag_reg)
        solved.coefficients.append(coefficients)
        solved.evidence.append(evidence)
    return solved


def _stream_means(
    kernel: FeatureKernel,
    validation: DocumentFeatures,
    fitting: DocumentFeatures,
    solved: dict[str, _Solved],
    progress: bool,
) -> dict[str, list[np.ndarray]]:
    """Latent means of the validation rows by kind, one (n_validation, C) array a value, in float32."""
    columns = {kind: [c.shape[1] for c in part.coefficients] for kind, part in solved.items()}
    stacked = {kind: np.hstack(part.coefficients) for kind, part in solved.items() if part.coefficients}
    parts: dict[str, list[np.ndarray]] = {kind: [] for kind in stacked}
    starts = range(0, len(validation), ROWS_AT_ONCE)
    for start in tqdm(starts, "  validation rows", unit="block", disable=not progress, delay=2, leave=False):
        pair = kernel.block(validation[start : start + ROWS_AT_ONCE], fitting, "ntk" in solved)
        for kind, block in zip(("nngp", "ntk"), pair, strict=True):
            if kind in stacked and block is not None:
                parts[kind].append(block.astype(np.float32) @ stacked[kind])
    means: dict[str, list[np.ndarray]] = {kind: [] for kind in solved}
    for kind, rows in parts.items():
        means[kind] = np.split(np.concatenate(rows), np.cumsum(columns[kind])[:-1], axis=1)
    return means


def _dense_scores(split: Split, grid: Sequence[float], solved: _Solved, means: list[np.ndarray]) -> list[GridScore]:
    found = {
        value: split.score(value, mean, evidence)
        for value, mean, evidence in zip(solved.values, means, solved.evidence, strict=True)
    }
    return [found.get(value, GridScore(value)) for value in grid]


def to_plain(table: Sequence[GridScore]) -> list[dict[str, Any]]:
    """Scores as plain values; ``GridScore(**row)`` gives them back."""
    return [asdict(score) for score in table]
