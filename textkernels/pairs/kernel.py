"""The kernel between documents by token pairs, and what the engines have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.features import linear_prefix
from textkernels.pairs.graph import TokenGraph
from textkernels.tile import Tile

ENGINES = ("numba", "jax")
PADDING, LIVE_BLOCKS = 1.5, 12  # of an engine that pads documents: their length, and float32 blocks of a pair at once


class Engine(Protocol):
    """What an engine computes: pooled kernels of stacks of token layers, before any layer on documents."""

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> Any:
        """What pairs need of each document alone; has ``len``, and slices or index arrays choose from it."""

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """Prepared documents from what their ``arrays()`` gave."""

    def pooled(
        self, rows: Any, columns: Any, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
        """K and Theta, float64 (stacks, n, m), and variances, (stacks, n) and (stacks, m)."""


@runtime_checkable
class SizedEngine(Protocol):
    """An engine that knows its own memory; see :meth:`PairKernel.memory_need`."""

    memory: int

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes of prepared documents, and bytes to work with."""


class PairKernel:
    """Blocks of NNGP and NTK Gram matrices of networks with activations or convolutions on tokens.

    One pass over the tokens of a pair of documents serves several architectures: what their token layers share is
    computed once, and layers after pooling never repeat the token work.

    Args:
        architectures: one, or several whose blocks :meth:`blocks` returns in order.
        engine: ``"numba"`` for CPUs, ``"jax"`` for accelerators.
        memory: bytes the engine may keep or take beyond the documents and the results; see the engines.
    """

    def __init__(
        self, architectures: Architecture | Sequence[Architecture], engine: str = "numba", memory: int | None = None
    ) -> None:
        several = [architectures] if isinstance(architectures, Architecture) else list(architectures)
        if not several:
            raise ValueError("expected at least one architecture, got none")
        self.architectures: tuple[Architecture, ...] = tuple(several)
        prefix = _shared_prefix(self.architectures)
        stacks = [architecture.token_layers[len(prefix) :] for architecture in self.architectures]
        self.graph = TokenGraph(stacks)
        self.engine = _engine(engine)(prefix, stacks, memory)

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> Any:
        """What blocks need of each document: features, variances, attention weights.

        Args:
            documents: n documents.
            longest: tokens of the longest document these may ever meet; default: the longest of them.
            progress: show a progress bar.
        """
        return self.engine.prepare(documents, longest, progress)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """Prepared documents from what their ``arrays()`` gave."""
        return self.engine.restore(arrays)

    def block(
        self, rows: Any, columns: Any, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """K and, if asked for, Theta of the first architecture, float64 (n, m).

        Args:
            rows, columns: prepared documents.
            ntk: whether Theta is wanted.
            diagonal: row i is the same document as column i + diagonal; None: unknown or none. With 0 and as many
                rows as columns, half of the symmetric matrix is computed.
        """
        return self.blocks(rows, columns, ntk, diagonal)[0]

    def blocks(
        self, rows: Any, columns: Any, ntk: bool, diagonal: int | None = None
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """As :meth:`block`, one pair of matrices for every architecture, from one pass over the tokens."""
        nngp, tangent, variance1, variance2 = self.engine.pooled(rows, columns, ntk, diagonal)
        results = []
        for place, architecture in enumerate(self.architectures):
            theta = None if tangent is None else tangent[place]
            tile = Tile(nngp[place], theta, variance1[place], variance2[place], diagonal)
            for layer in architecture.document_layers:
                layer.tile(tile)
            tile.check_finite()
            results.append((tile.nngp, tile.ntk))
        return results

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes that prepared documents take, and bytes to work with on all processors together.

        Args:
            lengths: tokens of all documents; dim: of their vectors.
            longest: tokens of the longest row and of the longest column document.
            ntk: whether Theta is wanted.
        """
        if isinstance(self.engine, SizedEngine):
            return self.engine.memory_need(lengths, dim, longest, ntk)
        padded = PADDING * np.asarray(longest, np.float64)
        return int(PADDING * 4 * dim * lengths.sum()), int(4 * LIVE_BLOCKS * padded.prod())

    def keep(self, memory: int) -> None:
        """Bytes of attention weights that may be kept for prepared documents; beyond, they are made again.

        Engines that do not know their own memory stay as they are: theirs may be that of an accelerator.
        """
        if isinstance(self.engine, SizedEngine):
            self.engine.memory = memory

    def diagonal(self, rows: Any) -> np.ndarray:
        """K of every prepared document with itself, float64 (n,), of the first architecture."""
        variance = self.engine.pooled(rows, rows[:0], False)[2][0]
        tile = Tile(variance[:, None].copy(), None, variance, variance[:1])
        for layer in self.architectures[0].document_layers:
            tile.variance2 = tile.variance1[:1]
            layer.tile(tile)
        return tile.variance1


def _shared_prefix(architectures: Sequence[Architecture]) -> tuple[Any, ...]:
    """The linear layers that all token stacks begin with."""
    prefix: list[Any] = []
    for layers in zip(*(architecture.token_layers for architecture in architectures), strict=False):
        if len(set(layers)) > 1 or linear_prefix(layers[:1]) == 0:
            break
        prefix.append(layers[0])
    return tuple(prefix)


def _engine(name: str) -> Any:
    if name == "numba":
        from textkernels.pairs.numba_engine import NumbaEngine

        return NumbaEngine
    if name == "jax":
        from textkernels.pairs.jax_engine import JaxEngine

        return JaxEngine
    raise ValueError(f"expected engine to be one of {', '.join(ENGINES)}; got {name!r}")
