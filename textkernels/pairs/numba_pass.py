"""Row documents against a panel of column documents: the compiled pass through a program.

The column documents of a panel stand side by side in one row, with room for a window between them, so that the
loops over columns are long whatever the lengths of the documents are.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from textkernels.pairs import numba_activations as activation
from textkernels.pairs import numba_rows as row
from textkernels.pairs.numba_products import STRIP, multiply
from textkernels.pairs.numba_program import CODE, GROUP, PRODUCT_ROWS

(SOURCE, WINDOW, AFFINE, RELU, ERF, NORM, MIX, POOL, ATTEND, ATTENDED, CORRELATE, CORRELATED, COPY) = CODE.values()
(CODE_OF, _, LAG, FROM, OTHER, TO, HALF, SLOT, DIGEST, FRESH, KIND, NUMBER) = range(12)
compiled = nb.njit(nogil=True, cache=True, error_model="numpy")


class Plan(NamedTuple):
    """A program, and where in scratch its blocks lie.

    Args:
        operations: int64 (count, 12), the integers of ``Operation``; parameters: float32 (count, 2), its numbers.
        stages: first operation of each stage, and their number; reach: largest lag of each stage.
        blocks, attention, zeros: as in ``Layout``.
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
    zeros: int
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
        chunks: first token of each chunk whose products are made at once, and the number of tokens.
        distinct: places of the tokens of a chunk, and of half a window around it, among its distinct ones.
        entries: of each chunk, what to add to a token to get its place in ``distinct``.
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
    entries: np.ndarray
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
        product, product_ntk: products of the distinct tokens of a chunk with the panel, rows of ``width`` from entry
            ALIGNED on, five more for the sake of ``multiply``, and one of zeros.
        chunk: first token of that chunk and of the next, its entry, and which row is zero, int64 (4,).
        lines: int64 (GROUP, LINES), offsets of windows.
        constants: of activations.
        group: float32 (2, width), sums over a group of rows; sums: float64 (2, pools, width), over all.
        correlation: float64 (attentions, 2, width); factors: float32, the same shape.
    """

    k: np.ndarray
    t: np.ndarray
    product: np.ndarray
    product_ntk: np.ndarray
    chunk: np.ndarray
    lines: np.ndarray
    constants: np.ndarray
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
    """One stage of one row document against the first ``count`` column documents.

    One long function: passing the tuples on costs half a microsecond, most of what a group of rows takes. Arrays that
    every group needs are taken out of them once.
    """
    operations, parameters, blocks, lead, ntk = plan.operations, plan.parameters, plan.blocks, plan.lead, plan.ntk
    k, t, mask, scales, row_scales = work.k, work.t, panel.mask, panel.scales, rows.scales
    tokens = scales, panel.digests, row_scales, rows.digests, mask, rows.weights, work.constants, work.group, work.sums
    token = rows.starts[document]
    length = rows.starts[document + 1] - token
    end, columns = length + plan.margin, width - lead
    for time in range(-plan.margin, end + plan.reach[stage], GROUP):
        for place in range(plan.stages[stage], plan.stages[stage + 1]):
            lag = operations[place, LAG]
            top, bottom = max(time - lag, -plan.margin), min(time + GROUP - lag, end)
            first, last = max(top, 0), min(bottom, length)
            code, source, target = operations[place, CODE_OF], operations[place, FROM], operations[place, TO]
            half, number = operations[place, HALF], operations[place, NUMBER]
            makes = code in (SOURCE, WINDOW, ATTENDED, CORRELATED) or (code in (RELU, ERF) and half >= 0 and number < 0)
            if code == COPY:
                if top < bottom:
                    row.copy(k, blocks, source, target, top, bottom, columns)
                    if ntk:
                        row.copy(t, blocks, source, target, top, bottom, columns)
                continue
            if top < bottom and (top < 0 or bottom > length) and makes:
                _clear(k, t, blocks, target, top, bottom, length, columns, ntk)
            if first >= last:
                continue
            weight, bias = parameters[place, 0], parameters[place, 1]
            kind = operations[place, KIND] if ntk else 0
            slot = operations[place, SLOT]
            if code in (RELU, ERF):
                step = weight, bias, kind if kind or not ntk else 3
                where = slot, operations[place, DIGEST], token, max(number, 0)
                while first < last:
                    stop, x = last, k
                    if half >= 0 and source < 0:
                        if not work.chunk[0] <= token + first < work.chunk[1]:
                            _multiply_features(plan, rows, panel, work, token + first)
                        stop, x = min(last, work.chunk[1] - token), work.product
                        activation.product_lines(
                            work.lines, rows.distinct, token + work.chunk[2], length, panel.width, work.chunk[3], first,
                            stop, half, plan.margin, number >= 0,
                        )  # fmt: skip
                    elif half >= 0:
                        activation.window_lines(work.lines, blocks, source, first, stop, half, plan.zeros)
                    span = first, stop, columns, half >= 0 and source < 0 and number >= 0
                    if code == RELU and half >= 0 and number >= 0:
                        activation.relu_window_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU and half >= 0:
                        activation.relu_window(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU and number >= 0:
                        activation.relu_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU:
                        activation.relu(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif half >= 0 and number >= 0:
                        activation.erf_window_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif half >= 0:
                        activation.erf_window(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif number >= 0:
                        activation.erf_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    else:
                        activation.erf(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    first = stop
            elif code == SOURCE:
                inside = work.chunk[0] <= token + first and token + last <= work.chunk[1]
                if inside and (not ntk or operations[place, FRESH] == 1):
                    row.fetch(
                        k, blocks, target, first, last, columns, work.product, rows.distinct, token + work.chunk[2],
                        panel.width, row.ONE,
                    )  # fmt: skip
                else:
                    _bring(plan, rows, panel, work, target, first, last, columns, token, operations[place, FRESH] == 1)
            elif code == WINDOW:
                row.window_sum(k, blocks, source, target, first, last, columns, half)
                if ntk and operations[place, FRESH] == 0:
                    row.window_sum(t, blocks, source, target, first, last, columns, half)
            elif code == AFFINE:
                row.affine(k, t, blocks, target, first, last, columns, weight, bias, mask, kind)
            elif code == NORM:
                row.normalize(k, blocks, target, first, last, columns, scales, row_scales, slot, token)
                if ntk:
                    row.normalize(t, blocks, target, first, last, columns, scales, row_scales, slot, token)
            elif code == MIX:
                row.mix(k, blocks, operations[place, OTHER], target, first, last, columns, weight)
                if ntk:
                    row.mix(t, blocks, operations[place, OTHER], target, first, last, columns, weight)
            elif code == POOL:
                row.pool(k, blocks, source, first, last, columns, rows.weights, token, number, work.group, work.sums, 0)
                if ntk:
                    row.pool(
                        t, blocks, source, first, last, columns, rows.weights, token, number, work.group, work.sums, 1
                    )
            elif code in (ATTEND, CORRELATE):
                _end(plan, rows, panel, work, document, place, first, last, length, count, width)
            else:
                _begin(plan, rows, panel, work, document, place, first, last, length, count, width)


@compiled
def _clear(k, t, blocks, target, top, bottom, length, columns, ntk):
    """Rows outside the document are zero: windows reach there."""
    row.clear(k, blocks, target, top, min(bottom, 0), columns)
    row.clear(k, blocks, target, max(top, length), bottom, columns)
    if ntk:
        row.clear(t, blocks, target, top, min(bottom, 0), columns)
        row.clear(t, blocks, target, max(top, length), bottom, columns)


@compiled
def _bring(plan, rows, panel, work, target, top, bottom, columns, token, fresh):
    """Rows of the first block, whose products are made for all distinct tokens of a chunk at once."""
    first, blocks = top, plan.blocks
    while first < bottom:
        if not work.chunk[0] <= token + first < work.chunk[1]:
            _multiply_features(plan, rows, panel, work, token + first)
        last, entry = min(bottom, work.chunk[1] - token), token + work.chunk[2]
        row.fetch(
            work.k, blocks, target, first, last, columns, work.product, rows.distinct, entry, panel.width, row.ONE
        )
        if plan.ntk and plan.tangent > 0:
            product = work.product if plan.tangent == 1 else work.product_ntk
            row.fetch(
                work.t, blocks, target, first, last, columns, product, rows.distinct, entry, panel.width, plan.ratio
            )
        elif plan.ntk and not fresh:
            row.clear(work.t, blocks, target, first, last, columns)
        first = last


@compiled
def _begin(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Rows behind an attention, whose products are made for many rows at once."""
    code, target, number = (
        plan.operations[place, CODE_OF],
        plan.operations[place, TO],
        plan.operations[place, NUMBER],
    )
    k, t, blocks, columns, ntk = work.k, work.t, plan.blocks, width - plan.lead, plan.ntk
    weight, bias = plan.parameters[place, 0], plan.parameters[place, 1]
    first = top
    while first < bottom:
        last = min(bottom, (first // PRODUCT_ROWS + 1) * PRODUCT_ROWS)
        line = plan.attention[number, 1] + first % PRODUCT_ROWS * panel.width
        many = min(PRODUCT_ROWS, length - first)
        if code == ATTENDED:
            if first % PRODUCT_ROWS == 0:
                _weigh_rows(plan, rows, work, document, number, first, many, panel.width, width)
            row.exchange(k, blocks, target, first, last, columns, line, panel.width, False, row.ONE)
            if ntk:
                row.exchange(t, blocks, target, first, last, columns, line, panel.width, False, row.ONE)
            row.attended(k, t, blocks, target, first, last, columns, weight, bias, panel.mask, ntk)
        else:
            if first == 0:
                _factors(plan, panel, work, number, count)
            if first % PRODUCT_ROWS == 0:
                _spread(plan, rows, panel, work, document, number, first, many, width)
            row.copy(k, blocks, plan.operations[place, FROM], target, first, last, columns)
            if ntk:
                row.copy(t, blocks, plan.operations[place, FROM], target, first, last, columns)
            row.correlated(
                k, t, blocks, target, first, last, columns, line, panel.width, plan.shares[number], work.factors[number],
                bias, panel.mask, ntk,
            )  # fmt: skip
        first = last


@compiled
def _end(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Rows in front of an attention, which meet its weights many at once."""
    code, source, number = (
        plan.operations[place, CODE_OF],
        plan.operations[place, FROM],
        plan.operations[place, NUMBER],
    )
    k, t, blocks, columns, ntk = work.k, work.t, plan.blocks, width - plan.lead, plan.ntk
    first = top
    while first < bottom:
        last = min(bottom, (first // PRODUCT_ROWS + 1) * PRODUCT_ROWS)
        if code == ATTEND:
            line, content = plan.attention[number, 0] + first % PRODUCT_ROWS * panel.width, plan.parameters[place, 0]
            row.exchange(k, blocks, source, first, last, columns, line, panel.width, True, content)
            if ntk:
                row.exchange(t, blocks, source, first, last, columns, line, panel.width, True, content)
            if last % PRODUCT_ROWS == 0 or last == length:
                _weigh_columns(plan, rows, panel, work, number, last - 1, count)
        else:
            if first == 0:
                work.correlation[number] = 0
            if first % PRODUCT_ROWS == 0:
                many = min(PRODUCT_ROWS, length - first)
                _spread(plan, rows, panel, work, document, number, first, many, width)
            line = plan.attention[number, 1] + first % PRODUCT_ROWS * panel.width
            row.correlate(
                k, t, blocks, source, first, last, columns, line, panel.width, plan.shares[number],
                plan.in_values[number], work.correlation[number], ntk,
            )  # fmt: skip
        first = last


@compiled
def _multiply_features(plan, rows, panel, work, token):
    """Products of all distinct tokens of a chunk with the panel."""
    chunk = np.searchsorted(rows.chunks, token, side="right") - 1
    work.chunk[0], work.chunk[1], work.chunk[2] = rows.chunks[chunk], rows.chunks[chunk + 1], rows.entries[chunk]
    first, many = rows.firsts[chunk], rows.firsts[chunk + 1] - rows.firsts[chunk]
    strips = panel.width // STRIP
    dim, other = rows.dims
    multiply(
        work.product, row.ALIGNED, panel.width, STRIP, rows.features, first * dim, dim, 1, 0, 0,
        panel.features, 0, dim * STRIP, many, dim, strips, False,
    )  # fmt: skip
    if plan.ntk and plan.tangent == 2:
        multiply(
            work.product_ntk, row.ALIGNED, panel.width, STRIP, rows.tangents, first * other, other, 1, 0, 0,
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
