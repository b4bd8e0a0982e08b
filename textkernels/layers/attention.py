"""Self-attention over tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textkernels.layers.parameters import check_choice, check_integer, check_std
from textkernels.layers.positions import Positions

if TYPE_CHECKING:
    from textkernels.features import FeatureState

SCORES = ("softmax", "identity", "relu", "abs")
SCALINGS = ("linear", "sqrt")


@dataclass(frozen=True)
class SelfAttention:
    """Self-attention with infinitely many heads, zeta = ``scores`` applied row by row.

    ``scaling="linear"`` (1/d, keys tied to queries): with A = K(x, x), qk = w_query_std w_key_std,
    ov = w_value_std w_out_std and G = zeta(qk I(A)):
    K <- ov^2 G K G'^T + b^2;  Theta <- ov^2 G Theta G'^T + b^2 + 2 (K_new - b^2).

    ``scaling="sqrt"`` (1/sqrt d, independent keys and queries): identity scores have a closed form: with
    IK = I(K), IT = I(Theta), D = sum_ij IK_ij K_ij, E = sum_ij (IK_ij Theta_ij + IT_ij K_ij),
    s = (qk ov)^2: K <- s D IK + b^2; Theta <- s (D (IT + 4 IK) + E IK) + b^2. Other scores are a seeded
    Monte Carlo mean over ``samples`` draws.

    I is the interpolation with position covariance of :class:`Positions`; with ``positions.in_values``
    the values use I(K) and I(Theta) as well. ``positions=None``: I(K) = K.

    Args:
        scores: zeta, one of ``softmax``, ``identity``, ``relu``, ``abs``.
        scaling: ``"linear"`` or ``"sqrt"``.
        w_query_std, w_key_std, w_value_std, w_out_std, b_std: standard deviations of weights and bias.
        positions: position embeddings or None.
        samples, seed: of the Monte Carlo mean (``sqrt`` scaling, scores other than identity).

    Source: "Infinite attention" (Hron et al. 2020), theorems 2 and 3, section 4.
    """

    scores: str = "softmax"
    scaling: str = "linear"
    w_query_std: float = 1.0
    w_key_std: float = 1.0
    w_value_std: float = 1.0
    w_out_std: float = 1.0
    b_std: float = 0.0
    positions: Positions | None = None
    samples: int = 2048
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("SelfAttention", "scores", self.scores, SCORES)
        check_choice("SelfAttention", "scaling", self.scaling, SCALINGS)
        check_std(
            "SelfAttention",
            w_query_std=self.w_query_std,
            w_key_std=self.w_key_std,
            w_value_std=self.w_value_std,
            w_out_std=self.w_out_std,
            b_std=self.b_std,
        )
        if self.positions is not None and not isinstance(self.positions, Positions):
            raise ValueError(f"SelfAttention: expected positions to be a Positions or None, got {self.positions!r}")
        check_integer("SelfAttention", 2, samples=self.samples)
        check_integer("SelfAttention", 0, seed=self.seed)

    @property
    def qk(self) -> float:
        """Product of the standard deviations of queries and keys."""
        return self.w_query_std * self.w_key_std

    @property
    def sampled(self) -> bool:
        """Whether there is no closed form, so that the kernel is a Monte Carlo mean."""
        return self.scaling == "sqrt" and self.scores != "identity"

    @property
    def ov(self) -> float:
        """Product of the standard deviations of output and value weights."""
        return self.w_out_std * self.w_value_std

    @property
    def linear(self) -> bool:
        """Whether a kernel that is linear in explicit features stays so."""
        return self.scaling == "linear"

    def features(self, state: FeatureState, pool: bool = False) -> FeatureState:
        """Rows mixed by the attention weights of the document (linear scaling).

        Args:
            state: token rows of one document.
            pool: whether pooling follows directly, so that only the mean over rows is wanted: it needs no
                more than the column means of the attention weights.
        """
        value = self.ov**2
        mixed = state.attended(self, pool)
        return mixed.reweighted(nngp=value * mixed.nngp, ntk=value * (mixed.ntk + 2 * mixed.nngp)).with_ones(
            self.b_std**2
        )
