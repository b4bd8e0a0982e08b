"""Self-attention on padded token-pair blocks, in JAX and float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from textkernels.layers import Positions, SelfAttention
from textkernels.pairs.jax_blocks import Block, Pair, bilinear, dot, index, with_weights


def attention_weights(layer: SelfAttention, nngp: jax.Array, pair: Pair) -> jax.Array:
    """G = zeta(qk I(A)) of one document, (T, T), zeros at padding."""
    scores = layer.qk * _interpolated(layer.positions, nngp, pair)
    if layer.scores == "softmax":
        scores = jnp.where(pair.second.mask, scores, -jnp.inf)
        scores = jax.nn.softmax(scores, axis=-1)
    elif layer.scores != "identity":
        scores = jnp.maximum(scores, 0.0) if layer.scores == "relu" else jnp.abs(scores)
    return pair.real(scores)


def attention(layer: SelfAttention, block: Block, weights1: jax.Array, weights2: jax.Array, pair: Pair) -> Block:
    """1/d scaling, with the attention weights of both documents."""
    values = attention_values(layer, block, pair)
    mixed = values.each(lambda part: layer.ov**2 * dot(dot(weights1, part), weights2.T))
    return with_weights(mixed.nngp, 2.0, mixed.ntk, layer.b_std**2, pair)


def sqrt_attention(layer: SelfAttention, block: Block, pair: Pair) -> Block:
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
    return with_weights(total * nngp, 4.0, mixed, layer.b_std**2, pair)


def attended_mean(layer: SelfAttention, block: Block, weights1: jax.Array, weights2: jax.Array, pair: Pair) -> Block:
    """Mean behind attention with 1/d scaling: mean(G M G'^T) = g^T M g' with g the column means of G, (T,)."""
    values = attention_values(layer, block, pair)
    mixed = values.each(lambda part: layer.ov**2 * bilinear(weights1, part, weights2))
    nngp = mixed.nngp + layer.b_std**2
    if not pair.trained:
        return Block(nngp, None)
    ntk = nngp + mixed.nngp
    return Block(nngp, ntk if mixed.ntk is None else mixed.ntk + ntk)


def attention_values(layer: SelfAttention, block: Block, pair: Pair) -> Block:
    """What attention mixes: the block, or I of it with positions in values."""
    if layer.positions is None or not layer.positions.in_values:
        return block
    ntk = None
    if pair.trained:
        ntk = _interpolated(layer.positions, jnp.zeros_like(block.nngp) if block.ntk is None else block.ntk, pair)
    return Block(_interpolated(layer.positions, block.nngp, pair), ntk)


def position_covariance(positions: Positions, pair: Pair) -> jax.Array:
    """R between the tokens of both documents, (T, T')."""
    rows = index(len(pair.first.mask)).astype(jnp.float32)[:, None] + 1
    columns = index(len(pair.second.mask)).astype(jnp.float32) + 1
    if positions.kind == "relative":
        distance = rows / pair.first.length.astype(jnp.float32) - columns / pair.second.length.astype(jnp.float32)
    else:  # whole tokens first: their difference is exact
        distance = (rows - columns) / float(positions.scale or 1.0)
    return positions.amplitude * jnp.exp(-positions.decay * distance**2)


def _interpolated(positions: Positions | None, block: jax.Array, pair: Pair) -> jax.Array:
    if positions is None:
        return block
    content, place = positions.shares
    return pair.real(content * block + place * position_covariance(positions, pair))


def _inner(left: jax.Array, right: jax.Array) -> jax.Array:
    ones = jnp.ones(left.shape[1], jnp.float32)
    return jnp.sum(dot(left * right, ones))
