"""Gram matrices: choose the engine, tile, use symmetry, report progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel

KINDS = ("nngp", "ntk", "both")
TILE = 1024  # documents a side: 8 MB of float64 for each of K and Theta


def gram(
    architecture: Architecture,
    documents: Sequences,
    other: Sequences | None = None,
    kind: str = "nngp",
    engine: str = "auto",
    dtype: Any = np.float64,
    *,
    progress: bool = False,
) -> Any:
    """Kernel matrix between documents.

    Args:
        architecture: the network.
        documents: n documents.
        other: m documents, or None for the symmetric matrix of ``documents`` with themselves.
        kind: ``"nngp"``, ``"ntk"``, or ``"both"`` in one pass.
        engine: ``"features"`` (explicit features, token work in the dtype of the documents), or ``"auto"``.
        dtype: of the result, float64 or float32.
        progress: show progress bars on standard error.

    Returns: (n, m) array, or the pair (nngp, ntk) for ``kind="both"``.

    Raises:
        ValueError: unknown kind or engine, dimensions that differ, an NTK of a network without weights.
        NotImplementedError: a layer that the engine cannot compute; the message names it.
    """
    _check(architecture, documents, other, kind)
    kernel = choose_kernel(architecture, engine)
    longest = max(part.lengths.max(initial=1) for part in (documents, other) if part is not None)
    rows = kernel.prepare(documents, longest, progress)
    columns = rows if other is None else kernel.prepare(other, longest, progress)
    nngp, ntk = fill_gram(kernel, rows, columns, kind, dtype, symmetric=other is None, progress=progress)
    return {"nngp": nngp, "ntk": ntk, "both": (nngp, ntk)}[kind]


def fill_gram(
    kernel: Any, rows: Any, columns: Any, kind: str, dtype: Any, symmetric: bool, progress: bool = False
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Matrices of prepared documents, tile by tile; a symmetric one from its lower half."""
    from tqdm import tqdm

    shape = (len(rows), len(columns))
    nngp = np.empty(shape, dtype) if kind != "ntk" else None
    ntk = np.empty(shape, dtype) if kind != "nngp" else None

    tiles = list(_tiles(*shape, symmetric))
    for row, column in tqdm(tiles, "gram", unit="tile", disable=not progress):
        same = 0 if symmetric and row == column else None
        for matrix, block in zip(
            (nngp, ntk), kernel.block(rows[row], columns[column], ntk is not None, same), strict=True
        ):
            if matrix is None:
                continue
            if same is not None:
                block = np.tril(block) + np.tril(block, -1).T
            matrix[row, column] = block
            if symmetric and row != column:
                matrix[column, row] = block.T
    return nngp, ntk


def _tiles(n: int, m: int, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    for start in range(0, n, TILE):
        for left in range(0, min(start + 1, m) if symmetric else m, TILE):
            yield slice(start, min(start + TILE, n)), slice(left, min(left + TILE, m))


def _check(architecture: Architecture, documents: Sequences, other: Sequences | None, kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"expected kind to be one of {', '.join(KINDS)}; got {kind!r}")
    if other is not None and other.dim != documents.dim:
        raise ValueError(f"expected documents of equal dimension, got {documents.dim} and {other.dim}")
    if kind != "nngp" and not architecture.trained:
        raise ValueError("the NTK of an architecture without weights is zero; add a layer such as Dense()")
