"""What a run of Table 4 will take, from short measurements on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from textkernels.experiments.pair_tiles import PairTiles
from textkernels.experiments.table3 import KINDS
from textkernels.experiments.table4_embedding import Table4Embedding
from textkernels.gram_estimate import SAMPLE, pair_cost, seconds_per_cost
from textkernels.gram_tiles import PairCost
from textkernels.pairs.kernel import PairKernel
from textkernels.processors import single_threaded_blas
from textkernels.solvers.single_precision import SingleCholesky

LARGEST = 2_000  # documents whose kernel is factorized to see how long that takes


@dataclass
class Workload:
    """Work that is not finished yet.

    Attributes:
        passes: over token pairs.
        token_pairs: of all passes.
        candidates: to be validated.
        seconds: that passes and solutions will take.
    """

    passes: int = 0
    token_pairs: float = 0.0
    candidates: int = 0
    seconds: float = 0.0


def workload(tables: Iterable[Table4Embedding]) -> Workload:
    """Measure token-pair passes and factorizations on a few texts of each embedding.

    Which networks go to the test is not known yet: the pass over test texts is taken to be the dearest one, with all
    its networks, which is too much.
    """
    total = Workload()
    for table in tables:
        waiting = sum(table.kept_trials(one) is None for members in table.stacks.values() for one in members)
        total.candidates += waiting
        total.seconds += waiting * _seconds_per_candidate(table)
        dearest = 0.0
        for inner, outer in table.passes:
            waiting_tiles = [(tiles, tiles.missing()) for tiles in (inner, outer)]
            if any(missing for _, missing in waiting_tiles):
                cost, seconds = _pace(inner, table)
                total.passes += 1
                total.token_pairs += sum(tiles.work(missing) for tiles, missing in waiting_tiles)
                total.seconds += seconds * sum(tiles.work(missing, cost) for tiles, missing in waiting_tiles)
                test = PairTiles(inner.stacks, table.encoded["test"], inner.columns, inner.longest, table.finished)
                dearest = max(dearest, seconds * test.work(cost=cost))
        total.seconds += dearest
    return total


def _pace(tiles: PairTiles, table: Table4Embedding) -> tuple[PairCost, float]:
    """How the time of a pass grows with tokens, and its unit in seconds, by texts of all lengths."""
    train = table.encoded["train"]
    by_length = np.argsort(train.lengths, kind="stable")
    rows = train.rows[np.unique(by_length[np.linspace(0, len(by_length) - 1, SAMPLE).astype(np.int64)])]
    documents = table.encoder.encode([train.texts.texts[row] for row in rows]).documents
    kernel = PairKernel(tiles.stacks)
    cost = pair_cost(kernel)
    return cost, seconds_per_cost(kernel, kernel.prepare(documents, tiles.longest), documents.lengths, cost, True)


def _seconds_per_candidate(table: Table4Embedding) -> float:
    """Factorizations on one processor; all of them save about what everything around the factorizations takes.

    A single thread can be timed on a busy machine, too, where several wait for each other.
    """
    n = len(table.encoded["train"])
    size = min(n, LARGEST)
    kernel, times = np.eye(size, dtype=np.float32), []
    with single_threaded_blas():
        for _ in range(3):
            start = time.perf_counter()
            SingleCholesky.factor(kernel, 1.0, np.empty_like(kernel))
            times.append(time.perf_counter() - start)
    return len(KINDS) * len(table.grid) * min(times) * (n / size) ** 3
