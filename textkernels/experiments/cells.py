"""One cell of a comparison: a network fitted to one draw of labels, and what it says about the test rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.latent import fit_latent
from textkernels.probability import class_probabilities, fit_residual_variance, neutral_probabilities
from textkernels.targets import predicted_class


@dataclass(frozen=True)
class Cell:
    """Predictions of one fit for the m test rows, and how they came about.

    Attributes:
        predicted: (m,) classes.
        probabilities: (m, C), 7 significant digits.
        facts: plain values: ``n_train`` usable training texts, ``diag_reg``, ``jitter``, ``solver``,
            ``kernel_seconds``, ``solve_seconds`` and, once measured, ``peak_bytes``; for a baseline what it has.
    """

    predicted: np.ndarray
    probabilities: np.ndarray
    facts: dict[str, Any]

    def to_plain(self) -> dict[str, Any]:
        """Values that JSON has; ``from_plain`` reads them back."""
        rounded = [[float(f"{value:.7g}") for value in row] for row in self.probabilities.tolist()]
        return {"predicted": self.predicted.tolist(), "probabilities": rounded, "facts": self.facts}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Cell:
        """The cell that gave ``plain``."""
        return cls(np.array(plain["predicted"]), np.array(plain["probabilities"]), dict(plain["facts"]))


def fit_cell(
    kernel: Any,
    train: Any,
    codes: np.ndarray,
    test: Any,
    test_rows: np.ndarray,
    n_test: int,
    n_classes: int,
    ntk: bool,
    seed: int = 0,
) -> Cell:
    """Fit as KernelClassifier does, diag_reg by leave-one-out, and predict the test rows.

    A test row without a known token gets the class shares of the training texts and their majority class.

    Args:
        kernel: see :class:`textkernels.latent.LatentModel`.
        train: the usable training documents, prepared.
        codes: their classes.
        test: the usable test documents, prepared.
        test_rows: their places among the test rows.
        n_test: all test rows.
        n_classes: at least 2.
        ntk: the NTK rather than the NNGP.
        seed: of subsets.

    Raises:
        ValueError: no usable text of some class, or a kernel that is no covariance.
    """
    shares = np.bincount(codes, minlength=n_classes)
    if not shares.all():
        raise ValueError(
            f"expected a usable text of every class among {len(codes):,} training texts, got classes with "
            f"{', '.join(map(str, shares))}; use more labels or vectors that know the words"
        )
    clocked = _ClockedKernel(kernel)
    start = time.perf_counter()
    fitted = fit_latent(clocked, train, codes, n_classes, ntk, "auto", seed)
    held_out = fitted.leave_one_out
    variance = fit_residual_variance(held_out.mean, held_out.variance, codes[held_out.rows])
    latent = fitted.model.predict(test)
    probabilities, predicted = neutral_probabilities(shares, n_test), np.full(n_test, int(shares.argmax()))
    if len(test_rows):
        probabilities[test_rows] = class_probabilities(latent.mean, latent.variance, variance)
        predicted[test_rows] = predicted_class(latent.mean)
    seconds = time.perf_counter() - start
    facts = {
        "n_train": len(codes),
        "diag_reg": fitted.diag_reg,
        "jitter": fitted.jitter,
        "solver": fitted.solver,
        "kernel_seconds": clocked.seconds,
        "solve_seconds": seconds - clocked.seconds,
    }
    return Cell(predicted, probabilities, facts)


class _ClockedKernel:
    """A kernel that knows how long its blocks took."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.architecture = getattr(kernel, "architecture", None)
        self.seconds = 0.0

    def block(self, rows: Any, columns: Any, ntk: bool, diagonal: int | None = None) -> Any:
        """As the kernel's."""
        with self._clock():
            return self.kernel.block(rows, columns, ntk, diagonal)

    def diagonal(self, rows: Any) -> np.ndarray:
        """As the kernel's."""
        with self._clock():
            return self.kernel.diagonal(rows)

    @contextmanager
    def _clock(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start
