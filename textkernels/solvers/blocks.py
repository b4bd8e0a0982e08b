"""In-place BLAS and LAPACK operations on C-ordered float64 blocks.

A C-ordered block is the transpose of a Fortran-ordered one, so every routine below is called on transposes and neither
reads nor writes a copy. The one call that factorises gets at most `LARGEST_BLOCK` rows: beyond that, multi-threaded
library Cholesky has been seen to write outside its matrix and to end the process.
"""

import numpy as np
from scipy.linalg import blas, lapack

LARGEST_BLOCK = 4_000


def add_product(
    out: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    scale: float = 1.0,
    *,
    transpose_left: bool = False,
    transpose_right: bool = False,
) -> None:
    """Add a matrix product to a block: out += scale * op(left) @ op(right), op being the identity or the transpose.

    Args: three C-contiguous float64 matrices; `out` (r, c) is changed in place.
    """
    if out.size == 0 or left.size == 0:
        return
    result = blas.dgemm(
        scale, right.T, left.T, 1.0, out.T, trans_a=transpose_right, trans_b=transpose_left, overwrite_c=1
    )
    _keep(out, result.T)


def solve_triangular(lower: np.ndarray, out: np.ndarray, *, transpose: bool = False) -> None:
    """Solve with a lower triangle on the left: out <- L^-1 out, or L^-T out.

    Args: `lower` (b, b) and `out` (b, m), C-contiguous float64; `out` is changed in place.
    """
    if out.size:
        result = blas.dtrsm(1.0, lower.T, out.T, side=1, lower=0, trans_a=transpose, overwrite_b=1)
        _keep(out, result.T)


def solve_triangular_right(lower: np.ndarray, out: np.ndarray) -> None:
    """Solve with a transposed lower triangle on the right: out <- out L^-T.

    Args: `lower` (b, b) and `out` (r, b), C-contiguous float64; `out` is changed in place.
    """
    if out.size:
        result = blas.dtrsm(1.0, lower.T, out.T, side=0, lower=0, trans_a=1, overwrite_b=1)
        _keep(out, result.T)


def cholesky_block(block: np.ndarray) -> int:
    """Factorise a block in place: block <- L with L L^T = block; what is above the diagonal becomes zero.

    Only the lower triangle is read, so rounding that makes the block slightly unsymmetric does no harm.
    Args: `block` (b, b), C-contiguous float64, b at most `LARGEST_BLOCK`.
    Returns: 0, or k > 0 when the leading k x k part is not positive definite (the block is then in no useful state).
    """
    result, info = lapack.dpotrf(block.T, lower=0, clean=1, overwrite_a=1)
    _keep(block, result.T)
    return int(info)


def _keep(out: np.ndarray, result: np.ndarray) -> None:
    """Copy a result back if the library could not work in place (an unusual stride, for one)."""
    if result.ctypes.data != out.ctypes.data:
        out[...] = result
