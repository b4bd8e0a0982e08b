"""Documents packed for the compiled pass: rows in chunks, columns in panels, and scratch of the right size."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textkernels.features import FeatureState
from textkernels.pairs.numba_activations import CONSTANTS
from textkernels.pairs.numba_operations import ALIGNED, LINES
from textkernels.pairs.numba_products import ROWS, STRIP
from textkernels.pairs.numba_program import Program
from textkernels.pairs.numba_state import Panel, Plan, Rows, Work
from textkernels.pairs.numba_traits import Traits

LARGE_CHUNK, SMALL_CHUNK = 4096, 512  # tokens whose products with a panel are made at once
UNLIKE = 0.75  # share of distinct tokens above which chunks are small


class Tangent(NamedTuple):
    """How Theta of the explicit features relates to their K.

    Args:
        kind: 0: it is 0; 1: ``ratio`` times K; 2: it has columns of its own.
        ratio: see there.
        nngp, ntk: columns that count for K and for Theta.
    """

    kind: int
    ratio: float
    nngp: np.ndarray
    ntk: np.ndarray

    @classmethod
    def of(cls, state: FeatureState) -> Tangent:
        """From the column weights of any document's features: they are the same for all."""
        nngp, ntk = np.flatnonzero(state.nngp), np.flatnonzero(state.ntk)
        if not len(ntk):
            return cls(0, 0.0, nngp, ntk)
        ratio = float(state.ntk[nngp[0]] / state.nngp[nngp[0]]) if len(nngp) else 0.0
        if np.allclose(state.ntk, ratio * state.nngp, rtol=1e-12, atol=0):
            return cls(1, ratio, nngp, ntk[:0])
        return cls(2, 0.0, nngp, ntk)


def plan_of(program: Program, tangent: Tangent, ntk: bool) -> Plan:
    """The program as arrays, without a layout yet: see :func:`laid_out`."""
    operations = np.array([operation[:12] for operation in program.operations], np.int64)
    stage = operations[:, 1]
    layers = [program.graph.nodes[i].layer for i in program.attention]
    shares = [(1.0, 0.0) if layer.positions is None else layer.positions.shares for layer in layers]
    return Plan(
        operations=operations,
        parameters=np.array([operation[12:] for operation in program.operations], np.float32),
        stages=np.searchsorted(stage, np.arange(program.stages + 1)).astype(np.int64),
        reach=np.array([operations[stage == s, 2].max(initial=0) for s in range(program.stages)], np.int64),
        blocks=np.zeros((0, 6), np.int64),
        attention=np.zeros((0, 4), np.int64),
        zeros=0,
        shares=np.array(shares, np.float32).reshape(len(layers), 2),
        in_values=np.array([bool(layer.positions and layer.positions.in_values) for layer in layers], np.bool_),
        strengths=np.array([(layer.qk * layer.ov) ** 2 for layer in layers], np.float64),
        margin=program.margin,
        lead=program.lead,
        group=program.group,
        tangent=tangent.kind,
        ratio=np.float32(tangent.ratio if tangent.kind == 1 else 1),
        ntk=ntk,
    )


def laid_out(plan: Plan, program: Program, rows: Rows, panel: Panel) -> tuple[Plan, int]:
    """The plan for some rows and a panel, and the size of its scratch."""
    layout = program.layout(int(np.diff(rows.starts).max()), panel.width, panel.places[:, 1])
    return plan._replace(blocks=layout.blocks, attention=layout.attention, zeros=layout.zeros), layout.size


def pack_rows(traits: Traits, documents: np.ndarray, margin: int, most: int, repeats: bool = True) -> Rows:
    """Row documents in chunks of at most ``most`` distinct tokens; without ``repeats``, all count as distinct.

    Words repeat, so that thousands of tokens of reviews have products with the panel for a third of them only; where
    they do not, small chunks stay in a nearer cache.
    """
    tokens = traits.tokens(documents)
    states = traits.states[tokens]
    starts = np.concatenate([[0], np.cumsum(traits.lengths[documents])]).astype(np.int64)
    chunks = _chunks(states, most) if repeats else [*range(0, len(tokens), most), len(tokens)]
    chosen: list[np.ndarray] = []
    places: list[np.ndarray] = []
    entries: list[int] = []
    for first, last in pairwise(chunks):
        low, high = max(first - margin, 0), min(last + margin, len(tokens))
        if repeats:
            _, index, inverse = np.unique(states[low:high], return_index=True, return_inverse=True)
        else:
            index = inverse = np.arange(high - low)
        entries.append(sum(len(part) for part in places) - low)
        chosen.append(tokens[low:high][index])
        places.append(inverse.reshape(-1))
    distinct = np.concatenate(chosen)
    columns = [part.shape[1] for part in traits.positions]
    offsets = np.cumsum([0, *(len(tokens) * many for many in columns)])[:-1]
    return Rows(
        starts=starts,
        chunks=np.array(chunks, np.int64),
        distinct=np.concatenate(places).astype(np.int64),
        entries=np.array(entries, np.int64),
        firsts=np.cumsum([0, *(len(part) for part in chosen)]).astype(np.int64),
        features=traits.features[distinct].reshape(-1),
        tangents=traits.tangents[distinct].reshape(-1),
        dims=np.array([traits.features.shape[1], traits.tangents.shape[1]], np.int64),
        scales=traits.scales.take(tokens, axis=1),
        digests=traits.digests.take(tokens, axis=1),
        weights=traits.weights.take(tokens, axis=1),
        positions=_flat([part[tokens] for part in traits.positions]),
        places=np.array(list(zip(offsets, columns, strict=True)), np.int64).reshape(len(columns), 2),
        ties=traits.ties,
        tie_starts=traits.tie_starts.take(documents, axis=1),
    )


def _chunks(states: np.ndarray, most: int) -> list[int]:
    """Where chunks begin, and the number of tokens."""
    bounds = [0]
    while bounds[-1] < len(states):
        ahead = states[bounds[-1] : bounds[-1] + LARGE_CHUNK]
        first = np.sort(np.unique(ahead, return_index=True)[1])
        few = SMALL_CHUNK if len(first) > UNLIKE * len(ahead) else LARGE_CHUNK
        size = first[most] if len(first) > most else len(ahead)
        bounds.append(bounds[-1] + int(min(size, few)))
    return bounds


def panel_columns(program: Program, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First column of each document of a panel, and the width up to and with each."""
    # What attention weights make of a document comes in whole strips, which its neighbour must not share.
    room = lengths + program.margin
    if program.attention:
        room = -(-room // STRIP) * STRIP
    starts = program.lead + np.cumsum(room) - room
    return starts, -(-(starts + lengths) // STRIP) * STRIP + program.lead


def pack_panel(program: Program, traits: Traits, documents: np.ndarray) -> Panel:
    """Column documents side by side."""
    lengths = traits.lengths[documents]
    starts, widths = panel_columns(program, lengths)
    width = int(widths[-1])
    tokens = traits.tokens(documents)
    columns = np.arange(len(tokens)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    strips = [_in_strips(part[tokens], columns, width) for part in traits.positions]
    offsets = np.cumsum([0, *(len(part) for part in strips)])[:-1]
    many = [part.shape[1] for part in traits.positions]
    return Panel(
        starts=starts.astype(np.int64),
        lengths=lengths,
        widths=widths.astype(np.int64),
        width=width,
        features=_in_strips(traits.features[tokens], columns, width),
        tangents=_in_strips(traits.tangents[tokens], columns, width),
        scales=_spread(traits.scales[:, tokens], columns, width),
        digests=_spread(traits.digests[:, tokens], columns, width),
        mask=_spread(np.ones((1, len(tokens)), np.float32), columns, width)[0],
        weights=_spread(traits.weights[:, tokens].astype(np.float64), columns, width),
        positions=_flat(strips),
        places=np.array(list(zip(offsets, many, strict=True)), np.int64).reshape(len(many), 2),
        ties=traits.ties,
        tie_starts=traits.tie_starts.take(documents, axis=1),
    )


class Memory:
    """Memory of one thread, used again from task to task: new pages would cost as much as a tenth of the work."""

    def __init__(self) -> None:
        self._rooms: dict[str, np.ndarray] = {}

    def room(self, name: str, size: int) -> np.ndarray:
        """``size`` floats of any value, the first at the beginning of a cache line."""
        if name not in self._rooms or len(self._rooms[name]) < size:
            raw = np.empty(size + ALIGNED, np.float32)
            first = -(raw.ctypes.data // raw.itemsize) % ALIGNED
            self._rooms[name] = raw[first : first + size]
        return self._rooms[name][:size]

    def zeros(self, name: str, size: int) -> np.ndarray:
        """The same, all zero."""
        room = self.room(name, size)
        room[:] = 0
        return room


def scratch(memory: Memory, plan: Plan, size: int, rows: Rows, panel: Panel) -> Work:
    """Scratch for one task."""
    attention = (len(plan.attention), 2, panel.width)
    zero = int(np.diff(rows.firsts).max()) + ROWS - 1
    product = memory.room("product", (zero + 1) * panel.width + 2 * ALIGNED)
    product[:ALIGNED] = product[ALIGNED + zero * panel.width :] = 0
    tangents = product.size if plan.ntk and plan.tangent == 2 else 1
    return Work(
        k=memory.zeros("k", size),
        t=memory.zeros("t", size if plan.ntk else 1),
        product=product,
        product_ntk=memory.room("product_ntk", tangents),
        chunk=np.array([0, 0, 0, zero], np.int64),
        lines=np.zeros((plan.group, LINES), np.int64),
        constants=CONSTANTS,
        group=np.zeros((2, panel.width), np.float32),
        sums=np.zeros((2, len(panel.weights), panel.width)),
        correlation=np.zeros(attention),
        factors=np.zeros(attention, np.float32),
    )


def _flat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *(part.reshape(-1) for part in parts)])


def _spread(values: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    wide = np.zeros((len(values), width), values.dtype)
    wide[:, columns] = values
    return wide


def _in_strips(values: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    """Token vectors (tokens, m) as (m, width) in strips, flat."""
    wide = np.zeros((width, values.shape[1]), np.float32)
    wide[columns] = values
    return wide.reshape(width // STRIP, STRIP, -1).transpose(0, 2, 1).reshape(-1)
