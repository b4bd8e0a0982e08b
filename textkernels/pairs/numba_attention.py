"""Where blocks meet attention weights: what opens and closes a stage of the compiled pass.

1/d scaling: rows of K in front of an attention are multiplied by G'^T from the right as they come, document by
document of the panel; when all are there, rows of G (K G'^T) open the next stage, position columns in values
included. 1/sqrt(d) scaling: rows in front of it add up D and E of every pair, with which the next stage begins.
"""

from __future__ import annotations

import numba as nb

from textkernels.pairs import numba_rows as row
from textkernels.pairs.numba_operations import CODE, FIELD, PRODUCT_ROWS
from textkernels.pairs.numba_products import STRIP, multiply

ATTEND, ATTENDED = CODE["attend"], CODE["attended"]
CODE_OF, FROM, TO, NUMBER = (FIELD[name] for name in ("code", "source", "target", "place"))
compiled = nb.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def begin(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Rows behind an attention, whose products are made for many rows at once."""
    code, target, number = (
        plan.operations[place, CODE_OF],
        plan.operations[place, TO],
        plan.operations[place, NUMBER],
    )
    k, t, blocks, columns, ntk = work.k, work.t, plan.blocks, width - 2 * plan.lead + row.ALIGNED, plan.ntk
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
            factors = work.factors[number]
            row.correlated(
                k, t, blocks, target, first, last, columns, line, panel.width, plan.shares[number], factors, bias,
                panel.mask, ntk,
            )  # fmt: skip
        first = last


@compiled
def end(plan, rows, panel, work, document, place, top, bottom, length, count, width):
    """Rows in front of an attention, which meet its weights many at once."""
    code, source, number = (
        plan.operations[place, CODE_OF],
        plan.operations[place, FROM],
        plan.operations[place, NUMBER],
    )
    k, t, blocks, columns, ntk = work.k, work.t, plan.blocks, width - 2 * plan.lead + row.ALIGNED, plan.ntk
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
    """Rows ``first`` on of G (K G'^T), and of the positions in values, where there are documents."""
    _, at, base, deep = plan.attention[number]
    start, columns = rows.places[number]
    length = rows.starts[document + 1] - rows.starts[document]
    strips, skipped = (width - 2 * plan.lead) // STRIP, plan.lead // STRIP * deep * STRIP
    for which in range(1 + plan.ntk):
        scratch = work.k if which == 0 else work.t
        if columns:
            multiply(
                scratch, at + plan.lead, row_width, STRIP,
                rows.positions, start + rows.starts[document] * columns, columns, 1, 0, first,
                scratch, base + skipped, deep * STRIP, many, columns, strips, False,
            )  # fmt: skip
        multiply(
            scratch, at + plan.lead, row_width, STRIP,
            rows.ties, rows.tie_starts[number, document], 1, STRIP, length * STRIP, first,
            scratch, base + skipped + columns * STRIP, deep * STRIP, many, length, strips, columns > 0,
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
