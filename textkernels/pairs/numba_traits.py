"""What documents bring to their pairs, for many documents one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass
class Traits:
    """n documents of all in all N tokens.

    Args:
        lengths: tokens of each, int64 (n,).
        features, tangents: explicit features for K and Theta, float32 (N, D) and (N, D').
        states: digests of the features, uint64 (N,).
        scales, digests: of tokens, by slot of the program, float32 (slots, N) and int32 (digests, N).
        weights: of tokens in each pooling, float32 (pools, N).
        positions: of each attention, explicit position columns, float32 (N, m).
        pooled_positions: of each pooling, the same behind its weights, float64 (n, m).
        variances: pooled K of each document with itself, float64 (pools, n).
        ties: attention weights, G^T in strips, flat float32, by attention and then by document.
        tie_starts: where those of a document start, int64 (attentions, n).
        identity: digest of each document, uint64 (n,).
    """

    lengths: np.ndarray
    features: np.ndarray
    tangents: np.ndarray
    states: np.ndarray
    scales: np.ndarray
    digests: np.ndarray
    weights: np.ndarray
    positions: list[np.ndarray]
    pooled_positions: list[np.ndarray]
    variances: np.ndarray
    ties: np.ndarray
    tie_starts: np.ndarray
    identity: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> np.ndarray:
        """First token of each document, and the number of tokens."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def tokens(self, documents: np.ndarray) -> np.ndarray:
        """Places of the tokens of chosen documents, one after the other."""
        lengths = self.lengths[documents]
        shift = self.starts[:-1][documents] - (np.cumsum(lengths) - lengths)
        return np.arange(lengths.sum()) + np.repeat(shift, lengths)

    def none(self) -> Traits:
        """No documents, with arrays of the same widths."""
        empty = np.zeros(0, np.int64)
        return Traits(
            **{name: getattr(self, name)[:0] for name in _BY_ROW},
            **{name: getattr(self, name)[:, :0] for name in _BY_COLUMN},
            **{name: [part[:0] for part in getattr(self, name)] for name in _BY_LIST},
            ties=self.ties[:0],
            tie_starts=self.tie_starts[:, empty],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Traits]) -> Traits:
        """The documents of all parts in order; at least one part."""
        first = parts[0]
        ties, tie_starts = _concatenate_ties(parts)
        rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_ROW}
        columns = {name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in _BY_COLUMN}
        lists = {
            name: [np.concatenate([getattr(part, name)[i] for part in parts]) for i in range(len(getattr(first, name)))]
            for name in _BY_LIST
        }
        return cls(**rows, **columns, **lists, ties=ties, tie_starts=tie_starts)


_BY_ROW = ("lengths", "features", "tangents", "states", "identity")
_BY_COLUMN = ("scales", "digests", "weights", "variances")
_BY_LIST = ("positions", "pooled_positions")


def _concatenate_ties(parts: Sequence[Traits]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *(len(part.ties) for part in parts)])
    starts = [part.tie_starts + offset for part, offset in zip(parts, offsets, strict=False)]
    return np.concatenate([part.ties for part in parts]), np.concatenate(starts, axis=1)
