"""Token layers that several networks share: computed once, then continued by the layers of each."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from textkernels.architecture import Architecture
from textkernels.experiments.encoded import EncodedTexts
from textkernels.experiments.pair_tiles import PairTiles, pooled_table
from textkernels.experiments.pooled import continue_features
from textkernels.experiments.pooled_table import PooledKernel
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.finished import FinishedParts


class FeatureStack:
    """Token layers with explicit features.

    Args:
        stack: token layers and pooling.
        train, other: documents of one encoder.
        longest: tokens of the longest document that any of these may meet.
        finished: where pooled features are kept.
    """

    def __init__(
        self,
        stack: Architecture,
        train: EncodedTexts,
        other: EncodedTexts,
        longest: int,
        finished: FinishedParts,
    ) -> None:
        self._stack, self._parts, self._longest = stack, (train, other), longest
        self._finished = finished

    def network(self, architecture: Architecture) -> tuple[Any, Any]:
        """The kernel of a network with these token layers, and documents for it, training documents first."""
        return FeatureKernel(architecture), continue_features(architecture, self._pooled)

    @cached_property
    def _pooled(self) -> DocumentFeatures:
        return DocumentFeatures.concatenate([self._pool(part) for part in self._parts])

    def _pool(self, part: EncodedTexts) -> DocumentFeatures:
        content = {
            "part": "pooled features",
            "stack": self._stack.to_toml(),
            "documents": part.content,
            "longest": self._longest,
        }
        kernel = FeatureKernel(self._stack)
        arrays = self._finished.arrays(content, lambda: kernel.prepare(part.documents, self._longest).arrays())
        return kernel.restore(arrays)


class PairStack:
    """Token layers that need token pairs.

    Args:
        stack: token layers and pooling, among those of the tiles.
        inner, outer: tiles of training documents with themselves, and of others with them.
    """

    def __init__(self, stack: Architecture, inner: PairTiles, outer: PairTiles) -> None:
        self._stack, self._inner, self._outer = stack, inner, outer

    def network(self, architecture: Architecture) -> tuple[Any, Any]:
        """As :meth:`FeatureStack.network`."""
        return PooledKernel(architecture, self._table), np.arange(len(self._table.variance))

    @cached_property
    def _table(self) -> Any:
        return pooled_table(self._stack, self._inner, self._outer)
