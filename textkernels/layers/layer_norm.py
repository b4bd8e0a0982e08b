"""Layer normalisation over channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textkernels.features import FeatureState
    from textkernels.tile import Tile


@dataclass(frozen=True)
class LayerNorm:
    """Layer normalisation over channels, token by token or document by document.

    K_ij and Theta_ij <- the same times 1 / sqrt(A_ii A'_jj), with A_ii = K_ii(x, x); a zero variance gives 0.
    Source: "Infinite attention" (Hron et al. 2020), section 4.
    """

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return True

    def features(self, state: FeatureState) -> FeatureState:
        """Every row divided by the square root of its own variance."""
        return state.normalized()

    def tile(self, tile: Tile) -> None:
        """The rule above on every entry, in place."""
        tile.normalize()
