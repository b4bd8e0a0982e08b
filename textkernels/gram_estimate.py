"""What a Gram matrix will take, before it is computed: memory from sizes, time from a sample."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.gram_tiles import PairCost, Tiling
from textkernels.memory_budget import readable
from textkernels.pairs.kernel import PairKernel
from textkernels.processors import count_processors

SAMPLE = 48  # documents that are computed to find the rate
SAMPLE_PAIRS = 2e9  # their token pairs, at most
BLOCK_COPIES = 4  # float64 matrices of a tile that exist at once, for each of K and Theta


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes.

    Args:
        results: the matrices themselves.
        documents: what is kept of each document.
        working: what computing takes on top, on all processors together.
        longest: tokens of the two longest documents that meet.
    """

    results: int
    documents: int
    working: int
    longest: tuple[int, int]

    @property
    def total(self) -> int:
        """All of it."""
        return self.results + self.documents + self.working

    def check(self, budget: int) -> None:
        """Raise ValueError, with the numbers and ways out, unless it fits."""
        if self.total <= budget:
            return
        raise ValueError(
            f"expected a memory_budget of at least {readable(self.total)}, got {readable(budget)}: "
            f"{readable(self.results)} for the result, {readable(self.documents)} for the documents, "
            f"{readable(self.working)} to work on pairs of up to {self.longest[0]} and {self.longest[1]} tokens on "
            f"{count_processors()} processors; use fewer rows, cut documents shorter, or pool earlier (fewer token "
            "layers before GlobalAveragePool, narrower convolutions); dtype=np.float32 halves the result"
        )


def memory_need(
    kernel: Any, documents: Sequences, other: Sequences | None, kind: str, dtype: Any, tiling: Tiling
) -> MemoryNeed:
    """Memory of a Gram matrix.

    Args:
        kernel: see :func:`textkernels.engines.choose_kernel`.
        documents, other, kind, dtype: as in :func:`textkernels.gram`.
        tiling: how the matrix is cut.
    """
    columns = documents if other is None else other
    matrices = 2 if kind == "both" else 1
    results = matrices * len(documents) * len(columns) * np.dtype(dtype).itemsize
    parts = [documents] if other is None else [documents, other]
    longest = [int(part.lengths.max(initial=1)) for part in (documents, columns)]
    ntk = kind != "nngp"
    entries = max(((row.stop - row.start) * (column.stop - column.start) for row, column in tiling), default=0)
    working = 8 * BLOCK_COPIES * (1 + ntk) * entries
    lengths = np.concatenate([part.lengths for part in parts])
    kept, more = kernel.memory_need(lengths, documents.dim, (longest[0], longest[1]), ntk)
    return MemoryNeed(results, kept, working + more, (longest[0], longest[1]))


def pair_cost(kernel: Any) -> PairCost:
    """How the time of a pair of documents grows with their tokens."""
    if not isinstance(kernel, PairKernel):
        return PairCost(False)
    kinds = [node.kind for node in kernel.graph.nodes]
    # A product with attention weights takes 16 ns a token pair for a thousand tokens, any other layer about 0.3 ns.
    return PairCost(True, 0.016 * kinds.count("attend") / (0.3 * len(kinds)))


def seconds_per_cost(kernel: Any, prepared: Any, lengths: np.ndarray, cost: PairCost, ntk: bool) -> float:
    """Seconds for one token pair's worth of cost, from the pairs of a few of the documents.

    Args:
        kernel, prepared, lengths: n prepared documents and their tokens.
        cost: how time grows with tokens.
        ntk: whether Theta is wanted.
    """
    order = np.argsort(lengths, kind="stable")
    mean = float(lengths.mean()) if cost.tokens else 1.0
    many = int(np.clip(np.sqrt(2 * SAMPLE_PAIRS) / mean, 2, SAMPLE))
    chosen = np.unique(order[np.linspace(0, len(order) - 1, min(many, len(order))).astype(int)])
    sample = prepared[chosen]
    kernel.block(prepared[chosen[:1]], prepared[chosen[:1]], ntk, 0)  # compiles
    start = time.perf_counter()
    kernel.block(sample, sample, ntk, 0)
    seconds = time.perf_counter() - start
    return seconds / Tiling((0, len(chosen)), (0, len(chosen)), True).costs(lengths[chosen], lengths[chosen], cost)[0]
