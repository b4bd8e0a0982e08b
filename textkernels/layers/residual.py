"""Residual connection around a few layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textkernels.layers.parameters import check_share

if TYPE_CHECKING:
    from textkernels.features import FeatureState


@dataclass(frozen=True)
class Residual:
    """x -> sqrt(share) x + sqrt(1 - share) branch(x), the two parts independent.

    K <- share K + (1 - share) K_branch; Theta likewise.

    Args:
        layers: the branch, token layers only (it must keep one output for each token and must end in
            a layer with weights, so that it is independent of its input).
        share: share of the input, in [0, 1].

    Source: "Infinite attention" (Hron et al. 2020), section 4 (residual attention).
    """

    layers: Sequence[Any]
    share: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.layers, Sequence):
            raise ValueError(f"Residual: expected a list of layers, got {self.layers!r}; write Residual([layer])")
        object.__setattr__(self, "layers", tuple(self.layers))
        check_share("Residual", share=self.share)
        if not self.layers:
            raise ValueError("Residual: expected at least one layer in the branch, got none")

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return all(layer.linear for layer in self.layers)

    def features(self, state: FeatureState) -> FeatureState:
        """Columns of the input and of the branch side by side, weighted by their shares."""
        branch = state
        for layer in self.layers:
            branch = layer.features(branch)
        return state.weighted(self.share).beside(branch.weighted(1 - self.share))
