"""What a KernelClassifier may be told, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embeddings.cores import check_workers
from embeddings.whole_numbers import LARGEST_SEED, whole_number, whole_number_or_none
from textkernels.architecture import Architecture
from textkernels.named_architectures import named_architecture
from textkernels.solving import check_diag_reg

KERNELS = ("nngp", "ntk")
UNUSABLE = ("drop", "error")


def check_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``KernelClassifier.get_params`` that say how to fit, with Python's numbers for NumPy's.

    The rest, embedding and architecture, become attributes of their own; progress is nothing to keep.

    Raises:
        ValueError: a value out of range; the message names the parameter.
    """
    kernel, unusable = given["kernel"], given["unusable"]
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(f"expected kernel to be one of {', '.join(KERNELS)}; got {kernel!r}")
    if not isinstance(unusable, str) or unusable not in UNUSABLE:
        raise ValueError(f"expected unusable to be {' or '.join(UNUSABLE)}, got {unusable!r}")
    kept = {name: value for name, value in given.items() if name not in ("embedding", "architecture", "progress")}
    return kept | {
        "diag_reg": check_diag_reg(given["diag_reg"]),
        "random_state": whole_number("random_state", given["random_state"], 0, LARGEST_SEED),
        "max_tokens": whole_number_or_none("max_tokens", given["max_tokens"], 1, "no limit"),
        "workers": check_workers(given["workers"]),
    }


def check_architecture(architecture: Any, kernel: str) -> Architecture:
    """The architecture, by its name or as it is.

    Raises:
        TypeError: neither a name nor an Architecture.
        ValueError: an unknown name, or one without weights for the NTK.
    """
    if isinstance(architecture, str):
        architecture = named_architecture(architecture)
    if not isinstance(architecture, Architecture):
        raise TypeError(
            "expected architecture to be a name such as 'struct-fcn' or an Architecture, got "
            f"{type(architecture).__name__} {architecture!r:.60}; make one of layers: Architecture([...])"
        )
    if kernel == "ntk":
        architecture.check_trained()
    return architecture
