"""What a document brings to its pairs, found by letting it meet itself, one stage of the program after the other."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from textkernels.attention_weights import SCORE_CODES, add_column_sums, apply_scores
from textkernels.features import FeatureState, apply_layers
from textkernels.layers import Residual, SelfAttention
from textkernels.pairs.digests import (
    compared,
    document_digest,
    exact_tokens,
    pair_digests,
    placed_digests,
    window_digests,
)
from textkernels.pairs.graph import Node, TokenGraph
from textkernels.pairs.numba_attention import place_positions
from textkernels.pairs.numba_packing import Memory, Tangent, laid_out, pack_panel, pack_rows, plan_of, scratch
from textkernels.pairs.numba_pass import read_out, run_stage
from textkernels.pairs.numba_products import STRIP, multiply, to_strips
from textkernels.pairs.numba_program import Program, content_share
from textkernels.pairs.numba_traits import Traits

PRODUCT = 1 << 20  # entries of the products of a chunk of tokens with the document, at most
SCORE_ENTRIES = 1 << 18  # of the score matrix at a time: 1 MB


class OwnPass:
    """Prepares documents one at a time; several threads may call it.

    Args:
        prefix: linear layers whose explicit features the pairs start from.
        graph: the layers that follow.
        longest: tokens of the longest document that these may meet.
        dim: of token vectors.
    """

    def __init__(self, prefix: Sequence[Any], graph: TokenGraph, longest: int, dim: int) -> None:
        self.prefix, self.graph, self.longest = tuple(prefix), graph, longest
        self.attention = [layer for layer in _walk(self.prefix) if isinstance(layer, SelfAttention)]
        self.tangent = Tangent.of(self.features(np.zeros((1, dim))))
        self.program = Program(graph, self.tangent.kind == 0, own=True)
        self.plan = plan_of(self.program, self.tangent, ntk=False)
        self._local = threading.local()

    @property
    def memory(self) -> Memory:
        """That of the thread that asks."""
        if not hasattr(self._local, "memory"):
            self._local.memory = Memory()
        return self._local.memory

    def features(self, tokens: np.ndarray) -> FeatureState:
        """Explicit features of a document behind the linear layers."""
        state = FeatureState.from_tokens(tokens, self.longest)
        return apply_layers(state, self.prefix) if self.prefix else state

    def __call__(self, tokens: np.ndarray) -> Traits:
        """The traits of one document of token vectors (L, d)."""
        return _Meeting(self, tokens).run()


class _Meeting:
    """One document on its way through the program with itself.

    Attributes:
        variance, state: of each node reached, variances (float64) and digests (uint64) of the tokens.
    """

    def __init__(self, frame: OwnPass, tokens: np.ndarray) -> None:
        self.program, self.nodes, self.length = frame.program, frame.graph.nodes, len(tokens)
        self.frame = frame
        state, exact = frame.features(tokens), exact_tokens(tokens)
        self.variance = {0: state.variance()}
        self.state = {0: exact}
        if frame.attention:
            self.state[0] = placed_digests(exact, any(layer.positions is not None for layer in frame.attention))
        self.traits = self._blank(state, frame.tangent)
        self.traits.identity[0] = document_digest(exact)
        every = np.array([0])
        self.panel = pack_panel(self.program, self.traits, every)
        self.most = max(64, PRODUCT // self.panel.width)
        self.rows = pack_rows(self.traits, every, self.program.margin, self.most, repeats=False)
        self.plan, size = laid_out(frame.plan, self.program, self.rows, self.panel)
        self.work = scratch(frame.memory, self.plan, size, self.rows, self.panel)

    def _blank(self, state: FeatureState, tangent: Tangent) -> Traits:
        program, length = self.program, self.length
        values = state.values.astype(np.float64, copy=False)
        layers = [self.nodes[i].layer for i in program.attention]
        pooled = [self.nodes[i].layer for i in program.pools]
        return Traits(
            lengths=np.array([length], np.int64),
            features=(values[:, tangent.nngp] * np.sqrt(state.nngp[tangent.nngp])).astype(np.float32),
            tangents=(values[:, tangent.ntk] * np.sqrt(state.ntk[tangent.ntk])).astype(np.float32),
            states=self.state[0],
            scales=np.zeros((len(program.scales), length), np.float32),
            digests=np.zeros((len(program.digests), length), np.int32),
            weights=np.full((len(program.pools), length), 1 / length, np.float32),
            positions=[_positions(layer, length, state.longest).astype(np.float32) for layer in layers],
            pooled_positions=[_positions(layer, length, state.longest)[:1] for layer in pooled],
            variances=np.zeros((len(program.pools), 1)),
            ties=np.zeros(0, np.float32),
            tie_starts=np.zeros((len(program.attention), 1), np.int64),
            identity=np.zeros(1, np.uint64),
        )

    def run(self) -> Traits:
        """Stage by stage: variances of tokens first, then blocks, then what closes the stage."""
        for stage in range(self.program.stages):
            for place, node in enumerate(self.nodes):
                if self.program.stage[place] == stage and node.kind != "pool":
                    self._follow(place, node)
            self._fill_slots(stage)
            run_stage(self.plan, self.rows, self.panel, self.work, 0, stage, 1, self.panel.width)
        self._pool()
        return self.traits

    def _follow(self, place: int, node: Node) -> None:
        """Variances and states of the tokens behind a node."""
        if node.kind == "source":
            return
        variance, state = self.variance[node.inputs[0]], self.state[node.inputs[0]]
        if node.kind == "conv":
            half, weight = node.layer.width // 2, node.layer.w_std**2 / node.layer.width
            window = np.convolve(variance, np.ones(node.layer.width))[half : half + self.length]
            variance, state = weight * window + node.layer.b_std**2, window_digests(state, half)
        elif node.kind == "dense":
            variance = node.layer.w_std**2 * variance + node.layer.b_std**2
        elif node.kind == "relu":
            variance = variance / 2
        elif node.kind == "erf":
            variance = 2 / math.pi * np.arcsin(2 * variance / (1 + 2 * variance))
        elif node.kind == "norm":
            variance = (variance > 0).astype(np.float64)
        elif node.kind == "mix":
            branch, share = node.inputs[1], node.layer.share
            variance = share * variance + (1 - share) * self.variance[branch]
            state = pair_digests(state, self.state[branch])
        else:
            variance = {"attend": self._attend, "correlate": self._correlate}[node.kind](place, node, variance)
            state = placed_digests(state, node.layer.positions is not None)
        self.variance[place], self.state[place] = variance, state

    def _fill_slots(self, stage: int) -> None:
        """Variances and digests where the operations look for them."""
        left = self.program.lead
        for slot, (node, kind) in enumerate(self.program.scales):
            if self.program.stage[node] == stage:
                values = _scale(self.variance[node], kind)
                self.traits.scales[slot] = self.rows.scales[slot] = values
                self.panel.scales[slot, left : left + self.length] = values
        for slot, node in enumerate(self.program.digests):
            before = self.nodes[node].inputs[0]
            if self.program.stage[before] == stage:
                values = compared(self.state[before])
                self.traits.digests[slot] = self.rows.digests[slot] = values
                self.panel.digests[slot, left : left + self.length] = values

    def _kept(self, place: int) -> tuple[np.ndarray, int]:
        """The whole block that an attention reads, a view (L, L), and its first entry in scratch."""
        offset, _, stride, margin, *_ = (int(entry) for entry in self.plan.blocks[self.program.kept[place]])
        at = offset + margin * stride + self.plan.lead
        return _view(self.work.k, at, (self.length, self.length), (stride, 1)), at

    def _attend(self, place: int, node: Node, variance: np.ndarray) -> np.ndarray:
        """Attention weights from the block before them; the rows of K G^T that the next stage starts from."""
        number, length, plan = self.program.attention.index(place), self.length, self.plan
        block, at = self._kept(place)
        strips, columns = to_strips(length), self.traits.positions[number].shape[1]
        tied = np.zeros((strips, length, STRIP), np.float32)
        for first, weights in _weights(node.layer, block):
            row = np.arange(first, first + len(weights))
            tied[row // STRIP, :, row % STRIP] = weights
        _, _, base, deep = (int(entry) for entry in plan.attention[number])
        target = base + plan.lead // STRIP * deep * STRIP + columns * STRIP
        multiply(
            self.work.k, target, STRIP, deep * STRIP, self.work.k, at, block.strides[0] // block.itemsize, 1, 0, 0,
            tied.reshape(-1), 0, length * STRIP, length, length, strips, False,
        )  # fmt: skip
        product = _view(self.work.k, target, tied.shape, (deep * STRIP, STRIP, 1))
        product *= np.float32(content_share(node.layer))
        own = np.einsum("skj,skj->sj", tied, product, dtype=np.float64).reshape(-1)[:length]
        if columns:
            own += self._spread_positions(number, node.layer, tied)
        self.traits.tie_starts[number, 0] = len(self.traits.ties)
        self.traits.ties = np.concatenate([self.traits.ties, tied.reshape(-1)])
        self.rows = self.rows._replace(ties=self.traits.ties, tie_starts=self.traits.tie_starts)
        return node.layer.ov**2 * own + node.layer.b_std**2

    def _spread_positions(self, number: int, layer: Any, tied: np.ndarray) -> np.ndarray:
        """Position columns behind the attention weights, in place of those before; returns their square norms."""
        mixed = np.einsum("skj,km->sjm", tied, self.traits.positions[number], optimize=True)
        mixed = mixed.reshape(-1, mixed.shape[2])[: self.length] * np.float32(math.sqrt(layer.positions.shares[1]))
        self.traits.positions[number] = mixed
        every = np.array([0])
        panel = pack_panel(self.program, self.traits, every)
        self.panel.positions[:] = panel.positions
        self.rows.positions[:] = pack_rows(self.traits, every, self.program.margin, self.most, repeats=False).positions
        place_positions(self.plan, self.panel, self.work)
        return np.sum(mixed.astype(np.float64) ** 2, axis=1)

    def _correlate(self, place: int, node: Node, variance: np.ndarray) -> np.ndarray:
        layer, number = node.layer, self.program.attention.index(place)
        content, share = (1.0, 0.0) if layer.positions is None else layer.positions.shares
        amplitude = 0.0 if layer.positions is None else layer.positions.amplitude
        left = self.program.lead
        total = self.work.correlation[number, 0, left : left + self.length].sum()
        return (layer.qk * layer.ov) ** 2 * total * (content * variance + share * amplitude) + layer.b_std**2

    def _pool(self) -> None:
        """Weights of the poolings and what they make of the document with itself."""
        result = np.zeros((len(self.program.pools), 1, 1))
        read_out(self.plan, self.panel, self.work, 1, result, result, 0, 0)
        for number, place in enumerate(self.program.pools):
            layer = self.nodes[place].layer
            if layer is None:
                self.traits.variances[number] = result[number, 0]
                continue
            block, _ = self._kept(place)
            sums = np.zeros(self.length)
            for _, weights in _weights(layer, block):
                add_column_sums(weights, sums)
            weights = (sums / self.length).astype(np.float32)
            self.traits.weights[number] = weights
            own = content_share(layer) * float(weights.astype(np.float64) @ (block @ weights))
            positions = _positions(layer, self.length, self.frame.longest)
            mixed = (
                weights.astype(np.float64) @ positions * math.sqrt(layer.positions.shares[1] if layer.positions else 0)
            )
            self.traits.pooled_positions[number] = mixed[None]
            self.traits.variances[number] = layer.ov**2 * (own + mixed @ mixed) + layer.b_std**2


def _walk(layers: Sequence[Any]) -> Iterator[Any]:
    for layer in layers:
        yield layer
        if isinstance(layer, Residual):
            yield from _walk(layer.layers)


def _positions(layer: Any, length: int, longest: int) -> np.ndarray:
    """Explicit position columns where a node needs R between documents, float64 (L, m); else none."""
    positions = None if layer is None else layer.positions
    if positions is None or not (positions.in_values or layer.scaling == "sqrt"):
        return np.zeros((length, 0))
    return positions.embeddings(length, longest)


def _weights(layer: Any, block: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows of G = zeta(qk I(A)) a few at a time: first row, and float32 (rows, L)."""
    length, scale, band = len(block), layer.qk, np.zeros(0, np.float32)
    if layer.positions is not None:
        content, share = layer.positions.shares
        within = layer.qk * share * layer.positions.within(length)
        band, scale = np.concatenate([within[:0:-1], within]).astype(np.float32), layer.qk * content
    rows = max(1, SCORE_ENTRIES // length)
    for first in range(0, length, rows):
        scores = block[first : first + rows] * np.float32(scale)
        apply_scores(scores, band, first, SCORE_CODES[layer.scores])
        yield first, scores


def _scale(variance: np.ndarray, kind: str) -> np.ndarray:
    if kind == "erf":
        return 1 / np.sqrt(1 + 2 * variance)
    root = np.sqrt(variance)
    return root if kind == "size" else np.divide(1, root, out=np.zeros_like(root), where=root > 0)


def _view(array: np.ndarray, at: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    size = array.itemsize
    return np.lib.stride_tricks.as_strided(array[at:], shape, tuple(size * step for step in strides))
