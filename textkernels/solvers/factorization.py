"""The blocked Cholesky factorisation, in place and able to undo itself."""

import numpy as np
from tqdm import tqdm

from textkernels.solvers.blocks import add_product, cholesky_block, solve_triangular_right
from textkernels.solvers.lower_triangle import LowerTriangle


def factorize_in_place(matrix: LowerTriangle, smallest_pivot: float, progress: bool = False) -> bool:
    """Replace a symmetric positive definite matrix by its lower Cholesky factor, n^3 / 3 flops, no second copy.

    Right-looking: the diagonal block by the library, the panel below it by a triangular solve, the panels to its right
    by matrix products, which are nearly all of the work and run on every core.

    Args:
        matrix: changed in place.
        smallest_pivot: a pivot (the variance of a document given those before it) below this counts as zero. Rounding
        alone
            leaves pivots of about 1e-16 for repeated documents; dividing by them would give weights of 1e16.
        progress: show a bar.
    Returns: True, or False when the matrix is not positive definite; it is then what it was, up to rounding.
    """
    panels = matrix.panels
    updates = len(panels) * (len(panels) + 1) // 2
    with tqdm(total=updates, desc="Cholesky", unit="panel", disable=not progress, delay=1) as bar:
        for index, panel in enumerate(panels):
            width = panel.shape[1]
            saved = panel[:width].copy()
            info = cholesky_block(panel[:width])
            if info or not (np.diagonal(panel) ** 2 >= smallest_pivot).all():
                panel[:width] = saved
                _undo(matrix, index)
                return False
            solve_triangular_right(panel[:width], panel[width:])
            bar.update()
            for right in range(index + 1, len(panels)):
                _update_panel(matrix, index, right, -1.0)
                bar.update()
    return True


def _update_panel(matrix: LowerTriangle, left: int, right: int, scale: float) -> None:
    """Add scale * X X^T to one panel, X being the finished panel `left` below its diagonal block."""
    offset = (right - left) * matrix.block
    rows = matrix.panels[left][offset:]
    out = matrix.panels[right]
    add_product(out, rows, rows[: out.shape[1]], scale, transpose_right=True)


def _undo(matrix: LowerTriangle, finished: int) -> None:
    """Turn `finished` factorised panels, and the updates they made, back into the matrix.

    The product of the factors has the backward error of the factorisation, about 1e-16 of the diagonal: far below the
    smallest jitter, so trying again needs neither a second copy nor a second computation of the kernel.
    """
    for index in reversed(range(finished)):
        for right in range(index + 1, len(matrix.panels)):
            _update_panel(matrix, index, right, 1.0)
        panel = matrix.panels[index]
        width = panel.shape[1]
        factor = panel[:width].copy()
        for row in range(0, len(panel), width):
            panel[row : row + width] = panel[row : row + width] @ factor.T
