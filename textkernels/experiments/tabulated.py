"""Token-pair kernels between the documents of one draw, computed once for all its sizes and both kernels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

BLOCK = 256  # documents a side


class TabulatedKernel:
    """Blocks of Gram matrices that are looked up: rows among n training and m other documents, columns training ones.

    Prepared documents are integer arrays: 0 to n - 1 are the training documents, n to n + m - 1 the others. Takes
    8 n (n + m) bytes, twice that with the NTK.

    Args:
        kernel: a token-pair kernel, see :class:`textkernels.latent.LatentModel`.
        train, other: documents prepared for it.
        ntk: whether Theta is wanted, too.
        progress: show a progress bar.

    Attributes:
        seconds: what the computing took.
    """

    def __init__(self, kernel: Any, train: Any, other: Any, ntk: bool, progress: bool = False) -> None:
        from tqdm import tqdm

        start = time.perf_counter()
        self.n, rows = len(train), len(train) + len(other)
        self.nngp = np.empty((rows, self.n))
        self.ntk = np.empty((rows, self.n)) if ntk else None
        blocks = [(0, top, left) for left in range(0, self.n, BLOCK) for top in range(left, self.n, BLOCK)]
        blocks += [(self.n, top, left) for left in range(0, self.n, BLOCK) for top in range(0, len(other), BLOCK)]
        for offset, top, left in tqdm(blocks, "  document pairs", unit="block", disable=not progress, leave=False):
            part = (other if offset else train)[top : top + BLOCK]
            self._fill(kernel, part, offset + top, train[left : left + BLOCK], left)
        self.variance = np.concatenate([np.diagonal(self.nngp), kernel.diagonal(other)])
        self.seconds = time.perf_counter() - start

    def _fill(self, kernel: Any, rows: Any, top: int, columns: Any, left: int) -> None:
        same = top == left
        pair = kernel.block(rows, columns, self.ntk is not None, 0 if same else None)
        for table, block in zip((self.nngp, self.ntk), pair, strict=True):
            if table is None:
                continue
            if same:
                block = np.tril(block) + np.tril(block, -1).T
            table[top : top + len(rows), left : left + len(columns)] = block
            if top < self.n:
                table[left : left + len(columns), top : top + len(rows)] = block.T

    def block(
        self, rows: np.ndarray, columns: np.ndarray, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """K and, if asked for, Theta."""
        place = np.ix_(rows, columns)
        return self.nngp[place], self.ntk[place] if ntk and self.ntk is not None else None

    def seconds_for(self, n: int) -> float:
        """What the pairs of n training documents among themselves and with the others took, by their number."""
        n_other = len(self.nngp) - self.n
        return self.seconds * (n * (n / 2 + n_other)) / (self.n * (self.n / 2 + n_other))

    def diagonal(self, rows: np.ndarray) -> np.ndarray:
        """K of documents with themselves."""
        return self.variance[rows]
