"""What layers do to one row of a token-pair block: loops that stay in the first-level cache and vectorize.

A row is ``columns`` entries from offset ``at`` of flat float32 scratch: ``k`` holds K and ``t`` Theta, laid out alike.
What belongs to columns (variances, digests, the mask of real tokens) comes as a row of its own that starts at the
same column; what belongs to the row comes as numbers.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN, SECTOR

# NaN and infinity stay what they are, so that overflow shows; a division that checks for zero would not vectorize.
compiled = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
ZERO, ONE, TWO, FOUR = (np.float32(x) for x in (0, 1, 2, 4))
PI, HALF_PI, TURN = np.float32(np.pi), np.float32(np.pi / 2), np.float32(1 / (2 * np.pi))
TWO_BY_PI, FOUR_BY_PI = np.float32(2 / np.pi), np.float32(4 / np.pi)
NEAR = np.float32(0.99)  # unlike tokens of one digest, one pair in 4e9, must not correlate perfectly
BELOW_ONE = np.float32(1 - 2**-23)

A0, A1, A2, A3, A4, A5, A6, A7 = ARCCOS
S0, S1, S2, S3, S4, S5, S6 = SECTOR
N0, N1, N2, N3, N4, N5, N6 = ARCSIN


@compiled
def clear(x, at, columns):
    """Zeros."""
    row = x[at : at + columns]
    for j in range(columns):
        row[j] = ZERO


@compiled
def copy(x, source, at, columns, factor):
    """Another row of the same scratch times ``factor``."""
    row, other = x[at : at + columns], x[source : source + columns]
    for j in range(columns):
        row[j] = factor * other[j]


@compiled
def fetch(x, at, y, source, columns, factor):
    """A row of other scratch times ``factor``."""
    row, other = x[at : at + columns], y[source : source + columns]
    for j in range(columns):
        row[j] = factor * other[j]


@compiled
def mix(x, other, at, columns, share):
    """Residual: ``share`` of another row, 1 - ``share`` of this one."""
    row, rest = x[at : at + columns], x[other : other + columns]
    for j in range(columns):
        row[j] = share * rest[j] + (ONE - share) * row[j]


@compiled
def window_sum(x, source, step, count, at, columns):
    """Sum of ``count`` (odd) rows, each ``step`` entries after the one before: a window along a diagonal."""
    if count >= 9:
        _sum9(x, source, step, at, columns)
        done = 9
    elif count >= 5:
        _sum5(x, source, step, at, columns)
        done = 5
    elif count == 3:
        _sum3(x, source, step, at, columns)
        done = 3
    else:
        copy(x, source, at, columns, ONE)
        done = 1
    for i in range(done, count, 2):
        _add2(x, source + i * step, step, at, columns)


@compiled
def _sum3(x, source, step, at, columns):
    row = x[at : at + columns]
    a = x[source : source + columns]
    b = x[source + step : source + step + columns]
    c = x[source + 2 * step : source + 2 * step + columns]
    for j in range(columns):
        row[j] = a[j] + b[j] + c[j]


@compiled
def _sum5(x, source, step, at, columns):
    row = x[at : at + columns]
    a = x[source : source + columns]
    b = x[source + step : source + step + columns]
    c = x[source + 2 * step : source + 2 * step + columns]
    d = x[source + 3 * step : source + 3 * step + columns]
    e = x[source + 4 * step : source + 4 * step + columns]
    for j in range(columns):
        row[j] = (a[j] + b[j]) + (c[j] + d[j]) + e[j]


@compiled
def _sum9(x, source, step, at, columns):
    row = x[at : at + columns]
    a = x[source : source + columns]
    b = x[source + step : source + step + columns]
    c = x[source + 2 * step : source + 2 * step + columns]
    d = x[source + 3 * step : source + 3 * step + columns]
    e = x[source + 4 * step : source + 4 * step + columns]
    f = x[source + 5 * step : source + 5 * step + columns]
    g = x[source + 6 * step : source + 6 * step + columns]
    h = x[source + 7 * step : source + 7 * step + columns]
    i = x[source + 8 * step : source + 8 * step + columns]
    for j in range(columns):
        row[j] = ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j])) + i[j]


@compiled
def _add2(x, source, step, at, columns):
    row = x[at : at + columns]
    a = x[source : source + columns]
    b = x[source + step : source + step + columns]
    for j in range(columns):
        row[j] += a[j] + b[j]


@compiled
def affine(k, t, at, columns, weight, bias, mask, ntk, fresh):
    """K <- (weight K + bias) mask and Theta <- K + weight Theta; ``fresh``: Theta was 0."""
    cov, real = k[at : at + columns], mask[:columns]
    for j in range(columns):
        cov[j] = (weight * cov[j] + bias) * real[j]
    if ntk:
        tangent = t[at : at + columns]
        if fresh:
            for j in range(columns):
                tangent[j] = cov[j]
        else:
            for j in range(columns):
                tangent[j] = cov[j] + weight * tangent[j] * real[j]


@compiled
def attended(k, t, at, columns, weight, bias, mask, ntk):
    """K <- weight K + bias, Theta <- weight (Theta + 2 K) + bias, at real tokens: behind G K G'^T."""
    cov, real = k[at : at + columns], mask[:columns]
    if ntk:
        tangent = t[at : at + columns]
        for j in range(columns):
            tangent[j] = (weight * (tangent[j] + TWO * cov[j]) + bias) * real[j]
    for j in range(columns):
        cov[j] = (weight * cov[j] + bias) * real[j]


@compiled
def normalize(x, at, columns, factors, factor):
    """LayerNorm: times the inverse standard deviations of row and columns."""
    row, each = x[at : at + columns], factors[:columns]
    for j in range(columns):
        row[j] *= factor * each[j]


@compiled
def relu(k, t, at, columns, sizes, inverses, digests, size, inverse, digest, ntk):
    """Arc-cosine kernels of order 1 (K) and 0 (Theta).

    With c the correlation and u = 1 - |c|: arccos |c| = sqrt(u) P(u) and sqrt(1 - c^2) - |c| arccos |c|
    = u sqrt(u) S(u), so that one square root and two polynomials give both.

    Args:
        sizes, inverses: square roots of the variances of columns and their inverses, 0 where the variance is.
        digests: int32, of the state of columns: equal states correlate exactly, which rounding would blur
            (it cost 1e-4 in Theta).
        size, inverse, digest: the same of the row.
    """
    cov, scale = k[at : at + columns], sizes[:columns]
    unit, state = inverses[:columns], digests[:columns]
    size = size * TURN
    if ntk:
        tangent = t[at : at + columns]
        for j in range(columns):
            c = cov[j] * (inverse * unit[j])
            u = max(ONE - abs(c), ZERO)
            u = ZERO if (state[j] == digest) & (c > NEAR) else u
            root = np.sqrt(u)
            angle = root * (((((((A7 * u + A6) * u + A5) * u + A4) * u + A3) * u + A2) * u + A1) * u + A0)
            sector = u * root * ((((((S6 * u + S5) * u + S4) * u + S3) * u + S2) * u + S1) * u + S0)
            cov[j] = (size * scale[j]) * (sector + PI * max(c, ZERO))
            tangent[j] = tangent[j] * (TURN * (PI - angle if c >= ZERO else angle))
    else:
        for j in range(columns):
            c = cov[j] * (inverse * unit[j])
            u = max(ONE - abs(c), ZERO)
            u = ZERO if (state[j] == digest) & (c > NEAR) else u
            sector = u * np.sqrt(u) * ((((((S6 * u + S5) * u + S4) * u + S3) * u + S2) * u + S1) * u + S0)
            cov[j] = (size * scale[j]) * (sector + PI * max(c, ZERO))


@compiled
def erf(k, t, at, columns, inverses, digests, inverse, digest, ntk):
    """Arcsine kernel and its derivative: with x = 2 K / sqrt q and v = 1 - x^2, K <- (2 / pi) arcsin x and
    Theta <- (4 / pi) Theta / sqrt(q v). The smaller of |x| and sqrt v goes into the series.

    Args:
        inverses: 1 / sqrt(1 + 2 A'_jj) of columns, 0 where there is no token: q^(-1/2) is a product of two.
        digests: int32, of the state of columns: equal states have K = A, so that v is known without the
            cancellation that makes it useless for large variances.
        inverse, digest: the same of the row.
    """
    cov, unit, state = k[at : at + columns], inverses[:columns], digests[:columns]
    own = inverse * inverse * (TWO - inverse * inverse)  # 1 - (2 A / (1 + 2 A))^2
    if ntk:
        tangent = t[at : at + columns]
        for j in range(columns):
            scale = inverse * unit[j]
            x = TWO * cov[j] * scale
            a = min(abs(x), BELOW_ONE)
            v = (ONE - a) * (ONE + a)
            v = own if (state[j] == digest) & (v < own * FOUR) else v
            root = np.sqrt(v)
            y = min(a, root)
            z = y * y
            arc = y + y * z * ((((((N6 * z + N5) * z + N4) * z + N3) * z + N2) * z + N1) * z + N0)
            arc = arc if a <= root else HALF_PI - arc
            cov[j] = TWO_BY_PI * (arc if x >= ZERO else -arc)
            tangent[j] = tangent[j] * (FOUR_BY_PI * scale / root)
    else:
        for j in range(columns):
            x = TWO * cov[j] * (inverse * unit[j])
            a = min(abs(x), BELOW_ONE)
            v = (ONE - a) * (ONE + a)
            v = own if (state[j] == digest) & (v < own * FOUR) else v
            root = np.sqrt(v)
            y = min(a, root)
            z = y * y
            arc = y + y * z * ((((((N6 * z + N5) * z + N4) * z + N3) * z + N2) * z + N1) * z + N0)
            arc = arc if a <= root else HALF_PI - arc
            cov[j] = TWO_BY_PI * (arc if x >= ZERO else -arc)


@compiled
def add(sums, x, at, columns, weight):
    """Add ``weight`` times a row to float32 sums."""
    total, row = sums[:columns], x[at : at + columns]
    for j in range(columns):
        total[j] += weight * row[j]


@compiled
def correlate(k, t, at, columns, positions, content, place, in_values, sums, ntk):
    """Running sums of the 1/sqrt(d) attention: D of IK K, and E of IK Theta + IT K, float64 (2, columns).

    ``positions`` is the row of R; I(K) = content K + place R. With ``in_values``: IK IK and 2 IK IT.
    """
    cov, spread = k[at : at + columns], positions[:columns]
    first, second = sums[0, :columns], sums[1, :columns]
    tangent = t[at : at + columns] if ntk else cov
    for j in range(columns):
        inner = content * cov[j] + place * spread[j]
        value = inner if in_values else cov[j]
        first[j] += inner * value
        if ntk:
            inner_ntk = content * tangent[j] + place * spread[j]
            second[j] += inner * (inner_ntk if in_values else tangent[j]) + inner_ntk * value


@compiled
def correlated(k, t, at, columns, positions, content, place, factors, bias, mask, ntk):
    """K <- s D IK + b^2 and Theta <- s (D (IT + 4 IK) + E IK) + b^2; ``factors`` is s (D, E), (2, columns)."""
    cov, spread, real = k[at : at + columns], positions[:columns], mask[:columns]
    first, second = factors[0, :columns], factors[1, :columns]
    if ntk:
        tangent = t[at : at + columns]
        for j in range(columns):
            inner = content * cov[j] + place * spread[j]
            inner_ntk = content * tangent[j] + place * spread[j]
            tangent[j] = (first[j] * (inner_ntk + FOUR * inner) + second[j] * inner + bias) * real[j]
    for j in range(columns):
        cov[j] = (first[j] * (content * cov[j] + place * spread[j]) + bias) * real[j]
