"""Documents in padded batches of a few shapes, so that JAX compiles a bounded number of times.

Padded lengths and batch shapes come from two fixed ladders: neither a document's own length nor the number of
documents is ever compiled in. With k padded lengths in use, k(k + 1)/2 pairs of them meet, each in at most three
batch shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import jax
import numpy as np

from embeddings import Sequences
from textkernels.features import FeatureState
from textkernels.pairs.jax_graph import Documents

SHORTEST = 32  # padded length of the shortest bucket
CACHED_PAIRS = 1 << 20  # token pairs of a batch on CPUs: 4 MB a block stays in the last-level cache, 5 times faster
LIVE_BLOCKS = 12  # float32 blocks that a batch holds at once, at most: K, Theta, and copies while a layer runs
BATCH_MEMORY = 4 << 30  # bytes of a batch on an accelerator
MOST_PAIRS = 1 << 12  # document pairs of a batch, so that the documents of a thin one can be gathered fast
FEW = 16  # documents of a small batch
THIN = 0.7  # share of the work of the usual batch that another shape must get by with to be worth compiling


def padded_length(length: int) -> int:
    """The bucket of a document: 32, 64, 128, 192, 256, 384, 512, 768, ... tokens."""
    bucket = SHORTEST
    while bucket < length:
        middle = bucket + bucket // 2
        bucket = middle if bucket >= 128 and length <= middle else 2 * bucket
    return bucket


def batch_size() -> int:
    """Padded token pairs of a batch: what the cache of a CPU holds, or a share of an accelerator's memory."""
    return CACHED_PAIRS if jax.default_backend() == "cpu" else BATCH_MEMORY // (4 * LIVE_BLOCKS)


def batch_shapes(pairs: int) -> tuple[tuple[int, int], ...]:
    """Rows and columns of a batch of at most ``pairs`` document pairs: a square one, one row, one column."""
    power = min(max(pairs, 1), MOST_PAIRS).bit_length() - 1
    square = (1 << power // 2, 1 << (power - power // 2))
    return tuple(dict.fromkeys([square, (1, 1 << power), (1 << power, 1)]))


def batch_count(documents: int, pairs: int) -> int:
    """Documents of a batch that meet themselves alone: as many as ``pairs`` allows, or few where there are few."""
    most = 1 << (min(max(pairs, 1), MOST_PAIRS).bit_length() - 1)
    few = min(FEW, most)
    return few if few * -(-documents // few) < THIN * most * -(-documents // most) else most


@dataclass(frozen=True)
class Prepared:
    """Documents with all that a block needs of each alone, in host memory.

    Padded token features take up to twice the room of the documents; an attention that token layers follow
    adds its weights, (padded length)^2 float32 a document.

    Args:
        documents: the documents as they came.
        longest: tokens of the longest document these may meet.
        buckets: documents by padded length.
        complete: whether the buckets hold what layers need of each document; if that took more than the memory
            allowed, it is made again for every block.
        index: places in ``documents``, ``bucket``, ``slot`` and ``variances`` of the n chosen documents, in order.
        identity: a digest of each of ``documents``, uint64: equal documents correlate exactly, which rounding in
            float32 would hide (and cost 1e-4 in Theta behind an activation on pooled documents).
        bucket, slot: padded length of each of ``documents``, and its place in that bucket.
        variances: pooled K of each document with itself, float64 (stacks, documents).
    """

    documents: Sequences
    longest: int
    buckets: dict[int, Documents]
    complete: bool
    index: np.ndarray
    identity: np.ndarray
    bucket: np.ndarray
    slot: np.ndarray
    variances: np.ndarray

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice | np.ndarray) -> Prepared:
        return replace(self, index=self.index[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """The documents as plain arrays, from which preparing gives the same again."""
        chosen = self.documents.take(self.index)
        return {"values": chosen.values, "lengths": chosen.lengths, "longest": np.array([self.longest])}

    def groups(self) -> Iterator[tuple[int, np.ndarray]]:
        """Padded lengths in use, each with the places of its documents in ``index``, in order."""
        bucket = self.bucket[self.index]
        for length in np.unique(bucket):
            yield int(length), np.flatnonzero(bucket == length)

    def batch(self, places: np.ndarray, count: int) -> Documents:
        """Documents of one bucket, filled up to ``count`` with copies of the last."""
        chosen = self.index[fill(places, count)]
        bucket = self.buckets[int(self.bucket[chosen[0]])]
        return jax.tree.map(lambda array: array[self.slot[chosen]], bucket)


class Batch(NamedTuple):
    """Documents that meet: n rows against m columns, computed in the fixed shape ``rows`` x ``columns``.

    ``swapped``: columns are longer. The longer documents always go first, which halves the number of compilations.
    """

    places1: np.ndarray
    places2: np.ndarray
    rows: int
    columns: int
    swapped: bool


def fill(places: np.ndarray, count: int) -> np.ndarray:
    """``count`` places: those given and then the last of them again and again."""
    return places[np.minimum(np.arange(count), len(places) - 1)]


def batches(rows: Prepared, columns: Prepared, token_pairs: int, symmetric: bool) -> Iterator[Batch]:
    """Batches of at most ``token_pairs`` padded token pairs that cover all pairs of documents.

    With ``symmetric``, rows and columns are the same documents: only such batches that, with their mirror
    images, cover all pairs.
    """
    for (length1, places1), (length2, places2) in product(rows.groups(), columns.groups()):
        if symmetric and length1 < length2:
            continue
        swapped, counts = length1 < length2, (len(places1), len(places2))
        shape = _best_shape(*(counts[::-1] if swapped else counts), token_pairs // (length1 * length2))
        shape = shape[::-1] if swapped else shape
        for part1, part2 in product(_split(places1, shape[0]), _split(places2, shape[1])):
            if not (symmetric and length1 == length2 and part2[0] > part1[-1]):
                yield Batch(part1, part2, *shape, swapped)


def _split(places: np.ndarray, count: int) -> list[np.ndarray]:
    return [places[start : start + count] for start in range(0, len(places), count)]


def _best_shape(rows: int, columns: int, pairs: int) -> tuple[int, int]:
    square, *thin = batch_shapes(pairs)

    def work(shape: tuple[int, int]) -> int:
        return -(-rows // shape[0]) * -(-columns // shape[1]) * shape[0] * shape[1]

    best = min([square, *thin], key=work)
    return best if work(best) < THIN * work(square) else square


def pad(states: Iterable[tuple[FeatureState, np.ndarray]], lengths: np.ndarray, padded: int) -> Documents:
    """Explicit token features and digests as a bucket.

    Args:
        states: features and digests, int32 (nodes, L), of n documents.
        lengths: their numbers of tokens, (n,).
        padded: length of the bucket.
    """
    values = tangents = digests = None
    for place, (state, digest) in enumerate(states):
        nngp, ntk = (np.flatnonzero(weights) for weights in (state.nngp, state.ntk))
        if values is None or digests is None:
            values = np.zeros((len(lengths), padded, len(nngp)), np.float32)
            tangents = np.zeros((len(lengths), padded, len(ntk)), np.float32) if len(ntk) else None
            digests = np.zeros((len(lengths), len(digest), padded), np.int32)
        values[place, : len(state.values)] = state.values[:, nngp] * np.sqrt(state.nngp[nngp])
        if tangents is not None:
            tangents[place, : len(state.values)] = state.values[:, ntk] * np.sqrt(state.ntk[ntk])
        digests[place, :, : len(state.values)] = digest
    return Documents(values, tangents, lengths.astype(np.int32), digests)
