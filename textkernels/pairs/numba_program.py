"""A token graph as a program: operations on rows of blocks, in an order in which no row waits for another.

A block K, Theta is not held as a whole. Rows pass through the layers in groups of :data:`GROUP`; a convolution runs
half its width behind the block it reads, and each block keeps only so many of its last rows as somebody still needs.
Blocks are whole only where one has to be complete before the next can begin, in front of an attention that token
layers follow. There the program is cut into stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from textkernels.pairs.graph import Node, TokenGraph
from textkernels.pairs.numba_operations import (
    ALIGNED,
    CODE,
    GROUP,
    LARGE_GROUP,
    LINES,
    PRODUCT_ROWS,
    Block,
    Layout,
    Operation,
)
from textkernels.pairs.numba_products import STRIP


class Program:
    """Operations for a graph.

    Args:
        graph: token layers.
        fresh: whether the explicit features come without a Theta.
        own: documents meet themselves, to find their attention weights: what an attention reads is kept as a whole
            and products with the weights are left to the caller.

    Attributes:
        operations: in order. blocks: what they work on.
        margin: half the widest window.
        scales: (node, kind) of every slot of token variances; kinds ``size``, ``inverse``, ``erf``.
        digests: activations whose states of tokens are compared.
        attention: nodes of attention that token layers follow; pools: pool nodes, none twice.
        kept: with ``own``, the whole block that an attention or a weighted pooling reads, by node.
    """

    def __init__(self, graph: TokenGraph, fresh: bool, own: bool = False) -> None:
        self.graph, self.fresh, self.own = graph, fresh, own
        self.operations: list[Operation] = []
        self.blocks: list[Block] = []
        self.scales: list[tuple[int, str]] = []
        self.kept: dict[int, int] = {}
        nodes = graph.nodes
        self.stage: list[int] = []
        for node in nodes:
            self.stage.append(max((self.stage[i] for i in node.inputs), default=0) + _cuts(node))
        self.margin = max((node.layer.width // 2 for node in nodes if node.kind == "conv"), default=0)
        self.digests = [i for i, node in enumerate(nodes) if node.kind in ("relu", "erf")]
        self.attention = [i for i, node in enumerate(nodes) if _cuts(node)]
        self.pools = list(dict.fromkeys(graph.pools))
        self._block: dict[int, int] = {}
        self._whole: dict[int, int] = {}
        self._readers = [sum(node.inputs.count(i) for node in nodes) for i in range(len(nodes))]
        for place in sorted(range(len(nodes)), key=lambda i: (self.stage[i], i)):
            getattr(self, f"_{nodes[place].kind}")(place, nodes[place], self.stage[place])
        self._fill_source()
        self.operations.sort(key=lambda operation: operation.stage)
        self._size_blocks()

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return max(self.stage) + 1

    @property
    def group(self) -> int:
        """Rows that one operation does in a row."""
        kept = any(max(operation.source, operation.other) >= 0 or operation.place < 0 for operation in self.operations)
        return GROUP if kept else LARGE_GROUP

    @property
    def lead(self) -> int:
        """Columns left free before the first document and behind the last: a window and a cache line."""
        return -(-(self.margin + ALIGNED - 1) // STRIP) * STRIP

    def layout(self, longest: int, width: int, position_columns: np.ndarray) -> Layout:
        """Offsets in scratch.

        Args:
            longest: tokens of the longest row document.
            width: columns, a multiple of STRIP.
            position_columns: explicit position columns of each attention, int64.
        """
        zeros = ALIGNED
        at, blocks = _aligned(zeros + width + 2 * self.lead), []
        for block in self.blocks:
            count = _aligned(longest + 2 * self.margin) if block.whole else block.rows
            stride = width + ALIGNED - 1 if block.skewed else width
            blocks.append((at, count, stride, self.margin, int(block.skewed), self.lead - ALIGNED))
            at += _aligned(count * stride + self.lead)
        attention = np.zeros((len(self.attention), 4), np.int64)
        for place, columns in enumerate(position_columns):
            chunk, deep = (PRODUCT_ROWS + 6) * width, longest + int(columns) + 6
            attention[place] = at, at + chunk, at + 2 * chunk, deep
            at += 2 * chunk + deep * width
        return Layout(np.array(blocks, np.int64).reshape(len(blocks), 6), attention, zeros, at + self.lead)

    def _size_blocks(self) -> None:
        """Rows that have to be kept until the last of their readers has passed."""
        for operation in self.operations:
            for source in (operation.source, operation.other):
                if source >= 0 and self.blocks[source].stage == operation.stage:
                    block = self.blocks[source]
                    need = GROUP + operation.lag - block.lag + max(operation.half, 0)
                    block.rows = max(block.rows, _aligned(need) if block.skewed else -(-need // GROUP) * GROUP)

    def _add(self, name: str, stage: int, lag: int, **fields: Any) -> None:
        self.operations.append(Operation(CODE[name], stage, lag, **fields))

    def _new(self, place: int, stage: int, lag: int) -> int:
        self.blocks.append(Block(stage, lag))
        self._block[place] = len(self.blocks) - 1
        return self._block[place]

    def _keep(self, place: int) -> int:
        """The block of a node, whole."""
        if place not in self._whole:
            source = self._block[place]
            lag = self.blocks[source].lag
            self.blocks.append(Block(self.stage[place], lag, whole=True, skewed=True))
            self._whole[place] = len(self.blocks) - 1
            self._add("copy", self.stage[place], lag, source=source, target=self._whole[place])
        return self._whole[place]

    def _read(self, place: int, stage: int) -> tuple[int, int]:
        """The block that holds a node in this stage, and its lag there."""
        if self.stage[place] == stage:
            return self._block[place], self.blocks[self._block[place]].lag
        return self._keep(place), 0

    def _change(self, place: int, source: int, stage: int, lag: int = 0) -> int:
        """A block with the values of ``source`` that node ``place`` may change in place."""
        block, behind = self._read(source, stage)
        lag = max(lag, behind)
        if self._readers[source] == 1 and self.stage[source] == stage and lag == behind:
            self._block[place] = block
        else:
            self._add("copy", stage, lag, source=block, target=self._new(place, stage, lag))
        return self._block[place]

    def _slots(self, node: int, *kinds: str) -> int:
        self.scales += [(node, kind) for kind in kinds]
        return len(self.scales) - len(kinds)

    def _source(self, place: int, node: Node, stage: int) -> None:
        self._new(place, stage, 0)  # filled only if somebody reads it, which is seen in the end

    def _fill_source(self) -> None:
        source = self._block[0]
        if any(source in (operation.source, operation.other, operation.target) for operation in self.operations):
            fresh = self.fresh and all(self.graph.nodes[i].kind in ("conv", "dense") for i in self._readers_of(0))
            self.operations.insert(0, Operation(CODE["source"], 0, 0, target=source, fresh=int(fresh)))

    def _readers_of(self, place: int) -> list[int]:
        return [i for i, node in enumerate(self.graph.nodes) if place in node.inputs]

    def _takes_products(self, place: int) -> bool:
        """Whether the window of a node is summed straight from products of features."""
        node = self.graph.nodes[place]
        return self.fresh and node.kind == "conv" and node.inputs == (0,)

    def _conv(self, place: int, node: Node, stage: int) -> None:
        source, lag = self._read(node.inputs[0], stage)
        half = node.layer.width // 2
        self.blocks[source].skewed = True
        if not self.blocks[source].whole:
            lag += half
        target, fresh = self._new(place, stage, lag), int(self.fresh and node.inputs[0] == 0)
        self._add("window", stage, lag, source=source, target=target, half=half, fresh=fresh)
        weight, bias = node.layer.w_std**2 / node.layer.width, node.layer.b_std**2
        self._add("affine", stage, lag, target=target, affine=1 + fresh, weight=weight, bias=bias)

    def _dense(self, place: int, node: Node, stage: int) -> None:
        target, fresh = self._change(place, node.inputs[0], stage), int(self.fresh and node.inputs[0] == 0)
        weight, bias, lag = node.layer.w_std**2, node.layer.b_std**2, self.blocks[target].lag
        self._add("affine", stage, lag, target=target, affine=1 + fresh, weight=weight, bias=bias)

    def _relu(self, place: int, node: Node, stage: int) -> None:
        self._activation(place, node, stage, self._slots(node.inputs[0], "size", "inverse"))

    def _erf(self, place: int, node: Node, stage: int) -> None:
        self._activation(place, node, stage, self._slots(node.inputs[0], "erf"))

    def _activation(self, place: int, node: Node, stage: int, slot: int) -> None:
        """An activation takes an affine step before it along, and a window before that: fewer passes over rows."""
        target = self._change(place, node.inputs[0], stage)
        fields: dict[str, Any] = {"target": target, "slot": slot, "digest": self.digests.index(place), "place": -1}
        if self._last("affine", target):
            step = self.operations.pop()
            fields |= {"affine": step.affine, "weight": step.weight, "bias": step.bias}
            if self._last("window", target) and 2 * self.operations[-1].half < LINES:
                window = self.operations.pop()
                products = self._takes_products(node.inputs[0])
                fields |= {"source": -1 if products else window.source, "half": window.half}
        self._add(node.kind, stage, self.blocks[target].lag, **fields)

    def _last(self, name: str, target: int) -> bool:
        """Whether the last operation was this one, on this block."""
        last = self.operations[-1] if self.operations else None
        return last is not None and last.code == CODE[name] and last.target == target

    def _norm(self, place: int, node: Node, stage: int) -> None:
        target = self._change(place, node.inputs[0], stage)
        slot = self._slots(node.inputs[0], "inverse")
        self._add("norm", stage, self.blocks[target].lag, target=target, slot=slot)

    def _mix(self, place: int, node: Node, stage: int) -> None:
        other, lag = self._read(node.inputs[0], stage)
        target = self._change(place, node.inputs[1], stage, lag)
        self._add("mix", stage, self.blocks[target].lag, other=other, target=target, weight=node.layer.share)

    def _attend(self, place: int, node: Node, stage: int) -> None:
        number, source = self.attention.index(place), node.inputs[0]
        if self.own:
            self.kept[place] = self._keep(source)
        else:
            block, lag = self._read(source, stage - 1)
            self._add("attend", stage - 1, lag, source=block, place=number, weight=content_share(node.layer))
        weight, bias = node.layer.ov**2, node.layer.b_std**2
        self._add("attended", stage, 0, target=self._new(place, stage, 0), place=number, weight=weight, bias=bias)

    def _correlate(self, place: int, node: Node, stage: int) -> None:
        number, source = self.attention.index(place), node.inputs[0]
        block, lag = self._read(source, stage - 1)
        self._add("correlate", stage - 1, lag, source=block, place=number)
        whole, target = self._keep(source), self._new(place, stage, 0)
        self._add("correlated", stage, 0, source=whole, target=target, place=number, bias=node.layer.b_std**2)

    def _pool(self, place: int, node: Node, stage: int) -> None:
        if self.own and node.layer is not None:
            self.kept[place] = self._keep(node.inputs[0])
        block, lag = self._read(node.inputs[0], stage)
        number = self.pools.index(place)
        if self._readers[node.inputs[0]] == 1 and self._last("relu", block):
            self.operations[-1] = self.operations[-1]._replace(place=number)
        else:
            self._add("pool", stage, lag, source=block, place=number)


def content_share(layer: Any) -> float:
    """Share of K in the values of an attention."""
    if layer.positions is None or not layer.positions.in_values:
        return 1.0
    return layer.positions.shares[0]


def _cuts(node: Node) -> bool:
    return node.kind in ("attend", "correlate")


def _aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED
