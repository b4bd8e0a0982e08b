"""The kernel by neural-tangents, on the same documents: a live reference for tests and benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.finite import build_stax, quietly
from textkernels.layers import Residual, SelfAttention


def reference_gram(
    architecture: Architecture,
    documents: Sequences,
    other: Sequences | None = None,
    kind: str = "nngp",
    batch: int | None = None,
    x64: bool = True,
) -> Any:
    """The kernel by neural-tangents, on documents padded to the longest: the arguments of ``tk.gram``, slowly.

    Args:
        architecture: the network.
        documents, other: n and m documents; ``other=None``: the symmetric matrix of ``documents``.
        kind: ``"nngp"``, ``"ntk"`` or ``"both"``.
        batch: documents a side of one compiled call, which takes O((batch tokens)^2) memory; None: all at once,
            not compiled.
        x64: whether to compute in float64. The global setting of JAX stays as it is.

    Returns: (n, m) float64, or the pair (nngp, ntk) for ``"both"``.

    Raises: as :func:`to_stax`.
    """
    from jax.experimental import disable_x64, enable_x64

    _check_kernel(architecture.layers)
    x, y = _padded(documents, other)
    length = _common_length(documents, other)
    with enable_x64() if x64 else disable_x64(), quietly():
        network, places = build_stax(architecture, length=length, extra_dense=1)
        nngp, ntk = _evaluate(network[2], x, y, kind, batch)
        if kind != "nngp" and places:
            # Theta is affine in the number of extra layers: one and two of them tell what none would give.
            network, _ = build_stax(architecture, length=length, extra_dense=2)
            ntk = 2 * ntk - _evaluate(network[2], x, y, "ntk", batch)[1]
    return {"nngp": nngp, "ntk": ntk, "both": (nngp, ntk)}[kind]


def _evaluate(kernel_fn: Any, x: np.ndarray, y: np.ndarray | None, kind: str, batch: int | None) -> tuple[Any, Any]:
    import jax

    wanted = {"nngp": ("nngp",), "ntk": ("ntk",), "both": ("nngp", "ntk")}[kind]

    def compute(rows: Any, columns: Any) -> tuple[Any, ...]:
        return tuple(kernel_fn(rows, columns, wanted, mask_constant=math.nan))

    if batch is None:
        blocks = [[compute(x, y)]]
    else:
        compiled = jax.jit(compute)
        columns = _batches(x if y is None else y, batch)
        blocks = [
            [compiled(rows, None if y is None and i == j else column) for j, column in enumerate(columns)]
            for i, rows in enumerate(_batches(x, batch))
        ]
    n, m = len(x), len(x if y is None else y)
    matrices = {
        name: np.block([[np.asarray(block[part], np.float64) for block in row] for row in blocks])[:n, :m]
        for part, name in enumerate(wanted)
    }
    return matrices.get("nngp"), matrices.get("ntk")


def _batches(x: np.ndarray, batch: int) -> list[np.ndarray]:
    """Equal batches, one compilation for all; the last is filled up with its first document."""
    parts = [x[start : start + batch] for start in range(0, len(x), batch)]
    missing = batch - len(parts[-1])
    return [*parts[:-1], np.concatenate([parts[-1], np.repeat(parts[-1][:1], missing, axis=0)])]


def _check_kernel(layers: Sequence[Any]) -> None:
    for layer in layers:
        if isinstance(layer, Residual):
            _check_kernel(layer.layers)
        if isinstance(layer, SelfAttention) and layer.sampled:
            raise NotImplementedError(
                f"SelfAttention: neural-tangents has no kernel for sqrt scaling with {layer.scores} scores"
            )


def _padded(documents: Sequences, other: Sequences | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Values (n, T, d), NaN where there is no token."""
    longest = max(int(part.lengths.max()) for part in (documents, other) if part is not None)

    def pad(part: Sequences) -> np.ndarray:
        values, mask = part.padded(longest)
        return np.where(mask[..., None], values, np.nan)

    return pad(documents), None if other is None else pad(other)


def _common_length(documents: Sequences, other: Sequences | None) -> int | None:
    lengths = {int(length) for part in (documents, other) if part is not None for length in part.lengths}
    return lengths.pop() if len(lengths) == 1 else None
