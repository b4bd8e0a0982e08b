"""Token pairs on CPUs: fused loops in float32, compiled by Numba, on every processor."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from embeddings import Sequences
from textkernels.gram_tiles import TOKENS
from textkernels.pairs.graph import TokenGraph
from textkernels.pairs.numba_own import OwnPass
from textkernels.pairs.numba_packing import Memory, laid_out, pack_panel, pack_rows, panel_columns, plan_of, scratch
from textkernels.pairs.numba_pass import run
from textkernels.pairs.numba_products import STRIP, to_strips
from textkernels.pairs.numba_program import Program, content_share
from textkernels.pairs.numba_state import Panel, Rows
from textkernels.pairs.numba_traits import Traits
from textkernels.processors import count_processors, single_threaded_blas

PANEL = 1024  # tokens of a panel, at least
NARROW, DEEP = 256, 3  # the same from so many windows on: what they pass on to each other stays in nearer caches
PRODUCT = 1 << 21  # entries of the products of a chunk of tokens with a panel, at most: 8 MB
TASK = 1 << 23  # token pairs that a thread does in one go, about 10 ms
MEMORY = 2 << 30  # bytes of attention weights that are kept
ALL = 1 << 40  # column documents


@dataclass(frozen=True)
class Prepared:
    """Documents with all that their pairs need of each alone.

    Args:
        documents: as they came.
        own: what made the traits.
        traits: of all documents.
        complete: whether the traits hold the attention weights; if these took more than the memory allowed, they
            are made again for every block.
        index: places of the n chosen documents.
    """

    documents: Sequences
    own: OwnPass
    traits: Traits
    complete: bool
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice | np.ndarray) -> Prepared:
        return replace(self, index=self.index[rows])

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of the chosen documents."""
        return self.traits.lengths[self.index]

    def arrays(self) -> dict[str, np.ndarray]:
        """The chosen documents as plain arrays, from which preparing gives the same again."""
        chosen = self.documents.take(self.index)
        return {"values": chosen.values, "lengths": chosen.lengths, "longest": np.array([self.own.longest])}


class _Task(NamedTuple):
    rows: Rows
    panel: Panel
    top: int
    left: int
    shift: int
    cost: int


class NumbaEngine:
    """Pooled kernels of stacks of token layers.

    Args:
        prefix: linear layers that all stacks begin with; their explicit features are made in NumPy.
        stacks: the layers that follow in each, up to pooling.
        memory: bytes of attention weights to keep for prepared documents; 2 GB by default.
    """

    def __init__(self, prefix: Sequence[Any], stacks: Sequence[Sequence[Any]], memory: int | None = None) -> None:
        self.prefix, self.graph = tuple(prefix), TokenGraph(stacks)
        self.memory = MEMORY if memory is None else memory
        self._pools = list(dict.fromkeys(self.graph.pools))
        self._order = [self._pools.index(pool) for pool in self.graph.pools]

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> Prepared:
        """Token features, variances and attention weights of documents.

        Args:
            documents: n documents of dimension d.
            longest: tokens of the longest document these may ever meet; default: the longest of them.
            progress: show a progress bar.
        """
        reach = int(longest or documents.lengths.max(initial=1))
        own = OwnPass(self.prefix, self.graph, reach, documents.dim)
        complete = self._tie_bytes(own.program, documents.lengths) <= self.memory
        return Prepared(
            documents, own, _traits(own, documents, complete, progress), complete, np.arange(len(documents))
        )

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Prepared:
        """Prepared documents from their ``arrays()``."""
        return self.prepare(Sequences(arrays["values"], arrays["lengths"]), int(arrays["longest"][0]))

    def pooled(
        self, rows: Prepared, columns: Prepared, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
        """Pooled kernels between prepared documents.

        Args:
            rows, columns: n and m documents.
            ntk: whether Theta is wanted.
            diagonal: 0 if rows and columns are the same documents in the same order: half of the symmetric matrix
                is computed then. Single documents that are the same are recognized anyway.

        Returns: K and Theta, float64 (stacks, n, m), and the variances (stacks, n) and (stacks, m); None for Theta
            where it is not wanted.
        """
        symmetric = diagonal == 0 and len(rows) == len(columns)
        variances = [part.traits.variances[:, part.index][self._order] for part in (rows, columns)]
        # Rows of a block are as long as the columns are many: better few row documents than few columns.
        swapped = not symmetric and columns.lengths.sum() < min(PANEL, rows.lengths.sum())
        first, second = (columns, rows) if swapped else (rows, columns)
        raw = [np.zeros((len(self._pools), len(first), len(second))) for _ in range(1 + ntk)]
        if len(rows) and len(columns):
            first, second = _completed(first), _completed(second)
            self._fill(first, second, raw, symmetric)
            self._finish(first, second, raw)
        if symmetric:
            raw = [np.tril(block) + np.tril(block, -1).swapaxes(1, 2) for block in raw]
        blocks = [(block.swapaxes(1, 2) if swapped else block)[self._order] for block in raw]
        row, column = np.nonzero(_identities(rows)[:, None] == _identities(columns))
        blocks[0][:, row, column] = np.sqrt(variances[0][:, row] * variances[1][:, column])
        return blocks[0], blocks[1] if ntk else None, variances[0], variances[1]

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes of prepared documents without attention weights, and bytes to work with on all processors.

        Args:
            lengths: tokens of all documents; dim: of their vectors.
            longest: tokens of the longest row and of the longest column document.
            ntk: whether Theta is wanted.
        """
        reach = int(lengths.max(initial=1))
        own = OwnPass(self.prefix, self.graph, reach, dim)
        one = own(np.zeros((1, dim), np.float32))
        positions = np.array([part.shape[1] for part in one.positions], np.int64)
        token = sum(part.itemsize * part.size for part in (one.features, one.tangents, one.states, one.scales))
        token += 4 * int(one.digests.size + one.weights.size + positions.sum())
        programs = (Program(self.graph, own.tangent.kind == 0), longest, 1 + ntk), (own.program, (reach, reach), 1)
        working = 0
        for program, (rows, columns), arrays in programs:
            width = int(panel_columns(program, np.array([columns + PANEL]))[1][-1])
            product = (min(PRODUCT, rows * width) + 64 * width) * (1 + (own.tangent.kind == 2))
            working = max(working, 4 * (arrays * program.layout(rows, width, positions).size + product))
        # A document that is prepared has its weights twice, and those of a block are made again if memory is short.
        ties = 2 * self._tie_bytes(own.program, np.array([reach]))
        tile = 2 * TOKENS * token + (2 * self._tie_bytes(own.program, np.full(TOKENS // reach + 1, reach)))
        return 2 * token * int(lengths.sum()), int(count_processors() * (working + ties) + tile)

    def _fill(self, rows: Prepared, columns: Prepared, raw: list[np.ndarray], symmetric: bool) -> None:
        """Sums over tokens, by tasks of about equal cost on every processor."""
        program = Program(self.graph, rows.own.tangent.kind == 0)
        plan, local = plan_of(program, rows.own.tangent, len(raw) == 2), threading.local()

        def do(task: _Task) -> None:
            if not hasattr(local, "memory"):
                local.memory = Memory()
            placed, size = laid_out(plan, program, task.rows, task.panel)
            work = scratch(local.memory, placed, size, task.rows, task.panel)
            run(placed, task.rows, task.panel, work, task.shift, raw[0], raw[-1], task.top, task.left)

        with ThreadPoolExecutor(count_processors()) as pool:
            list(pool.map(do, self._tasks(program, rows, columns, symmetric)))

    def _tasks(self, program: Program, rows: Prepared, columns: Prepared, symmetric: bool) -> list[_Task]:
        """Groups of row documents against panels of column documents, the largest first."""
        windows = sum(operation.half >= 0 for operation in program.operations)
        across = NARROW if windows >= DEEP else PANEL
        panels = [
            (first, pack_panel(program, columns.traits, columns.index[first:last]))
            for first, last in _parts(columns.lengths, across)
        ]
        widest = max(panel.width for _, panel in panels)
        most = max(64, PRODUCT // widest)
        total = int(rows.lengths.sum()) * sum(panel.width for _, panel in panels)
        size = min(TASK, total // (8 * count_processors()) + 1) // widest
        tasks = []
        for top, bottom in _parts(rows.lengths, max(size, 1)):
            packed = pack_rows(rows.traits, rows.index[top:bottom], program.margin, most)
            for left, panel in panels:
                if not symmetric or left < bottom:
                    shift = top - left if symmetric else ALL
                    tasks.append(_Task(packed, panel, top, left, shift, int(packed.starts[-1]) * panel.width))
        return sorted(tasks, key=lambda task: -task.cost)

    def _finish(self, rows: Prepared, columns: Prepared, raw: list[np.ndarray]) -> None:
        """The affine step of an attention in front of pooling, with the positions in its values."""
        for number, pool in enumerate(self._pools):
            layer = self.graph.nodes[pool].layer
            if layer is None:
                continue
            first, second = (part.traits.pooled_positions[number][part.index] for part in (rows, columns))
            value, bias, content = layer.ov**2, layer.b_std**2, content_share(layer)
            spread = first @ second.T
            mixed = [content * block[number] + spread for block in raw]
            raw[0][number] = value * mixed[0] + bias
            if len(raw) == 2:
                raw[1][number] = value * (mixed[1] + 2 * mixed[0]) + bias

    def _tie_bytes(self, program: Program, lengths: np.ndarray) -> int:
        """Memory of the attention weights of documents."""
        linear = sum(self.graph.nodes[place].kind == "attend" for place in program.attention)
        strips = np.array([to_strips(int(length)) for length in lengths], np.int64)
        return int(4 * linear * STRIP * (strips * lengths).sum())


def _traits(own: OwnPass, documents: Sequences, complete: bool, progress: bool) -> Traits:
    from tqdm import tqdm

    def one(tokens: np.ndarray) -> Traits:
        traits = own(tokens)
        return traits if complete else replace(traits, ties=traits.ties[:0].copy())

    with single_threaded_blas(), ThreadPoolExecutor(count_processors()) as pool:
        parts = list(tqdm(pool.map(one, documents), "documents", len(documents), unit="doc", disable=not progress))
    if not parts:
        return Traits.concatenate([own(np.zeros((1, documents.dim), documents.dtype))]).none()
    return Traits.concatenate(parts)


def _completed(part: Prepared) -> Prepared:
    """With attention weights: those that memory did not allow to keep are made once more."""
    if part.complete:
        return part
    traits = _traits(part.own, part.documents.take(part.index), True, False)
    return replace(part, traits=traits, complete=True, index=np.arange(len(part)))


def _identities(part: Prepared) -> np.ndarray:
    return part.traits.identity[part.index]


def _parts(lengths: np.ndarray, tokens: int) -> Iterator[tuple[int, int]]:
    """Consecutive documents of at least so many tokens in all, first and last + 1."""
    first, total = 0, 0
    for place, length in enumerate(lengths, 1):
        total += int(length)
        if total >= tokens or place == len(lengths):
            yield first, place
            first, total = place, 0
