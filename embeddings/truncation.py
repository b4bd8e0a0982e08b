"""Which tokens of a long text are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embeddings.whole_numbers import whole_number_or_none

ENDS = ("head", "tail", "head+tail")


@dataclass(frozen=True)
class Truncation:
    """Keep at most ``limit`` tokens of a text, counted before unknown words are left out.

    Attributes:
        limit: the most tokens kept; None keeps all.
        keep: ``head`` the first ones, ``tail`` the last ones, ``head+tail`` half the limit from each end
            (of an odd limit the head gets one more).
    """

    limit: int | None = 1000
    keep: str = "head"

    def __post_init__(self) -> None:
        if self.keep not in ENDS:
            raise ValueError(f"expected keep to be one of {', '.join(map(repr, ENDS))}, got {self.keep!r}")
        object.__setattr__(self, "limit", whole_number_or_none("max_tokens", self.limit, 1, "no limit"))

    def kept(self, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which tokens of texts with ``lengths`` tokens, laid end to end, are kept: shape (sum of lengths,)."""
        lengths = np.asarray(lengths, np.int64)
        if self.limit is None or lengths.max(initial=0) <= self.limit:
            return np.ones(lengths.sum(), bool)
        head = {"head": self.limit, "tail": 0, "head+tail": (self.limit + 1) // 2}[self.keep]
        tail = self.limit - head
        ends = np.cumsum(lengths)
        position = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        return (position < head) | (position >= np.repeat(lengths - tail, lengths))

    def dropped(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens each text loses, shape (n,)."""
        return np.maximum(np.asarray(lengths, np.int64) - (self.limit or np.iinfo(np.int64).max), 0)
