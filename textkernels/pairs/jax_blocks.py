"""The padded token-pair block of one document pair, in JAX and float32.

A block is (T, T') with zeros wherever either token is padding; every rule keeps it so, and no number in a
document decides what is padding: the lengths do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


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
        return cls(length, index(padded) < length)

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
        trained: whether Theta is wanted.
    """

    first: Document
    second: Document
    trained: bool

    def real(self, block: jax.Array) -> jax.Array:
        """The block with zeros at padding."""
        return jnp.where(self.first.mask[:, None] & self.second.mask, block, 0.0)


def dot(left: jax.Array, right: jax.Array) -> jax.Array:
    """Matrix product in full float32: the default of accelerators keeps 10 bits of a factor."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


def bilinear(weights1: jax.Array, block: jax.Array, weights2: jax.Array) -> jax.Array:
    """sum_ij w_i M_ij w'_j, one axis after the other, which loses less to rounding than one long sum."""
    return dot(weights1, dot(block, weights2))


def mean(block: Block, pair: Pair) -> Block:
    """Mean over the tokens of both documents, a block of scalars."""
    weights1, weights2 = pair.first.shares(), pair.second.shares()
    return block.each(lambda part: bilinear(weights1, part, weights2))


def scaled(block: Block, factor: Any) -> Block:
    """K and Theta times a number or a block of them."""
    return block.each(lambda part: part * factor)


def plus(block: Block, other: Block) -> Block:
    """Sum of two blocks."""
    ntk = block.ntk if other.ntk is None else other.ntk if block.ntk is None else block.ntk + other.ntk
    return Block(block.nngp + other.nngp, ntk)


def with_weights(
    nngp: jax.Array, own: float, ntk: jax.Array | None, bias: float, pair: Pair, padded: bool = False
) -> Block:
    """K + bias and Theta + own K + bias; ``padded``: K may be other than 0 at padding."""

    def real(part: jax.Array) -> jax.Array:
        return pair.real(part + bias) if padded or bias else part

    if not pair.trained:
        return Block(real(nngp), None)
    return Block(real(nngp), real(own * nngp if ntk is None else ntk + own * nngp))


def index(count: int) -> jax.Array:
    """0 .. count - 1, int32."""
    return lax.iota(jnp.int32, count)
