"""Gram matrices: choose the engine, tile by a memory budget, use symmetry, report progress, survive interruptions."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel
from textkernels.gram_estimate import memory_need, pair_cost, seconds_per_cost
from textkernels.gram_store import TileStore, identify
from textkernels.gram_tiles import Tiling
from textkernels.memory_budget import memory_bytes, readable, readable_time
from textkernels.pairs.kernel import PairKernel
from textkernels.processors import count_processors

KINDS = ("nngp", "ntk", "both")
WORTH_ESTIMATING = 1e9  # token pairs below which a matrix is there before its time is known


def gram(
    architecture: Architecture,
    documents: Sequences,
    other: Sequences | None = None,
    kind: str = "nngp",
    engine: str = "auto",
    dtype: Any = np.float64,
    *,
    memory_budget: int | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Any:
    """Kernel matrix between documents.

    Args:
        architecture: the network.
        documents: n documents.
        other: m documents, or None for the symmetric matrix of ``documents`` with themselves.
        kind: ``"nngp"``, ``"ntk"``, or ``"both"`` in one pass.
        engine: ``"features"`` (explicit features, token work in the dtype of the documents), ``"numba"`` or
            ``"jax"`` (token pairs in float32), or ``"auto"``.
        dtype: of the result, float64 or float32.
        memory_budget: bytes, or text like ``"4GB"``, that the result and all work on it may take; None: most of
            what is free. It is checked before anything is computed.
        folder: keep finished tiles there. An interrupted computation goes on from them, and gives the same matrix;
            a finished one is read.
        progress: show an estimate and progress bars on standard error.

    Returns: (n, m) array, or the pair (nngp, ntk) for ``kind="both"``.

    Raises:
        TypeError: documents that are no Sequences, an architecture that is none.
        ValueError: unknown kind, engine or dtype, dimensions that differ, an NTK of a network without weights, a memory
            budget that is too small (the message has the numbers and ways out), a folder that belongs to another
            computation.
        NotImplementedError: a layer that the engine cannot compute; the message names it.
    """
    check_request(architecture, documents, other, kind)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"expected dtype to be float32 or float64, got {np.dtype(dtype)}")
    kernel = choose_kernel(architecture, engine)
    columns_of = documents if other is None else other
    cost = pair_cost(kernel)
    tiling = Tiling.of(documents.lengths, None if other is None else other.lengths, cost.tokens)
    budget = memory_bytes(memory_budget)
    need = memory_need(kernel, documents, other, kind, dtype, tiling)
    need.check(budget)
    if isinstance(kernel, PairKernel):
        kernel.keep(budget - need.total)
    store = None
    if folder is not None:
        store = TileStore(folder, identify(architecture, documents, other, kind, kernel), tiling)
        tiling = store.tiling
    longest = max(part.lengths.max(initial=1) for part in (documents, columns_of))
    rows = kernel.prepare(documents, longest, progress)
    columns = rows if other is None else kernel.prepare(other, longest, progress)
    costs = tiling.costs(documents.lengths, columns_of.lengths, cost)
    if progress and sum(costs) > WORTH_ESTIMATING:
        seconds = sum(costs) * seconds_per_cost(kernel, rows, documents.lengths, cost, kind != "nngp")
        print(
            f"gram: {len(documents):,} x {len(columns_of):,} documents, about {readable_time(seconds)} on "
            f"{count_processors()} processors, at most {readable(need.total)}",
            file=sys.stderr,
        )
    nngp, ntk = fill_gram(
        kernel, rows, columns, kind, dtype, other is None, progress, tiling=tiling, costs=costs, store=store
    )
    return {"nngp": nngp, "ntk": ntk, "both": (nngp, ntk)}[kind]


def fill_gram(
    kernel: Any,
    rows: Any,
    columns: Any,
    kind: str,
    dtype: Any,
    symmetric: bool,
    progress: bool = False,
    *,
    tiling: Tiling | None = None,
    costs: list[float] | None = None,
    store: TileStore | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Matrices of prepared documents, tile by tile; a symmetric one from its lower half.

    Args:
        kernel, rows, columns: as ``kernel.prepare`` made them.
        kind, dtype: as in :func:`gram`.
        symmetric: whether columns are rows.
        progress: show a bar.
        tiling: how to cut; by default, sides of a fixed number of documents.
        costs: of the tiles, for the bar.
        store: where finished tiles are kept.
    """
    from tqdm import tqdm

    shape = (len(rows), len(columns))
    nngp = np.empty(shape, dtype) if kind != "ntk" else None
    ntk = np.empty(shape, dtype) if kind != "nngp" else None
    if tiling is None:
        sides = np.ones(shape[0], np.int64), None if symmetric else np.ones(shape[1], np.int64)
        tiling = Tiling.of(*sides, tokens=False)
    tiles = list(tiling)
    steps = costs or [1.0] * len(tiles)
    # Weighted by work, so that the time left is honest although documents differ a hundredfold in length.
    with tqdm(total=sum(steps), desc="gram", unit="pair", unit_scale=True, disable=not progress) as bar:
        for (row, column), step in zip(tiles, steps, strict=True):
            same = 0 if symmetric and row == column else None
            blocks = _tile(kernel, rows, columns, kind, row, column, same, store)
            for matrix, block in zip([m for m in (nngp, ntk) if m is not None], blocks, strict=True):
                matrix[row, column] = block
                if symmetric and row != column:
                    matrix[column, row] = block.T
            bar.update(step)
    return nngp, ntk


def _tile(
    kernel: Any,
    rows: Any,
    columns: Any,
    kind: str,
    row: slice,
    column: slice,
    same: int | None,
    store: TileStore | None,
) -> list[np.ndarray]:
    """The wanted matrices of one tile, from the store or from the kernel."""
    found = None if store is None else store.read(row, column)
    if found is not None:
        return found
    nngp, ntk = kernel.block(rows[row], columns[column], kind != "nngp", same)
    blocks = [block for block, wanted in ((nngp, kind != "ntk"), (ntk, kind != "nngp")) if wanted]
    if same is not None:
        blocks = [np.tril(block) + np.tril(block, -1).T for block in blocks]
    if store is not None:
        store.write(row, column, blocks)
    return blocks


def check_request(architecture: Architecture, documents: Sequences, other: Sequences | None, kind: str) -> None:
    """Raise ValueError for arguments of :func:`gram` that make no sense."""
    if not isinstance(architecture, Architecture):
        raise TypeError(f"expected an Architecture, got {architecture!r}; tk.named_architecture makes one of a name")
    for part in (documents,) if other is None else (documents, other):
        if not isinstance(part, Sequences):
            raise TypeError(
                f"expected documents as Sequences, got {type(part).__name__}; encode texts with an encoder "
                "(get_encoder(...).fit(texts).encode(texts).documents), or use Sequences.from_arrays"
            )
    if kind not in KINDS:
        raise ValueError(f"expected kind to be one of {', '.join(KINDS)}; got {kind!r}")
    if other is not None and other.dim != documents.dim:
        raise ValueError(f"expected documents of equal dimension, got {documents.dim} and {other.dim}")
    if kind != "nngp":
        architecture.check_trained()
