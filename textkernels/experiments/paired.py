"""Is one candidate better than another? Differences on the same training draws and the same test rows.

A score d[s, i] of draw s and test row i varies with both: d = mean + a_s + b_i + e_si. Both matter, since a user will
have other labels and other texts, so draws and rows are crossed random effects and the variance of the mean of K draws
and m rows is Var(a) / K + Var(b) / m + Var(e) / (K m). Draws from one pool of N texts share rows: two draws of n have
n^2 / N in common, which correlates their means by about f = n / N. As for resampled training sets in general (Nadeau
and Bengio, "Inference for the generalization error", 2003), the variance between draws then counts 1 / K + f / (1 - f)
times instead of 1 / K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        mean: over draws and rows.
        low, high: 95 % interval; infinite where there is too little to estimate one from.
        p_value: two-sided, of the mean being 0.
    """

    mean: float
    low: float
    high: float
    p_value: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or None where they are infinite."""
        return (self.low, self.high) if math.isfinite(self.low) else None


def crossed_mean(scores: np.ndarray, share: float) -> Estimate:
    """The mean of scores over training draws and test rows, as far as other draws and rows would change it.

    Student's t with Satterthwaite's degrees of freedom. Where draws cannot be told apart (one draw, or each of them
    the whole pool), the interval covers the drawing of the test rows alone.

    Args:
        scores: (K, m) of K draws and m test rows, such as a difference of two candidates.
        share: n / N, the part of the pool that one draw takes, above 0, at most 1.
    """
    values = np.asarray(scores, dtype=np.float64)
    draws, rows = values.shape
    mean, by_draw, by_row = float(values.mean()), values.mean(axis=1), values.mean(axis=0)
    between_rows = float(by_row.var(ddof=1)) / rows if rows > 1 else math.inf
    between_draws, common = 0.0, 0.0
    if draws > 1 and share < 1 and rows > 1:
        between_draws = float(by_draw.var(ddof=1)) * _draw_weight(draws, share)
        rest = values - by_draw[:, None] - by_row + mean
        # The rest is in both parts once; it must count once.
        common = float(np.square(rest).sum()) / ((draws - 1) * (rows - 1)) / (rows * draws)
    variance = max(between_draws + between_rows - common, between_draws, between_rows)
    parts = [(between_draws, draws - 1), (between_rows, rows - 1), (common, (draws - 1) * (rows - 1))]
    return _student(mean, variance, _satterthwaite(variance, parts))


def mean_over_draws(values: Sequence[float] | np.ndarray, share: float) -> Estimate:
    """The mean of one number a training draw, as far as other draws would change it; the test rows are as they are.

    Args:
        values: (K,), such as macro F1, which is no mean over rows.
        share: see ``crossed_mean``.
    """
    found = np.asarray(values, dtype=np.float64)
    if len(found) < 2 or share >= 1:
        return Estimate(float(found.mean()), -math.inf, math.inf, 1.0)
    return _student(float(found.mean()), float(found.var(ddof=1)) * _draw_weight(len(found), share), len(found) - 1)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Adjusted p-values: below 0.05 they leave a chance of 5 % for even one wrong statement in the whole family.

    The k-th smallest of n becomes the largest so far of (n - k + 1) p (Holm, 1979).
    """
    found = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    steps = np.maximum.accumulate((len(found) - np.arange(len(found))) * found[order])
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _draw_weight(draws: int, share: float) -> float:
    return 1.0 / draws + share / (1.0 - share)


def _satterthwaite(variance: float, parts: Sequence[tuple[float, int]]) -> float:
    """Degrees of freedom of a variance from independent estimates v: variance^2 / sum (v^2 / freedom of v)."""
    if not 0 < variance < math.inf:
        return math.inf
    return variance**2 / sum(part**2 / freedom for part, freedom in parts if part)


def _student(mean: float, variance: float, freedom: float) -> Estimate:
    from scipy.special import stdtr, stdtrit

    if not math.isfinite(variance):
        return Estimate(mean, -math.inf, math.inf, 1.0)
    error = math.sqrt(variance)
    # All scores equal: nothing can be told if they are all 0, and everything if not.
    if not error:
        return Estimate(mean, mean, mean, 1.0 if mean == 0.0 else 0.0)
    freedom = min(freedom, 1e9)
    half = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    return Estimate(mean, mean - half, mean + half, 2.0 * float(stdtr(freedom, -abs(mean) / error)))
