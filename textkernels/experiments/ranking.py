"""Who is ahead, and whether that can be told: all pairs of some contenders at one size, groups, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from textkernels.experiments.contender import Contender
from textkernels.experiments.paired import Estimate, crossed_mean, holm
from textkernels.experiments.scores import Score

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two contenders at one size; ``first`` is ahead in accuracy or, with equal accuracy, in log loss.

    Attributes:
        accuracy: of ``first`` minus that of ``second``.
        log_loss: the same of the log loss, so that below 0 is better.
        accuracy_p, log_loss_p: p-values after Holm's correction for all pairs of the ranking.
        identical: whether both predict the same class for every row in every draw.
    """

    size: int
    first: Contender
    second: Contender
    accuracy: Estimate
    log_loss: Estimate
    accuracy_p: float
    log_loss_p: float
    identical: bool

    @property
    def apart(self) -> bool:
        """Whether their accuracies can be told apart."""
        return self.accuracy_p < SIGNIFICANT


@dataclass(frozen=True)
class Ranking:
    """Contenders of one size, the most accurate first, and what can be said about each two of them."""

    size: int
    scores: tuple[Score, ...]
    pairs: Mapping[tuple[Contender, Contender], Pair]

    @classmethod
    def of(cls, scores: Sequence[Score], share: float) -> Ranking:
        """Rank scores of one size; they are one family for Holm's correction.

        Args:
            scores: at least one; the same draws and test rows.
            share: see ``paired.crossed_mean``.
        """
        order = sorted(scores, key=lambda s: (-s.estimates["accuracy"].mean, s.estimates["log_loss"].mean))
        couples = [(one, two) for place, one in enumerate(order) for two in order[place + 1 :]]
        accuracy = [crossed_mean(one.correct.astype(float) - two.correct, share) for one, two in couples]
        log_loss = [crossed_mean(one.log_loss - two.log_loss, share) for one, two in couples]
        adjusted = [holm([estimate.p_value for estimate in estimates]) for estimates in (accuracy, log_loss)]
        pairs = {}
        for place, (one, two) in enumerate(couples):
            same = bool(np.array_equal(one.correct, two.correct) and np.array_equal(one.log_loss, two.log_loss))
            first, second = adjusted[0][place], adjusted[1][place]
            pairs[one.contender, two.contender] = Pair(
                one.size,
                one.contender,
                two.contender,
                accuracy[place],
                log_loss[place],
                float(first),
                float(second),
                same,
            )
        return cls(order[0].size, tuple(order), pairs)

    @property
    def order(self) -> list[Contender]:
        """The most accurate first."""
        return [score.contender for score in self.scores]

    def groups(self) -> list[tuple[int, int]]:
        """Runs of places (first, last) of two or more contenders no two of which can be told apart, the longest ones.

        Two that cannot be told apart while one between them can are in no run together; the pairs have it all.
        """
        order = self.order
        runs: list[tuple[int, int]] = []
        for start in range(len(order)):
            stop = start
            while stop + 1 < len(order) and not any(
                self.pairs[order[place], order[stop + 1]].apart for place in range(start, stop + 1)
            ):
                stop += 1
            if stop > start and (not runs or stop > runs[-1][1]):
                runs.append((start, stop))
        return runs

    def among(self, contenders: Sequence[Contender]) -> list[Pair]:
        """The pairs of some contenders, in order."""
        chosen = set(contenders)
        return [pair for pair in self.pairs.values() if {pair.first, pair.second} <= chosen]


def verdict(ranking: Ranking, names: Mapping[Contender, str]) -> str:
    """One sentence: who is better than whom, and who cannot be told apart.

    Args:
        ranking: at least one row.
        names: of the contenders that the sentence is about; those without scores are left out.
    """
    order = [contender for contender in ranking.order if contender in names]
    if len(order) < 2:
        return f"Only {names[order[0]]} has scores." if order else "There are no scores."
    pairs = ranking.among(order)
    if not any(pair.apart for pair in pairs):
        return f"{listed([names[one] for one in order])} cannot be told apart{_doubt(pairs)}."
    best = [pair for pair in pairs if pair.first == order[0]]
    better = [f"{names[pair.second]} ({_points(pair)})" for pair in best if pair.apart]
    tied = [f"{names[pair.second]} ({_points(pair)})" for pair in best if not pair.apart]
    parts = [f"is better than {listed(better)}"] if better else []
    parts += [f"cannot be told apart from {listed(tied)}"] if tied else []
    others: dict[Contender, list[str]] = {}
    for pair in pairs:
        if pair.first != order[0] and pair.apart:
            others.setdefault(pair.first, []).append(f"{names[pair.second]} ({_points(pair)})")
    told = [f"{names[one]} is better than {listed(worse)}" for one, worse in others.items()]
    return f"{names[order[0]]} {' but '.join(parts)}{'; ' + listed(told) if told else ''}."


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def points(estimate: Estimate) -> str:
    """An accuracy's difference in percentage points."""
    return f"{100 * estimate.mean:+.2f}"


def shown_p(value: float) -> str:
    """ "= 0.012" or "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _points(pair: Pair) -> str:
    return f"{points(pair.accuracy)} points"


def _doubt(pairs: Sequence[Pair]) -> str:
    """What their differences may be."""
    if all(pair.identical for pair in pairs):
        return ": they predict the same for every text"
    widest = max(pairs, key=lambda pair: abs(pair.accuracy.mean))
    interval = widest.accuracy.interval
    if interval is None:
        return ""
    low, high = (100 * end for end in interval)
    found = f"the largest difference is {points(widest.accuracy)} points, 95 % interval {low:+.2f} to {high:+.2f}"
    return f": {found}, p {shown_p(widest.accuracy_p)} with Holm's correction"
