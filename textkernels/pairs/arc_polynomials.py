"""Polynomials for arc functions in float32, coefficients from the constant term up.

Best uniform approximations, found by Remez exchange in 40 digits; errors of the polynomials themselves:

- ARCCOS: arccos(1 - u) / sqrt(u) for u in [0, 1], 1.5e-7;
- SINE: sqrt(1 - (1 - u)^2) / sqrt(u) = sqrt(2 - u), likewise, 1.7e-7;
- ARCSIN: (arcsin(y) / y - 1) / y^2 as a function of y^2 in [0, 1/2], 1.1e-7, so that arcsin(y) is good to 4e-8.
"""

import numpy as np


def _float32(*coefficients: float) -> tuple[np.float32, ...]:
    return tuple(np.float32(coefficient) for coefficient in coefficients)


ARCCOS = _float32(
    1.414213716449702,
    0.11783707501406816,
    0.026725056881629298,
    0.006745518796757459,
    0.0056085190951024105,
    -0.0026297289995348043,
    0.0022960154825112434,
)
SINE = _float32(
    1.414213390844302,
    -0.3535377282491288,
    -0.04442680812110669,
    -0.009768420517322294,
    -0.006721783703416698,
    0.002846968006533616,
    -0.002605446731068111,
)
ARCSIN = _float32(
    0.16666674734411177,
    0.07498478311891317,
    0.04510614691224368,
    0.02518520140057461,
    0.049307134943311105,
    -0.05019190746654155,
    0.08603754478602713,
)
