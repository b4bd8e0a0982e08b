"""Explicit roots of the token covariance in front of attention, and the draws of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from textkernels.features import FeatureState, apply_layers
from textkernels.layers import SelfAttention


class RootedTokens(NamedTuple):
    """Explicit token features of one document; what the columns weigh is in :class:`AttentionRoot`.

    Args:
        keys: what keys and queries see, (L, p).
        values: what values see, (L, r).
    """

    keys: np.ndarray
    values: np.ndarray


class AttentionRoot:
    """Roots of I(K), I(Theta) and of the covariances of values, the same columns for all documents.

    Args:
        prefix: linear layers in front of the attention.
        layer: the attention.
        longest: tokens of the longest document that any of these may meet.
        dim: of the token vectors.

    Attributes:
        keys_nngp, keys_ntk: weights of the key columns in I(K) and I(Theta), float64 (p,).
        values_nngp, values_ntk: weights of the value columns in K and Theta (or I of them), float64 (r,).
    """

    def __init__(self, prefix: Sequence[Any], layer: SelfAttention, longest: int, dim: int) -> None:
        self.prefix, self.layer, self.longest = tuple(prefix), layer, longest
        tokens = np.zeros((1, dim))
        plain, placed = self._states(tokens)
        self._key_columns = (placed.nngp > 0) | (placed.ntk > 0)
        self.keys_nngp, self.keys_ntk = placed.nngp[self._key_columns], placed.ntk[self._key_columns]
        values = placed if self._values_see_positions else plain
        self._value_columns = (values.nngp > 0) | (values.ntk > 0)
        self.values_nngp, self.values_ntk = values.nngp[self._value_columns], values.ntk[self._value_columns]

    def tokens(self, tokens: np.ndarray) -> RootedTokens:
        """Explicit features of the tokens (L, d) of a document, in their dtype."""
        plain, placed = self._states(tokens)
        values = placed if self._values_see_positions else plain
        return RootedTokens(placed.values[:, self._key_columns], values.values[:, self._value_columns])

    def draws(self, first: int, last: int, dtype: Any) -> np.ndarray:
        """Z of draws ``first`` .. ``last`` - 1, their scale in them: scores = keys Z keys^T; (draws, p, p).

        A draw depends on the seed and its number alone, not on the documents or on what was drawn before.
        """
        scale = np.sqrt(self.keys_nngp)
        scale = self.layer.qk * scale[:, None] * scale
        seed = int(self.layer.seed) % 2**64
        normal = [np.random.default_rng([seed, draw]).standard_normal(scale.shape) for draw in range(first, last)]
        return np.stack([scale * matrix for matrix in normal]).astype(dtype)

    @property
    def samples(self) -> int:
        """How many draws there are."""
        return int(self.layer.samples)

    @property
    def _values_see_positions(self) -> bool:
        return self.layer.positions is not None and self.layer.positions.in_values

    def _states(self, tokens: np.ndarray) -> tuple[FeatureState, FeatureState]:
        """Features without and with position columns: roots of K, Theta and of I(K), I(Theta)."""
        state = FeatureState.from_tokens(tokens, self.longest)
        plain = apply_layers(state, self.prefix) if self.prefix else state
        if self.layer.positions is None:
            return plain, plain
        content, place = self.layer.positions.shares
        columns = self.layer.positions.embeddings(len(tokens), self.longest)
        return plain, plain.weighted(content).with_columns(columns, place, place)
