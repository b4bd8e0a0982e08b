"""Attention weights G = zeta(scores) of one document, row by row, and what they mix.

The L x L matrix of a long document is never held as a whole: rows are made in chunks that a cache holds.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numba.extending import overload

CHUNK_ENTRIES = 1 << 18  # of the score matrix at a time: 1 MB in float32, enough rows for fast matrix products
SCORE_CODES = {"softmax": 0, "identity": 1, "relu": 2, "abs": 3}
FASTMATH = {"nnan", "nsz", "reassoc", "contract", "arcp"}  # scores are finite; infinity is not promised away


def attend(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    toeplitz: np.ndarray | None,
    scores: str,
    pool: bool,
) -> np.ndarray:
    """G V with G = zeta(Q K^T + R), or the mean of its rows.

    Args:
        queries, keys: (L, d), their scale already in them.
        values: V, (L, D).
        toeplitz: R_ab as a function of |a - b|, (L,), or None for no positions.
        scores: zeta, see :class:`textkernels.layers.SelfAttention`.
        pool: return the mean over rows, float64 (1, D), which needs the column means of G only.

    Returns: (L, D) in the dtype of ``values``, or (1, D) float64.
    """
    length, dtype = len(queries), queries.dtype
    band = np.zeros(0, dtype) if toeplitz is None else _mirrored(toeplitz).astype(dtype)
    mean = np.zeros(length)
    mixed = np.empty((0 if pool else length, values.shape[1]), values.dtype)
    rows = max(1, CHUNK_ENTRIES // length)
    for start in range(0, length, rows):
        stop = min(start + rows, length)
        weights = queries[start:stop] @ keys.T
        apply_scores(weights, band, start, SCORE_CODES[scores])
        if pool:
            add_column_sums(weights, mean)
        else:
            np.matmul(weights, values, out=mixed[start:stop])
    return mixed if not pool else (mean @ values)[None] / length


def _mirrored(toeplitz: np.ndarray) -> np.ndarray:
    """Values at a - b = -(L-1) .. L-1 of a symmetric function given at 0 .. L-1."""
    return np.concatenate([toeplitz[:0:-1], toeplitz])


def exp_nonpositive(x):
    """exp(x) for x <= 0, to call from compiled code: see the two versions below."""
    return np.exp(x)


def _exp_float32(x):
    # A polynomial that vectorizes, relative error 8e-8; library calls one by one take ten times as long.
    x = max(x, np.float32(-87.0))
    power = np.float32(np.floor(x * np.float32(1.44269504) + np.float32(0.5)))
    rest = (x - power * np.float32(0.693359375)) - power * np.float32(-2.12194440e-4)
    value = np.float32(1.98756915e-4)
    value = value * rest + np.float32(1.39819995e-3)
    value = value * rest + np.float32(8.33345191e-3)
    value = value * rest + np.float32(4.16657959e-2)
    value = value * rest + np.float32(1.66666655e-1)
    value = value * rest + np.float32(0.5)
    value = value * rest * rest + rest + np.float32(1.0)
    return value * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


@overload(exp_nonpositive, jit_options={"fastmath": FASTMATH})
def _exp_by_dtype(x):
    return _exp_float32 if x == nb.float32 else exp_nonpositive


@nb.njit(nogil=True, fastmath=FASTMATH, cache=True, error_model="numpy")
def apply_scores(block, band, start, code):
    """zeta of (block + R) in place; row i of the block is row start + i of the document.

    Args:
        block: scores without positions, (rows, L) float32 or float64.
        band: R_ab at b - a = -(L - 1) .. L - 1 in the dtype of ``block``, or empty for no positions.
        start: place of the first row in the document.
        code: of zeta, one of ``SCORE_CODES``.
    """
    rows, length = block.shape
    for i in range(rows):
        row = block[i]
        if band.size:
            offset = length - 1 - (start + i)
            shift = band[offset : offset + length]
            for j in range(length):
                row[j] += shift[j]
        if code == 0:
            _softmax(row)
        elif code == 2:
            for j in range(length):
                row[j] = max(row[j], block.dtype.type(0.0))
        elif code == 3:
            for j in range(length):
                row[j] = abs(row[j])


@nb.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")
def _softmax(row):
    top = row[0]
    for j in range(row.size):
        top = max(top, row[j])
    total = row.dtype.type(0.0)
    for j in range(row.size):
        value = exp_nonpositive(row[j] - top)
        row[j] = value
        total += value
    factor = row.dtype.type(1.0) / total
    for j in range(row.size):
        row[j] *= factor


@nb.njit(nogil=True, cache=True)
def add_column_sums(block, sums):
    """Add the column sums of a block to ``sums`` (float64)."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            sums[j] += block[i, j]
