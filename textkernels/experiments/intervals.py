"""How certain an accuracy is, and a difference of two accuracies on the same rows."""

from __future__ import annotations

import math

import numpy as np

# Of the standard normal distribution, for 95 %.
Z95 = 1.959963984540054


def wilson_interval(correct: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Score interval of a share: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).

    Args:
        correct: number of hits, 0 to n.
        n: number of rows, at least 1.
        z: quantile of the normal distribution; default: 95 %.

    Raises:
        ValueError: no rows, or more hits than rows.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not 0 <= correct <= n or n < 1:
        raise ValueError(f"expected 0 to n hits in n >= 1 rows, got {correct} in {n}")
    share, unit = correct / n, z * z / n
    middle = share + unit / 2
    half = z * math.sqrt(share * (1 - share) / n + unit / (4 * n))
    return max((middle - half) / (1 + unit), 0.0), min((middle + half) / (1 + unit), 1.0)


def paired_difference(first: np.ndarray, second: np.ndarray, z: float = Z95) -> tuple[float, float, float]:
    """Mean of first - second over rows, and its interval from the standard error of the differences.

    Args:
        first, second: (n,) per-row outcomes on the same rows, such as 1 for a right prediction.
        z: quantile of the normal distribution.

    Returns: difference, lower and upper end.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    mean = float(differences.mean())
    half = z * float(differences.std(ddof=1)) / math.sqrt(len(differences)) if len(differences) > 1 else math.inf
    return mean, mean - half, mean + half
