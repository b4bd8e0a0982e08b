"""What simple layers do to rows of a token-pair block: loops that stay in the first-level cache and vectorize.

Blocks lie in flat float32 scratch, ``k`` for K and ``t`` for Theta, laid out alike; where, says a row of ``blocks``:

    (offset, depth, stride, margin, skewed, lead), and row i lies in slot (i + margin) % depth.

Rows ``top`` to ``bottom`` are done, in each ``columns`` entries from column :func:`shift` on, which lies in front of
the first document and differs from row to row: where blocks are skewed, it is the first whose entry begins a cache
line. What belongs to columns of the block
(variances, digests, the mask of real tokens) comes as arrays over columns, what belongs to its rows as arrays over
tokens, of which ``token`` is that of row 0.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from textkernels.pairs.numba_access import held, read, write

# NaN and infinity stay what they are, so that overflow shows, and sums keep their order, which is that of a tree. A
# division that checks for zero would not vectorize.
compiled = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "arcp", "nsz"})
inlined = nb.njit(inline="always")

ALIGNED = 16  # floats in a cache line
ZERO, ONE, TWO, FOUR = (np.float32(x) for x in (0, 1, 2, 4))


@inlined
def lying(blocks, number):
    """That row as a tuple."""
    place, depth, stride = blocks[number, 0], blocks[number, 1], blocks[number, 2]
    return place, depth, stride, blocks[number, 3], blocks[number, 4], blocks[number, 5]


@inlined
def shift(block, i):
    """The first column of row i that is worked on."""
    return (i + block[3]) % ALIGNED + block[5]


@inlined
def start(block, i):
    """Where the entry of that column lies: at the beginning of a cache line."""
    slot = i + block[3]
    return block[0] + slot % block[1] * block[2] + (slot % ALIGNED + block[5]) * block[4]


@inlined
def beside(block, i, step):
    """Where row i + step of a skewed block has its entry on the diagonal through the first column of row i."""
    slot = i + block[3]
    return block[0] + (slot + step) % block[1] * block[2] + slot % ALIGNED + block[5] + step


@compiled
def clear(x, blocks, number, top, bottom, columns):
    """Zeros."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at = start(block, i)
        for j in range(columns):
            write(x, at + j, ZERO)


@compiled
def copy(x, blocks, source, target, top, bottom, columns):
    """Rows of another block."""
    source, target = lying(blocks, source), lying(blocks, target)
    for i in range(top, bottom):
        old, new = start(source, i), start(target, i)
        for j in range(columns):
            write(x, new + j, read(x, old + j))


@compiled
def fetch(x, blocks, number, top, bottom, columns, y, distinct, entry, width, factor):
    """Rows of a product, those of the tokens' distinct words, times ``factor``; row 0 has its word at ``entry``."""
    target = lying(blocks, number)
    for i in range(top, bottom):
        new, old = start(target, i), distinct[entry + i] * width + shift(target, i) + ALIGNED
        for j in range(columns):
            write(x, new + j, factor * read(y, old + j))


@compiled
def exchange(x, blocks, number, top, bottom, columns, line, width, into, factor):
    """Rows of a block from (or ``into``) consecutive lines of ``width`` entries at ``line``, times ``factor``."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, other = start(block, i), line + (i - top) * width + shift(block, i)
        if into:
            for j in range(columns):
                write(x, other + j, factor * read(x, at + j))
        else:
            for j in range(columns):
                write(x, at + j, factor * read(x, other + j))


@compiled
def mix(x, blocks, other, number, top, bottom, columns, share):
    """Residual: ``share`` of the other block, 1 - ``share`` of this one."""
    block, other = lying(blocks, number), lying(blocks, other)
    for i in range(top, bottom):
        at, old = start(block, i), start(other, i)
        for j in range(columns):
            write(x, at + j, share * read(x, old + j) + (ONE - share) * held(x, at + j))


@compiled
def window_sum(x, blocks, source, target, top, bottom, columns, half):
    """Sums along diagonals: row i, column j of the target from i + s, j + s of the source, |s| <= half."""
    source, target = lying(blocks, source), lying(blocks, target)
    for i in range(top, bottom):
        at, middle = start(target, i), beside(source, i, 0)
        for j in range(columns):
            write(x, at + j, read(x, middle + j))
        step = 1
        while step < half:
            a, b = beside(source, i, -step), beside(source, i, step)
            c, d = beside(source, i, -step - 1), beside(source, i, step + 1)
            for j in range(columns):
                more = (read(x, a + j) + read(x, b + j)) + (read(x, c + j) + read(x, d + j))
                write(x, at + j, held(x, at + j) + more)
            step += 2
        if step == half:
            a, b = beside(source, i, -half), beside(source, i, half)
            for j in range(columns):
                write(x, at + j, held(x, at + j) + (read(x, a + j) + read(x, b + j)))


@compiled
def affine(k, t, blocks, number, top, bottom, columns, weight, bias, mask, kind):
    """K <- (weight K + bias) mask and Theta <- K + weight Theta. Kind 0: no Theta wanted, 2: there was none."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, left = start(block, i), shift(block, i)
        if kind == 0:
            for j in range(columns):
                write(k, at + j, (weight * held(k, at + j) + bias) * read(mask, left + j))
        elif kind == 1:
            for j in range(columns):
                real = read(mask, left + j)
                cov = (weight * held(k, at + j) + bias) * real
                write(k, at + j, cov)
                write(t, at + j, cov + weight * held(t, at + j) * real)
        else:
            for j in range(columns):
                cov = (weight * held(k, at + j) + bias) * read(mask, left + j)
                write(k, at + j, cov)
                write(t, at + j, cov)


@compiled
def attended(k, t, blocks, number, top, bottom, columns, weight, bias, mask, ntk):
    """K <- weight K + bias, Theta <- weight (Theta + 2 K) + bias, at real tokens: behind G K G'^T."""
    block = lying(blocks, number)
    for i in range(top, bottom):
        at, left = start(block, i), shift(block, i)
        if ntk:
            for j in range(columns):
                cov, real = held(k, at + j), read(mask, left + j)
                write(t, at + j, (weight * (held(t, at + j) + TWO * cov) + bias) * real)
                write(k, at + j, (weight * cov + bias) * real)
        else:
            for j in range(columns):
                write(k, at + j, (weight * held(k, at + j) + bias) * read(mask, left + j))


@compiled
def normalize(x, blocks, number, top, bottom, columns, scales, row_scales, slot, token):
    """LayerNorm: times the inverse standard deviations of row and columns."""
    block, factors = lying(blocks, number), scales[slot]
    for i in range(top, bottom):
        at, left, factor = start(block, i), shift(block, i), row_scales[slot, token + i]
        for j in range(columns):
            write(x, at + j, held(x, at + j) * (factor * read(factors, left + j)))


@compiled
def pool(x, blocks, number, top, bottom, columns, weights, token, place, mask, group, sums, which):
    """Add rows times their weights to ``sums``, (2, pools, width) float64. Over one group of rows they are added up
    in float32, which over thousands would lose digits.
    """
    block, weight_of, total, width = lying(blocks, number), weights[place], group[which], group.shape[1]
    for j in range(width):
        write(total, j, ZERO)
    for i in range(top, bottom):
        at, left, weight = start(block, i), shift(block, i), weight_of[token + i]
        for j in range(columns):
            write(total, left + j, held(total, left + j) + weight * read(x, at + j))
    settle(group, sums, place, which, mask)


@compiled
def settle(group, sums, place, which, factors):
    """Add the sums of a group of rows, times ``factors`` of columns, to those of all."""
    part, total = group[which], sums[which, place]
    for j in range(len(part)):
        write(total, j, held(total, j) + read(part, j) * read(factors, j))


@compiled
def correlate(k, t, blocks, number, top, bottom, columns, line, width, shares, in_values, sums, ntk):
    """Running sums of the 1/sqrt(d) attention: D of IK K, and E of IK Theta + IT K, float64 (2, columns).

    Rows of R lie at ``line``; I(K) = content K + share R. With ``in_values``: IK IK and 2 IK IT.
    """
    block, content, share = lying(blocks, number), shares[0], shares[1]
    for i in range(top, bottom):
        at, left, spread = start(block, i), shift(block, i), line + (i - top) * width + shift(block, i)
        for j in range(columns):
            inner = content * k[at + j] + share * k[spread + j]
            value = inner if in_values else k[at + j]
            sums[0, left + j] += inner * value
            if ntk:
                inner_ntk = content * t[at + j] + share * k[spread + j]
                value_ntk = inner_ntk if in_values else t[at + j]
                sums[1, left + j] += inner * value_ntk + inner_ntk * value


@compiled
def correlated(k, t, blocks, number, top, bottom, columns, line, width, shares, factors, bias, mask, ntk):
    """K <- s D IK + b^2 and Theta <- s (D (IT + 4 IK) + E IK) + b^2; ``factors`` is s (D, E), (2, columns)."""
    block, content, share = lying(blocks, number), shares[0], shares[1]
    for i in range(top, bottom):
        at, left, spread = start(block, i), shift(block, i), line + (i - top) * width + shift(block, i)
        for j in range(columns):
            inner = content * k[at + j] + share * k[spread + j]
            first, real = factors[0, left + j], mask[left + j]
            if ntk:
                inner_ntk = content * t[at + j] + share * k[spread + j]
                second = factors[1, left + j]
                t[at + j] = (first * (inner_ntk + FOUR * inner) + second * inner + bias) * real
            k[at + j] = (first * inner + bias) * real
