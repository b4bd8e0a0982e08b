"""Which engine computes the kernel of an architecture."""

from __future__ import annotations

from typing import Any

from textkernels.architecture import Architecture
from textkernels.feature_kernel import FeatureKernel

ENGINES = ("auto", "features", "numba", "jax")


def choose_kernel(architecture: Architecture, engine: str = "auto") -> Any:
    """The kernel object of an engine; ``auto``: explicit features wherever they apply.

    Raises:
        ValueError: an unknown engine.
        NotImplementedError: a layer that the engine cannot compute; the message names it.
    """
    if engine not in ENGINES:
        raise ValueError(f"expected engine to be one of {', '.join(ENGINES)}; got {engine!r}")
    return FeatureKernel(architecture)
