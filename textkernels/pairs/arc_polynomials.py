"""Polynomials for arc functions in float32, coefficients from the constant term up.

Chebyshev interpolation in 40-digit arithmetic; errors of the exact polynomials on their interval:

- ARCCOS: arccos(1 - u) / sqrt(u) on [0, 1], 2.5e-8;
- SECTOR: (sqrt(1 - a^2) - a arccos a) / u^(3/2) with a = 1 - u, on [0, 1], 2.0e-9;
- ARCSIN: (arcsin(y) / y - 1) / y^2 in y^2 on [0, 1/2], 1.1e-7, so that arcsin(y) is good to 4e-8.
"""

import numpy as np

ARCCOS = tuple(
    np.float32(
        [
            1.414213543718767,
            0.11785343938986018,
            0.026470001757060737,
            0.00824419607719245,
            0.0013990023281213076,
            0.0034572624412867025,
            -0.0020781487321244194,
            0.0012370048531352043,
        ]
    )
)
SECTOR = tuple(
    np.float32(
        [
            0.9428090539586766,
            0.04713927958042259,
            0.007594096005085531,
            0.0016522815718853048,
            0.000754027666410906,
            -0.00018679682327018567,
            0.0002380421156260582,
        ]
    )
)
ARCSIN = tuple(
    np.float32(
        [
            0.16666674734411177,
            0.07498478311891317,
            0.04510614691224368,
            0.02518520140057461,
            0.049307134943311105,
            -0.05019190746654155,
            0.08603754478602713,
        ]
    )
)
