"""A block of a Gram matrix of pooled documents on its way through the layers after pooling."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np

from textkernels.processors import count_processors

SMALL = 1 << 14  # entries that are not worth a second thread
# Documents with one representation have correlation 1 up to the rounding of their inner product, about 1e-15, of which
# arccos would make 5e-8 that differ from batch to batch. Taking 1 there is wrong by at most 1.4e-7 in the angle.
SAME = 1.0 - 1e-14
NOWHERE = -(1 << 62)  # a diagonal that no entry lies on


class Tile:
    """A block of K and Theta with the variances of its rows and columns; layers change it in place.

    Args:
        nngp: K, float64 (n, m).
        ntk: Theta, float64 (n, m), or None where only the NNGP is wanted.
        variance1, variance2: K of every row (column) document with itself, float64 (n,) and (m,).
        diagonal: row i and column i + diagonal are the same document, or None where none are. There the
            correlation is exactly 1; rounding would cost 1e-8 in Theta.
    """

    def __init__(
        self,
        nngp: np.ndarray,
        ntk: np.ndarray | None,
        variance1: np.ndarray,
        variance2: np.ndarray,
        diagonal: int | None = None,
    ) -> None:
        self.nngp = nngp
        self.ntk = ntk
        self.variance1 = variance1
        self.variance2 = variance2
        self.diagonal = diagonal

    def check_finite(self) -> None:
        """Raise ValueError for an entry that no float holds; token work is float32, whose largest number is 3e38."""
        if not all(np.isfinite(block).all() for block in (self.nngp, self.ntk) if block is not None):
            raise ValueError(
                "expected covariances that float32 can hold (below 3e38), got larger ones between some documents; "
                "scale the token vectors to unit variance, lower the standard deviations of weights or add LayerNorm()"
            )

    def affine(self, weight: float, bias: float) -> None:
        """Dense: K <- weight K + bias, Theta <- K_new + weight Theta."""
        self.nngp *= weight
        if bias:
            self.nngp += bias
        if self.ntk is not None:
            self.ntk *= weight
            self.ntk += self.nngp
        self.variance1 = weight * self.variance1 + bias
        self.variance2 = weight * self.variance2 + bias

    def normalize(self) -> None:
        """LayerNorm: rows and columns divided by their standard deviation; a variance of 0 gives 0."""
        factor1, factor2 = _inverse_root(self.variance1), _inverse_root(self.variance2)
        for block in (self.nngp, self.ntk):
            if block is not None:
                block *= factor1[:, None]
                block *= factor2
        self.variance1 = (self.variance1 > 0).astype(np.float64)
        self.variance2 = (self.variance2 > 0).astype(np.float64)

    def relu(self) -> None:
        """Arc-cosine kernel of order 1, and of order 0 for Theta."""
        self._by_rows(_relu)
        self.variance1 = self.variance1 / 2
        self.variance2 = self.variance2 / 2

    def erf(self) -> None:
        """Arcsine kernel and its derivative."""
        self._by_rows(_erf)
        self.variance1 = _erf_variance(self.variance1)
        self.variance2 = _erf_variance(self.variance2)

    def _by_rows(self, function: Callable[..., None]) -> None:
        """Run a compiled loop over bands of rows, one thread a processor."""
        ntk = self.nngp if self.ntk is None else self.ntk
        rows = len(self.nngp)
        bands = count_processors() if self.nngp.size > SMALL else 1
        step = max(1, -(-rows // bands))

        def band(start: int) -> None:
            part = slice(start, start + step)
            offset = NOWHERE if self.diagonal is None else self.diagonal + start
            function(self.nngp[part], ntk[part], self.ntk is not None, self.variance1[part], self.variance2, offset)

        with ThreadPoolExecutor(bands) as pool:
            list(pool.map(band, range(0, rows, step)))


def _inverse_root(variance: np.ndarray) -> np.ndarray:
    return np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)


def _erf_variance(variance: np.ndarray) -> np.ndarray:
    return 2 / math.pi * np.arcsin(2 * variance / (1 + 2 * variance))


@nb.njit(nogil=True, cache=True)
def _relu(nngp, ntk, with_ntk, variance1, variance2, diagonal):
    for i in range(nngp.shape[0]):
        for j in range(nngp.shape[1]):
            scale = math.sqrt(variance1[i] * variance2[j])
            if scale == 0.0:
                nngp[i, j] = 0.0
                if with_ntk:
                    ntk[i, j] = 0.0
                continue
            correlation = max(nngp[i, j] / scale, -1.0)
            if correlation > SAME or j == i + diagonal:
                correlation = 1.0
            angle = math.pi - math.acos(correlation)
            sine = math.sqrt((1.0 - correlation) * (1.0 + correlation))
            nngp[i, j] = scale * (sine + angle * correlation) / (2 * math.pi)
            if with_ntk:
                ntk[i, j] *= angle / (2 * math.pi)


@nb.njit(nogil=True, cache=True)
def _erf(nngp, ntk, with_ntk, variance1, variance2, diagonal):
    for i in range(nngp.shape[0]):
        for j in range(nngp.shape[1]):
            product = variance1[i] * variance2[j]
            total = variance1[i] + variance2[j]
            covariance = nngp[i, j]
            if j == i + diagonal:
                covariance = variance1[i]
            root = math.sqrt(1.0 + 2.0 * total + 4.0 * product)
            sine = min(max(2.0 * covariance / root, -1.0), 1.0)
            nngp[i, j] = 2 / math.pi * math.asin(sine)
            if with_ntk:
                gap = max(product - covariance * covariance, 0.0)
                ntk[i, j] *= 4 / math.pi / math.sqrt(1.0 + 2.0 * total + 4.0 * gap)
