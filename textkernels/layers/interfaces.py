"""What a layer must have to act on explicit features, and on pooled documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from textkernels.features import FeatureState
    from textkernels.tile import Tile


class LinearLayer(Protocol):
    """Keeps a kernel linear in explicit features.

    Every layer says whether it does, by ``linear``; those that do not need no ``features``.
    """

    @property
    def linear(self) -> bool: ...

    def features(self, state: FeatureState) -> FeatureState:
        """The columns and weights behind the layer."""


class DocumentLayer(Protocol):
    """May stand after pooling."""

    def tile(self, tile: Tile) -> None:
        """Change a block of the Gram matrix in place."""
