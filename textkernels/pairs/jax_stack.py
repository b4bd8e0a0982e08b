"""Stacks of token layers in JAX, from explicit token features to pooled kernels, compiled for batches of pairs.

Several stacks that begin alike (the depths of one network) are computed in one pass: they form a tree whose
branches share every layer up to where they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from textkernels.layers import SelfAttention
from textkernels.pairs.jax_layers import (
    Block,
    Document,
    Pair,
    advance,
    attention_values,
    attention_weights,
    bilinear,
    dot,
    own_part,
)

# A layer with the branches behind it, or the number of the stack that ends (in pooling) here. Hashable, so that
# equal architectures share what is compiled.
Branch = Any
Tree = tuple[Branch, ...]


class Documents(NamedTuple):
    """A batch of documents of one padded length.

    Args:
        values: explicit token features, K = V V'^T, (n, T, D) float32, zeros at padding.
        tangents: the same for Theta, (n, T, D'), or None where Theta starts at zero.
        lengths: numbers of real tokens, int32 (n,).
        parts: what layers need of each document, as :func:`own_blocks` gives it; arrays (n, ...).
    """

    values: Any
    tangents: Any
    lengths: Any
    parts: Any = ()


def tree_of(stacks: Sequence[Sequence[Any]]) -> Tree:
    """Stacks of token layers, each ending in pooling, as branches of one tree."""
    return _grow(list(enumerate(map(tuple, stacks))))


def _grow(stacks: list[tuple[int, tuple[Any, ...]]]) -> Tree:
    branches: list[Branch] = [number for number, layers in stacks if not layers]
    for first in dict.fromkeys(layers[0] for _, layers in stacks if layers):
        rest = [(number, layers[1:]) for number, layers in stacks if layers and layers[0] == first]
        branches.append((first, _grow(rest)))
    return tuple(branches)


@partial(jax.jit, static_argnames="tree")
def own_blocks(tree: Tree, documents: Documents) -> tuple[Any, jax.Array]:
    """Every document with itself.

    Returns: the parts of the documents, and the pooled K of each stack, (n, stacks).
    """

    def one(values: jax.Array, length: jax.Array) -> tuple[Any, jax.Array]:
        document = Document.of(length, len(values))
        pair = Pair(document, document, jnp.bool_(True), False)
        pooled: dict[int, jax.Array] = {}
        parts = _own(tree, Block(dot(values, values.T), None), pair, pooled)
        return parts, jnp.stack([pooled[number] for number in sorted(pooled)])

    return jax.vmap(one)(documents.values, documents.lengths)


@partial(jax.jit, static_argnames=("tree", "trained"))
def cross_blocks(tree: Tree, trained: bool, rows: Documents, columns: Documents, same: jax.Array) -> list[jax.Array]:
    """Every row document with every column document.

    Args:
        tree: the stacks.
        trained: whether Theta is wanted.
        rows, columns: n and m documents with their parts.
        same: (n, m) bool, True where both are the same document.

    Returns: pooled K of each stack and, if wanted, Theta, (stacks, n, m) float32.
    """

    def one(row: Documents, column: Documents, same: jax.Array) -> list[jax.Array]:
        pair = Pair(
            Document.of(row.lengths, len(row.values)), Document.of(column.lengths, len(column.values)), same, trained
        )
        ntk = dot(row.tangents, column.tangents.T) if trained and row.tangents is not None else None
        pooled: dict[int, Block] = {}
        _cross(tree, Block(dot(row.values, column.values.T), ntk), row.parts, column.parts, pair, pooled)
        blocks = [pooled[number] for number in sorted(pooled)]
        nngp = jnp.stack([block.nngp for block in blocks])
        if not trained:
            return [nngp]
        return [nngp, jnp.stack([jnp.float32(0) if block.ntk is None else block.ntk for block in blocks])]

    over_columns = jax.vmap(one, (None, 0, 0), 1)
    return jax.vmap(over_columns, (0, None, 0), 1)(rows, columns, same)


def _own(tree: Tree, block: Block, pair: Pair, pooled: dict[int, jax.Array]) -> tuple[Any, ...]:
    """Parts of one document, branch by branch; pooled variances go into ``pooled``."""
    parts: list[Any] = []
    for branch in tree:
        if isinstance(branch, int):
            pooled[branch] = _mean(block, pair).nngp
            parts.append(())
        elif _ends_in_attention(branch):
            layer, rest = branch
            weights = dot(pair.first.shares(), attention_weights(layer, block.nngp, pair))
            for number in rest:
                pooled[number] = _attended_mean(layer, block, weights, weights, pair).nngp
            parts.append(weights)
        else:
            layer, rest = branch
            part = own_part(layer, block.nngp, pair)
            parts.append((part, _own(rest, advance(layer, block, part, part, pair), pair, pooled)))
    return tuple(parts)


def _cross(tree: Tree, block: Block, parts1: Any, parts2: Any, pair: Pair, pooled: dict[int, Block]) -> None:
    for branch, part1, part2 in zip(tree, parts1, parts2, strict=True):
        if isinstance(branch, int):
            pooled[branch] = _mean(block, pair)
        elif _ends_in_attention(branch):
            for number in branch[1]:
                pooled[number] = _attended_mean(branch[0], block, part1, part2, pair)
        else:
            (own1, rest1), (own2, rest2) = part1, part2
            _cross(branch[1], advance(branch[0], block, own1, own2, pair), rest1, rest2, pair, pooled)


def _ends_in_attention(branch: Branch) -> bool:
    """Attention directly before pooling: the column means of its weights are all it takes."""
    layer, rest = branch
    linear = isinstance(layer, SelfAttention) and layer.scaling == "linear"
    return linear and all(isinstance(following, int) for following in rest)


def _mean(block: Block, pair: Pair) -> Block:
    weights1, weights2 = pair.first.shares(), pair.second.shares()
    return Block(*(None if part is None else bilinear(weights1, part, weights2) for part in block))


def _attended_mean(layer: SelfAttention, block: Block, weights1: jax.Array, weights2: jax.Array, pair: Pair) -> Block:
    """mean(G M G'^T) = g^T M g' with g the column means of G."""
    values = attention_values(layer, block, pair)
    nngp = layer.ov**2 * bilinear(weights1, values.nngp, weights2)
    ntk = None
    if pair.trained:
        ntk = 2 * nngp + layer.b_std**2
        if values.ntk is not None:
            ntk = ntk + layer.ov**2 * bilinear(weights1, values.ntk, weights2)
    return Block(nngp + layer.b_std**2, ntk)
