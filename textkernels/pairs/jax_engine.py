"""Token pairs in JAX: for accelerators, and as a second opinion on the Numba engine.

Arithmetic is float32 whatever JAX's global settings are, and none of them is touched.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from embeddings import Sequences
from textkernels.features import FeatureState, apply_layers
from textkernels.gram_tiles import TOKENS
from textkernels.pairs.graph import TokenGraph
from textkernels.pairs.jax_batches import (
    LIVE_BLOCKS,
    MOST_PAIRS,
    SHORTEST,
    Batch,
    Prepared,
    batch_count,
    batch_size,
    batches,
    fill,
    pad,
    padded_length,
)
from textkernels.pairs.jax_digests import token_states
from textkernels.pairs.jax_graph import Documents, cross_blocks, own_blocks
from textkernels.processors import count_processors, single_threaded_blas

MEMORY = 2 << 30  # bytes of attention weights that are kept


class JaxEngine:
    """Pooled kernels of stacks of token layers.

    Args:
        prefix: linear layers that all stacks begin with; their explicit features are made in NumPy.
        stacks: the layers that follow in each, up to pooling.
        memory: bytes of attention weights to keep for prepared documents, on the host; past it they are made again
            for every block. 2 GB by default.
    """

    def __init__(self, prefix: Sequence[Any], stacks: Sequence[Sequence[Any]], memory: int | None = None) -> None:
        self.prefix = tuple(prefix)
        graph = TokenGraph(stacks)
        self.graph = tuple(graph.nodes), graph.pools
        self.memory = MEMORY if memory is None else memory
        # Threads would compile the same function twice; JAX spreads one batch over all processors anyway.
        self._lock = threading.RLock()

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> Prepared:
        """Token features, attention weights and variances of documents.

        Args:
            documents: n documents of dimension d.
            longest: tokens of the longest document these may ever meet; default: the longest of them.
            progress: show a progress bar.
        """
        reach = int(longest or documents.lengths.max(initial=1))
        complete = self._attention_bytes(documents.lengths) <= self.memory
        return self._prepare(documents, reach, complete, progress)

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
            diagonal: 0 if rows and columns are the same documents in the same order: half of the symmetric
                matrix is computed then. Single documents that are the same are recognized anyway.

        Returns: K and Theta, float64 (stacks, n, m), and the variances (stacks, n) and (stacks, m); None for
            Theta where it is not wanted.
        """
        matrices = [np.zeros((len(self.graph[1]), len(rows), len(columns))) for _ in range(1 + ntk)]
        symmetric = diagonal == 0 and len(rows) == len(columns)
        waiting: list[tuple[Batch, list[Any]]] = []
        with self._lock:
            if len(rows) and len(columns):
                rows, columns = self._completed(rows), self._completed(columns)
            for batch in batches(rows, columns, batch_size(), symmetric):
                waiting.append((batch, self._cross(rows, columns, batch, ntk)))
                if len(waiting) > 1:  # one is computed while the one before is read
                    _enter(matrices, *waiting.pop(0), symmetric)
            for batch, blocks in waiting:
                _enter(matrices, batch, blocks, symmetric)
        if symmetric:  # to the last bit: a batch may hold both entries of a pair
            matrices = [np.tril(matrix) + np.tril(matrix, -1).swapaxes(1, 2) for matrix in matrices]
        variances1, variances2 = rows.variances[:, rows.index], columns.variances[:, columns.index]
        row, column = np.nonzero(rows.identity[rows.index][:, None] == columns.identity[columns.index])
        matrices[0][:, row, column] = np.sqrt(variances1[:, row] * variances2[:, column])
        return matrices[0], matrices[1] if ntk else None, variances1, variances2

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes of prepared documents without attention weights, and bytes to work with.

        Args:
            lengths: tokens of all documents; dim: of their vectors.
            longest: tokens of the longest row and of the longest column document.
            ntk: whether Theta is wanted.
        """
        reach = int(lengths.max(initial=1))
        blank = self._features(np.zeros((1, dim)), reach)
        token = 4 * int((blank.nngp > 0).sum() + (blank.ntk > 0).sum())
        token += sum({"relu": 12, "erf": 4, "norm": 4, "pool": 4}.get(node.kind, 0) for node in self.graph[0])
        first, second = (padded_length(length) for length in longest)
        pairs = max(batch_size(), first * second, padded_length(reach) ** 2)
        gathered = 2 * MOST_PAIRS * SHORTEST * token + 2 * self._attention_bytes(np.array([first, second]))
        # Documents of a tile have their weights made again if memory is short.
        again = 2 * self._attention_bytes(np.full(TOKENS // reach + 1, reach))
        kept = token * sum(padded_length(length) for length in lengths.tolist())
        return kept, 4 * LIVE_BLOCKS * pairs + gathered + again

    def _prepare(self, documents: Sequences, longest: int, complete: bool, progress: bool) -> Prepared:
        from tqdm import tqdm

        bucket = np.array([padded_length(int(length)) for length in documents.lengths], dtype=np.int64)
        slot, identity = np.zeros(len(documents), dtype=np.int64), np.zeros(len(documents), dtype=np.uint64)
        variances = np.zeros((len(self.graph[1]), len(documents)))
        buckets: dict[int, Documents] = {}
        with tqdm(total=len(documents), desc="documents", unit="doc", disable=not progress) as bar, self._lock:
            for padded in np.unique(bucket).tolist():
                places = np.flatnonzero(bucket == padded)
                slot[places] = np.arange(len(places))
                rows, identity[places] = self._tokens(documents.take(places), longest, padded)
                buckets[padded], variances[:, places] = self._own(rows, complete, bar)
        index = np.arange(len(documents))
        return Prepared(documents, longest, buckets, complete, index, identity, bucket, slot, variances)

    def _completed(self, part: Prepared) -> Prepared:
        """With attention weights: those that memory did not allow to keep are made once more."""
        if part.complete:
            return part
        return self._prepare(part.documents.take(part.index), part.longest, True, False)

    def _attention_bytes(self, lengths: np.ndarray) -> int:
        padded = np.array([padded_length(int(length)) for length in lengths], dtype=np.int64)
        return 4 * sum(node.kind == "attend" for node in self.graph[0]) * int((padded**2).sum())

    def _features(self, tokens: np.ndarray, longest: int) -> FeatureState:
        state = FeatureState.from_tokens(tokens, longest)
        return apply_layers(state, self.prefix) if self.prefix else state

    def _tokens(self, documents: Sequences, longest: int, padded: int) -> tuple[Documents, list[np.uint64]]:
        """Explicit token features and states of the documents of one bucket, and what they are known by."""
        identities: list[np.uint64] = []

        def one(tokens: np.ndarray) -> tuple[FeatureState, tuple[np.ndarray, np.uint64]]:
            return self._features(tokens, longest), token_states(self.graph[0], self.prefix, tokens)

        def unpacked(pool: ThreadPoolExecutor) -> Iterator[tuple[FeatureState, np.ndarray]]:
            for state, (digests, identity) in pool.map(one, documents):
                identities.append(identity)
                yield state, digests

        with single_threaded_blas(), ThreadPoolExecutor(count_processors()) as pool:
            return pad(unpacked(pool), documents.lengths, padded), identities

    def _own(self, rows: Documents, complete: bool, bar: Any) -> tuple[Documents, np.ndarray]:
        """The documents of one bucket with their parts, and their pooled variances (stacks, n)."""
        total, padded = rows.values.shape[:2]
        count = batch_count(total, batch_size() // padded**2)
        results: Any = None
        for start in range(0, total, count):
            places = np.arange(start, min(start + count, total))
            chosen = fill(places, count)
            # What one document has to give depends on K alone, so Theta stays out of it.
            alone = Documents(rows.values[chosen], None, rows.lengths[chosen], rows.states[chosen])
            batch = own_blocks(*self.graph, alone)
            batch = jax.tree.map(np.asarray, batch if complete else ((), batch[1]))
            if results is None:
                results = jax.tree.map(lambda array: np.empty((total, *array.shape[1:]), array.dtype), batch)
            for whole, part in zip(jax.tree.leaves(results), jax.tree.leaves(batch), strict=True):
                whole[places] = part[: len(places)]
            bar.update(len(places))
        return rows._replace(states=None, parts=results[0]), results[1].T

    def _cross(self, rows: Prepared, columns: Prepared, batch: Batch, ntk: bool) -> list[Any]:
        """Blocks of a batch, on the device and perhaps not computed yet, in the batch's fixed shape."""
        first, second = rows.batch(batch.places1, batch.rows), columns.batch(batch.places2, batch.columns)
        if not ntk:
            first, second = first._replace(tangents=None), second._replace(tangents=None)
        if batch.swapped:
            first, second = second, first
        return cross_blocks(*self.graph, ntk, first, second)


def _enter(matrices: list[np.ndarray], batch: Batch, blocks: list[Any], symmetric: bool) -> None:
    """Blocks of a batch into the matrices, and their mirror images if those are symmetric."""
    rows, columns = batch.places1, batch.places2
    for matrix, block in zip(matrices, blocks, strict=True):
        entries = np.asarray(block)
        entries = (entries.swapaxes(1, 2) if batch.swapped else entries)[:, : len(rows), : len(columns)]
        matrix[:, rows[:, None], columns] = entries
        if symmetric:
            matrix[:, columns[:, None], rows] = entries.swapaxes(1, 2)
