"""Digests of the states of tokens, for the JAX engine: which correlations are exactly 1.

Rounding in float32 leaves a correlation of 1 within a few units in the last place, and t = pi - arccos would
magnify that to 1e-3; equal words are common in text. Tokens as near to each other as that without being equal,
behind an attention say, keep their own correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from textkernels.layers import Residual, SelfAttention
from textkernels.pairs.digests import (
    compared,
    document_digest,
    exact_tokens,
    pair_digests,
    placed_digests,
    window_digests,
)
from textkernels.pairs.graph import Node


def token_states(nodes: Sequence[Node], prefix: Sequence[Any], tokens: np.ndarray) -> tuple[np.ndarray, np.uint64]:
    """Digests of the tokens (L, d) of a document in front of every ``relu`` node, and one of the document.

    Equal states have equal digests, within and across documents: behind a convolution, the words under the
    window; behind an attention, the document (and the place in it, if there are positions).

    Returns: int32 (relu nodes, L), and a 64-bit number.
    """
    exact = exact_tokens(tokens)
    attention = [layer for layer in _walk(prefix) if isinstance(layer, SelfAttention)]
    located = any(layer.positions is not None for layer in attention)
    states = [placed_digests(exact, located) if attention else exact]
    results = [np.zeros((0, len(tokens)), np.int32)]
    for node in nodes[1:]:
        state = states[node.inputs[0]]
        if node.kind == "relu":
            results.append(compared(state)[None])
        elif node.kind == "conv":
            state = window_digests(state, node.layer.width // 2)
        elif node.kind == "mix":
            state = pair_digests(state, states[node.inputs[1]])
        elif node.kind in ("attend", "correlate"):
            state = placed_digests(state, node.layer.positions is not None)
        states.append(state)
    return np.concatenate(results), document_digest(exact)


def _walk(layers: Sequence[Any]) -> list[Any]:
    return [part for layer in layers for part in [layer, *(_walk(layer.layers) if isinstance(layer, Residual) else [])]]
