"""Row documents against a panel of column documents: the compiled pass through a program.

The column documents of a panel stand side by side in one row, with room for a window between them, so that the
loops over columns are long whatever the lengths of the documents are.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from textkernels.pairs import numba_rows as row
from textkernels.pairs.numba_products import STRIP, multiply
from textkernels.pairs.numba_program import CODE, GROUP, PRODUCT_ROWS

(SOURCE, WINDOW, AFFINE, RELU, ERF, NORM, MIX, POOL, ATTEND, ATTENDED, CORRELATE, CORRELATED, COPY) = CODE.values()
compiled = nb.njit(nogil=True, cache=True, error_model="numpy")
# Passing these tuples of arrays costs more than a row of work: what runs for every row is inlined.
inlined = nb.njit(inline="always")


class Plan(NamedTuple):
    """A program, and where in scratch its blocks lie.

    Args:
        operations: int64 (count, 12), the integers of ``Operation``; parameters: float32 (count, 2), its numbers.
        stages: first operation of each stage, and their number; reach: largest lag of each stage.
        blocks, attention: as in ``Layout``.
        shares: float32 (attentions, 2), of K and R under the interpolation.
        in_values, strengths: of each attention: whether values see positions, and (qk ov)^2 in float64.
        margin, lead: half a window; free columns on either side.
        tangent: where Theta of the features comes from: 0: it is 0; 1: ``ratio`` times K; 2: features of its own.
        ntk: whether Theta is wanted.
    """

    operations: np.ndarray
    parameters: np.ndarray
    stages: np.ndarray
    reach: np.ndarray
    blocks: np.ndarray
    attention: np.ndarray
    shares: np.ndarray
    in_values: np.ndarray
    strengths: np.ndarray
    margin: int
    lead: int
    tangent: int
    ratio: np.float32
    ntk: bool


class Rows(NamedTuple):
    """Row documents, their tokens one after the other.

    Args:
        starts: first token of each document, and their number.
        chunks: first token of each chunk whose products are made at once, and their number.
        distinct: place of each token among the distinct ones of its chunk.
        firsts: first distinct token of each chunk among those of ``features``, and their number.
        features, tangents: of distinct tokens, for K and Theta, flat; dims: columns of each.
        scales: float32 (slots, tokens); digests: int32 (digests, tokens); weights: float32 (pools, tokens).
        positions: of each attention, (tokens, columns), flat and one after the other; places: where each starts and
            how many columns it has, int64 (attentions, 2).
        ties: attention weights, G^T of each document in strips, flat; tie_starts: (attentions, documents).
    """

    starts: np.ndarray
    chunks: np.ndarray
    distinct: np.ndarray
    firsts: np.ndarray
    features: np.ndarray
    tangents: np.ndarray
    dims: np.ndarray
    scales: np.ndarray
    digests: np.ndarray
    weights: np.ndarray
    positions: np.ndarray
    places: np.ndarray
    ties: np.ndarray
    tie_starts: np.ndarray


class Panel(NamedTuple):
    """Column documents side by side.

    Args:
        starts, lengths: first column and tokens of each; widths: columns needed up to and with each.
        width: of all.
        features, tangents: of columns, (D, width) and (D', width) in strips, 0 where there is no token.
        scales, digests, mask, weights: of columns, (slots, width) and so on; weights float64.
        positions: of each attention, (columns, width) in strips, flat; places: where each starts.
        ties, tie_starts: as in ``Rows``.
    """

    starts: np.ndarray
    lengths: np.ndarray
    widths: np.ndarray
    width: int
    features: np.ndarray
    tangents: np.ndarray
    scales: np.ndarray
    digests: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    positions: np.ndarray
    places: np.ndarray
    ties: np.ndarray
    tie_starts: np.ndarray


class Work(NamedTuple):
    """Scratch of one thread, zero at first.

    Args:
        k, t: blocks of K and Theta, float32, see ``Layout``; t has one entry where Theta is not wanted.
        product, product_ntk: products of the distinct tokens of a chunk with the panel, (distinct + 5, width).
        chunk: which chunk that is, int64 (1,).
        group: float32 (width,), sums over a group of rows; sums: float64 (2, pools, width), over all.
        correlation: float64 (attentions, 2, width); factors: float32, the same shape.
    """

    k: np.ndarray
    t: np.ndarray
    product: np.ndarray
    product_ntk: np.ndarray
    chunk: np.ndarray
    group: np.ndarray
    sums: np.ndarray
    correlation: np.ndarray
    factors: np.ndarray


@compiled
def run(plan, rows, panel, work, shift, nngp, ntk, top, left):
    """Pooled kernels of all row documents with the documents of the panel.

    Args:
        shift: row document i meets the first i + shift + 1 column documents only (the lower triangle of a symmetric
            matrix); large for all of them.
        nngp, ntk: results before the last affine step, float64 (pools, n, m), filled from row ``top`` and column
            ``left``; ntk is not touched where Theta is not wanted.
    """
    place_positions(plan, panel, work)
    for document in range(len(rows.starts) - 1):
        count = min(len(panel.starts), document + shift + 1)
        if count <= 0:
            continue
        work.sums[:] = 0
        for stage in range(len(plan.reach)):
            run_stage(plan, rows, panel, work, document, stage, count, panel.widths[count - 1])
        read_out(plan, panel, work, count, nngp, ntk, top + document, left)


@compiled
def run_stage(plan, rows, panel, work, document, stage, count, width):
    """One stage of one row document against the first ``count`` column documents."""
    length = rows.starts[document + 1] - rows.starts[document]
    end = length + plan.margin
    for time in range(-plan.margin, end + plan.reach[stage], GROUP):
        for place in range(plan.stages[stage], plan.stages[stage + 1]):
            lag = plan.operations[place, 2]
            top, bottom = max(time - lag, -plan.margin), min(time + GROUP - lag, end)
            if top >= bottom:
                continue
            first, last = max(top, 0), min(bottom, length)
            code = plan.operations[place, 0]
            if code in (SOURCE, WINDOW, ATTENDED, CORRELATED):
                _clear_margin(plan, work, place, top, bottom, length, width)
            if first < last and code in (SOURCE, ATTENDED, CORRELATED):
                _begin(plan, rows, panel, work, document, place, first, last, length, count, width)
            elif first < last and code in (ATTEND, CORRELATE):
                _end(plan, rows, panel, work, document, place, first, last, length, count, width)
            elif code == COPY:
                _copy(plan, work, place, top, bottom, width)
            elif first < last:
                _change(plan, rows, panel, work, document, place, first, last, width)


@inlined
def _block(plan, number):
    return (
        plan.blocks[number, 0],
        plan.blocks[number, 1],
        plan.blocks[number, 2],
        plan.blocks[number, 3],
        plan.blocks[number, 4],
    )


@inlined
def _clear_margin(plan, work, place, top, bottom, length, width):
    """Rows outside the document are zero: windows reach there."""
    if top < 0 or bottom > length:
        target, columns = _block(plan, plan.operations[place, 5]), width - plan.lead
        for first, last in ((top, min(bottom, 0)), (max(top, length), bottom)):
            row.clear(work.k, target, first, last, columns)
            if plan.ntk:
                row.clear(work.t, target, first, last, columns)


@inlined
def _copy(plan, work, place, top, bottom, width):
    """Rows of another block, those outside the document too."""
    source, target = _block(plan, plan.operations[place, 3]), _block(plan, plan.operations[place, 5])
    row.copy(work.k, source, target, top, bottom, width - plan.lead)
    if plan.ntk:
        row.copy(work.t, source, target, top, bottom, width - plan.lead)


@inlined
def _change(plan, rows, panel, work, document, place, top, bottom, width):
    """Layers."""
    code, other, slot, digest = (
        plan.operations[place, 0],
        plan.operations[place, 4],
        plan.operations[place, 7],
        plan.operations[place, 8],
    )
    weight, bias = plan.parameters[place, 0], plan.parameters[place, 1]
    columns, token, ntk = width - plan.lead, rows.starts[document], plan.ntk
    kind = plan.operations[place, 10] if ntk else 0
    k, t = work.k, work.t
    if code == POOL:
        number, source = plan.operations[place, 11], _block(plan, plan.operations[place, 3])
        weights = rows.weights[number]
        row.pool(k, source, top, bottom, columns, weights, token, work.group, work.sums[0, number])
        if ntk:
            row.pool(t, source, top, bottom, columns, weights, token, work.group, work.sums[1, number])
        return
    target = _block(plan, plan.operations[place, 5])
    if code == WINDOW:
        source, half = _block(plan, plan.operations[place, 3]), plan.operations[place, 6]
        row.window_sum(k, source, target, top, bottom, columns, half)
        if ntk and plan.operations[place, 9] == 0:
            row.window_sum(t, source, target, top, bottom, columns, half)
    elif code == AFFINE:
        row.affine(k, t, target, top, bottom, columns, weight, bias, panel.mask, kind)
    elif code == RELU:
        row.relu(
            k, t, target, top, bottom, columns, weight, bias, panel.mask, kind if kind or not ntk else 3,
            panel.scales, panel.digests[digest], rows.scales, rows.digests[digest], slot, token,
        )  # fmt: skip
    elif code == ERF:
        row.erf(
            k, t, target, top, bottom, columns, weight, bias, panel.mask, kind if kind or not ntk else 3,
            panel.scales, panel.digests[digest], rows.scales, rows.digests[digest], slot, token,
        )  # fmt: skip
    elif code == NORM:
        row.normalize(k, target, top, bottom, columns, panel.scales[slot], rows.scales[slot], token)
        if ntk:
            row.normalize(t, target, top, bottom, columns, panel.scales[slot], rows.scales[slot], token)
    else:
        row.mix(k, _block(plan, other), target, top, bottom, columns, weight)
        if ntk:
            row.mix(t, _block(plan, other), target, top, bottom, columns, weight)


@inlined
def _begin(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Operations that bring rows into a stage: products are made for many rows at once."""
    code, number = plan.operations[place, 0], plan.operations[place, 11]
    target, columns = _block(plan, plan.operations[place, 5]), width - plan.lead
    weight, bias = plan.parameters[place, 0], plan.parameters[place, 1]
    first = top
    while first < bottom:
        if code == SOURCE:
            token = rows.starts[document] + first
            if work.chunk[1] == 0 or not rows.chunks[work.chunk[0]] <= token < rows.chunks[work.chunk[0] + 1]:
                _multiply_features(plan, rows, panel, work, token)
            last = min(bottom, first + rows.chunks[work.chunk[0] + 1] - token)
            _fetch(plan, rows, panel, work, place, target, first, last, columns, rows.starts[document])
        else:
            last = min(bottom, (first // PRODUCT_ROWS + 1) * PRODUCT_ROWS)
            line = plan.attention[number, 1] + first % PRODUCT_ROWS * panel.width
            many = min(PRODUCT_ROWS, length - first)
            if code == ATTENDED:
                if first % PRODUCT_ROWS == 0:
                    _weigh_rows(plan, rows, work, document, number, first, many, panel.width, width)
                row.exchange(work.k, target, first, last, columns, line, panel.width, False, row.ONE)
                if plan.ntk:
                    row.exchange(work.t, target, first, last, columns, line, panel.width, False, row.ONE)
                row.attended(
                    work.k, work.t, target, first, last, columns, weight, bias, panel.mask, plan.ntk
                )
            else:
                if first == 0:
                    _factors(plan, panel, work, number, count)
                if first % PRODUCT_ROWS == 0:
                    _spread(plan, rows, panel, work, document, number, first, many, width)
                source = _block(plan, plan.operations[place, 3])
                row.copy(work.k, source, target, first, last, columns)
                if plan.ntk:
                    row.copy(work.t, source, target, first, last, columns)
                row.correlated(
                    work.k, work.t, target, first, last, columns, line, panel.width, plan.shares[number, 0],
                    plan.shares[number, 1], work.factors[number], bias, panel.mask, plan.ntk,
                )  # fmt: skip
        first = last


@inlined
def _end(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Operations that take rows out of a stage."""
    code, number = plan.operations[place, 0], plan.operations[place, 11]
    source, columns = _block(plan, plan.operations[place, 3]), width - plan.lead
    first = top
    while first < bottom:
        last = min(bottom, (first // PRODUCT_ROWS + 1) * PRODUCT_ROWS)
        if code == ATTEND:
            line = plan.attention[number, 0] + first % PRODUCT_ROWS * panel.width
            content = plan.parameters[place, 0]
            row.exchange(work.k, source, first, last, columns, line, panel.width, True, content)
            if plan.ntk:
                row.exchange(work.t, source, first, last, columns, line, panel.width, True, content)
            if last % PRODUCT_ROWS == 0 or last == length:
                _weigh_columns(plan, rows, panel, work, number, last - 1, count)
        else:
            if first == 0:
                work.correlation[number] = 0
            if first % PRODUCT_ROWS == 0:
                many = min(PRODUCT_ROWS, length - first)
                _spread(plan, rows, panel, work, document, number, first, many, width)
            row.correlate(
                work.k, work.t, source, first, last, columns,
                plan.attention[number, 1] + first % PRODUCT_ROWS * panel.width, panel.width, plan.shares[number, 0],
                plan.shares[number, 1], plan.in_values[number], work.correlation[number], plan.ntk,
            )  # fmt: skip
        first = last


@inlined
def _fetch(plan, rows, panel, work, place, target, top, bottom, columns, token):
    row.fetch(work.k, target, top, bottom, columns, work.product, rows.distinct, panel.width, token, row.ONE)
    if plan.ntk and plan.tangent > 0:
        product = work.product if plan.tangent == 1 else work.product_ntk
        row.fetch(work.t, target, top, bottom, columns, product, rows.distinct, panel.width, token, plan.ratio)
    elif plan.ntk and plan.operations[place, 9] == 0:
        row.clear(work.t, target, top, bottom, columns)


@compiled
def _multiply_features(plan, rows, panel, work, token):
    """Products of all distinct tokens of a chunk with the panel."""
    chunk = np.searchsorted(rows.chunks, token, side="right") - 1
    work.chunk[0], work.chunk[1] = chunk, 1
    first, many = rows.firsts[chunk], rows.firsts[chunk + 1] - rows.firsts[chunk]
    strips = panel.width // STRIP
    dim, other = rows.dims
    multiply(
        work.product, 0, panel.width, STRIP, rows.features, first * dim, dim, 1, 0, 0,
        panel.features, 0, dim * STRIP, many, dim, strips, False,
    )  # fmt: skip
    if plan.ntk and plan.tangent == 2:
        multiply(
            work.product_ntk, 0, panel.width, STRIP, rows.tangents, first * other, other, 1, 0, 0,
            panel.tangents, 0, other * STRIP, many, other, strips, False,
        )  # fmt: skip


@compiled
def place_positions(plan, panel, work):
    """The position columns of the panel, the same for all rows, in front of what K G'^T will be."""
    for number in range(len(plan.attention)):
        _, _, base, deep = plan.attention[number]
        many = panel.places[number, 1]
        for strip in range(panel.width // STRIP):
            source, at = panel.places[number, 0] + strip * many * STRIP, base + strip * deep * STRIP
            for j in range(many * STRIP):
                work.k[at + j] = panel.positions[source + j]
                if plan.ntk:
                    work.t[at + j] = panel.positions[source + j]


@compiled
def _weigh_columns(plan, rows, panel, work, number, last, count):
    """Rows up to ``last`` of K G'^T, document by document."""
    start, _, base, deep = plan.attention[number]
    many = last % PRODUCT_ROWS + 1
    for which in range(1 + plan.ntk):
        scratch = work.k if which == 0 else work.t
        for j in range(count):
            left, length = panel.starts[j], panel.lengths[j]
            at = base + left // STRIP * deep * STRIP + (panel.places[number, 1] + last + 1 - many) * STRIP
            multiply(
                scratch, at, STRIP, deep * STRIP, scratch, start + left, panel.width, 1, 0, 0,
                panel.ties, panel.tie_starts[number, j], length * STRIP, many, length, -(-length // STRIP), False,
            )  # fmt: skip


@compiled
def _weigh_rows(plan, rows, work, document, number, first, many, row_width, width):
    """Rows ``first`` on of G (K G'^T), and of the positions in values."""
    _, at, base, deep = plan.attention[number]
    start, columns = rows.places[number]
    length = rows.starts[document + 1] - rows.starts[document]
    for which in range(1 + plan.ntk):
        scratch = work.k if which == 0 else work.t
        if columns:
            multiply(
                scratch, at, row_width, STRIP, rows.positions, start + rows.starts[document] * columns, columns, 1, 0,
                first, scratch, base, deep * STRIP, many, columns, width // STRIP, False,
            )  # fmt: skip
        multiply(
            scratch, at, row_width, STRIP, rows.ties, rows.tie_starts[number, document], 1, STRIP, length * STRIP,
            first, scratch, base + columns * STRIP, deep * STRIP, many, length, width // STRIP, columns > 0,
        )  # fmt: skip


@compiled
def _spread(plan, rows, panel, work, document, number, first, many, width):
    """Rows ``first`` on of the position covariance R."""
    start, columns = rows.places[number]
    if columns:
        multiply(
            work.k, plan.attention[number, 1], panel.width, STRIP,
            rows.positions, start + rows.starts[document] * columns, columns, 1, 0, first,
            panel.positions, panel.places[number, 0], columns * STRIP, many, columns, width // STRIP, False,
        )  # fmt: skip


@compiled
def _factors(plan, panel, work, number, count):
    """D and E of every pair, from their sums over rows."""
    for j in range(count):
        left, right = panel.starts[j], panel.starts[j] + panel.lengths[j]
        for which in range(2):
            total = work.correlation[number, which, left:right].sum()
            work.factors[number, which, left:right] = plan.strengths[number] * total


@compiled
def read_out(plan, panel, work, count, nngp, ntk, i, left):
    """Weighted sums over rows and columns, into row i from column ``left``."""
    for pool in range(work.sums.shape[1]):
        for j in range(count):
            total, total_ntk = 0.0, 0.0
            for c in range(panel.starts[j], panel.starts[j] + panel.lengths[j]):
                total += work.sums[0, pool, c] * panel.weights[pool, c]
                total_ntk += work.sums[1, pool, c] * panel.weights[pool, c]
            nngp[pool, i, left + j] = total
            if plan.ntk:
                ntk[pool, i, left + j] = total_ntk
