"""Pooled token-pair kernels of several networks in one pass, tile by tile, each kept as soon as it is finished."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from textkernels.architecture import Architecture
from textkernels.experiments.encoded import EncodedTexts
from textkernels.experiments.measure import measured
from textkernels.experiments.pooled_table import PooledTable
from textkernels.finished import FinishedParts
from textkernels.gram_tiles import PairCost, Tiling

# Documents a side. An interruption loses one tile; smaller ones make attention weights that memory does not hold
# again and again.
TILE = 128
TOKEN_PAIRS = PairCost(True)


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
    def tiling(self) -> Tiling:
        """Where the matrices are cut."""
        rows, columns = ((*range(0, len(part), TILE), len(part)) for part in (self.rows, self.columns))
        return Tiling(rows, columns, self.symmetric)

    def missing(self) -> list[int]:
        """Which tiles are not finished yet, by their places in the tiling."""
        return [place for place in range(len(self._tiles)) if self._read(place, "seconds") is None]

    def work(self, tiles: Iterable[int] | None = None, cost: PairCost = TOKEN_PAIRS) -> float:
        """Token pairs of tiles, or another measure of their time; of all tiles by default."""
        costs = self.tiling.costs(self.rows.lengths, self.columns.lengths, cost)
        return sum(costs if tiles is None else (costs[place] for place in tiles))

    def entries(self, tiles: Iterable[int]) -> int:
        """How many kernel values tiles keep, 4 bytes each."""
        sides = (self._tiles[place] for place in tiles)
        return 2 * len(self.stacks) * sum((row.stop - row.start) * (left.stop - left.start) for row, left in sides)

    def fill(self) -> None:
        """Compute the missing tiles."""
        missing, pairs = self.missing(), self.tiling.costs(self.rows.lengths, self.columns.lengths, TOKEN_PAIRS)
        total, hidden = sum(pairs[place] for place in missing), not (self._progress and missing)
        with tqdm(total=total, desc=self.label, unit="pair", unit_scale=True, disable=hidden) as bar:
            for place in missing:
                with measured() as cost:
                    arrays = self._compute(*self._tiles[place])
                arrays["seconds"] = np.array([cost.seconds])
                arrays["peak_bytes"] = np.array([cost.peak_bytes])
                self._finished.keep_arrays(self._content(place), arrays)
                bar.update(pairs[place])
        self.__dict__.pop("_prepared", None)  # attention weights take gigabytes

    @cached_property
    def _tiles(self) -> list[tuple[slice, slice]]:
        return list(self.tiling)

    def cost(self) -> PassCost:
        """What the finished tiles took."""
        seconds, peak = 0.0, 0
        for place in range(len(self._tiles)):
            found = self._read(place, "seconds", "peak_bytes") or {}
            seconds += float(found.get("seconds", np.zeros(1))[0])
            peak = max(peak, int(found.get("peak_bytes", np.zeros(1))[0]))
        return PassCost(self.work(), seconds, peak)

    def matrices(self, stack: Architecture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K and Theta of one network, float32 (n, m), and K of every row document with itself, float32 (n,).

        Computes what is missing.
        """
        self.fill()
        number = self.stacks.index(stack)
        names = f"nngp_{number}", f"ntk_{number}", f"variance_{number}"
        both = [np.empty((len(self.rows), len(self.columns)), np.float32) for _ in range(2)]
        variance = np.empty(len(self.rows), np.float32)
        for place, (top, left) in enumerate(self._tiles):
            arrays = self._read(place, *names) or {}
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
        for number in range(len(self.stacks)):
            parts = {"nngp": nngp[number], "ntk": ntk[number], "variance": variances[number]}
            arrays |= {f"{name}_{number}": np.ascontiguousarray(part, np.float32) for name, part in parts.items()}
        return arrays

    @cached_property
    def _prepared(self) -> tuple[Any, Any, Any]:
        """The engine, and both sides prepared for it."""
        from textkernels.pairs.kernel import PairKernel

        kernel = PairKernel(self.stacks)
        columns = kernel.prepare(self.columns.documents, self.longest, self._progress)
        rows = columns if self.symmetric else kernel.prepare(self.rows.documents, self.longest, self._progress)
        return kernel.engine, rows, columns

    def _read(self, place: int, *names: str) -> dict[str, np.ndarray] | None:
        return self._finished.find_arrays(self._content(place), names)

    def _content(self, place: int) -> dict[str, Any]:
        top, left = self._tiles[place]
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
