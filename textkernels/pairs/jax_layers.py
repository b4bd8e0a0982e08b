"""Token layers on the padded token-pair block of one document pair, in JAX and float32.

The rules are written for one pair and are batched with ``jax.vmap``, which turns the products of many pairs into
few large ones.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from textkernels.pairs.graph import Node
from textkernels.pairs.jax_activations import erf, inverse_root, relu
from textkernels.pairs.jax_attention import attention, sqrt_attention
from textkernels.pairs.jax_blocks import Block, Pair, scaled, with_weights


def advance(node: Node, block: Block, part1: Any, part2: Any, pair: Pair) -> Block:
    """The block behind a node of the token graph that has one input.

    Args:
        node: anything but ``source``, ``mix`` and ``pool``.
        block: its input.
        part1, part2: what it needs of each document: variances (T,) of ``erf`` and ``norm``, of ``relu`` also
            digests (T,), attention weights (T, T) of ``attend``.
        pair: the documents.
    """
    layer = node.layer
    match node.kind:
        case "dense":
            return _affine(block, layer.w_std**2, layer.b_std**2, pair)
        case "conv":
            summed = block.each(lambda part: window_sum(part, layer.width))
            return _affine(summed, layer.w_std**2 / layer.width, layer.b_std**2, pair)
        case "relu":
            return relu(block, part1, part2)
        case "erf":
            return erf(block, part1, part2)
        case "norm":
            return scaled(block, inverse_root(part1)[:, None] * inverse_root(part2))
        case "attend":
            return attention(layer, block, part1, part2, pair)
        case "correlate":
            return sqrt_attention(layer, block, pair)
    raise NotImplementedError(f"{layer!r}: the JAX engine has no rule for {node.kind}")


def window_sum(matrix: jax.Array, width: int) -> jax.Array:
    """sum_s M_{i+s, j+s} over ``width`` positions around 0, zeros outside; by doubling, log2(width) sums."""
    rows, columns = matrix.shape
    half = width // 2
    # Concatenating, unlike padding, makes XLA on CPUs compute M once and not in every term: twice as fast.
    margin = jnp.zeros((rows, half), matrix.dtype)
    power = jnp.pad(jnp.concatenate([margin, matrix, margin], axis=1), ((half, half), (0, 0)))
    total, start, size = power[:rows, :columns], 1, 1  # the width is odd
    while 2 * size <= width:
        power = power[:-size, :-size] + power[size:, size:]
        size *= 2
        if width & size:
            total = total + power[start : start + rows, start : start + columns]
            start += size
    return total


def _affine(block: Block, weight: float, bias: float, pair: Pair) -> Block:
    """Dense, and Conv of what the window has summed."""
    return with_weights(
        weight * block.nngp, 1.0, None if block.ntk is None else weight * block.ntk, bias, pair, padded=True
    )
