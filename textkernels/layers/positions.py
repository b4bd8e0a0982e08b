"""Covariance of position embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from textkernels.layers.parameters import check_choice, check_flag, check_share, check_std


@dataclass(frozen=True)
class Positions:
    """Position embeddings with covariance R_ab(x, x') = amplitude exp(-decay r^2).

    Interpolation of a covariance with R: ``append``: I(K) = content_share K + (1 - content_share) R;
    ``sum``: I(K) = K + R.

    Args:
        kind: ``"relative"``: token a of L against token b of L' has r = a / L - b / L' (1-based), so
            documents of different length share one axis; ``"absolute"``: r = (a - b) / scale.
        decay: phi >= 0, how fast the covariance falls with the square of the distance.
        amplitude: rho >= 0, the variance of the position embeddings.
        scale: in tokens, > 0; needed by ``"absolute"``, ignored by ``"relative"``.
        in_values: whether values see the positions too, not only keys and queries. The embeddings are
            trained, so R then enters the NTK as well.
        combine: ``"append"`` or ``"sum"``.
        content_share: alpha in [0, 1], share of content under ``"append"``; ignored by ``"sum"``.

    Source: "Infinite attention" (Hron et al. 2020), section 4 and appendix A.
    """

    kind: str = "relative"
    decay: float = 2.5
    amplitude: float = 1.0
    scale: float | None = None
    in_values: bool = False
    combine: str = "append"
    content_share: float = 0.75

    def __post_init__(self) -> None:
        check_choice("Positions", "kind", self.kind, ("relative", "absolute"))
        check_choice("Positions", "combine", self.combine, ("append", "sum"))
        check_std("Positions", decay=self.decay, amplitude=self.amplitude)
        check_share("Positions", content_share=self.content_share)
        check_flag("Positions", in_values=self.in_values)
        if self.scale is not None:
            check_std("Positions", scale=self.scale)
        if self.kind == "absolute" and not self.scale:
            raise ValueError(f"Positions: expected scale > 0 (in tokens) for absolute positions, got {self.scale!r}")

    @property
    def shares(self) -> tuple[float, float]:
        """Factors of K and of R in the interpolation I(K)."""
        return (1.0, 1.0) if self.combine == "sum" else (self.content_share, 1 - self.content_share)

    def locations(self, length: int) -> np.ndarray:
        """u_a of the tokens of a document, float64 (length,): r is the difference of two of them."""
        index = np.arange(1, length + 1, dtype=np.float64)
        return index / length if self.kind == "relative" else index / float(self.scale or 1.0)

    def span(self, longest: int) -> float:
        """Largest |r| between tokens of documents of at most ``longest`` tokens."""
        return 1.0 if self.kind == "relative" else longest / float(self.scale or 1.0)

    def covariance(self, length: int, other: int) -> np.ndarray:
        """R between documents of ``length`` and ``other`` tokens, float64 (length, other)."""
        distance = self.locations(length)[:, None] - self.locations(other)[None, :]
        return self.amplitude * np.exp(-self.decay * distance**2)

    def within(self, length: int) -> np.ndarray:
        """R inside one document depends on |a - b| only: its values for 0 .. length - 1, float64."""
        distance = self.locations(length) - self.locations(length)[0]
        return self.amplitude * np.exp(-self.decay * distance**2)

    def embeddings(self, length: int, longest: int) -> np.ndarray:
        """Explicit P with P P'^T = R to 4e-15 across documents of at most ``longest`` tokens.

        exp(-phi r^2) is the integral of cos(w r) p(w), p(w) = exp(-w^2 / (4 phi)) / sqrt(4 pi phi); the
        trapezoid rule with step h = 2 pi / (T + 6 / sqrt phi) over 0 <= w <= 12 sqrt phi converges
        geometrically. T = ``span(longest)`` must be the same for all documents that meet.

        Returns: float64 (length, columns).
        """
        if self.decay == 0:
            return np.full((length, 1), math.sqrt(self.amplitude))
        root = math.sqrt(self.decay)
        step = 2 * math.pi / (self.span(longest) + 6 / root)
        frequency = step * np.arange(0, math.floor(12 * root / step) + 1)
        weight = step * np.exp(-(frequency**2) / (4 * self.decay)) / math.sqrt(4 * math.pi * self.decay)
        weight[1:] *= 2
        phase = self.locations(length)[:, None] * frequency
        column = np.sqrt(self.amplitude * weight)
        return np.hstack([column * np.cos(phase), (column * np.sin(phase))[:, 1:]])
