"""Pointwise nonlinearities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textkernels.layers.parameters import check_choice

if TYPE_CHECKING:
    from textkernels.tile import Tile

ACTIVATIONS = ("relu", "erf")


@dataclass(frozen=True)
class Activation:
    """Pointwise nonlinearity of a Gaussian pre-activation.

    With A_ii, A'_jj the variances, s = sqrt(A_ii A'_jj), c = K_ij / s in [-1, 1] and t = pi - arccos c:

    - relu: K <- s (sqrt(1 - c^2) + t c) / (2 pi);  Theta <- Theta t / (2 pi). A zero variance gives 0;
    - erf: with q = (1 + 2 A_ii)(1 + 2 A'_jj): K <- (2 / pi) arcsin(2 K / sqrt q);
      Theta <- Theta (4 / pi) / sqrt(q - 4 K^2).

    Args:
        kind: ``"relu"`` or ``"erf"``.

    Source: Cho & Saul 2009 (relu); Williams 1997 (erf).
    """

    kind: str = "relu"

    def __post_init__(self) -> None:
        check_choice("Activation", "kind", self.kind, ACTIVATIONS)

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return False

    def tile(self, tile: Tile) -> None:
        """The rule above on every entry, in place."""
        if self.kind == "relu":
            tile.relu()
        else:
            tile.erf()
