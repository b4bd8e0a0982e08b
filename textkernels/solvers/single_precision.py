"""Cholesky in float32, for Table 3's validation, which follows the paper's precision. Everything else is float64.

A float32 kernel of n documents is wrong by about 6e-8 sqrt(n) of its mean diagonal in its smallest eigenvalues, so the
factorization fails for the small regularizers of the grid; that is an outcome here, not an error, and nothing is added
to the diagonal to avoid it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

# Library factorizations stay small (see `blocks`); products with 1,024 columns already run at full speed.
BLOCK = 1_024


@dataclass(frozen=True)
class SingleCholesky:
    """L with L L^T = K + noise I in float32.

    Attributes: `lower`: (n, n) float32, L on and below the diagonal, anything above.
    """

    lower: np.ndarray

    @classmethod
    def factor(cls, kernel: np.ndarray, noise: float, out: np.ndarray) -> SingleCholesky | None:
        """Factorize K + noise I, n^3 / 3 flops; None where float32 finds it not positive definite.

        Left-looking: each panel of columns is updated by one product with all finished ones, so a failure costs only
        what lies left of it.

        Arguments:
            kernel: K, (n, n) float32, C-contiguous; only its lower triangle is read, and it is not changed.
            noise: what to add to the diagonal.
            out: (n, n) float32, C-contiguous: memory for L, to be used again for the next noise.
        """
        n = len(kernel)
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            panel = kernel[start:, start:stop].copy(order="C")
            if start:
                panel -= out[start:, :start] @ out[start:stop, :start].T
            width = stop - start
            panel[np.arange(width), np.arange(width)] += np.float32(noise)
            # The library works on Fortran order: the upper factor of the transpose is L^T.
            upper, failed = lapack.spotrf(panel[:width].T, lower=0, clean=1)
            if failed or not np.isfinite(upper).all():
                return None
            out[start:stop, start:stop] = upper.T
            if stop < n:
                out[stop:, start:stop] = blas.strsm(1.0, upper, panel[width:].T, side=0, lower=0, trans_a=1).T
        return cls(out)

    @property
    def log_determinant(self) -> float:
        """log det(K + noise I), summed in float64."""
        return float(2.0 * np.log(np.diagonal(self.lower).astype(np.float64)).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + noise I)^-1 B in float32. Argument: B (n, m). Returns: float32 (n, m)."""
        out = np.array(right, dtype=np.float32, order="C")
        n = len(out)
        starts = range(0, n, BLOCK)
        for start in starts:
            stop = min(start + BLOCK, n)
            out[start:stop] -= self.lower[start:stop, :start] @ out[:start]
            out[start:stop] = self._diagonal_solve(start, stop, out[start:stop], trans=0)
        for start in reversed(starts):
            stop = min(start + BLOCK, n)
            out[start:stop] -= self.lower[stop:, start:stop].T @ out[stop:]
            out[start:stop] = self._diagonal_solve(start, stop, out[start:stop], trans=1)
        return out

    def _diagonal_solve(self, start: int, stop: int, right: np.ndarray, trans: int) -> np.ndarray:
        upper = self.lower[start:stop, start:stop].T
        return np.asarray(blas.strsm(1.0, upper, right, side=0, lower=0, trans_a=1 - trans))
