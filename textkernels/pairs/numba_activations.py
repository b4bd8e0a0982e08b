"""Activations on rows of a token-pair block, fused with what comes right before and behind them.

An affine step (the weights and bias of a convolution or dense layer) is always taken along. A convolution of at most
nine tokens is too: its window is summed up on the way in, from nine lines given by their offsets. So is a pooling
behind a relu: its sums take the values instead of a block. For one convolution with pooling no block is written at all.

relu: K <- s (sqrt(1 - c^2) + t c) / (2 pi), Theta <- Theta t / (2 pi), with s = sqrt(A_ii A'_jj), c = K / s and
t = pi - arccos c. erf: K <- (2 / pi) arcsin(2 K / sqrt q), Theta <- (4 / pi) Theta / sqrt(q - 4 K^2), with
q = (1 + 2 A_ii)(1 + 2 A'_jj). All versions of both have the arguments

    k, t, x, y: scratch; the windowed ones sum up nine lines of x (for K) and y (for Theta) instead of reading k and t.
    lines: their offsets, int64 (rows of a group, LINES).
    blocks, number: where results go; see :mod:`textkernels.pairs.numba_rows`. The pooled ones add them to sums.
    span: top, bottom, columns, and whether these begin with that of the first document (if no block takes part).
    step: weight, bias, kind: K <- weight K + bias and Theta <- K + weight Theta come first. Kind 0: no Theta wanted;
        2: there was none; 3: no such step, and Theta wanted.
    where: slot of scales, state of digests, token of row 0, place of weights.
    tokens: scales, digests of columns, those of rows, mask of columns, weights of rows, CONSTANTS, sums over a group
        of rows (2, width) and over all (2, pools, width). Scales are, of relu, the square roots of the variances and
        in the next slot their inverses, 0 where the variance is; of erf 1 / sqrt(1 + 2 A), 0 where there is no token.
        Equal digests (int32) mean equal states, which correlate exactly. Rounding would blur that: it cost 1e-4 in
        Theta behind a relu, and more behind an erf of large variances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN, SINE
from textkernels.pairs.numba_access import held, read, write
from textkernels.pairs.numba_operations import LINES
from textkernels.pairs.numba_rows import ALIGNED, ONE, TWO, ZERO, beside, compiled, inlined, lying, settle, shift, start

PI, HALF_PI, TURN = np.float32(np.pi), np.float32(np.pi / 2), np.float32(1 / (2 * np.pi))
TWO_BY_PI, FOUR_BY_PI = np.float32(2 / np.pi), np.float32(4 / np.pi)
BELOW_ONE = np.float32(1 - 2**-23)

# Passed on as an argument: constants in the code would be loaded again in every iteration.
CONSTANTS = np.array([*ARCCOS, *SINE, *ARCSIN], np.float32)


@compiled
def window_lines(lines, blocks, source, top, bottom, half, zeros):
    """Offsets of the nine lines whose sum is a window, for rows of a skewed block; ``zeros``: where a line of zeros is.

    Args:
        lines: int64 (rows of a group, LINES), filled.
    """
    block = lying(blocks, source)
    for i in range(top, bottom):
        for step in range(-(LINES // 2), LINES // 2 + 1):
            inside = -half <= step <= half
            lines[i - top, step + LINES // 2] = beside(block, i, step) if inside else zeros


@compiled
def product_lines(lines, distinct, entry, length, width, zero, top, bottom, half, margin, lead, aligned):
    """The same for rows of a product with the words of a chunk: windows of the first convolution.

    Args:
        distinct, entry: row 0 has its word at ``distinct[entry]``.
        width: of the product; ``zero``: a row of it that is zero. The first entry is number ALIGNED of the array.
        lead, aligned: columns begin with ``lead`` if ``aligned``, else where rows of blocks do.
    """
    for i in range(top, bottom):
        left = lead if aligned else lead - ALIGNED + (i + margin) % ALIGNED
        for step in range(-(LINES // 2), LINES // 2 + 1):
            inside = -half <= step <= half and 0 <= i + step < length
            place = distinct[entry + i + step] if inside else zero
            lines[i - top, step + LINES // 2] = place * width + left + (step if inside else 0) + ALIGNED


@inlined
def _window(x, a, b, c, d, e, f, g, h, i):
    first = (read(x, a) + read(x, b)) + (read(x, c) + read(x, d))
    return first + ((read(x, e) + read(x, f)) + ((read(x, g) + read(x, h)) + read(x, i)))


@inlined
def _relu(c, same, p):
    """sqrt(1 - c^2) and t = pi - arccos c of a correlation c.

    With u = 1 - |c| they are sqrt(u) Q(u) and sqrt(u) P(u), or pi less that: one square root and two polynomials.
    """
    u = abs(ONE - abs(c))
    u = ZERO if same else u
    root = np.sqrt(u)
    angle = root * ((((((p[6] * u + p[5]) * u + p[4]) * u + p[3]) * u + p[2]) * u + p[1]) * u + p[0])
    sine = root * ((((((p[13] * u + p[12]) * u + p[11]) * u + p[10]) * u + p[9]) * u + p[8]) * u + p[7])
    return sine, PI - angle if c >= ZERO else angle


@inlined
def _erf(x, own, same, p):
    """arcsin x and sqrt(1 - x^2); the smaller of |x| and the root goes into the series of the arcsine."""
    a = min(abs(x), BELOW_ONE)
    v = (ONE - a) * (ONE + a)
    v = own if same else v
    root = np.sqrt(v)
    y = min(a, root)
    z = y * y
    series = (((((p[20] * z + p[19]) * z + p[18]) * z + p[17]) * z + p[16]) * z + p[15]) * z + p[14]
    arc = y + y * z * series
    arc = arc if a <= root else HALF_PI - arc
    return arc if x >= ZERO else -arc, root


@inlined
def _coefficients(c):
    first = (c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13])
    return first + (c[14], c[15], c[16], c[17], c[18], c[19], c[20])  # noqa: RUF005 (Numba cannot unpack tuples)


@inlined
def _offsets(lines, i):
    return (
        lines[i, 0], lines[i, 1], lines[i, 2], lines[i, 3], lines[i, 4], lines[i, 5], lines[i, 6], lines[i, 7],
        lines[i, 8],
    )  # fmt: skip


def _make_relu(windowed: bool, pooled: bool, kind: int) -> Any:
    @compiled
    def relu(k, t, x, y, lines, blocks, number, span, step, where, tokens):
        top, bottom, columns, aligned = span
        weight, bias, slot, state, token, place = step[0], step[1], where[0], where[1], where[2], where[3]
        scales, digests, row_scales, row_digests, mask, weights, constants, group, sums = tokens
        block, p = lying(blocks, number), _coefficients(constants)
        sizes, inverses, states, total, total_ntk = scales[slot], scales[slot + 1], digests[state], group[0], group[1]
        if pooled:
            group[:] = ZERO
        for i in range(top, bottom):
            a, b, c, d, e, f, g, h, l = _offsets(lines, i - top)  # noqa: E741
            at, left = start(block, i), block[5] + ALIGNED if aligned else shift(block, i)
            size, digest = row_scales[slot, token + i] * TURN, row_digests[state, token + i]
            slope, level = weight * row_scales[slot + 1, token + i], bias * row_scales[slot + 1, token + i]
            part = weights[place, token + i] * size
            turn = weight * TURN if kind == 1 else TURN
            part_ntk = weights[place, token + i] * turn
            for j in range(columns):
                if windowed:
                    cov = _window(x, a + j, b + j, c + j, d + j, e + j, f + j, g + j, h + j, l + j)
                else:
                    cov = held(k, at + j)
                inverse = read(inverses, left + j)
                r = (slope * cov + level) * inverse
                sine, factor = _relu(r, read(states, left + j) == digest, p)
                # Behind an affine step Theta takes its K in, which is s r, times t / (2 pi).
                first = r * factor
                before = factor
                if (kind == 1 or kind == 3) and windowed:
                    before = factor * _window(y, a + j, b + j, c + j, d + j, e + j, f + j, g + j, h + j, l + j)
                elif kind == 1 or kind == 3:
                    before = factor * held(t, at + j)
                if pooled:
                    # Sums are settled with the square roots of the variances of columns, once for many rows.
                    write(total, left + j, held(total, left + j) + part * (sine + first))
                    if kind == 1:
                        more = part * first + part_ntk * (before * inverse)
                        write(total_ntk, left + j, held(total_ntk, left + j) + more)
                    elif kind == 2:
                        write(total_ntk, left + j, held(total_ntk, left + j) + part * first)
                    elif kind == 3:
                        write(total_ntk, left + j, held(total_ntk, left + j) + part_ntk * (before * inverse))
                else:
                    scale = size * read(sizes, left + j)
                    tangent = scale * first
                    write(k, at + j, scale * sine + tangent)
                    if kind == 1:
                        write(t, at + j, tangent + before * (turn * read(mask, left + j)))
                    elif kind == 2:
                        write(t, at + j, tangent)
                    elif kind == 3:
                        write(t, at + j, before * turn)
        if pooled:
            settle(group, sums, place, 0, sizes)
            if kind:
                settle(group, sums, place, 1, sizes)

    return relu


def _make_erf(windowed: bool, _: bool, kind: int) -> Any:
    @compiled
    def erf(k, t, x, y, lines, blocks, number, span, step, where, tokens):
        top, bottom, columns, _ = span
        weight, bias, slot, state, token = step[0], step[1], where[0], where[1], where[2]
        scales, digests, row_scales, row_digests, _, _, constants, _, _ = tokens
        block, p = lying(blocks, number), _coefficients(constants)
        inverses, states = scales[slot], digests[state]
        for i in range(top, bottom):
            a, b, c, d, e, f, g, h, l = _offsets(lines, i - top)  # noqa: E741
            at, left = start(block, i), shift(block, i)
            inverse, digest = row_scales[slot, token + i], row_digests[state, token + i]
            own = inverse * inverse * (TWO - inverse * inverse)  # 1 - (2 A / (1 + 2 A))^2
            for j in range(columns):
                if windowed:
                    cov = weight * _window(x, a + j, b + j, c + j, d + j, e + j, f + j, g + j, h + j, l + j) + bias
                else:
                    cov = weight * held(k, at + j) + bias
                scale = inverse * read(inverses, left + j)
                arc, root = _erf(TWO * cov * scale, own, read(states, left + j) == digest, p)
                tangent = cov
                if kind == 1 and windowed:
                    tangent += weight * _window(y, a + j, b + j, c + j, d + j, e + j, f + j, g + j, h + j, l + j)
                elif kind == 1:
                    tangent += weight * held(t, at + j)
                elif kind == 3:
                    tangent = held(t, at + j)
                write(k, at + j, TWO_BY_PI * arc)
                if kind:
                    write(t, at + j, tangent * (FOUR_BY_PI * scale / root))

    return erf


def _choose(make: Any, windowed: bool, pooled: bool) -> Any:
    """All kinds as one function; a window always comes with an affine step."""
    zero, one, two, three = (make(windowed, pooled, kind) for kind in range(4))

    @compiled
    def activate(k, t, x, y, lines, blocks, number, span, step, where, tokens):
        if step[2] == 0:
            zero(k, t, x, y, lines, blocks, number, span, step, where, tokens)
        elif step[2] == 1:
            one(k, t, x, y, lines, blocks, number, span, step, where, tokens)
        elif step[2] == 2:
            two(k, t, x, y, lines, blocks, number, span, step, where, tokens)
        elif not windowed:
            three(k, t, x, y, lines, blocks, number, span, step, where, tokens)

    return activate


relu, relu_pooled = _choose(_make_relu, False, False), _choose(_make_relu, False, True)
relu_window, relu_window_pooled = _choose(_make_relu, True, False), _choose(_make_relu, True, True)
erf, erf_window = _choose(_make_erf, False, False), _choose(_make_erf, True, False)
