"""The kernel between documents by explicit features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.attention_weights import CHUNK_ENTRIES
from textkernels.features import DocumentFeatures, FeatureState, apply_layers, document_features
from textkernels.processors import count_processors
from textkernels.tile import Tile

TOKEN_COPIES = 4  # of the token features of a document at once: before and after a layer, queries, normalized


class FeatureKernel:
    """Blocks of NNGP and NTK Gram matrices for architectures without an activation or convolution on tokens.

    ``prepare`` does the token work, once a document; ``block`` is one matrix product and the layers after
    pooling, in float64.
    """

    def __init__(self, architecture: Architecture) -> None:
        check_linear_tokens(architecture)
        self.architecture = architecture
        self._tail = architecture.curved_layers

    def prepare(self, documents: Sequences, longest: int | None = None, progress: bool = False) -> DocumentFeatures:
        """What ``block`` needs of each document; see :func:`textkernels.features.document_features`."""
        return document_features(self.architecture, documents, longest, progress)

    def memory_need(self, lengths: np.ndarray, dim: int, longest: tuple[int, int], ntk: bool) -> tuple[int, int]:
        """Bytes of prepared documents, and bytes to work with beyond blocks of the result, at most.

        Args:
            lengths: tokens of all documents; dim: of their vectors, taken for float64.
            longest, ntk: documents of any length cost a pair the same, and both kernels are prepared.
        """
        reach = int(lengths.max(initial=1))
        state = FeatureState.from_tokens(np.zeros((1, dim)), reach)
        layers = self.architecture.layers[: self.architecture.linear_layers]
        columns = apply_layers(state, layers).values.shape[1]
        # The rows as they come, all together, and weighted for K and Theta.
        tokens = count_processors() * 8 * (TOKEN_COPIES * reach * columns + CHUNK_ENTRIES)
        return 2 * 8 * len(lengths) * columns, 2 * 8 * len(lengths) * columns + tokens

    def restore(self, arrays: Mapping[str, np.ndarray]) -> DocumentFeatures:
        """Prepared documents from their ``arrays()``."""
        return DocumentFeatures(arrays["nngp"], arrays["ntk"])

    def block(
        self, rows: DocumentFeatures, columns: DocumentFeatures, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """K and, if asked for, Theta between prepared documents, float64 (n, m).

        Args:
            rows, columns: prepared documents.
            ntk: whether Theta is wanted.
            diagonal: row i is the same document as column i + diagonal; None: unknown or none.
        """
        tile = Tile(
            rows.nngp @ columns.nngp.T,
            rows.ntk @ columns.ntk.T if ntk else None,
            _square_norms(rows.nngp),
            _square_norms(columns.nngp),
            diagonal,
        )
        for layer in self._tail:
            layer.tile(tile)
        tile.check_finite()
        return tile.nngp, tile.ntk

    def diagonal(self, rows: DocumentFeatures) -> np.ndarray:
        """K of every prepared document with itself, float64 (n,)."""
        variance = _square_norms(rows.nngp)
        tile = Tile(variance[:, None].copy(), None, variance, variance[:1])
        for layer in self._tail:
            tile.variance2 = tile.variance1[:1]
            layer.tile(tile)
        return tile.variance1


def _square_norms(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)


def check_linear_tokens(architecture: Architecture) -> None:
    """Raise NotImplementedError, naming the layer, unless explicit features reach through pooling."""
    place = architecture.linear_layers
    if place <= architecture.pooling:
        layer = architecture.layers[place]
        raise NotImplementedError(
            f"layer {place}: {layer!r} acts on tokens, and the features engine has no explicit features behind it; "
            "put it after GlobalAveragePool or use a token-pair engine"
        )
