"""The kernel between documents of a network whose attention has no closed form."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.layers import Dense, SelfAttention
from textkernels.monte_carlo.attention_root import AttentionRoot, RootedTokens
from textkernels.monte_carlo.draw_sums import Sums, sum_draws, term_bytes, value_variances
from textkernels.monte_carlo.mixed_values import DRAWS, Prepared, mixed_values
from textkernels.monte_carlo.score_gradient import SLICE
from textkernels.processors import count_processors, single_threaded_blas
from textkernels.tile import Tile

MEMORY = 1 << 30  # bytes of pooled values to keep for prepared documents, and of gradient terms at a time
GROUPS = 16  # of draws, for standard errors, which are themselves good to 1 / sqrt(2 (GROUPS - 1)): 18 %
SUPPORTED = (
    'put Dense, LayerNorm and attention with scaling="linear" before it, only Dense between it and '
    "GlobalAveragePool, and any other layers after the pooling"
)


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
        root, tokens = self._tokens(documents, int(longest or documents.lengths.max(initial=1)))
        size = len(tokens) * root.samples * len(root.values_nngp) * documents.dtype.itemsize
        kept = mixed_values(root, tokens, 0, root.samples, progress) if size <= self.memory else None
        return Prepared(documents, root, tokens, kept, np.arange(len(documents)))

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes of prepared documents, and bytes to work with beyond blocks of the result, at most.

        Args:
            lengths: tokens of all documents; dim: of their vectors, taken for float64.
            longest: tokens of the longest row and of the longest column document.
            ntk: whether Theta is wanted.
        """
        reach = int(lengths.max(initial=1))
        root = AttentionRoot(self.architecture.layers[: self.place], self.layer, reach, dim)
        keys, values = len(root.keys_nngp), len(root.values_nngp)
        pooled = 8 * len(lengths) * root.samples * values
        kept = 8 * int(lengths.sum()) * (keys + values) + (pooled if pooled <= self.memory else 0)
        drawing = 8 * DRAWS * (keys**2 + count_processors() * reach * keys) + 8 * count_processors() * reach**2
        gradient = self._gradient_need(len(lengths), reach, keys, values) if ntk else 0
        return kept, drawing + 3 * 8 * DRAWS * values * len(lengths) + gradient

    def _gradient_need(self, documents: int, reach: int, keys: int, values: int) -> int:
        """Bytes of gradient terms and of slices of their tensors, of n documents of at most ``reach`` tokens."""
        terms = count_processors() * 2 * documents * term_bytes(reach, keys, values, 8)
        tensors = 8 * keys**2 * values * 2 * documents
        return min(self.memory, terms) + 2 * count_processors() * min(SLICE, tensors)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Prepared:
        """Prepared documents from their ``arrays()``."""
        documents = Sequences(arrays["values"], arrays["lengths"])
        root, tokens = self._tokens(documents, int(arrays["longest"][0]))
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
        tile = self._finish(sum_draws(rows, columns, ntk, 1, self.memory).without(None), diagonal)
        tile.check_finite()
        return tile.nngp, tile.ntk

    def standard_errors(
        self, rows: Prepared, columns: Prepared, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Standard errors of the entries of ``block``, float64 (n, m); arguments as there.

        A jackknife over groups of draws, so that layers after pooling count too. Takes the memory of 3 GROUPS
        matrices (n, m).
        """
        sums = sum_draws(rows, columns, ntk, min(GROUPS, int(self.layer.samples)), self.memory)
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
        variance = self.layer.b_std**2 + self.layer.ov**2 * value_variances(rows)
        tile = Tile(variance[:, None].copy(), None, variance, variance[:1])
        for layer in self._tail:
            tile.variance2 = tile.variance1[:1]
            layer.tile(tile)  # type: ignore[union-attr]
        return tile.variance1

    def _tokens(self, documents: Sequences, longest: int) -> tuple[AttentionRoot, list[RootedTokens]]:
        root = AttentionRoot(self.architecture.layers[: self.place], self.layer, longest, documents.dim)
        with single_threaded_blas(), ThreadPoolExecutor(count_processors()) as pool:
            return root, list(pool.map(root.tokens, documents))

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


def find_attention(architecture: Architecture) -> int:
    """Place of the attention that needs Monte Carlo.

    Raises:
        NotImplementedError: an architecture that :class:`MonteCarloKernel` cannot compute; the message names the
            layer and says what it can.
    """
    layers = architecture.layers
    place = min(architecture.linear_layers, architecture.pooling)
    if not isinstance(layers[place], SelfAttention):
        later = any(isinstance(layer, SelfAttention) and layer.sampled for layer in architecture.all_layers)
        raise NotImplementedError(
            f"layer {place}: {layers[place]!r} "
            + ("comes before or around an attention" if later else "is no attention")
            + f" that needs Monte Carlo, whose draws need explicit features of the tokens; {SUPPORTED}"
        )
    for following in range(place + 1, architecture.pooling):
        if not isinstance(layers[following], Dense):
            raise NotImplementedError(
                f"layer {following}: {layers[following]!r} acts on tokens behind the Monte Carlo attention of layer "
                f"{place}; {SUPPORTED}"
            )
    return place
