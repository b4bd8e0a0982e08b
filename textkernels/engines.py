"""Which engine computes the kernel of an architecture."""

from __future__ import annotations

from typing import Any

from textkernels.architecture import Architecture
from textkernels.feature_kernel import FeatureKernel
from textkernels.layers import SelfAttention

ENGINES = ("auto", "features", "numba", "jax")


def choose_kernel(architecture: Architecture, engine: str = "auto") -> Any:
    """The kernel object of an engine.

    ``auto``: explicit features wherever they apply, Monte Carlo for attention that has no closed form, fused Numba
    for everything else. A new engine is one module and one line here.

    Raises:
        ValueError: an unknown engine.
        NotImplementedError: a layer that the engine cannot compute; the message names it.
    """
    if engine not in ENGINES:
        raise ValueError(f"expected engine to be one of {', '.join(ENGINES)}; got {engine!r}")
    if engine == "features" or (engine == "auto" and architecture.linear_tokens):
        return FeatureKernel(architecture)
    if engine == "jax" and architecture.linear_tokens:
        from textkernels.pairs.jax_features import JaxFeatureKernel

        return JaxFeatureKernel(architecture)
    if any(isinstance(layer, SelfAttention) and layer.sampled for layer in architecture.all_layers):
        from textkernels.monte_carlo.kernel import MonteCarloKernel

        return MonteCarloKernel(architecture)
    from textkernels.pairs.kernel import PairKernel

    return PairKernel(architecture, "jax" if engine == "jax" else "numba")
