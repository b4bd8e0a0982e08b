"""Explicit features: documents as vectors whose inner products are the kernel.

As long as no activation, convolution or 1/sqrt(d) attention acts on tokens, a token covariance is an inner product of
explicit token vectors, K = V diag(nngp) V'^T and Theta = V diag(ntk) V'^T with the same columns V, and the weights
depend on the architecture only. A document then costs O(L^2 d) and a Gram matrix O(n^2 d) instead of O(n^2 L^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, cast

import numpy as np

from embeddings import Sequences
from textkernels.attention_weights import attend
from textkernels.layers import GlobalAveragePool, SelfAttention
from textkernels.processors import count_processors, single_threaded_blas

if TYPE_CHECKING:
    from textkernels.architecture import Architecture
    from textkernels.layers import Layer
    from textkernels.layers.interfaces import LinearLayer


@dataclass(frozen=True)
class FeatureState:
    """Rows of explicit features: tokens of one document or, after pooling, one document.

    Args:
        values: V, (rows, columns) float32 or float64.
        nngp, ntk: weights of the columns, float64 (columns,): K = V diag(nngp) V^T, Theta = V diag(ntk) V^T.
        longest: number of tokens of the longest document that this one may meet (sizes the position
            features; the same for all documents of one computation).
    """

    values: np.ndarray
    nngp: np.ndarray
    ntk: np.ndarray
    longest: int

    @classmethod
    def from_tokens(cls, tokens: np.ndarray, longest: int) -> FeatureState:
        """The input layer, K = <e, e'> / d and Theta = 0, of token vectors (L, d)."""
        dim = tokens.shape[1]
        return cls(tokens, np.ones(dim) / dim, np.zeros(dim), longest)

    def reweighted(self, nngp: np.ndarray, ntk: np.ndarray) -> FeatureState:
        """The same columns under new weights."""
        return replace(self, nngp=nngp, ntk=ntk)

    def weighted(self, factor: float) -> FeatureState:
        """K and Theta times ``factor``."""
        return self.reweighted(factor * self.nngp, factor * self.ntk)

    def with_columns(self, columns: np.ndarray, nngp: float, ntk: float) -> FeatureState:
        """Further columns (rows, m), all of one weight."""
        extra = np.ones(columns.shape[1])
        return replace(
            self,
            values=np.hstack([self.values, columns.astype(self.values.dtype, copy=False)]),
            nngp=np.concatenate([self.nngp, nngp * extra]),
            ntk=np.concatenate([self.ntk, ntk * extra]),
        )

    def with_ones(self, variance: float) -> FeatureState:
        """A bias: K + variance and Theta + variance; nothing changes where it is 0."""
        return self.with_columns(np.ones((len(self.values), 1)), variance, variance) if variance else self

    def beside(self, other: FeatureState) -> FeatureState:
        """Sum of two kernels: the columns of both."""
        return replace(
            self,
            values=np.hstack([self.values, other.values]),
            nngp=np.concatenate([self.nngp, other.nngp]),
            ntk=np.concatenate([self.ntk, other.ntk]),
        )

    def variance(self) -> np.ndarray:
        """Diagonal of K, float64 (rows,)."""
        values = self.values.astype(np.float64, copy=False)
        return np.einsum("ij,ij,j->i", values, values, self.nngp)

    def normalized(self) -> FeatureState:
        """Rows divided by the square root of their variance; a row of variance 0 stays 0."""
        variance = self.variance()
        factor = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
        return replace(self, values=self.values * factor[:, None].astype(self.values.dtype))

    def averaged(self) -> FeatureState:
        """Mean over rows, in float64."""
        return replace(self, values=self.values.mean(axis=0, dtype=np.float64, keepdims=True))

    def attended(self, layer: SelfAttention, pool: bool) -> FeatureState:
        """Rows G V with the attention weights G of ``layer``, or their mean alone if ``pool``."""
        positions, length = layer.positions, len(self.values)
        content, toeplitz = 1.0, None
        if positions is not None:
            content, place = positions.shares
            toeplitz = layer.qk * place * positions.within(length)
        queries = self.values * (layer.qk * content * self.nngp).astype(self.values.dtype)
        keys, state = self.values, self
        if positions is not None and positions.in_values:
            state = self.weighted(content).with_columns(positions.embeddings(length, self.longest), place, place)
        return replace(state, values=attend(queries, keys, state.values, toeplitz, layer.scores, pool))


@dataclass(frozen=True)
class DocumentFeatures:
    """Pooled documents as explicit features: K = nngp nngp^T and Theta = ntk ntk^T before the layers that follow.

    Args:
        nngp: (n, columns) float64.
        ntk: (n, columns) float64; other columns than ``nngp``.
    """

    nngp: np.ndarray
    ntk: np.ndarray

    @classmethod
    def from_state(cls, state: FeatureState) -> DocumentFeatures:
        """Columns times the square roots of their weights, in float64; columns of weight 0 left out."""
        values = state.values.astype(np.float64, copy=False)
        parts = [(values[:, weight > 0] * np.sqrt(weight[weight > 0])) for weight in (state.nngp, state.ntk)]
        return cls(*parts)

    @classmethod
    def concatenate(cls, parts: Sequence[DocumentFeatures]) -> DocumentFeatures:
        """The documents of all parts in order."""
        return cls(np.concatenate([part.nngp for part in parts]), np.concatenate([part.ntk for part in parts]))

    def __len__(self) -> int:
        return len(self.nngp)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle."""
        return {"nngp": self.nngp, "ntk": self.ntk}

    def __getitem__(self, rows: slice | np.ndarray) -> DocumentFeatures:
        return DocumentFeatures(self.nngp[rows], self.ntk[rows])


def linear_prefix(layers: Sequence[Layer]) -> int:
    """How many of the first layers keep the kernel linear in explicit features."""
    return next((count for count, layer in enumerate(layers) if not layer.linear), len(layers))


def apply_layers(state: FeatureState, layers: Sequence[Layer]) -> FeatureState:
    """Pass feature rows through linear layers; attention directly before pooling is pooled at once."""
    for layer, following in zip_longest(layers, layers[1:]):
        if isinstance(layer, SelfAttention) and isinstance(following, GlobalAveragePool):
            state = layer.features(state, pool=True)
        else:
            state = cast("LinearLayer", layer).features(state)
    return state


def document_features(
    architecture: Architecture, documents: Sequences, longest: int | None = None, progress: bool = False
) -> DocumentFeatures:
    """Explicit features of documents under the linear layers at the start of an architecture.

    Token work is done in the dtype of the documents, one document at a time on every processor, in memory
    O(longest d); pooled vectors are float64. A document's vector does not depend on the others.

    Args:
        architecture: must be linear up to and including pooling (``architecture.linear_tokens``).
        documents: n documents of dimension d.
        longest: tokens of the longest document these may ever meet; default: the longest of them.
        progress: show a progress bar.
    """
    from tqdm import tqdm

    layers = architecture.layers[: architecture.linear_layers]
    reach = int(longest or documents.lengths.max(initial=1))

    def pooled(tokens: np.ndarray) -> FeatureState:
        with np.errstate(over="ignore", invalid="ignore"):  # found below, with the document
            return apply_layers(FeatureState.from_tokens(tokens, reach), layers)

    # One thread a processor, each with single-threaded matrix products: documents are many and small.
    with single_threaded_blas(), ThreadPoolExecutor(count_processors()) as pool:
        states = pool.map(pooled, documents)
        rows = list(tqdm(states, "document features", len(documents), unit="doc", disable=not progress))
    blank = pooled(np.zeros((1, documents.dim), documents.dtype))
    values = np.concatenate([row.values for row in rows]) if rows else blank.values[:0]
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"document {wrong[0]}: expected token vectors whose products {documents.dtype} can hold, got "
            f"{len(wrong)} of {len(rows)} documents with larger ones; scale the vectors to unit variance"
        )
    return DocumentFeatures.from_state(replace(blank, values=values))
