"""Fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textkernels.layers.parameters import check_std

if TYPE_CHECKING:
    from textkernels.features import FeatureState
    from textkernels.tile import Tile


@dataclass(frozen=True)
class Dense:
    """Fully connected layer of infinite width, applied to every token or to every pooled document.

    K <- w_std^2 K + b_std^2;  Theta <- K_new + w_std^2 Theta.

    Args:
        w_std: standard deviation of the weights, W ~ N(0, w_std^2 / fan_in).
        b_std: standard deviation of the biases.

    Source: Jacot et al. 2018; Lee et al. 2019 (NTK parameterisation).
    """

    w_std: float = 1.0
    b_std: float = 0.0

    def __post_init__(self) -> None:
        check_std("Dense", w_std=self.w_std, b_std=self.b_std)

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return True

    def features(self, state: FeatureState) -> FeatureState:
        """Weights of all columns by the rule above; a bias adds one column of ones."""
        weight, bias = self.w_std**2, self.b_std**2
        return state.reweighted(nngp=weight * state.nngp, ntk=weight * (state.ntk + state.nngp)).with_ones(bias)

    def tile(self, tile: Tile) -> None:
        """The rule above on every entry, in place."""
        tile.affine(self.w_std**2, self.b_std**2)
