"""Explicit features in JAX, for accelerators: batches of padded documents through the layers up to pooling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from embeddings import Sequences
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures, FeatureState, apply_layers
from textkernels.layers import Positions, Residual, SelfAttention
from textkernels.pairs.jax_activations import inverse_root
from textkernels.pairs.jax_attention import attention_weights
from textkernels.pairs.jax_batches import batch_count, batch_size, fill, padded_length
from textkernels.pairs.jax_blocks import Document, Pair, dot


class JaxFeatureKernel(FeatureKernel):
    """The kernel by explicit features, token work in float32 on an accelerator.

    Everything behind pooling is NumPy in float64, as in :class:`textkernels.feature_kernel.FeatureKernel`.

    Args:
        architecture: explicit features must reach through pooling (``architecture.linear_tokens``).
    """

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> DocumentFeatures:
        """What ``block`` needs of each document; as :func:`textkernels.features.document_features`.

        Args:
            documents: n documents of dimension d.
            longest: tokens of the longest document these may ever meet; default: the longest of them. Rounded up
                to a padded length, so that position features come in few widths.
            progress: show a progress bar.
        """
        reach = padded_length(int(longest or documents.lengths.max(initial=1)))
        tokens = self.architecture.layers[: self.architecture.pooling + 1]
        blank = apply_layers(FeatureState.from_tokens(np.zeros((1, documents.dim)), reach), tokens)
        values = np.zeros((len(documents), blank.values.shape[1]))
        for places, rows in self._batches(documents, reach, progress):
            values[places] = rows
        state = replace(blank, values=values)
        # Rows are documents now, and every layer acts on rows.
        following = self.architecture.layers[len(tokens) : self.architecture.linear_layers]
        return DocumentFeatures.from_state(apply_layers(state, following))

    def _batches(self, documents: Sequences, longest: int, progress: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places of documents, and their pooled features."""
        from tqdm import tqdm

        layers = self.architecture.layers[: self.architecture.pooling + 1]
        positions = tuple(dict.fromkeys(_value_positions(layers)))
        padded = np.array([padded_length(int(length)) for length in documents.lengths], dtype=np.int64)
        with tqdm(total=len(documents), desc="document features", unit="doc", disable=not progress) as bar:
            for length in np.unique(padded).tolist():
                group = np.flatnonzero(padded == length)
                count = batch_count(len(group), batch_size() // length**2)
                for start in range(0, len(group), count):
                    places = group[start : start + count]
                    chosen = documents.take(fill(places, count))
                    values = chosen.padded(length)[0].astype(np.float32, copy=False)
                    tables = [_place_features(each, chosen.lengths, longest, length) for each in positions]
                    rows = pooled_features(layers, positions, values, chosen.lengths.astype(np.int32), tables)
                    yield places, np.asarray(rows)[: len(places)]
                    bar.update(len(places))


@dataclass(frozen=True)
class PaddedState(FeatureState):
    """Explicit features of one padded document, in JAX: the same columns.

    What stands at padding does not matter: attention weights and the weights of the mean are 0 there.

    Args:
        values: V, (T, columns) float32.
        pair: the document with itself; after pooling a document of one token.
        places: explicit position features, (T, columns), of all Positions that values see.
    """

    values: Any
    pair: Pair
    places: Mapping[Positions, jax.Array]

    def with_columns(self, columns: Any, nngp: float, ntk: float) -> PaddedState:
        """Further columns (T, m), all of one weight."""
        weight = np.ones(columns.shape[1])
        return self._joined(jnp.asarray(columns, jnp.float32), nngp * weight, ntk * weight)

    def beside(self, other: FeatureState) -> PaddedState:
        """Sum of two kernels: the columns of both."""
        return self._joined(other.values, other.nngp, other.ntk)

    def variance(self) -> Any:
        """Diagonal of K, float32 (T,)."""
        return dot(self.values * self.values, jnp.asarray(self.nngp, jnp.float32))

    def normalized(self) -> PaddedState:
        """Rows divided by the square root of their variance; a row of variance 0 stays 0."""
        return replace(self, values=self.values * inverse_root(self.variance())[:, None])

    def averaged(self) -> PaddedState:
        """Mean over the real rows."""
        return self._pooled(self.pair.first.shares(), self.values)

    def attended(self, layer: SelfAttention, pool: bool) -> PaddedState:
        """Rows G V with the attention weights G of ``layer``, or their mean alone if ``pool``."""
        covariance = dot(self.values * jnp.asarray(self.nngp, jnp.float32), self.values.T)
        weights = attention_weights(layer, covariance, self.pair)
        state = self
        if layer.positions is not None and layer.positions.in_values:
            content, place = layer.positions.shares
            state = replace(self, nngp=content * self.nngp, ntk=content * self.ntk).with_columns(
                self.places[layer.positions], place, place
            )
        if pool:
            return state._pooled(dot(self.pair.first.shares(), weights), state.values)
        return replace(state, values=dot(weights, state.values))

    def _pooled(self, weights: jax.Array, values: jax.Array) -> PaddedState:
        one = Document.of(jnp.int32(1), 1)
        return replace(self, values=dot(weights[None], values), pair=self.pair._replace(first=one, second=one))

    def _joined(self, values: Any, nngp: np.ndarray, ntk: np.ndarray) -> PaddedState:
        return replace(
            self,
            values=jnp.concatenate([self.values, values], axis=1),
            nngp=np.concatenate([self.nngp, nngp]),
            ntk=np.concatenate([self.ntk, ntk]),
        )


@partial(jax.jit, static_argnames=("layers", "positions"))
def pooled_features(
    layers: tuple[Any, ...],
    positions: tuple[Positions, ...],
    values: jax.Array,
    lengths: jax.Array,
    tables: list[jax.Array],
) -> jax.Array:
    """Pooled documents as explicit features, (n, columns) float32.

    Args:
        layers: up to and including pooling.
        positions: all that values see.
        values: padded token vectors, (n, T, d) float32, zeros at padding.
        lengths: numbers of real tokens, int32 (n,).
        tables: explicit features of ``positions``, each (n, T, columns) float32.
    """

    def one(values: jax.Array, length: jax.Array, tables: list[jax.Array]) -> jax.Array:
        document = Document.of(length, len(values))
        pair = Pair(document, document, False)
        dim = values.shape[1]
        places = dict(zip(positions, tables, strict=True))
        state = PaddedState(values, np.full(dim, 1.0 / dim), np.zeros(dim), 0, pair, places)
        return apply_layers(state, layers).values[0]

    return jax.vmap(one)(values, lengths, tables)


def _value_positions(layers: Sequence[Any]) -> Iterator[Positions]:
    for layer in layers:
        if isinstance(layer, Residual):
            yield from _value_positions(layer.layers)
        elif isinstance(layer, SelfAttention) and layer.positions is not None and layer.positions.in_values:
            yield layer.positions


def _place_features(positions: Positions, lengths: np.ndarray, longest: int, padded: int) -> np.ndarray:
    """Explicit position features of documents, (n, padded, columns) float32; phases want float64."""
    columns = positions.embeddings(1, longest).shape[1]
    table = np.zeros((len(lengths), padded, columns), np.float32)
    for place, length in enumerate(lengths.tolist()):
        table[place, :length] = positions.embeddings(length, longest)
    return table
