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
from textkernels.pairs.numba_program import ALIGNED, CODE, GROUP, PRODUCT_ROWS

(SOURCE, CONV, DENSE, RELU, ERF, NORM, MIX, POOL, ATTEND, ATTENDED, CORRELATE, CORRELATED, COPY, MIRROR) = CODE.values()
compiled = nb.njit(nogil=True, cache=True, error_model="numpy")


class Plan(NamedTuple):
    """A program, and where in scratch its blocks lie.

    Args:
        operations: int64 (count, 11), the integers of ``Operation``; parameters: float32 (count, 2), its numbers.
        stages: first operation of each stage, and their number; reach: largest lag of each stage.
        offsets, rows, stride, attention: as in ``Layout``.
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
    offsets: np.ndarray
    rows: np.ndarray
    stride: int
    attention: np.ndarray
    shares: np.ndarray
    in_values: np.ndarray
    strengths: np.ndarray
    margin: int
    lead: int
    tangent: int
    ratio: float
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
        group: float32 (2, width), sums over a group of rows; sums: float64 (2, pools, width), over all.
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
            code = plan.operations[place, 0]
            if code in (SOURCE, ATTENDED, CORRELATED):
                _begin(plan, rows, panel, work, document, place, top, bottom, length, count, width)
            elif code in (ATTEND, CORRELATE, POOL):
                _end(plan, rows, panel, work, document, place, max(top, 0), min(bottom, length), length, count, width)
            elif code in (CONV, COPY, MIRROR):
                _move(plan, panel, work, place, top, bottom, length, width)
            else:
                _change(plan, rows, panel, work, document, place, max(top, 0), min(bottom, length), width)


@compiled
def _at(plan, block, i, shift):
    """Where row i of a block starts in scratch, from the first column that it uses; documents start behind that."""
    slot = (i + plan.margin) % plan.rows[block]
    return plan.offsets[block] + slot * plan.stride + shift


@compiled
def _shift(plan, i):
    """The first column whose entry in row i begins a cache line."""
    return (i + plan.margin) % ALIGNED


@compiled
def _clear(plan, work, block, i, columns):
    at = _at(plan, block, i, _shift(plan, i))
    row.clear(work.k, at, columns)
    if plan.ntk:
        row.clear(work.t, at, columns)


@compiled
def _move(plan, panel, work, place, top, bottom, length, width):
    """Operations that make rows from rows of another block."""
    operation = plan.operations[place]
    code, source, target, half = operation[0], operation[3], operation[5], operation[6]
    weight, bias = plan.parameters[place]
    columns = width - plan.lead
    for i in range(top, bottom):
        shift = _shift(plan, i)
        if code == MIRROR:
            slot = (i + plan.margin) % plan.rows[source]
            if slot < half:
                at = _at(plan, source, i, shift)
                _copy(plan, work, at, at + plan.rows[source] * plan.stride, columns)
        elif code == COPY:
            _copy(plan, work, _at(plan, source, i, shift), _at(plan, target, i, shift), columns)
        elif i < 0 or i >= length:
            _clear(plan, work, target, i, columns)
        else:
            at, window = _at(plan, target, i, shift), _at(plan, source, i - half, shift - half)
            fresh = plan.operations[place, 9] == 1
            row.window_sum(work.k, window, plan.stride + 1, 2 * half + 1, at, columns)
            if plan.ntk and not fresh:
                row.window_sum(work.t, window, plan.stride + 1, 2 * half + 1, at, columns)
            row.affine(work.k, work.t, at, columns, weight, bias, panel.mask[shift:], plan.ntk, fresh)


@compiled
def _copy(plan, work, source, at, columns):
    row.copy(work.k, source, at, columns, row.ONE)
    if plan.ntk:
        row.copy(work.t, source, at, columns, row.ONE)


@compiled
def _change(plan, rows, panel, work, document, place, top, bottom, width):
    """Operations in place."""
    operation = plan.operations[place]
    code, other, target, slot, digest = operation[0], operation[4], operation[5], operation[7], operation[8]
    weight, bias = plan.parameters[place]
    columns = width - plan.lead
    for i in range(top, bottom):
        shift, token = _shift(plan, i), rows.starts[document] + i
        at = _at(plan, target, i, shift)
        if code == RELU:
            row.relu(
                work.k, work.t, at, columns, panel.scales[slot, shift:], panel.scales[slot + 1, shift:],
                panel.digests[digest, shift:], rows.scales[slot, token], rows.scales[slot + 1, token],
                rows.digests[digest, token], plan.ntk,
            )  # fmt: skip
        elif code == ERF:
            row.erf(
                work.k, work.t, at, columns, panel.scales[slot, shift:], panel.digests[digest, shift:],
                rows.scales[slot, token], rows.digests[digest, token], plan.ntk,
            )  # fmt: skip
        elif code == DENSE:
            fresh = plan.operations[place, 9] == 1
            row.affine(work.k, work.t, at, columns, weight, bias, panel.mask[shift:], plan.ntk, fresh)
        elif code == NORM:
            row.normalize(work.k, at, columns, panel.scales[slot, shift:], rows.scales[slot, token])
            if plan.ntk:
                row.normalize(work.t, at, columns, panel.scales[slot, shift:], rows.scales[slot, token])
        else:
            row.mix(work.k, _at(plan, other, i, shift), at, columns, weight)
            if plan.ntk:
                row.mix(work.t, _at(plan, other, i, shift), at, columns, weight)


@compiled
def _begin(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Operations that bring rows into a stage."""
    operation = plan.operations[place]
    code, source, target, number = operation[0], operation[3], operation[5], operation[10]
    weight, bias = plan.parameters[place]
    columns = width - plan.lead
    for i in range(top, bottom):
        if i < 0 or i >= length:
            _clear(plan, work, target, i, columns)
            continue
        shift = _shift(plan, i)
        at = _at(plan, target, i, shift)
        if code == SOURCE:
            _fetch_features(plan, rows, panel, work, rows.starts[document] + i, at, shift, columns)
            continue
        ready = plan.attention[number, 1] + i % PRODUCT_ROWS * panel.width + shift
        if code == ATTENDED:
            if i % PRODUCT_ROWS == 0:
                _weigh_rows(plan, rows, work, document, number, i, min(PRODUCT_ROWS, length - i), panel.width, width)
            _copy(plan, work, ready, at, columns)
            row.attended(work.k, work.t, at, columns, weight, bias, panel.mask[shift:], plan.ntk)
        else:
            if i == 0:
                _factors(plan, panel, work, number, count)
            if i % PRODUCT_ROWS == 0:
                _spread(plan, rows, panel, work, document, number, i, min(PRODUCT_ROWS, length - i), width)
            _copy(plan, work, _at(plan, source, i, shift), at, columns)
            content, share = plan.shares[number]
            row.correlated(
                work.k, work.t, at, columns, work.k[ready : ready + columns], content, share,
                work.factors[number, :, shift:], bias, panel.mask[shift:], plan.ntk,
            )  # fmt: skip


@compiled
def _end(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Operations that take rows out of a stage."""
    operation = plan.operations[place]
    code, source, number = operation[0], operation[3], operation[10]
    columns = width - plan.lead
    if code == POOL:
        work.group[:] = 0
    for i in range(top, bottom):
        shift = _shift(plan, i)
        at = _at(plan, source, i, shift)
        if code == POOL:
            weight = rows.weights[number, rows.starts[document] + i]
            row.add(work.group[0, shift:], work.k, at, columns, weight)
            if plan.ntk:
                row.add(work.group[1, shift:], work.t, at, columns, weight)
        elif code == ATTEND:
            line = plan.attention[number, 0] + i % PRODUCT_ROWS * panel.width + shift
            row.copy(work.k, at, line, columns, plan.parameters[place, 0])
            if plan.ntk:
                row.copy(work.t, at, line, columns, plan.parameters[place, 0])
            if i % PRODUCT_ROWS == PRODUCT_ROWS - 1 or i == length - 1:
                _weigh_columns(plan, rows, panel, work, number, i, count)
        else:
            if i == 0:
                work.correlation[number] = 0
            if i % PRODUCT_ROWS == 0:
                _spread(plan, rows, panel, work, document, number, i, min(PRODUCT_ROWS, length - i), width)
            ready = plan.attention[number, 1] + i % PRODUCT_ROWS * panel.width + shift
            content, share = plan.shares[number]
            row.correlate(
                work.k, work.t, at, columns, work.k[ready : ready + columns], content, share,
                plan.in_values[number], work.correlation[number, :, shift:], plan.ntk,
            )  # fmt: skip
    if code == POOL:
        # Groups are added up in float64: over thousands of rows float32 would lose digits.
        for which in range(1 + plan.ntk):
            for j in range(width):
                work.sums[which, number, j] += work.group[which, j]


@compiled
def _fetch_features(plan, rows, panel, work, token, at, shift, columns):
    """A row of the first block: its products are made together with those of all distinct tokens of a chunk."""
    if not rows.chunks[work.chunk[0]] <= token < rows.chunks[work.chunk[0] + 1] or work.chunk[1] == 0:
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
    source = rows.distinct[token] * panel.width + shift
    row.fetch(work.k, at, work.product, source, columns, row.ONE)
    if plan.ntk:
        if plan.tangent == 0:
            row.clear(work.t, at, columns)
        elif plan.tangent == 1:
            row.fetch(work.t, at, work.product, source, columns, np.float32(plan.ratio))
        else:
            row.fetch(work.t, at, work.product_ntk, source, columns, row.ONE)


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
