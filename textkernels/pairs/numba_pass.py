"""Row documents against a panel of column documents: the compiled pass through a program.

The column documents of a panel stand side by side in one row, with room for a window between them, so that the
loops over columns are long whatever the lengths of the documents are.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from textkernels.pairs import numba_activations as activation
from textkernels.pairs import numba_attention as attention
from textkernels.pairs import numba_rows as row
from textkernels.pairs.numba_operations import CODE, FIELD
from textkernels.pairs.numba_products import STRIP, multiply

(SOURCE, WINDOW, AFFINE, RELU, ERF, NORM, MIX, POOL, ATTEND, ATTENDED, CORRELATE, CORRELATED, COPY) = CODE.values()
(CODE_OF, _, LAG, FROM, OTHER, TO, HALF, SLOT, DIGEST, FRESH, KIND, NUMBER) = FIELD.values()
compiled = nb.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def run(plan, rows, panel, work, shift, nngp, ntk, top, left):
    """Pooled kernels of all row documents with the documents of the panel.

    Args:
        shift: row document i meets the first i + shift + 1 column documents only (the lower triangle of a symmetric
            matrix); large for all of them.
        nngp, ntk: results before the last affine step, float64 (pools, n, m), filled from row ``top`` and column
            ``left``; ntk is not touched where Theta is not wanted.
    """
    attention.place_positions(plan, panel, work)
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
    end, columns = length + plan.margin, width - 2 * lead + row.ALIGNED
    for time in range(-plan.margin, end + plan.reach[stage], plan.group):
        for place in range(plan.stages[stage], plan.stages[stage + 1]):
            lag = operations[place, LAG]
            top, bottom = max(time - lag, -plan.margin), min(time + plan.group - lag, end)
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
                            stop, half, plan.margin, lead, number >= 0,
                        )  # fmt: skip
                    elif half >= 0:
                        activation.window_lines(work.lines, blocks, source, first, stop, half, plan.zeros)
                    free = half >= 0 and source < 0 and number >= 0
                    span = first, stop, columns - row.ALIGNED if free else columns, free
                    if code == RELU and half >= 0 and number >= 0:
                        activation.relu_window_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU and half >= 0:
                        activation.relu_window(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU and number >= 0:
                        activation.relu_pooled(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif code == RELU:
                        activation.relu(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
                    elif half >= 0:
                        activation.erf_window(k, t, x, t, work.lines, blocks, target, span, step, where, tokens)
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
                part, all_of = work.group, work.sums
                row.pool(k, blocks, source, first, last, columns, rows.weights, token, number, mask, part, all_of, 0)
                if ntk:
                    row.pool(
                        t, blocks, source, first, last, columns, rows.weights, token, number, mask, part, all_of, 1
                    )
            elif code in (ATTEND, CORRELATE):
                attention.end(plan, rows, panel, work, document, place, first, last, length, count, width)
            else:
                attention.begin(plan, rows, panel, work, document, place, first, last, length, count, width)


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
