"""Sums over draws of what the kernels behind attention are made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from textkernels.monte_carlo.mixed_values import DRAWS, Prepared
from textkernels.monte_carlo.score_gradient import Terms, gradient_products, gradient_terms
from textkernels.processors import count_processors, single_threaded_blas


@dataclass(frozen=True)
class Sums:
    """Sums over groups of draws.

    Args:
        draws: in each group, int (groups,).
        nngp, ntk: of g K g' and g Theta g', with g the column means of G; float64 (groups, n, m).
        gradient: of the part of Theta that comes from keys and queries. None, as ``ntk``, if not wanted.
        variance1, variance2: of g K g of row and column documents, (groups, n) and (groups, m).
    """

    draws: np.ndarray
    nngp: np.ndarray
    ntk: np.ndarray | None
    gradient: np.ndarray | None
    variance1: np.ndarray
    variance2: np.ndarray

    def without(self, group: int | None) -> Sums:
        """Means over all draws but those of one group; over all for None."""
        count = self.draws.sum() - (0 if group is None else self.draws[group])

        def mean(sums: np.ndarray | None) -> Any:
            if sums is None:
                return None
            return (sums.sum(axis=0) - (0 if group is None else sums[group])) / count

        parts = (self.nngp, self.ntk, self.gradient, self.variance1, self.variance2)
        return Sums(np.array([1]), *map(mean, parts))


def sum_draws(rows: Prepared, columns: Prepared, ntk: bool, groups: int, memory: int) -> Sums:
    """Sums over all draws between prepared documents, in groups of about equal size.

    Args:
        rows, columns: n and m documents.
        ntk: whether Theta is wanted.
        groups: of draws.
        memory: bytes of gradient terms at a time.
    """
    bounds = np.linspace(0, rows.root.samples, groups + 1).astype(int)
    shape = (groups, len(rows), len(columns))
    nngp, variances = np.zeros(shape), (np.zeros(shape[:2]), np.zeros(shape[::2]))
    tangent, gradient = (np.zeros(shape), np.zeros(shape)) if ntk else (None, None)
    sums = Sums(np.diff(bounds), nngp, tangent, gradient, *variances)
    if len(rows) and len(columns):
        for group, (begin, end) in enumerate(pairwise(bounds.tolist())):
            for first in range(begin, end, DRAWS):
                _add_values(rows, columns, first, min(first + DRAWS, end), sums, group)
            if gradient is not None:
                _add_gradients(rows, columns, range(begin, end), memory, gradient[group])
    return sums


def value_variances(rows: Prepared) -> np.ndarray:
    """Mean over draws of g K g of every document with itself, float64 (n,)."""
    variance = np.zeros(len(rows))
    samples = rows.root.samples
    for first in range(0, samples, DRAWS):
        variance += _square_norms(rows.pooled(first, min(first + DRAWS, samples)), rows.root.values_nngp)
    return variance / samples


def _add_values(rows: Prepared, columns: Prepared, first: int, last: int, sums: Sums, group: int) -> None:
    weights, tangent_weights = rows.root.values_nngp, rows.root.values_ntk
    left = rows.pooled(first, last)
    right = left if rows.same(columns) else columns.pooled(first, last)
    sums.nngp[group] += _products(left, weights, right)
    sums.variance1[group] += _square_norms(left, weights)
    sums.variance2[group] += _square_norms(right, weights)
    if sums.ntk is not None and tangent_weights.any():
        sums.ntk[group] += _products(left, tangent_weights, right)


def _add_gradients(rows: Prepared, columns: Prepared, draws: range, memory: int, sums: np.ndarray) -> None:
    """Add the gradient part of every draw to ``sums`` (n, m), documents in parts that fit the memory."""
    count = count_processors()
    part = max(1, memory // (2 * count * max(_term_bytes(rows), _term_bytes(columns))))
    starts = product(range(0, len(rows), part), range(0, len(columns), part))
    with single_threaded_blas(), ThreadPoolExecutor(count) as pool:
        for top, left in starts:
            first, second = rows[top : top + part], columns[left : left + part]
            # No more results at a time than processors, and added in order: the same to the last bit every time.
            for start in range(draws.start, draws.stop, count):
                some = range(start, min(start + count, draws.stop))
                for products in pool.map(lambda draw, a=first, b=second: _gradients(a, b, draw), some):
                    sums[top : top + part, left : left + part] += products


def _gradients(rows: Prepared, columns: Prepared, draw: int) -> np.ndarray:
    layer, root = rows.root.layer, rows.root
    matrix = root.draws(draw, draw + 1, rows.documents.dtype)[0]

    def terms(part: Prepared) -> list[Terms]:
        return [gradient_terms(tokens, matrix, layer.scores, layer.qk) for tokens in part.chosen()]

    first = terms(rows)
    return gradient_products(root, first, first if rows.same(columns) else terms(columns))


def _products(left: np.ndarray, weights: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum over draws of weighted inner products, (n, m)."""
    return (left * weights).reshape(len(left), -1) @ right.reshape(len(right), -1).T


def _square_norms(pooled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.einsum("ndr,ndr,r->n", pooled, pooled, weights)


def _term_bytes(part: Prepared) -> int:
    """Of the gradient terms of the longest document and of what makes them."""
    longest = int(part.documents.lengths[part.index].max(initial=1))
    return term_bytes(longest, len(part.root.keys_nngp), len(part.root.values_nngp), part.documents.dtype.itemsize)


def term_bytes(length: int, keys: int, values: int, itemsize: int) -> int:
    """Of the gradient terms of a document of ``length`` tokens with so many columns, and of what makes them."""
    return 2 * itemsize * length * (2 * (2 * keys + values) + length)
