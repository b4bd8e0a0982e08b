"""Token layers on the padded token-pair block of one document pair, in JAX and float32.

A block is (T, T') with zeros wherever either token is padding; every rule keeps it so, and no number in a
document decides what is padding: the lengths do. The rules are written for one pair and are batched with
``jax.vmap``, which turns the products of many pairs into few large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from textkernels.layers import Positions, SelfAttention
from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN, SECTOR
from textkernels.pairs.graph import Node

# Rounding in float32 leaves the correlation of two equal tokens within 4 units in the last place of 1, and
# t = pi - arccos would magnify that to 1e-3. Equal tokens are common in text, nearly equal ones are not.
ONE = 1.0 - 2.0**-21


class Document(NamedTuple):
    """What is known of a padded document besides its covariance.

    Args:
        length: number of real tokens, int32 ().
        mask: (T,) bool, True = a real token.
    """

    length: jax.Array
    mask: jax.Array

    @classmethod
    def of(cls, length: jax.Array, padded: int) -> Document:
        """A document of ``length`` tokens padded to ``padded``."""
        return cls(length, _index(padded) < length)

    def shares(self) -> jax.Array:
        """Weights of the tokens in their mean, (T,)."""
        return jnp.where(self.mask, 1.0 / self.length.astype(jnp.float32), 0.0)


class Block(NamedTuple):
    """K and Theta between the tokens of two documents, (T, T') float32; Theta is None while it is zero."""

    nngp: jax.Array
    ntk: jax.Array | None

    def each(self, function: Callable[[jax.Array], jax.Array]) -> Block:
        """The same linear function of K and of Theta."""
        return Block(function(self.nngp), None if self.ntk is None else function(self.ntk))


class Pair(NamedTuple):
    """The two documents of a block.

    Args:
        first, second: row and column document.
        same: () bool, True where both are the same document, whose tokens correlate with themselves exactly.
        trained: whether Theta is wanted.
    """

    first: Document
    second: Document
    same: jax.Array
    trained: bool

    def real(self, block: jax.Array) -> jax.Array:
        """The block with zeros at padding."""
        return jnp.where(self.first.mask[:, None] & self.second.mask, block, 0.0)

    def itself(self) -> jax.Array:
        """(T, T') bool: where a token meets itself."""
        return self.same & (_index(len(self.first.mask))[:, None] == _index(len(self.second.mask)))


def advance(node: Node, block: Block, part1: Any, part2: Any, pair: Pair) -> Block:
    """The block behind a node of the token graph that has one input.

    Args:
        node: anything but ``source``, ``mix`` and ``pool``.
        block: its input.
        part1, part2: what it needs of each document: variances (T,) of ``relu``, ``erf`` and ``norm``,
            attention weights (T, T) of ``attend``.
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
            return _relu(block, part1, part2, pair)
        case "erf":
            return _erf(block, part1, part2, pair)
        case "norm":
            return scaled(block, inverse_root(part1)[:, None] * inverse_root(part2))
        case "attend":
            return _attention(layer, block, part1, part2, pair)
        case "correlate":
            return _sqrt_attention(layer, block, pair)
    raise NotImplementedError(f"{layer!r}: the JAX engine has no rule for {node.kind}")


def mean(block: Block, pair: Pair) -> Block:
    """Mean over the tokens of both documents, a block of scalars."""
    weights1, weights2 = pair.first.shares(), pair.second.shares()
    return block.each(lambda part: bilinear(weights1, part, weights2))


def attended_mean(layer: SelfAttention, block: Block, weights1: jax.Array, weights2: jax.Array, pair: Pair) -> Block:
    """Mean behind attention with 1/d scaling: mean(G M G'^T) = g^T M g' with g the column means of G, (T,)."""
    values = attention_values(layer, block, pair)
    mixed = values.each(lambda part: layer.ov**2 * bilinear(weights1, part, weights2))
    nngp = mixed.nngp + layer.b_std**2
    if not pair.trained:
        return Block(nngp, None)
    ntk = nngp + mixed.nngp
    return Block(nngp, ntk if mixed.ntk is None else mixed.ntk + ntk)


def dot(left: jax.Array, right: jax.Array) -> jax.Array:
    """Matrix product in full float32: the default of accelerators keeps 10 bits of a factor."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


def bilinear(weights1: jax.Array, block: jax.Array, weights2: jax.Array) -> jax.Array:
    """sum_ij w_i M_ij w'_j, one axis after the other, which loses less to rounding than one long sum."""
    return dot(weights1, dot(block, weights2))


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


def position_covariance(positions: Positions, pair: Pair) -> jax.Array:
    """R between the tokens of both documents, (T, T')."""
    rows = _index(len(pair.first.mask)).astype(jnp.float32)[:, None] + 1
    columns = _index(len(pair.second.mask)).astype(jnp.float32) + 1
    if positions.kind == "relative":
        distance = rows / pair.first.length.astype(jnp.float32) - columns / pair.second.length.astype(jnp.float32)
    else:  # whole tokens first: their difference is exact
        distance = (rows - columns) / float(positions.scale or 1.0)
    return positions.amplitude * jnp.exp(-positions.decay * distance**2)


def attention_weights(layer: SelfAttention, nngp: jax.Array, pair: Pair) -> jax.Array:
    """G = zeta(qk I(A)) of one document, (T, T), zeros at padding."""
    scores = layer.qk * _interpolated(layer.positions, nngp, pair)
    if layer.scores == "softmax":
        scores = jnp.where(pair.second.mask, scores, -jnp.inf)
        scores = jax.nn.softmax(scores, axis=-1)
    elif layer.scores != "identity":
        scores = jnp.maximum(scores, 0.0) if layer.scores == "relu" else jnp.abs(scores)
    return pair.real(scores)


def attention_values(layer: SelfAttention, block: Block, pair: Pair) -> Block:
    """What attention mixes: the block, or I of it with positions in values."""
    if layer.positions is None or not layer.positions.in_values:
        return block
    ntk = None
    if pair.trained:
        ntk = _interpolated(layer.positions, jnp.zeros_like(block.nngp) if block.ntk is None else block.ntk, pair)
    return Block(_interpolated(layer.positions, block.nngp, pair), ntk)


def _interpolated(positions: Positions | None, block: jax.Array, pair: Pair) -> jax.Array:
    if positions is None:
        return block
    content, place = positions.shares
    return pair.real(content * block + place * position_covariance(positions, pair))


def _attention(layer: SelfAttention, block: Block, weights1: jax.Array, weights2: jax.Array, pair: Pair) -> Block:
    values = attention_values(layer, block, pair)
    mixed = values.each(lambda part: layer.ov**2 * dot(dot(weights1, part), weights2.T))
    return _with_weights(mixed.nngp, 2.0, mixed.ntk, layer.b_std**2, pair)


def _sqrt_attention(layer: SelfAttention, block: Block, pair: Pair) -> Block:
    """Closed form of identity scores; see :class:`textkernels.layers.SelfAttention` for D, E and s."""
    value = attention_values(layer, block, pair)
    nngp, ntk = _interpolated(layer.positions, block.nngp, pair), block.ntk
    scale = (layer.qk * layer.ov) ** 2
    total = scale * _inner(nngp, value.nngp)
    if pair.trained and layer.positions is not None:
        ntk = _interpolated(layer.positions, jnp.zeros_like(nngp) if ntk is None else ntk, pair)
    mixed = None
    if ntk is not None:
        mixed = total * ntk + scale * _inner(ntk, value.nngp) * nngp
    if value.ntk is not None:
        change = scale * _inner(nngp, value.ntk) * nngp
        mixed = change if mixed is None else mixed + change
    return _with_weights(total * nngp, 4.0, mixed, layer.b_std**2, pair)


def _inner(left: jax.Array, right: jax.Array) -> jax.Array:
    ones = jnp.ones(left.shape[1], jnp.float32)
    return jnp.sum(dot(left * right, ones))


def _affine(block: Block, weight: float, bias: float, pair: Pair) -> Block:
    """Dense, and Conv of what the window has summed."""
    return _with_weights(
        weight * block.nngp, 1.0, None if block.ntk is None else weight * block.ntk, bias, pair, padded=True
    )


def _with_weights(
    nngp: jax.Array, own: float, ntk: jax.Array | None, bias: float, pair: Pair, padded: bool = False
) -> Block:
    """K + bias and Theta + own K + bias; ``padded``: K may be other than 0 at padding."""

    def real(part: jax.Array) -> jax.Array:
        return pair.real(part + bias) if padded or bias else part

    if not pair.trained:
        return Block(real(nngp), None)
    return Block(real(nngp), real(own * nngp if ntk is None else ntk + own * nngp))


def _relu(block: Block, variance1: jax.Array, variance2: jax.Array, pair: Pair) -> Block:
    correlation = block.nngp * inverse_root(variance1)[:, None] * inverse_root(variance2)
    correlation = jnp.where((correlation > ONE) | pair.itself(), 1.0, jnp.maximum(correlation, -1.0))
    gap = 1.0 - jnp.abs(correlation)
    root = jnp.sqrt(gap)
    scale = jnp.sqrt(variance1)[:, None] * (jnp.sqrt(variance2) / (2 * math.pi))
    nngp = scale * (gap * root * _polynomial(SECTOR, gap) + math.pi * jnp.maximum(correlation, 0.0))
    ntk = block.ntk
    if ntk is not None:
        arccos = root * _polynomial(ARCCOS, gap)
        angle = jnp.where(correlation < 0, arccos, math.pi - arccos)
        ntk = jnp.where(scale > 0, ntk * angle * (1 / (2 * math.pi)), 0.0)
    return Block(nngp, ntk)


def _erf(block: Block, variance1: jax.Array, variance2: jax.Array, pair: Pair) -> Block:
    nngp = jnp.where(pair.itself(), variance1[:, None], block.nngp)
    factor1, factor2 = lax.rsqrt(1 + 2 * variance1), lax.rsqrt(1 + 2 * variance2)
    sine = jnp.clip(2 * nngp * factor1[:, None] * factor2, -1.0, 1.0)
    ntk = block.ntk
    if ntk is not None:
        product, total = variance1[:, None] * variance2, variance1[:, None] + variance2
        gap = jnp.maximum(product - nngp * nngp, 0.0)
        ntk = ntk * (4 / math.pi) * lax.rsqrt(1 + 2 * total + 4 * gap)
    return Block((2 / math.pi) * _arcsin(sine), ntk)


def _arcsin(x: jax.Array) -> jax.Array:
    size = jnp.abs(x)
    large = size > 0.5
    square = jnp.where(large, 0.5 * (1 - size), size * size)
    root = jnp.where(large, jnp.sqrt(square), size)
    small = root + root * square * _polynomial(ARCSIN, square)
    return jnp.sign(x) * jnp.where(large, math.pi / 2 - 2 * small, small)


def _polynomial(coefficients: tuple[Any, ...], x: jax.Array) -> jax.Array:
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def inverse_root(variance: jax.Array) -> jax.Array:
    """1 / sqrt of a variance, and 0 where it is 0."""
    return jnp.where(variance > 0, lax.rsqrt(jnp.where(variance > 0, variance, 1.0)), 0.0)


def scaled(block: Block, factor: Any) -> Block:
    """K and Theta times a number or a block of them."""
    return block.each(lambda part: part * factor)


def plus(block: Block, other: Block) -> Block:
    """Sum of two blocks."""
    ntk = block.ntk if other.ntk is None else other.ntk if block.ntk is None else block.ntk + other.ntk
    return Block(block.nngp + other.nngp, ntk)


def _index(count: int) -> jax.Array:
    return lax.iota(jnp.int32, count)
