"""Linear solvers: factor the regularised kernel once, solve many times. One file a solver.

| solver | for | cost | memory |
|---|---|---|---|
| `CholeskyFactor` | any kernel, from its Gram matrix as a `LowerTriangle` | n^3 / 3 | 4 n^2 bytes |
| `PrimalRidge` | a kernel that is linear in m < n features | n m^2 + 9 m^3 | 8 n m bytes |

Both have `coefficients`, `variance`, `solve`, `inverse_diagonal`, `log_determinant`, `noise`, `diag_reg`, `jitter`,
`nbytes`, `arrays` and `from_arrays`; a third solver with these names works everywhere.
"""

from textkernels.solvers.cholesky import CholeskyFactor
from textkernels.solvers.ensemble import DenseEnsemble, PrimalEnsemble
from textkernels.solvers.lower_triangle import LowerTriangle
from textkernels.solvers.primal import LARGEST_FEATURES, PrimalRidge

__all__ = ["LARGEST_FEATURES", "CholeskyFactor", "DenseEnsemble", "LowerTriangle", "PrimalEnsemble", "PrimalRidge"]
