"""Pooled token-pair kernels of several networks in one pass, tile by tile, each kept as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from textkernels.architecture import Architecture
from textkernels.experiments.encoded import EncodedTexts
from textkernels.experiments.finished import FinishedParts
from textkernels.experiments.measure import measured
from textkernels.experiments.pooled_table import PooledTable

# Documents a side. An interruption loses one tile; smaller ones make attention weights that memory does not hold
# again and again.
TILE = 128


class PassCost(NamedTuple):
    """What the tiles of a pass cost, over all runs that computed some of them.

    Attributes:
        token_pairs: of all tiles.
        seconds, peak_bytes: time, and the most memory of the process meanwhile.
    """

    token_pairs: float
    seconds: float
    peak_bytes: int


class PairTiles:
    """K and Theta behind the pooling, between row and column documents.

    Args:
        stacks: token layers and pooling of each network; what they share is computed once.
        rows, columns: documents of the same encoder. The same object twice: a symmetric matrix, of which the lower
            half is computed.
        longest: tokens of the longest document that any of these may meet.
        finished: where tiles are kept.
        progress: show progress bars.
        label: name of the bar.
    """

    def __init__(
        self,
        stacks: Sequence[Architecture],
        rows: EncodedTexts,
        columns: EncodedTexts,
        longest: int,
        finished: FinishedParts,
        progress: bool = False,
        label: str = "token pairs",
    ) -> None:
        self.stacks, self.rows, self.columns, self.longest = tuple(stacks), rows, columns, longest
        self.label = label
        self._finished, self._progress = finished, progress

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same documents."""
        return self.rows is self.columns

    @cached_property
    def tiles(self) -> list[tuple[slice, slice]]:
        """Rows and columns of every tile."""
        n, m = len(self.rows), len(self.columns)
        return [
            (slice(top, min(top + TILE, n)), slice(left, min(left + TILE, m)))
            for top in range(0, n, TILE)
            for left in range(0, top + 1 if self.symmetric else m, TILE)
        ]

    def missing(self) -> list[tuple[slice, slice]]:
        """Tiles that are not finished yet."""
        return [tile for tile in self.tiles if self._read(tile, "seconds") is None]

    def token_pairs(self, tiles: Sequence[tuple[slice, slice]]) -> float:
        """How many token pairs tiles have: what their time is proportional to."""
        rows, columns = self.rows.lengths, self.columns.lengths
        halves = (0.5 if self.symmetric and top == left else 1.0 for top, left in tiles)
        sides = (float(rows[top].sum()) * float(columns[left].sum()) for top, left in tiles)
        return sum(half * side for half, side in zip(halves, sides, strict=True))

    def entries(self, tiles: Sequence[tuple[slice, slice]]) -> int:
        """How many kernel values tiles keep, 4 bytes each."""
        sizes = ((top.stop - top.start) * (left.stop - left.start) for top, left in tiles)
        return 2 * len(self.stacks) * sum(sizes)

    def fill(self) -> None:
        """Compute the missing tiles."""
        missing = self.missing()
        hidden = not (self._progress and missing)
        with tqdm(
            total=self.token_pairs(missing), desc=self.label, unit="pair", unit_scale=True, disable=hidden
        ) as bar:
            for tile in missing:
                with measured() as cost:
                    arrays = self._compute(*tile)
                arrays["seconds"] = np.array([cost.seconds])
                arrays["peak_bytes"] = np.array([cost.peak_bytes])
                self._finished.keep_arrays(self._content(tile), arrays)
                bar.update(self.token_pairs([tile]))
        self.__dict__.pop("_prepared", None)  # attention weights take gigabytes

    def cost(self) -> PassCost:
        """What the finished tiles took."""
        seconds, peak = 0.0, 0
        for tile in self.tiles:
            found = self._read(tile, "seconds", "peak_bytes") or {}
            seconds += float(found.get("seconds", np.zeros(1))[0])
            peak = max(peak, int(found.get("peak_bytes", np.zeros(1))[0]))
        return PassCost(self.token_pairs(self.tiles), seconds, peak)

    def matrices(self, stack: Architecture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K and Theta of one network, float32 (n, m), and K of every row document with itself, float32 (n,).

        Computes what is missing.
        """
        self.fill()
        place = self.stacks.index(stack)
        names = f"nngp_{place}", f"ntk_{place}", f"variance_{place}"
        both = [np.empty((len(self.rows), len(self.columns)), np.float32) for _ in range(2)]
        variance = np.empty(len(self.rows), np.float32)
        for top, left in self.tiles:
            arrays = self._read((top, left), *names) or {}
            for matrix, name in zip(both, names[:2], strict=True):
                matrix[top, left] = arrays[name]
                if self.symmetric and top != left:
                    matrix[left, top] = arrays[name].T
            variance[top] = arrays[names[2]]
        return both[0], both[1], variance

    def _compute(self, top: slice, left: slice) -> dict[str, np.ndarray]:
        engine, rows, columns = self._prepared
        same = 0 if self.symmetric and top == left else None
        nngp, ntk, variances, _ = engine.pooled(rows[top], columns[left], True, same)
        arrays: dict[str, np.ndarray] = {}
        for place in range(len(self.stacks)):
            parts = {"nngp": nngp[place], "ntk": ntk[place], "variance": variances[place]}
            arrays |= {f"{name}_{place}": np.ascontiguousarray(part, np.float32) for name, part in parts.items()}
        return arrays

    @cached_property
    def _prepared(self) -> tuple[Any, Any, Any]:
        """The engine, and both sides prepared for it."""
        from textkernels.pairs.kernel import PairKernel

        kernel = PairKernel(self.stacks)
        columns = kernel.prepare(self.columns.documents, self.longest, self._progress)
        rows = columns if self.symmetric else kernel.prepare(self.rows.documents, self.longest, self._progress)
        return kernel.engine, rows, columns

    def _read(self, tile: tuple[slice, slice], *names: str) -> dict[str, np.ndarray] | None:
        return self._finished.find_arrays(self._content(tile), names)

    def _content(self, tile: tuple[slice, slice]) -> dict[str, Any]:
        top, left = tile
        return {**self._common, "tile": [top.start, top.stop, left.start, left.stop]}

    @cached_property
    def _common(self) -> dict[str, Any]:
        """What all tiles depend on."""
        return {
            "part": "pooled tile",
            "stacks": [stack.to_toml() for stack in self.stacks],
            "rows": self.rows.content,
            "columns": self.columns.content,
            "longest": self.longest,
        }


def pooled_table(stack: Architecture, inner: PairTiles, outer: PairTiles) -> PooledTable:
    """The table of one network from tiles of training documents with themselves, and of others with them."""
    parts = zip(inner.matrices(stack), outer.matrices(stack), strict=True)
    return PooledTable(*(np.concatenate(pair) for pair in parts))
