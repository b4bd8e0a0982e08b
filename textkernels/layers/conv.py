"""One-dimensional convolution over tokens."""

from __future__ import annotations

from dataclasses import dataclass

from textkernels.layers.parameters import check_integer, check_std


@dataclass(frozen=True)
class Conv:
    """Convolution over tokens with infinitely many channels, stride 1, SAME padding with zeros.

    K_ij <- (w_std^2 / f) sum_s K_{i+s, j+s} + b_std^2,  s = -(f-1)/2 .. (f-1)/2;
    Theta_ij <- K_new_ij + (w_std^2 / f) sum_s Theta_{i+s, j+s}.
    Positions outside either document contribute 0.

    Args:
        width: f, the number of tokens under the filter; odd.
        w_std: standard deviation of the weights, W ~ N(0, w_std^2 / (f channels)).
        b_std: standard deviation of the biases.

    Source: Novak et al. 2019; Garriga-Alonso et al. 2019.
    """

    width: int
    w_std: float = 1.0
    b_std: float = 0.0

    def __post_init__(self) -> None:
        check_integer("Conv", 1, width=self.width)
        if self.width % 2 == 0:
            raise ValueError(f"Conv: expected width to be odd, so that SAME padding has a middle; got {self.width!r}")
        object.__setattr__(self, "width", int(self.width))
        check_std("Conv", w_std=self.w_std, b_std=self.b_std)

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return False
