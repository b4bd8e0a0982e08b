"""Activations on padded token-pair blocks, in JAX and float32."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN
from textkernels.pairs.jax_blocks import Block

CLOSE = 0.999  # equal digests of 32 bits below this correlation are a coincidence

Token = tuple[jax.Array, jax.Array]


def relu(block: Block, token1: Token, token2: Token) -> Block:
    """Arc-cosine kernels.

    Args:
        block: K and Theta in front.
        token1, token2: variances, (T,) and (T',), and int32 digests of the tokens, equal for tokens in one state.
    """
    (variance1, digest1), (variance2, digest2) = token1, token2
    correlation = block.nngp * inverse_root(variance1)[:, None] * inverse_root(variance2)
    equal = (digest1[:, None] == digest2) & (correlation > CLOSE)
    correlation = jnp.where(equal, 1.0, jnp.clip(correlation, -1.0, 1.0))
    size = jnp.abs(correlation)
    root = jnp.sqrt(1.0 - size)
    arccos = root * _polynomial(ARCCOS, 1.0 - size)
    scale = jnp.sqrt(variance1)[:, None] * (jnp.sqrt(variance2) / (2 * math.pi))
    sector = root * jnp.sqrt(1.0 + size) - size * arccos
    nngp = scale * (sector + math.pi * jnp.maximum(correlation, 0.0))
    ntk = block.ntk
    if ntk is not None:
        angle = jnp.where(correlation < 0, arccos, math.pi - arccos)
        ntk = jnp.where(scale > 0, ntk * angle * (1 / (2 * math.pi)), 0.0)
    return Block(nngp, ntk)


def erf(block: Block, variance1: jax.Array, variance2: jax.Array) -> Block:
    """Arcsine kernel and its derivative; ``variance1`` and ``variance2`` are those of the tokens, (T,), (T',)."""
    nngp = block.nngp
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
