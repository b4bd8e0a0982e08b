"""Linear solvers: factor the regularised kernel once, solve many times. One file a solver.

| solver | for | cost | memory |
|---|---|---|---|
| `CholeskyFactor` | any kernel, from its Gram matrix as a `LowerTriangle` | n^3 / 3 | 4 n^2 bytes |
| `PrimalRidge` | a kernel that is linear in m < n features | n m^2 + 9 m^3 | 8 n m bytes |

A third solver has the members of `Solver`, a row in `SOLVERS` (saved models name their solver) and one in
`textkernels.solving.WAYS`, which says when it is used.
"""

from textkernels.solvers.cholesky import CholeskyFactor
from textkernels.solvers.ensemble import DenseEnsemble, PrimalEnsemble
from textkernels.solvers.interfaces import Ensemble, Solver
from textkernels.solvers.lower_triangle import LowerTriangle
from textkernels.solvers.primal import LARGEST_FEATURES, PrimalRidge

SOLVERS: dict[str, type[CholeskyFactor] | type[PrimalRidge]] = {
    solver.name: solver for solver in (CholeskyFactor, PrimalRidge)
}

__all__ = [
    "LARGEST_FEATURES",
    "SOLVERS",
    "CholeskyFactor",
    "DenseEnsemble",
    "Ensemble",
    "LowerTriangle",
    "PrimalEnsemble",
    "PrimalRidge",
    "Solver",
]
