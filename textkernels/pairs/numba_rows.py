"""What layers do to rows of a token-pair block: loops that stay in the first-level cache and vectorize.

Blocks lie in flat float32 scratch, ``k`` for K and ``t`` for Theta, laid out alike; where, says a row of ``blocks``:

    (offset, depth, stride, margin, skewed), and row i lies in slot (i + margin) % depth.

Rows ``top`` to ``bottom`` are done, in each ``columns`` entries from column :func:`shift` on, which differs from row
to row: where blocks are skewed, it is the first whose entry begins a cache line. What belongs to columns of the block (variances, digests, the mask of real tokens) comes as arrays
over columns, what belongs to its rows as arrays over tokens, of which ``token`` is that of row 0.

Indices are unsigned: for a signed one Numba provides for counting from the end, and the loop does not vectorize.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN, SINE

# NaN and infinity stay what they are, so that overflow shows; a division that checks for zero would not vectorize.
compiled = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
inlined = nb.njit(inline="always")

ALIGNED = 16  # floats in a cache line
U = np.uint64
ZERO, ONE, TWO, FOUR = (np.float32(x) for x in (0, 1, 2, 4))
PI, HALF_PI, TURN = np.float32(np.pi), np.float32(np.pi / 2), np.float32(1 / (2 * np.pi))
TWO_BY_PI, FOUR_BY_PI = np.float32(2 / np.pi), np.float32(4 / np.pi)
NEAR = np.float32(0.99)  # unlike tokens of one digest, one pair in 4e9, must not correlate perfectly
BELOW_ONE = np.float32(1 - 2**-23)

A0, A1, A2, A3, A4, A5, A6 = ARCCOS
S0, S1, S2, S3, S4, S5, S6 = SINE
N0, N1, N2, N3, N4, N5, N6 = ARCSIN


@inlined
def lying(blocks, number):
    """That row as a tuple."""
    return blocks[number, 0], blocks[number, 1], blocks[number, 2], blocks[number, 3], blocks[number, 4]


@inlined
def shift(block, i):
    """The first column of row i that is worked on."""
    return (i + block[3]) % ALIGNED


@inlined
def start(block, i):
    """Where the entry of that column lies: at the beginning of a cache line."""
    slot = i + block[3]
    return U(block[0] + slot % block[1] * block[2] + slot % ALIGNED * block[4])


@compiled
def clear(x, blocks, number, top, bottom, columns):
    """Zeros."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at = start(block, i)
        for j in range(columns):
            x[at + U(j)] = ZERO


@compiled
def copy(x, blocks, source, target, top, bottom, columns):
    """Rows of another block."""
    source, target = lying(blocks, source), lying(blocks, target)
    for i in range(top, bottom):
        old, new = start(source, i), start(target, i)
        for j in range(columns):
            x[new + U(j)] = x[old + U(j)]


@compiled
def fetch(x, blocks, number, top, bottom, columns, y, places, width, token, factor):
    """Rows of a product, those of the tokens' distinct words, times ``factor``."""
    target = lying(blocks, number)
    for i in range(top, bottom):
        new, old = start(target, i), U(places[token + i] * width + shift(target, i))
        for j in range(columns):
            x[new + U(j)] = factor * y[old + U(j)]


@compiled
def exchange(x, blocks, number, top, bottom, columns, line, width, into, factor):
    """Rows of a block from (or ``into``) consecutive lines of ``width`` entries at ``line``, times ``factor``."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, other = start(block, i), U(line + (i - top) * width + shift(block, i))
        if into:
            for j in range(columns):
                x[other + U(j)] = factor * x[at + U(j)]
        else:
            for j in range(columns):
                x[at + U(j)] = factor * x[other + U(j)]


@compiled
def mix(x, blocks, other, number, top, bottom, columns, share):
    """Residual: ``share`` of the other block, 1 - ``share`` of this one."""
    block, other = lying(blocks, number), lying(blocks, other)
    for i in range(top, bottom):
        at, old = start(block, i), start(other, i)
        for j in range(columns):
            x[at + U(j)] = share * x[old + U(j)] + (ONE - share) * x[at + U(j)]


@inlined
def _beside(block, i, step):
    """Where row i + step of a skewed block has its entry on the diagonal through the first column of row i."""
    slot = i + block[3]
    return U(block[0] + (slot + step) % block[1] * block[2] + slot % ALIGNED + step)


@compiled
def window_sum(x, blocks, source, target, top, bottom, columns, half):
    """Sums along diagonals: row i, column j of the target from i + s, j + s of the source, |s| <= half."""
    source, target = lying(blocks, source), lying(blocks, target)
    for i in range(top, bottom):
        at = start(target, i)
        if half >= 4:
            done = 4
            _sum9(x, source, i, at, columns)
        elif half >= 2:
            done = 2
            _sum5(x, source, i, at, columns)
        else:
            done = 0
            a = _beside(source, i, 0)
            for j in range(columns):
                x[at + U(j)] = x[a + U(j)]
        for more in range(done + 1, half + 1):
            a, b = _beside(source, i, -more), _beside(source, i, more)
            for j in range(columns):
                x[at + U(j)] += x[a + U(j)] + x[b + U(j)]


@inlined
def _sum5(x, source, i, at, columns):
    a, b, c = _beside(source, i, -2), _beside(source, i, -1), _beside(source, i, 0)
    d, e = _beside(source, i, 1), _beside(source, i, 2)
    for j in range(columns):
        x[at + U(j)] = (x[a + U(j)] + x[b + U(j)]) + (x[c + U(j)] + x[d + U(j)]) + x[e + U(j)]


@inlined
def _sum9(x, source, i, at, columns):
    a, b, c = _beside(source, i, -4), _beside(source, i, -3), _beside(source, i, -2)
    d, e, f = _beside(source, i, -1), _beside(source, i, 0), _beside(source, i, 1)
    g, h, k = _beside(source, i, 2), _beside(source, i, 3), _beside(source, i, 4)
    for j in range(columns):
        first = (x[a + U(j)] + x[b + U(j)]) + (x[c + U(j)] + x[d + U(j)])
        x[at + U(j)] = first + ((x[e + U(j)] + x[f + U(j)]) + (x[g + U(j)] + x[h + U(j)])) + x[k + U(j)]


@compiled
def affine(k, t, blocks, number, top, bottom, columns, weight, bias, mask, kind):
    """K <- (weight K + bias) mask and Theta <- K + weight Theta. Kind 0: no Theta wanted, 2: there was none."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, left = start(block, i), U(shift(block, i))
        for j in range(columns):
            k[at + U(j)] = (weight * k[at + U(j)] + bias) * mask[left + U(j)]
        if kind == 1:
            for j in range(columns):
                t[at + U(j)] = k[at + U(j)] + weight * t[at + U(j)] * mask[left + U(j)]
        elif kind == 2:
            for j in range(columns):
                t[at + U(j)] = k[at + U(j)]


@compiled
def attended(k, t, blocks, number, top, bottom, columns, weight, bias, mask, ntk):
    """K <- weight K + bias, Theta <- weight (Theta + 2 K) + bias, at real tokens: behind G K G'^T."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, left = start(block, i), U(shift(block, i))
        if ntk:
            for j in range(columns):
                t[at + U(j)] = (weight * (t[at + U(j)] + TWO * k[at + U(j)]) + bias) * mask[left + U(j)]
        for j in range(columns):
            k[at + U(j)] = (weight * k[at + U(j)] + bias) * mask[left + U(j)]


@compiled
def normalize(x, blocks, number, top, bottom, columns, scales, row_scales, slot, token):
    """LayerNorm: times the inverse standard deviations of row and columns."""
    block, factors = lying(blocks, number), scales[slot]
    for i in range(top, bottom):
        at, left, factor = start(block, i), U(shift(block, i)), row_scales[slot, token + i]
        for j in range(columns):
            x[at + U(j)] *= factor * factors[left + U(j)]


@inlined
def _relu(c, same):
    """sqrt(1 - c^2) and t = pi - arccos c of a correlation.

    With u = 1 - |c| they are sqrt(u) Q(u) and sqrt(u) P(u) (or pi less that): one square root, two polynomials. Equal
    states correlate exactly.
    """
    u = max(ONE - abs(c), ZERO)
    u = ZERO if same & (c > NEAR) else u
    root = np.sqrt(u)
    angle = root * ((((((A6 * u + A5) * u + A4) * u + A3) * u + A2) * u + A1) * u + A0)
    sine = root * ((((((S6 * u + S5) * u + S4) * u + S3) * u + S2) * u + S1) * u + S0)
    return sine, PI - angle if c >= ZERO else angle


@compiled
def relu(
    k, t, blocks, number, top, bottom, columns, weight, bias, mask, kind,
    scales, digests, row_scales, row_digests, slot, state, token,
):  # fmt: skip
    """Arc-cosine kernels behind an affine step: K <- s (sqrt(1 - c^2) + t c) / (2 pi), Theta <- Theta t / (2 pi).

    Args:
        weight, bias, kind: of the affine step. Kind 0: no Theta wanted; 1, 2: see :func:`affine`; 3: no such step, and
            Theta wanted.
        scales, row_scales: at ``slot`` the square roots of the variances of columns (rows), behind them their
            inverses, 0 where the variance is.
        digests, row_digests: at ``state`` int32, of the states of columns (rows): rounding would blur a correlation
            of 1, which costs 1e-4 in Theta.
    """
    block = lying(blocks, number)
    sizes, inverses, states = scales[slot], scales[slot + 1], digests[state]
    turn = weight * TURN
    for i in range(top, bottom):
        at, left = start(block, i), U(shift(block, i))
        size, digest = row_scales[slot, token + i] * TURN, row_digests[state, token + i]
        slope, level = weight * row_scales[slot + 1, token + i], bias * row_scales[slot + 1, token + i]
        if kind == 0:
            for j in range(columns):
                c = (slope * k[at + U(j)] + level) * inverses[left + U(j)]
                sine, factor = _relu(c, states[left + U(j)] == digest)
                k[at + U(j)] = (size * sizes[left + U(j)]) * (sine + c * factor)
        elif kind == 1:
            for j in range(columns):
                c = (slope * k[at + U(j)] + level) * inverses[left + U(j)]
                sine, factor = _relu(c, states[left + U(j)] == digest)
                scale = size * sizes[left + U(j)]
                first = scale * (c * factor)  # the K of the affine step, which Theta takes in, times t / (2 pi)
                k[at + U(j)] = scale * sine + first
                t[at + U(j)] = first + (t[at + U(j)] * (turn * mask[left + U(j)])) * factor
        elif kind == 2:
            for j in range(columns):
                c = (slope * k[at + U(j)] + level) * inverses[left + U(j)]
                sine, factor = _relu(c, states[left + U(j)] == digest)
                scale = size * sizes[left + U(j)]
                first = scale * (c * factor)
                k[at + U(j)] = scale * sine + first
                t[at + U(j)] = first
        else:
            for j in range(columns):
                c = slope * k[at + U(j)] * inverses[left + U(j)]
                sine, factor = _relu(c, states[left + U(j)] == digest)
                k[at + U(j)] = (size * sizes[left + U(j)]) * (sine + c * factor)
                t[at + U(j)] *= TURN * factor


@inlined
def _erf(cov, scale, own, same):
    """With x = 2 K / sqrt q and v = 1 - x^2: pi / 2 K = arcsin x, and sqrt v; the smaller of |x| and sqrt v goes into
    the series of the arcsine.
    """
    x = TWO * cov * scale
    a = min(abs(x), BELOW_ONE)
    v = (ONE - a) * (ONE + a)
    v = own if same & (v < own * FOUR) else v
    root = np.sqrt(v)
    y = min(a, root)
    z = y * y
    arc = y + y * z * ((((((N6 * z + N5) * z + N4) * z + N3) * z + N2) * z + N1) * z + N0)
    arc = arc if a <= root else HALF_PI - arc
    return arc if x >= ZERO else -arc, root


@compiled
def erf(
    k, t, blocks, number, top, bottom, columns, weight, bias, mask, kind,
    scales, digests, row_scales, row_digests, slot, state, token,
):  # fmt: skip
    """Arcsine kernel K <- (2 / pi) arcsin(2 K / sqrt q), and Theta <- (4 / pi) Theta / sqrt(q - 4 K^2), behind an
    affine step.

    Args:
        weight, bias, kind: as in :func:`relu`.
        scales, row_scales: at ``slot`` 1 / sqrt(1 + 2 A) of columns (rows), 0 where there is no token: a product of
            two is q^(-1/2).
        digests, row_digests: at ``state`` int32, of the states of columns (rows): equal states have K = A, so that q - 4 K^2 is
            known without the cancellation that makes it useless for large variances.
    """
    block = lying(blocks, number)
    inverses, states = scales[slot], digests[state]
    for i in range(top, bottom):
        at, left = start(block, i), U(shift(block, i))
        inverse, digest = row_scales[slot, token + i], row_digests[state, token + i]
        own = inverse * inverse * (TWO - inverse * inverse)  # 1 - (2 A / (1 + 2 A))^2
        if kind == 0:
            for j in range(columns):
                cov = weight * k[at + U(j)] + bias
                arc, _ = _erf(cov, inverse * inverses[left + U(j)], own, states[left + U(j)] == digest)
                k[at + U(j)] = TWO_BY_PI * arc
        elif kind == 1:
            for j in range(columns):
                cov, scale = weight * k[at + U(j)] + bias, inverse * inverses[left + U(j)]
                arc, root = _erf(cov, scale, own, states[left + U(j)] == digest)
                k[at + U(j)] = TWO_BY_PI * arc
                t[at + U(j)] = (cov + weight * t[at + U(j)]) * (FOUR_BY_PI * scale / root)
        elif kind == 2:
            for j in range(columns):
                cov, scale = weight * k[at + U(j)] + bias, inverse * inverses[left + U(j)]
                arc, root = _erf(cov, scale, own, states[left + U(j)] == digest)
                k[at + U(j)] = TWO_BY_PI * arc
                t[at + U(j)] = cov * (FOUR_BY_PI * scale / root)
        else:
            for j in range(columns):
                scale = inverse * inverses[left + U(j)]
                arc, root = _erf(k[at + U(j)], scale, own, states[left + U(j)] == digest)
                k[at + U(j)] = TWO_BY_PI * arc
                t[at + U(j)] *= FOUR_BY_PI * scale / root


@compiled
def pool(x, blocks, number, top, bottom, columns, weights, token, place, sums, totals, which):
    """Add rows times their weights to ``sums``; these are float32 for one group of rows and float64 over all, since
    float32 would lose digits over thousands of rows.
    """
    block = lying(blocks, number)
    weight_of, total, width = weights[place], totals[which, place], len(sums)
    for j in range(width):
        sums[j] = ZERO
    for i in range(top, bottom - 3, 4):
        # Every row begins with another column; from the last of these on, all four have entries.
        a, b = start(block, i) - U(shift(block, i)), start(block, i + 1) - U(shift(block, i + 1))
        c, d = start(block, i + 2) - U(shift(block, i + 2)), start(block, i + 3) - U(shift(block, i + 3))
        e, f = weight_of[token + i], weight_of[token + i + 1]
        g, h = weight_of[token + i + 2], weight_of[token + i + 3]
        for j in range(ALIGNED, columns):
            col = U(j)
            sums[col] += (e * x[a + col] + f * x[b + col]) + (g * x[c + col] + h * x[d + col])
    for i in range(bottom - (bottom - top) % 4, bottom):
        at, weight = start(block, i) - U(shift(block, i)), weight_of[token + i]
        for j in range(ALIGNED, columns):
            sums[U(j)] += weight * x[at + U(j)]
    for j in range(width):
        total[j] += sums[j]


@compiled
def correlate(k, t, blocks, number, top, bottom, columns, line, width, shares, in_values, sums, ntk):
    """Running sums of the 1/sqrt(d) attention: D of IK K, and E of IK Theta + IT K, float64 (2, columns).

    Rows of R lie at ``line``; I(K) = content K + share R. With ``in_values``: IK IK and 2 IK IT.
    """
    block, content, share = lying(blocks, number), shares[0], shares[1]
    for i in range(top, bottom):
        at, left, spread = start(block, i), U(shift(block, i)), U(line + (i - top) * width + shift(block, i))
        for j in range(columns):
            inner = content * k[at + U(j)] + share * k[spread + U(j)]
            value = inner if in_values else k[at + U(j)]
            sums[0, left + U(j)] += inner * value
            if ntk:
                inner_ntk = content * t[at + U(j)] + share * k[spread + U(j)]
                value_ntk = inner_ntk if in_values else t[at + U(j)]
                sums[1, left + U(j)] += inner * value_ntk + inner_ntk * value


@compiled
def correlated(k, t, blocks, number, top, bottom, columns, line, width, shares, factors, bias, mask, ntk):
    """K <- s D IK + b^2 and Theta <- s (D (IT + 4 IK) + E IK) + b^2; ``factors`` is s (D, E), (2, columns)."""
    block, content, share = lying(blocks, number), shares[0], shares[1]
    for i in range(top, bottom):
        at, left, spread = start(block, i), U(shift(block, i)), U(line + (i - top) * width + shift(block, i))
        for j in range(columns):
            inner = content * k[at + U(j)] + share * k[spread + U(j)]
            first, real = factors[0, left + U(j)], mask[left + U(j)]
            if ntk:
                inner_ntk = content * t[at + U(j)] + share * k[spread + U(j)]
                second = factors[1, left + U(j)]
                t[at + U(j)] = (first * (inner_ntk + FOUR * inner) + second * inner + bias) * real
            k[at + U(j)] = (first * inner + bias) * real
