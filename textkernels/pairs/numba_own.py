"""What a document brings to its pairs, found by letting it meet itself, one stage of the program after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from textkernels.features import FeatureState, apply_layers
from textkernels.pairs.graph import TokenGraph
from textkernels.pairs.numba_digests import (
    document_digest,
    exact_tokens,
    placed_digests,
)
from textkernels.pairs.numba_packing import Tangent, pack_panel, pack_rows, plan_of, scratch
from textkernels.pairs.numba_pass import run_stage
from textkernels.pairs.numba_program import Program
from textkernels.pairs.numba_traits import Traits

CHUNK_TOKENS = 1024  # whose products are made at once
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
        self.mixes = any(type(layer).__name__ in ("SelfAttention", "Residual") for layer in self.prefix)
        self.tangent = Tangent.of(self.features(np.zeros((1, dim))))
        self.program = Program(graph, self.tangent.kind == 0, own=True)

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
        state, exact = frame.features(tokens), exact_tokens(tokens)
        self.variance = {0: state.variance()}
        self.state = {0: placed_digests(exact) if frame.mixes else exact}
        self.traits = self._blank(state, frame.tangent)
        self.traits.identity[0] = document_digest(exact)
        every = np.array([0])
        self.panel = pack_panel(self.program, self.traits, every)
        self.rows = pack_rows(self.traits, every, CHUNK_TOKENS)
        columns = np.array([part.shape[1] for part in self.traits.positions], np.int64)
        self.plan, size = plan_of(self.program, self.length, self.panel.width, columns, frame.tangent, ntk=False)
        self.work = scratch(self.plan, size, self.rows, self.panel)

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
