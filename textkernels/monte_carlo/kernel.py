"""The kernel between documents of a network whose attention has no closed form."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.layers import Dense, SelfAttention
from textkernels.monte_carlo.attention_root import AttentionRoot
from textkernels.monte_carlo.mixed_values import DRAWS, Prepared, mixed_values
from textkernels.monte_carlo.score_gradient import Terms, gradient_products, gradient_terms
from textkernels.processors import count_processors, single_threaded_blas
from textkernels.tile import Tile

MEMORY = 1 << 30  # bytes of pooled values to keep for prepared documents, and of gradient terms at a time
GROUPS = 16  # of draws, for standard errors, which are themselves good to 1 / sqrt(2 (GROUPS - 1)): 18 %
SUPPORTED = (
    'put Dense, LayerNorm and attention with scaling="linear" before it, only Dense between it and '
    "GlobalAveragePool, and any other layers after the pooling"
)


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
        keep = np.arange(len(self.draws)) != (-1 if group is None else group)
        count = self.draws[keep].sum()

        def mean(sums: np.ndarray | None) -> Any:
            return None if sums is None else sums[keep].sum(axis=0) / count

        parts = (self.nngp, self.ntk, self.gradient, self.variance1, self.variance2)
        return Sums(np.array([1]), *map(mean, parts))


class MonteCarloKernel:
    """Blocks of NNGP and NTK Gram matrices by seeded Monte Carlo over the scores of an attention.

    With b^2, ov, qk of the attention, and means over draws of the scores and over tokens,

        K <- b^2 + ov^2 mean(G K G'^T),
        Theta <- b^2 + 2 ov^2 mean(G K G'^T) + ov^2 mean(G Theta G'^T) + (qk ov)^2 mean(gradient of scores),

    the last as in :mod:`textkernels.monte_carlo.score_gradient`. Draws are shared between documents and numbered,
    so results depend on the seed alone, Gram matrices are positive semi-definite, and errors of entries are
    correlated. Supported: linear layers (no activation, no convolution), the attention, any Dense, pooling,
    any layers on documents.

    Cost: with p explicit key columns, O(L^2 p) a draw and document for the NNGP and O(d) a draw and pair; for the
    NTK also O(L p^2 d) a draw and document and O(p^2 d) a draw and pair, once for every block.

    Args:
        architecture: with one SelfAttention of ``scaling="sqrt"`` in front of pooling.
        memory: bytes of pooled values to keep for prepared documents (1 GB by default; past it they are made again
            for every block), and bytes of gradient terms at a time.

    Raises:
        NotImplementedError: naming the layer that stands where none can.
    """

    def __init__(self, architecture: Architecture, memory: int | None = None) -> None:
        self.place = find_attention(architecture)
        self.architecture = architecture
        self.layer: SelfAttention = architecture.layers[self.place]  # type: ignore[assignment]
        # Dense acts on every entry alike, so it may as well come after pooling.
        between = architecture.layers[self.place + 1 : architecture.pooling]
        self._tail = (*between, *architecture.document_layers)
        self.memory = MEMORY if memory is None else memory

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> Prepared:
        """Explicit features of the tokens and, if memory allows, the pooled values of every draw.

        Args:
            documents: n documents.
            longest: tokens of the longest document these may ever meet; default: the longest of them.
            progress: show a progress bar.
        """
        root = self._root(documents, int(longest or documents.lengths.max(initial=1)))
        tokens = [root.tokens(document) for document in documents]
        size = len(tokens) * self.layer.samples * len(root.values_nngp) * documents.dtype.itemsize
        kept = mixed_values(root, tokens, 0, self.layer.samples, progress) if size <= self.memory else None
        return Prepared(documents, root, tokens, kept, np.arange(len(documents)))

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Prepared:
        """Prepared documents from their ``arrays()``."""
        documents = Sequences(arrays["values"], arrays["lengths"])
        root = self._root(documents, int(arrays["longest"][0]))
        tokens = [root.tokens(document) for document in documents]
        return Prepared(documents, root, tokens, arrays.get("pooled"), np.arange(len(documents)))

    def block(
        self, rows: Prepared, columns: Prepared, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """K and, if asked for, Theta between prepared documents, float64 (n, m).

        Args:
            rows, columns: prepared documents.
            ntk: whether Theta is wanted.
            diagonal: row i is the same document as column i + diagonal; None: unknown or none.
        """
        tile = self._finish(self._sums(rows, columns, ntk, 1).without(None), diagonal)
        return tile.nngp, tile.ntk

    def standard_errors(
        self, rows: Prepared, columns: Prepared, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Standard errors of the entries of ``block``, float64 (n, m); arguments as there.

        A jackknife over groups of draws, so that layers after pooling count too. Takes the memory of 3 GROUPS
        matrices (n, m).
        """
        sums = self._sums(rows, columns, ntk, min(GROUPS, self.layer.samples))
        count = len(sums.draws)
        whole = self._finish(sums.without(None), diagonal)
        first: list[Any] = [0.0, 0.0]
        second: list[Any] = [0.0, 0.0]
        for group in range(count):
            part = self._finish(sums.without(group), diagonal)
            for place, (value, reference) in enumerate(((part.nngp, whole.nngp), (part.ntk, whole.ntk))):
                if value is not None and reference is not None:
                    first[place] += value - reference
                    second[place] += (value - reference) ** 2
        nngp, tangent = (
            np.sqrt((count - 1) / count * np.maximum(square - mean**2 / count, 0.0))
            for mean, square in zip(first, second, strict=True)
        )
        return nngp, tangent if ntk else None

    def diagonal(self, rows: Prepared) -> np.ndarray:
        """K of every prepared document with itself, float64 (n,)."""
        variance = np.zeros(len(rows))
        for first in range(0, self.layer.samples, DRAWS):
            pooled = rows.pooled(first, min(first + DRAWS, self.layer.samples))
            variance += np.einsum("ndr,ndr,r->n", pooled, pooled, rows.root.values_nngp)
        variance = self.layer.b_std**2 + self.layer.ov**2 * variance / self.layer.samples
        tile = Tile(variance[:, None].copy(), None, variance, variance[:1])
        for layer in self._tail:
            tile.variance2 = tile.variance1[:1]
            layer.tile(tile)  # type: ignore[union-attr]
        return tile.variance1

    def _root(self, documents: Sequences, longest: int) -> AttentionRoot:
        return AttentionRoot(self.architecture.layers[: self.place], self.layer, longest, documents.dim)

    def _finish(self, means: Sums, diagonal: int | None) -> Tile:
        """From means over draws to the kernel behind all layers."""
        value, bias = self.layer.ov**2, self.layer.b_std**2
        nngp = bias + value * means.nngp
        ntk = None
        if means.ntk is not None and means.gradient is not None:
            ntk = nngp + value * (means.nngp + means.ntk + means.gradient)
        tile = Tile(nngp, ntk, bias + value * means.variance1, bias + value * means.variance2, diagonal)
        for layer in self._tail:
            layer.tile(tile)  # type: ignore[union-attr]
        return tile

    def _sums(self, rows: Prepared, columns: Prepared, ntk: bool, groups: int) -> Sums:
        bounds = np.linspace(0, self.layer.samples, groups + 1).astype(int)
        shape = (groups, len(rows), len(columns))
        nngp, variances = np.zeros(shape), [np.zeros(shape[:2]), np.zeros(shape[::2])]
        tangent, gradient = (np.zeros(shape), np.zeros(shape)) if ntk else (None, None)
        if not (len(rows) and len(columns)):
            return Sums(np.diff(bounds), nngp, tangent, gradient, *variances)
        weights, tangent_weights = rows.root.values_nngp, rows.root.values_ntk
        for group, (begin, end) in enumerate(pairwise(bounds.tolist())):
            for first in range(begin, end, DRAWS):
                left = rows.pooled(first, min(first + DRAWS, end))
                right = left if rows.same(columns) else columns.pooled(first, min(first + DRAWS, end))
                nngp[group] += _products(left, weights, right)
                for variance, pooled in zip(variances, (left, right), strict=True):
                    variance[group] += np.einsum("ndr,ndr,r->n", pooled, pooled, weights)
                if tangent is not None and tangent_weights.any():
                    tangent[group] += _products(left, tangent_weights, right)
            if gradient is not None:
                self._add_gradients(rows, columns, range(begin, end), gradient[group])
        return Sums(np.diff(bounds), nngp, tangent, gradient, *variances)

    def _add_gradients(self, rows: Prepared, columns: Prepared, draws: range, sums: np.ndarray) -> None:
        """Add the gradient part of every draw to ``sums`` (n, m), documents in parts that fit the memory."""
        count = count_processors()
        part = max(1, self.memory // (2 * count * max(_term_bytes(rows), _term_bytes(columns))))
        starts = product(range(0, len(rows), part), range(0, len(columns), part))
        with single_threaded_blas(), ThreadPoolExecutor(count) as pool:
            for top, left in starts:
                first, second = rows[top : top + part], columns[left : left + part]
                for start in range(draws.start, draws.stop, count):
                    some = range(start, min(start + count, draws.stop))
                    for products in pool.map(lambda draw, a=first, b=second: self._gradients(a, b, draw), some):
                        sums[top : top + part, left : left + part] += products

    def _gradients(self, rows: Prepared, columns: Prepared, draw: int) -> np.ndarray:
        dtype = rows.documents.dtype
        matrix = rows.root.draws(draw, draw + 1, dtype)[0]

        def terms(part: Prepared) -> list[Terms]:
            return [gradient_terms(tokens, matrix, self.layer.scores, self.layer.qk) for tokens in part.chosen()]

        first = terms(rows)
        return gradient_products(rows.root, first, first if rows.same(columns) else terms(columns))


def _products(left: np.ndarray, weights: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum over draws of weighted inner products, (n, m)."""
    return (left * weights).reshape(len(left), -1) @ right.reshape(len(right), -1).T


def _term_bytes(part: Prepared) -> int:
    """Of the gradient terms of the longest document, as much again while they are made."""
    columns = 2 * len(part.root.keys_nngp) + len(part.root.values_nngp)
    longest = int(part.documents.lengths[part.index].max(initial=1))
    return 2 * part.documents.dtype.itemsize * longest * (2 * columns + longest)


def find_attention(architecture: Architecture) -> int:
    """Place of the attention that needs Monte Carlo.

    Raises:
        NotImplementedError: an architecture that :class:`MonteCarloKernel` cannot compute; the message names the
            layer and says what it can.
    """
    place = min(architecture.linear_layers, architecture.pooling)
    layer = architecture.layers[place]
    if not isinstance(layer, SelfAttention):
        raise NotImplementedError(
            f'layer {place}: expected SelfAttention(scaling="sqrt") behind linear layers only, got {layer!r}; {SUPPORTED}'
        )
    for following in range(place + 1, architecture.pooling):
        if not isinstance(architecture.layers[following], Dense):
            raise NotImplementedError(
                f"layer {following}: {architecture.layers[following]!r} acts on tokens behind the Monte Carlo "
                f"attention of layer {place}; {SUPPORTED}"
            )
    return place
