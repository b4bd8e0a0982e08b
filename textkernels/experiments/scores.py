"""The numbers of a comparison: metrics of every contender at every size, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.evaluation import evaluate
from textkernels.experiments.cells import Cell
from textkernels.experiments.compare import Comparison
from textkernels.experiments.contender import Contender
from textkernels.experiments.paired import Estimate, mean_over_draws

METRICS = ("accuracy", "macro_f1", "log_loss", "brier", "ece")
# As scikit-learn: a probability of 0 for what happens would cost infinitely much.
SMALLEST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Score:
    """One contender at one size, K draws and m test rows.

    Attributes:
        metrics: K dictionaries of ``METRICS``.
        correct: (K, m) booleans.
        log_loss: (K, m), minus the logarithm of the probability of the true class.
        estimates: by metric, the mean over draws with its interval.
        facts: K dictionaries, see ``Cell``.
    """

    contender: Contender
    size: int
    metrics: Sequence[Mapping[str, float]]
    correct: np.ndarray
    log_loss: np.ndarray
    estimates: Mapping[str, Estimate]
    facts: Sequence[Mapping[str, Any]]

    def mean_fact(self, name: str) -> float | None:
        """Mean over draws of a fact, None where the contender has none."""
        found = [fact[name] for fact in self.facts if name in fact]
        return float(np.mean(found)) if found else None


def score(comparison: Comparison) -> dict[int, list[Score]]:
    """Scores by size, contenders in the order of the report; one with a failed cell is missing at that size."""
    splits = comparison.splits
    found: dict[int, list[Score]] = {size: [] for size in splits.sizes}
    for size in splits.sizes:
        draws = [draw for draw in splits.draws if draw.size == size]
        for contender in comparison.contenders:
            cells = [comparison.cells.get((contender, draw)) for draw in draws]
            complete = [cell for cell in cells if cell is not None]
            if len(complete) == len(draws):
                found[size].append(
                    _score(contender, size, complete, splits.test.codes, splits.names, splits.share(size))
                )
    return found


def _score(
    contender: Contender, size: int, cells: Sequence[Cell], true: np.ndarray, names: Sequence[str], share: float
) -> Score:
    metrics = [_metrics(cell, true, names) for cell in cells]
    correct = np.stack([cell.predicted == true for cell in cells])
    probable = np.stack([cell.probabilities[np.arange(len(true)), true] for cell in cells])
    estimates = {name: mean_over_draws([found[name] for found in metrics], share) for name in METRICS}
    log_loss = -np.log(np.maximum(probable, SMALLEST))
    return Score(contender, size, metrics, correct, log_loss, estimates, [cell.facts for cell in cells])


def _metrics(cell: Cell, true: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    labels, said = ([names[code] for code in codes.tolist()] for codes in (true, cell.predicted))
    found = evaluate(labels, said, cell.probabilities, names)
    return {name: found[name] for name in METRICS}
