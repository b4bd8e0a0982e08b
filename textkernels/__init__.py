"""Exact, fast NNGP and NTK kernels of infinitely wide sequence networks for documents of any length.

The names below are the public contract; each is imported when it is first used, so that the command line
starts at once.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textkernels.architecture import Architecture
    from textkernels.classifier import KernelClassifier
    from textkernels.gram_errors import gram_standard_errors
    from textkernels.gram_matrix import gram
    from textkernels.layers import (
        Activation,
        Conv,
        Dense,
        GlobalAveragePool,
        LayerNorm,
        Positions,
        Residual,
        SelfAttention,
    )
    from textkernels.named_architectures import named_architecture
    from textkernels.persistence import load

_MODULES = {
    "Activation": "layers",
    "Architecture": "architecture",
    "Conv": "layers",
    "Dense": "layers",
    "GlobalAveragePool": "layers",
    "KernelClassifier": "classifier",
    "LayerNorm": "layers",
    "Positions": "layers",
    "Residual": "layers",
    "SelfAttention": "layers",
    "gram": "gram_matrix",
    "gram_standard_errors": "gram_errors",
    "load": "persistence",
    "named_architecture": "named_architectures",
}

__version__ = version("textkernels")

__all__ = [
    "Activation",
    "Architecture",
    "Conv",
    "Dense",
    "GlobalAveragePool",
    "KernelClassifier",
    "LayerNorm",
    "Positions",
    "Residual",
    "SelfAttention",
    "gram",
    "gram_standard_errors",
    "load",
    "named_architecture",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'textkernels' has no attribute {name!r}")
    value = getattr(import_module(f"textkernels.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
