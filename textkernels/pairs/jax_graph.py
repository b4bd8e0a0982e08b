"""A token graph in JAX: from explicit token features to pooled kernels, compiled for batches of documents."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from textkernels.pairs.graph import Node
from textkernels.pairs.jax_attention import attended_mean, attention_weights
from textkernels.pairs.jax_blocks import Block, Document, Pair, dot, mean, plus, scaled
from textkernels.pairs.jax_layers import advance

Nodes = tuple[Node, ...]  # hashable, so that equal architectures share what is compiled


class Documents(NamedTuple):
    """A batch of documents of one padded length.

    Args:
        values: explicit token features, K = V V'^T, (n, T, D) float32, zeros at padding.
        tangents: the same for Theta, (n, T, D'), or None where Theta starts at zero.
        lengths: numbers of real tokens, int32 (n,).
        states: digests of tokens in front of every ``relu`` node, int32 (n, nodes, T).
        parts: what each node needs of each document, as :func:`own_blocks` gives it; arrays (n, ...).
    """

    values: Any
    tangents: Any
    lengths: Any
    states: Any
    parts: Any = ()


@partial(jax.jit, static_argnames=("nodes", "pools"))
def own_blocks(nodes: Nodes, pools: tuple[int, ...], documents: Documents) -> tuple[Any, jax.Array]:
    """Every document with itself.

    Args:
        nodes, pools: of a TokenGraph.
        documents: n documents without parts.

    Returns: the parts, one entry a node, and the pooled K of each stack, (n, stacks).
    """

    def one(values: jax.Array, length: jax.Array, states: jax.Array) -> tuple[Any, jax.Array]:
        document = Document.of(length, len(values))
        pair = Pair(document, document, False)
        blocks: list[Block] = [Block(dot(values, values.T), None)]
        parts: list[Any] = [()]
        for node in nodes[1:]:
            part = _part(node, blocks[node.inputs[0]].nngp, pair)
            if node.kind == "relu":
                part = part, states[sum(earlier.kind == "relu" for earlier in nodes[: len(parts)])]
            parts.append(part)
            blocks.append(_evaluate(node, blocks, parts[-1], parts[-1], pair))
        return tuple(parts), jnp.stack([blocks[pool].nngp for pool in pools])

    return jax.vmap(one)(documents.values, documents.lengths, documents.states)


@partial(jax.jit, static_argnames=("nodes", "pools", "trained"))
def cross_blocks(
    nodes: Nodes, pools: tuple[int, ...], trained: bool, rows: Documents, columns: Documents
) -> list[jax.Array]:
    """Every row document with every column document.

    Args:
        nodes, pools: of a TokenGraph.
        trained: whether Theta is wanted.
        rows, columns: n and m documents with their parts.

    Returns: pooled K of each stack and, if wanted, Theta, (stacks, n, m) float32.
    """

    def one(row: Documents, column: Documents) -> list[jax.Array]:
        first, second = (Document.of(part.lengths, len(part.values)) for part in (row, column))
        pair = Pair(first, second, trained)
        ntk = None if row.tangents is None or not trained else dot(row.tangents, column.tangents.T)
        blocks = [Block(dot(row.values, column.values.T), ntk)]
        for node, part1, part2 in zip(nodes[1:], row.parts[1:], column.parts[1:], strict=True):
            blocks.append(_evaluate(node, blocks, part1, part2, pair))
        nngp = jnp.stack([blocks[pool].nngp for pool in pools])
        if not trained:
            return [nngp]
        tangents = [blocks[pool].ntk for pool in pools]
        return [nngp, jnp.stack([jnp.zeros_like(nngp[0]) if ntk is None else ntk for ntk in tangents])]

    return jax.vmap(jax.vmap(one, (None, 0), 1), (0, None), 1)(rows, columns)


def _part(node: Node, nngp: jax.Array, pair: Pair) -> Any:
    """What a node needs of one document, from the covariance of its tokens in front of it, (T, T)."""
    if node.kind in ("relu", "erf", "norm"):
        return jnp.diagonal(nngp)
    if node.kind == "attend":
        return attention_weights(node.layer, nngp, pair)
    if node.kind == "pool" and node.layer is not None:
        return dot(pair.first.shares(), attention_weights(node.layer, nngp, pair))
    return ()


def _evaluate(node: Node, blocks: list[Block], part1: Any, part2: Any, pair: Pair) -> Block:
    block = blocks[node.inputs[0]]
    if node.kind == "mix":
        return plus(scaled(block, node.layer.share), scaled(blocks[node.inputs[1]], 1 - node.layer.share))
    if node.kind == "pool":
        return mean(block, pair) if node.layer is None else attended_mean(node.layer, block, part1, part2, pair)
    return advance(node, block, part1, part2, pair)
