"""A Gram matrix cut into tiles, and what each of them costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

DOCUMENTS = 1024  # a side of a tile: 8 MB of float64 for each of K and Theta
TOKENS = (
    1 << 16
)  # a side of a tile of token pairs: seconds of work, so that progress and interruptions are fine-grained


class PairCost(NamedTuple):
    """Time of a pair of documents of L and L' tokens, up to a factor: L L' (1 + attention (L + L')) or 1.

    Args:
        tokens: whether it depends on tokens at all.
        attention: what products with attention weights add.
    """

    tokens: bool
    attention: float = 0.0


@dataclass(frozen=True)
class Tiling:
    """Bounds of tiles.

    Args:
        rows, columns: first row (column) of each, and their number; equal ones for a symmetric matrix.
        symmetric: only tiles on and below the diagonal count.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    symmetric: bool

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray | None, tokens: bool) -> Tiling:
        """Tiles of about equal cost.

        Args:
            rows, columns: tokens of the documents; no columns: a symmetric matrix.
            tokens: whether pairs of tokens are computed, so that long documents want smaller tiles.
        """
        sides = [_bounds(lengths, tokens) for lengths in ([rows] if columns is None else [rows, columns])]
        return cls(sides[0], sides[-1], columns is None)

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of every tile."""
        for row in pairwise(self.rows):
            for column in pairwise(self.columns):
                if not self.symmetric or column[0] <= row[0]:
                    yield slice(*row), slice(*column)

    def costs(self, rows: np.ndarray, columns: np.ndarray, cost: PairCost) -> list[float]:
        """Cost of each tile, in token pairs (entries, if it does not depend on tokens)."""
        ones = np.ones
        first = rows.astype(np.float64) if cost.tokens else ones(len(rows))
        second = columns.astype(np.float64) if cost.tokens else ones(len(columns))
        result = []
        for row, column in self:
            sums = [np.array([part.sum(), (part**2).sum()]) for part in (first[row], second[column])]
            size = sums[0][0] * sums[1][0]
            size += cost.attention * (sums[0][1] * sums[1][0] + sums[0][0] * sums[1][1])
            result.append(float(size) / (2 if self.symmetric and row == column else 1))
        return result


def _bounds(lengths: Sequence[int] | np.ndarray, tokens: bool) -> tuple[int, ...]:
    bounds, total = [0], 0
    for place, length in enumerate(lengths):
        full = place - bounds[-1] >= DOCUMENTS or (tokens and total + length > TOKENS)
        if place > bounds[-1] and full:
            bounds.append(place)
            total = 0
        total += int(length)
    return (*bounds, len(lengths))
