"""The kernels once more, as plain NumPy in float64: one pair of documents at a time, straight from the formulas.

Nothing here is padded, tiled, cached or clever, and of textkernels only the parameters of the layers are used,
never a formula: every engine is compared with this file, and this file with neural-tangents.

A pair of documents x (L tokens) and x' (L' tokens) is three blocks: x with itself, x with x', x' with itself.
Every layer maps the three to three new ones. A block is (K, Theta), each of shape (tokens, tokens), or (1, 1)
after pooling; a layer sees the block and the K of both documents with themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Block:
    """Covariance and tangent kernel between the tokens of two documents; ``same``: a document with itself."""

    nngp: np.ndarray
    ntk: np.ndarray
    same: bool


Pair = tuple[Block, Block, Block]


def gram(architecture: Any, documents: Sequence[Any], other: Sequence[Any] | None = None) -> tuple[Any, Any]:
    """NNGP and NTK, float64 (n, m): every pair on its own, also those that symmetry would give.

    Args:
        architecture: anything with ``layers``.
        documents: n arrays (L_i, d).
        other: m arrays, or None for ``documents``; then entry (i, i) is a document with itself.
    """
    columns = documents if other is None else other
    entries = [
        [pair(architecture, x, y, other is None and i == j) for j, y in enumerate(columns)]
        for i, x in enumerate(documents)
    ]
    both = np.array(entries, dtype=np.float64).reshape(len(documents), len(columns), 2)
    return both[..., 0], both[..., 1]


def pair(architecture: Any, x: Any, y: Any, same: bool = False) -> tuple[float, float]:
    """NNGP and NTK of one pair of documents; ``same``: both are the same document."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    blocks: Pair = (_input(x, x, True), _input(x, y, same), _input(y, y, True))
    for layer in architecture.layers:
        blocks = step(layer, blocks)
    return float(blocks[1].nngp[0, 0]), float(blocks[1].ntk[0, 0])


def step(layer: Any, blocks: Pair) -> Pair:
    """One layer on the three blocks of a pair."""
    if type(layer).__name__ == "Residual":
        return _residual(layer, blocks)
    rule = RULES[type(layer).__name__]
    first, cross, second = blocks
    cov1, cov2 = first.nngp, second.nngp
    return rule(layer, first, cov1, cov1), rule(layer, cross, cov1, cov2), rule(layer, second, cov2, cov2)


def _input(x: np.ndarray, y: np.ndarray, same: bool) -> Block:
    return Block(x @ y.T / x.shape[1], np.zeros((len(x), len(y))), same)


def _dense(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    nngp = layer.w_std**2 * block.nngp + layer.b_std**2
    return Block(nngp, nngp + layer.w_std**2 * block.ntk, block.same)


def _conv(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    nngp = layer.w_std**2 * _window_mean(block.nngp, layer.width) + layer.b_std**2
    return Block(nngp, nngp + layer.w_std**2 * _window_mean(block.ntk, layer.width), block.same)


def _window_mean(matrix: np.ndarray, width: int) -> np.ndarray:
    """(1 / f) sum_s M_{i+s, j+s}; what lies outside either document counts as 0."""
    rows, columns = matrix.shape
    result = np.zeros_like(matrix)
    for i in range(rows):
        for j in range(columns):
            for shift in range(-(width // 2), width // 2 + 1):
                if 0 <= i + shift < rows and 0 <= j + shift < columns:
                    result[i, j] += matrix[i + shift, j + shift] / width
    return result


def _activation(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    return {"relu": _relu, "erf": _erf}[layer.kind](block, np.diag(cov1)[:, None], np.diag(cov2)[None, :])


def _relu(block: Block, variance1: np.ndarray, variance2: np.ndarray) -> Block:
    scale = np.sqrt(variance1 * variance2)
    correlation = np.clip(np.divide(block.nngp, scale, out=np.zeros_like(scale), where=scale > 0), -1, 1)
    if block.same:
        np.fill_diagonal(correlation, 1.0)
    angle = np.pi - np.arccos(correlation)
    nngp = scale * (np.sqrt(1 - correlation**2) + angle * correlation) / (2 * np.pi)
    return Block(nngp, np.where(scale > 0, block.ntk * angle / (2 * np.pi), 0), block.same)


def _erf(block: Block, variance1: np.ndarray, variance2: np.ndarray) -> Block:
    product = (1 + 2 * variance1) * (1 + 2 * variance2)
    nngp = 2 / np.pi * np.arcsin(2 * block.nngp / np.sqrt(product))
    # Four times a determinant, which rounding may make negative.
    determinant = np.maximum(variance1 * variance2 - block.nngp**2, 0)
    root = np.sqrt(1 + 2 * (variance1 + variance2) + 4 * determinant)
    return Block(nngp, block.ntk * 4 / np.pi / root, block.same)


def _layer_norm(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    scale = np.sqrt(np.outer(np.diag(cov1), np.diag(cov2)))
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    return Block(block.nngp * inverse, block.ntk * inverse, block.same)


def _attention(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    return {"linear": _linear_attention, "sqrt": _sqrt_attention}[layer.scaling](layer, block, cov1, cov2)


def _linear_attention(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    """Scores 1/d, keys tied to queries: attention weights that are fixed numbers of each document."""
    qk = layer.w_query_std * layer.w_key_std
    ov = layer.w_value_std * layer.w_out_std
    weights1 = _score(layer.scores, qk * _interpolated(layer, cov1))
    weights2 = _score(layer.scores, qk * _interpolated(layer, cov2))
    nngp, ntk = block.nngp, block.ntk
    if layer.positions is not None and layer.positions.in_values:
        nngp, ntk = _interpolated(layer, nngp), _interpolated(layer, ntk)
    nngp = ov**2 * weights1 @ nngp @ weights2.T
    ntk = ov**2 * weights1 @ ntk @ weights2.T + 2 * nngp
    return Block(nngp + layer.b_std**2, ntk + layer.b_std**2, block.same)


def _sqrt_attention(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    """Scores 1/sqrt(d), independent keys and queries, identity scores."""
    if layer.scores != "identity":
        raise NotImplementedError(f"no closed form for sqrt scaling and {layer.scores} scores")
    s = (layer.w_query_std * layer.w_key_std * layer.w_value_std * layer.w_out_std) ** 2
    nngp, ntk = _interpolated(layer, block.nngp), _interpolated(layer, block.ntk)
    in_values = layer.positions is not None and layer.positions.in_values
    value, value_ntk = (nngp, ntk) if in_values else (block.nngp, block.ntk)
    d, e = np.sum(nngp * value), np.sum(nngp * value_ntk + ntk * value)
    bias = layer.b_std**2
    return Block(s * d * nngp + bias, s * (d * (ntk + 4 * nngp) + e * nngp) + bias, block.same)


def _score(scores: str, matrix: np.ndarray) -> np.ndarray:
    if scores == "softmax":
        exponential = np.exp(matrix - matrix.max(axis=1, keepdims=True))
        return exponential / exponential.sum(axis=1, keepdims=True)
    return {"identity": matrix, "relu": np.maximum(matrix, 0), "abs": np.abs(matrix)}[scores]


def _interpolated(layer: Any, matrix: np.ndarray) -> np.ndarray:
    """I(K) = alpha K + (1 - alpha) R for ``append``, K + R for ``sum``, K without positions."""
    positions = layer.positions
    if positions is None:
        return matrix
    place1, place2 = (np.arange(1, length + 1) for length in matrix.shape)
    if positions.kind == "relative":
        distance = np.subtract.outer(place1 / matrix.shape[0], place2 / matrix.shape[1])
    else:
        distance = np.subtract.outer(place1, place2) / positions.scale
    covariance = positions.amplitude * np.exp(-positions.decay * distance**2)
    if positions.combine == "sum":
        return matrix + covariance
    return positions.content_share * matrix + (1 - positions.content_share) * covariance


def _residual(layer: Any, blocks: Pair) -> Pair:
    """x -> sqrt(share) x + sqrt(1 - share) branch(x), independent parts."""
    branch = blocks
    for inner in layer.layers:
        branch = step(inner, branch)
    first, cross, second = (
        Block(
            layer.share * a.nngp + (1 - layer.share) * b.nngp, layer.share * a.ntk + (1 - layer.share) * b.ntk, a.same
        )
        for a, b in zip(blocks, branch, strict=True)
    )
    return first, cross, second


def _pool(layer: Any, block: Block, cov1: np.ndarray, cov2: np.ndarray) -> Block:
    return Block(np.array([[block.nngp.mean()]]), np.array([[block.ntk.mean()]]), block.same)


RULES = {
    "Activation": _activation,
    "Conv": _conv,
    "Dense": _dense,
    "GlobalAveragePool": _pool,
    "LayerNorm": _layer_norm,
    "SelfAttention": _attention,
}
