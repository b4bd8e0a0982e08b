"""Tune the few numbers of an architecture on training texts: no gradients, an eigendecomposition a trial.

The paper kept them fixed and calls their choice an interesting avenue. The criterion is the leave-one-out squared error
or the marginal likelihood of the NNGP, each at its best diag_reg (all of them come from one eigendecomposition), of a
subset of the texts; the search is Nelder and Mead's simplex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel
from textkernels.gram_matrix import fill_gram
from textkernels.selection import select_diag_reg
from textkernels.targets import encode_targets
from textkernels.tuning_space import Knob, knobs_of, turned

CRITERIA = ("loo", "evidence")
# Half a decade apart: one eigendecomposition serves any number of values.
GRID = tuple(float(10.0**power) for power in np.arange(-6, 0.51, 0.5))
# Coordinates are logarithms or log odds: a first step of e^0.7 = 2, and nothing beyond a factor of 100.
STEP, REACH = 0.7, 4.6


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes:
        architecture: the best one found, the start included.
        knobs: what was tuned, with start values; ``values``: the best ones.
        start_loss, loss: criterion before and after (leave-one-out squared error, or minus the log marginal likelihood
            a document).
        n_documents, evaluations: size of the search.
    """

    architecture: Architecture
    knobs: list[Knob]
    values: list[float]
    start_loss: float
    loss: float
    n_documents: int
    evaluations: int


def tune(
    architecture: Architecture,
    documents: Sequences,
    codes: np.ndarray,
    n_classes: int,
    kind: str = "nngp",
    criterion: str = "loo",
    evaluations: int = 60,
    longest: int | None = None,
    progress: bool = False,
) -> Tuned:
    """Search for the numbers that make the criterion least.

    Args:
        architecture: where to start.
        documents: n documents, at most a few thousand: each trial decomposes an n x n matrix.
        codes: (n,) classes.
        n_classes: at least 2.
        kind: ``nngp`` or ``ntk``.
        criterion: ``loo`` or ``evidence`` (NNGP only).
        evaluations: trials to spend.
        longest: tokens of the longest document that these may ever meet.
        progress: show a progress bar with the best value so far.

    Raises:
        ValueError: an unknown option, or an architecture with nothing to tune.
    """
    from scipy.optimize import minimize
    from tqdm import tqdm

    _check(kind, criterion)
    knobs = _knobs(architecture)
    start = np.array([knob.coordinate(knob.start) for knob in knobs])
    objective = Objective(architecture, knobs, documents, encode_targets(codes, n_classes), kind, criterion, longest)
    with tqdm(total=evaluations, desc="tuning", unit="trial", disable=not progress) as bar:
        simplex = np.vstack([start, start + STEP * np.eye(len(start))])
        minimize(
            partial(_tried, objective, bar),
            start,
            method="Nelder-Mead",
            bounds=[(at - REACH, at + REACH) for at in start],
            options={"maxfev": evaluations, "initial_simplex": simplex, "xatol": 1e-2, "fatol": 1e-7},
        )
    best = objective.best
    moved = not np.array_equal(best, start)
    return Tuned(
        turned(architecture, knobs, best, f"{architecture.name}, tuned") if moved else architecture,
        knobs,
        [knob.value(float(at)) for knob, at in zip(knobs, best, strict=True)],
        objective.start_loss,
        objective.best_loss,
        len(documents),
        objective.count,
    )


def _knobs(architecture: Architecture) -> list[Knob]:
    knobs = knobs_of(architecture)
    if not knobs:
        raise ValueError(
            f"{architecture.name}: expected something to tune, got no attention with linear scaling and no bias before "
            "an activation; start from struct-fcn or gap-fcn"
        )
    return knobs


def _tried(objective: Objective, bar: Any, coordinates: np.ndarray) -> float:
    loss = objective(coordinates)
    bar.update()
    bar.set_postfix_str(f"best {objective.best_loss:.5g}, start {objective.start_loss:.5g}")
    return loss


class Objective:
    """The criterion as a function of coordinates; remembers the best.

    Attributes: `best` coordinates, `best_loss`, `start_loss` (of the first call), `count` of calls.
    """

    def __init__(
        self,
        architecture: Architecture,
        knobs: Sequence[Knob],
        documents: Sequences,
        targets: np.ndarray,
        kind: str,
        criterion: str,
        longest: int | None,
    ) -> None:
        self.architecture, self.knobs, self.documents, self.targets = architecture, knobs, documents, targets
        self.kind, self.criterion, self.longest = kind, criterion, longest
        self.best, self.best_loss, self.start_loss, self.count = np.zeros(len(knobs)), np.inf, np.inf, 0

    def __call__(self, coordinates: np.ndarray) -> float:
        architecture = turned(self.architecture, self.knobs, coordinates, "trial")
        kernel = choose_kernel(architecture)
        prepared = kernel.prepare(self.documents, self.longest)
        nngp, ntk = fill_gram(kernel, prepared, prepared, self.kind, np.float64, symmetric=True)
        gram = nngp if ntk is None else ntk
        assert gram is not None
        loss = leave_one_out_loss(gram, self.targets) if self.criterion == "loo" else evidence_loss(gram, self.targets)
        if not self.count:
            self.start_loss = loss
        self.count += 1
        if loss < self.best_loss:
            self.best, self.best_loss = np.array(coordinates), loss
        return loss


def leave_one_out_loss(gram: np.ndarray, targets: np.ndarray, grid: Sequence[float] = GRID) -> float:
    """Least leave-one-out squared error over a grid of regularizers."""
    selection = select_diag_reg(gram, targets, grid, max_documents=len(gram))
    return min(score.mse for score in selection.table)


def evidence_loss(gram: np.ndarray, targets: np.ndarray, grid: Sequence[float] = GRID) -> float:
    """Least -log p(y) / n over a grid of regularizers and every output variance c, which has a closed form.

    For y ~ N(0, c (K + s I)) the best c is y^T (K + s I)^-1 y / n, and -log p = n (log(2 pi c) + 1) / 2
    + log det(K + s I) / 2; columns of targets share K and c.
    """
    from scipy.linalg import eigh

    n, columns = targets.shape
    values, vectors = eigh(gram, driver="evd")
    squares = np.square(vectors.T @ targets).sum(axis=1)
    scale = float(np.trace(gram)) / n
    losses = []
    for diag_reg in grid:
        spectrum = values + diag_reg * scale
        if spectrum[0] <= 0:
            continue
        variance = float(squares @ (1 / spectrum)) / (n * columns)
        losses.append(0.5 * (np.log(2 * np.pi * variance) + 1 + np.log(spectrum).mean()))
    return float(min(losses)) * columns


def _check(kind: str, criterion: str) -> None:
    if kind not in ("nngp", "ntk"):
        raise ValueError(f"expected kernel nngp or ntk, got {kind!r}")
    if criterion not in CRITERIA:
        raise ValueError(f"expected criterion {' or '.join(CRITERIA)}, got {criterion!r}")
    if criterion == "evidence" and kind == "ntk":
        raise ValueError("the NTK has no marginal likelihood: it is no covariance of outputs; use the criterion loo")


def describe(tuned: Tuned, criterion: str) -> list[str]:
    """Lines for the terminal and for comments in the file: what was tuned, from where to where."""
    named = {"loo": "leave-one-out squared error", "evidence": "minus log marginal likelihood a text"}[criterion]
    lines = [
        f"{named}: {tuned.start_loss:.5f} at the start, {tuned.loss:.5f} after {tuned.evaluations} trials on "
        f"{tuned.n_documents:,} texts"
    ]
    for knob, value in zip(tuned.knobs, tuned.values, strict=True):
        lines.append(f"{knob.name}: {knob.start:.4g} -> {value:.4g}")
    return lines


def to_commented_toml(architecture: Architecture, comments: Sequence[Any]) -> str:
    """The architecture as TOML below comment lines."""
    return "".join(f"# {' '.join(str(line).split())}\n" for line in comments) + "\n" + architecture.to_toml()
