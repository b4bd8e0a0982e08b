"""What a run of Table 4 will take, from short measurements on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from textkernels.experiments.pair_tiles import PairTiles
from textkernels.experiments.table3 import KINDS
from textkernels.experiments.table4_embedding import Table4Embedding
from textkernels.pairs.kernel import PairKernel
from textkernels.solvers.single_precision import SingleCholesky

SAMPLE = 64  # texts on either side of a measurement
LONG_ENOUGH = 0.5  # seconds
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
        slowest = 0.0
        for inner, outer in table.passes:
            pairs = sum(tiles.token_pairs(tiles.missing()) for tiles in (inner, outer))
            if pairs:
                pace = _seconds_per_token_pair(inner, table)
                slowest = max(slowest, pace)
                total.passes, total.token_pairs = total.passes + 1, total.token_pairs + pairs
                total.seconds += pace * pairs
        test, train = (float(table.encoded[role].lengths.sum()) for role in ("test", "train"))
        total.seconds += slowest * test * train
    return total


def _seconds_per_token_pair(tiles: PairTiles, table: Table4Embedding) -> float:
    """For all networks of a pass at once, on texts of all lengths, as many as half a second needs."""
    train = table.encoded["train"]
    by_length = np.argsort(train.lengths, kind="stable")
    chosen = np.unique(np.linspace(0, len(by_length) - 1, 2 * SAMPLE).astype(np.int64))
    rows = train.rows[np.random.default_rng(0).permutation(by_length[chosen])]
    documents = table.encoder.encode([train.texts.texts[row] for row in rows]).documents
    kernel = PairKernel(tiles.stacks)
    prepared = kernel.prepare(documents, tiles.longest)
    kernel.engine.pooled(prepared[:1], prepared[-1:], True)  # compiles
    half, count, seconds = max(len(rows) // 2, 1), 4, 0.0
    while seconds < LONG_ENOUGH and count < half:
        count = min(2 * count, half)
        start = time.perf_counter()
        kernel.engine.pooled(prepared[:count], prepared[half : half + count], True)
        seconds = time.perf_counter() - start
    pairs = documents.lengths[:count].sum() * documents.lengths[half : half + count].sum()
    return seconds / float(pairs)


def _seconds_per_candidate(table: Table4Embedding) -> float:
    """Factorizations, and as much again for everything around them."""
    n = len(table.encoded["train"])
    size = min(n, LARGEST)
    kernel = np.eye(size, dtype=np.float32)
    times = []
    for _ in range(3):  # the first one starts the library's threads
        start = time.perf_counter()
        SingleCholesky.factor(kernel, 1.0, np.empty_like(kernel))
        times.append(time.perf_counter() - start)
    return 2 * len(KINDS) * len(table.grid) * min(times) * (n / size) ** 3
