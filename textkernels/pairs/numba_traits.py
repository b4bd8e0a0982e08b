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
        return Traits(
            lengths=self.lengths[:0],
            features=self.features[:0],
            tangents=self.tangents[:0],
            states=self.states[:0],
            scales=self.scales[:, :0],
            digests=self.digests[:, :0],
            weights=self.weights[:, :0],
            positions=[part[:0] for part in self.positions],
            pooled_positions=[part[:0] for part in self.pooled_positions],
            variances=self.variances[:, :0],
            ties=self.ties[:0],
            tie_starts=self.tie_starts[:, :0],
            identity=self.identity[:0],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Traits]) -> Traits:
        """The documents of all parts in order; at least one part."""
        before = np.cumsum([0, *(len(part.ties) for part in parts)])
        starts = [part.tie_starts + offset for part, offset in zip(parts, before, strict=False)]
        return cls(
            lengths=np.concatenate([part.lengths for part in parts]),
            features=np.concatenate([part.features for part in parts]),
            tangents=np.concatenate([part.tangents for part in parts]),
            states=np.concatenate([part.states for part in parts]),
            scales=np.concatenate([part.scales for part in parts], axis=1),
            digests=np.concatenate([part.digests for part in parts], axis=1),
            weights=np.concatenate([part.weights for part in parts], axis=1),
            positions=[np.concatenate(same) for same in zip(*(part.positions for part in parts), strict=True)],
            pooled_positions=[
                np.concatenate(same) for same in zip(*(part.pooled_positions for part in parts), strict=True)
            ],
            variances=np.concatenate([part.variances for part in parts], axis=1),
            ties=np.concatenate([part.ties for part in parts]),
            tie_starts=np.concatenate(starts, axis=1),
            identity=np.concatenate([part.identity for part in parts]),
        )
