"""Token layers of one or several networks as one graph, in which everything they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textkernels.layers import Activation, Conv, Dense, LayerNorm, Residual, SelfAttention


@dataclass(frozen=True)
class Node:
    """One token-pair block, K and Theta, and where it comes from.

    Args:
        kind: ``source`` (explicit features), ``conv``, ``dense``, ``relu``, ``erf``, ``norm``, ``mix`` (share of
            the first input, 1 - share of the second), ``attend`` (1/d scaling), ``correlate`` (1/sqrt(d) scaling,
            identity scores), ``pool``.
        layer: the layer it belongs to, with the parameters. Of ``pool``: the attention directly before pooling,
            which then is a weighted mean, or None.
        inputs: places of the blocks it is made from.
    """

    kind: str
    layer: Any
    inputs: tuple[int, ...]


class TokenGraph:
    """The graph of stacks of token layers; each stack ends in global average pooling.

    Args:
        stacks: token layers between the explicit features and pooling.

    Attributes:
        nodes: in an order in which inputs come first; node 0 is the source.
        pools: the node of each stack's pooled kernel; equal stacks share one.

    Raises:
        NotImplementedError: a layer without a closed form, named.
    """

    def __init__(self, stacks: Sequence[Sequence[Any]]) -> None:
        self.nodes: list[Node] = [Node("source", None, ())]
        self._places: dict[Node, int] = {self.nodes[0]: 0}
        self.pools = tuple(self._stack(tuple(layers)) for layers in stacks)

    def _stack(self, layers: tuple[Any, ...]) -> int:
        last = layers[-1] if layers else None
        weighted = isinstance(last, SelfAttention) and last.scaling == "linear"
        place = 0
        for layer in layers[:-1] if weighted else layers:
            place = self._apply(layer, place)
        return self._add("pool", last if weighted else None, place)

    def _apply(self, layer: Any, place: int) -> int:
        if isinstance(layer, Residual):
            branch = place
            for inner in layer.layers:
                branch = self._apply(inner, branch)
            return self._add("mix", layer, place, branch)
        return self._add(_kind(layer), layer, place)

    def _add(self, kind: str, layer: Any, *inputs: int) -> int:
        node = Node(kind, layer, inputs)
        if node not in self._places:
            self._places[node] = len(self.nodes)
            self.nodes.append(node)
        return self._places[node]


def _kind(layer: Any) -> str:
    if isinstance(layer, Activation):
        return layer.kind
    if isinstance(layer, SelfAttention):
        if layer.sampled:
            raise NotImplementedError(
                f"{layer!r}: 1/sqrt(d) scaling has a closed form for identity scores only; other scores are a "
                "Monte Carlo mean"
            )
        return "attend" if layer.scaling == "linear" else "correlate"
    kinds = {Conv: "conv", Dense: "dense", LayerNorm: "norm"}
    if type(layer) not in kinds:
        raise NotImplementedError(f"{layer!r}: no rule for token pairs")
    return kinds[type(layer)]
