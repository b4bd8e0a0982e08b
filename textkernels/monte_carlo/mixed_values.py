"""Pooled values behind attention with drawn scores: what the NNGP kernel is an inner product of."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from embeddings import Sequences
from textkernels.attention_weights import attend
from textkernels.monte_carlo.attention_root import AttentionRoot, RootedTokens
from textkernels.processors import count_processors, single_threaded_blas

DRAWS = 16  # that exist at a time; their number changes nothing but memory


@dataclass(frozen=True)
class Prepared:
    """Documents with their explicit token features and, if there is room, their pooled values of every draw.

    Args:
        documents: as they came.
        root: columns and draws, the same for all documents that meet.
        tokens: explicit features of each document.
        kept: pooled values of all draws, (documents, draws, r) in the dtype of the documents, or None.
        index: places of the n chosen documents.
    """

    documents: Sequences
    root: AttentionRoot
    tokens: Sequence[RootedTokens]
    kept: np.ndarray | None
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice | np.ndarray) -> Prepared:
        return replace(self, index=self.index[rows])

    def chosen(self) -> list[RootedTokens]:
        """Explicit features of the chosen documents."""
        return [self.tokens[place] for place in self.index]

    def same(self, other: Prepared) -> bool:
        """Whether both are the same documents in the same order."""
        return self.tokens is other.tokens and np.array_equal(self.index, other.index)

    def pooled(self, first: int, last: int) -> np.ndarray:
        """Pooled values of draws ``first`` .. ``last`` - 1, float64 (n, draws, r)."""
        if self.kept is not None:
            return self.kept[self.index, first:last].astype(np.float64)
        return mixed_values(self.root, self.chosen(), first, last).astype(np.float64, copy=False)

    def arrays(self) -> dict[str, np.ndarray]:
        """The chosen documents as plain arrays, from which ``restore`` gives the same again."""
        chosen = self.documents.take(self.index)
        arrays = {"values": chosen.values, "lengths": chosen.lengths, "longest": np.array([self.root.longest])}
        return arrays if self.kept is None else arrays | {"pooled": self.kept[self.index]}


def mixed_values(
    root: AttentionRoot, tokens: Sequence[RootedTokens], first: int, last: int, progress: bool = False
) -> np.ndarray:
    """Mean over rows of G B, G = zeta(scores), of every document and draw; (documents, draws, r).

    A document of L tokens costs O(L^2 p + L p^2) a draw and memory O(L p DRAWS); G is never held as a whole.

    Args:
        root: columns and draws.
        tokens: explicit features of n documents.
        first, last: which draws.
        progress: show a progress bar.
    """
    from tqdm import tqdm

    columns = len(root.values_nngp)
    dtype = tokens[0].keys.dtype if tokens else np.dtype(np.float64)
    results = np.empty((len(tokens), last - first, columns), dtype)

    def one(place: int, draws: np.ndarray, start: int) -> None:
        keys, values = tokens[place]
        for draw, queries in enumerate(keys @ draws, start):
            results[place, draw] = attend(queries, keys, values, None, root.layer.scores, True)[0]

    total = len(tokens) * (last - first)
    bar = tqdm(total=total, desc="attention draws", unit="draw", disable=not progress)
    with bar, single_threaded_blas(), ThreadPoolExecutor(count_processors()) as pool:
        for start in range(first, last, DRAWS):
            draws = root.draws(start, min(start + DRAWS, last), dtype)
            for _ in pool.map(lambda place, d=draws, s=start: one(place, d, s - first), range(len(tokens))):
                bar.update(len(draws))
    return results
