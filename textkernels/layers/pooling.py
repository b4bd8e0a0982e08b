"""Global average pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textkernels.features import FeatureState


@dataclass(frozen=True)
class GlobalAveragePool:
    """Mean over the tokens of a document: K <- mean_ij K_ij, Theta <- mean_ij Theta_ij.

    Only real tokens count, each document by its own length.
    Source: Novak et al. 2019; Arora et al. 2019.
    """

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return True

    def features(self, state: FeatureState) -> FeatureState:
        """Mean over rows: one row stands for the document."""
        return state.averaged()
