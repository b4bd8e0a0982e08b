"""Standard errors of Gram matrices that are Monte Carlo estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel
from textkernels.gram_matrix import check_request, fill_gram
from textkernels.monte_carlo.kernel import MonteCarloKernel


def gram_standard_errors(
    architecture: Architecture,
    documents: Sequences,
    other: Sequences | None = None,
    kind: str = "nngp",
    *,
    progress: bool = False,
) -> Any:
    """Standard error of each entry of :func:`textkernels.gram`, from the draws of attention scores.

    A delete-a-group jackknife over the draws that ``gram`` uses: the entry without group g of G is e_g, their mean e,
    and the standard error sqrt((G - 1) / G sum_g (e_g - e)^2); itself good to about 18 %. It falls with
    1 / sqrt(``samples``) of the attention. Entries share draws, so their errors are correlated. Where the kernel has
    a closed form it is exact, and all errors are 0.

    Args:
        architecture, documents, other, kind: as for ``gram``.
        progress: show a progress bar on standard error.

    Returns: float64 (n, m), or the pair (nngp, ntk) for ``kind="both"``.

    Raises:
        ValueError, NotImplementedError: as ``gram``.
    """
    check_request(architecture, documents, other, kind)
    kernel = choose_kernel(architecture)
    if isinstance(kernel, MonteCarloKernel):
        longest = max(int(part.lengths.max(initial=1)) for part in (documents, other) if part is not None)
        rows = kernel.prepare(documents, longest, progress)
        columns = rows if other is None else kernel.prepare(other, longest, progress)
        nngp, ntk = fill_gram(_Errors(kernel), rows, columns, kind, np.float64, other is None, progress)
    else:
        nngp, ntk = np.zeros((2, len(documents), len(documents if other is None else other)))
    return {"nngp": nngp, "ntk": ntk, "both": (nngp, ntk)}[kind]


class _Errors:
    """Blocks of standard errors in place of a kernel's values."""

    def __init__(self, kernel: MonteCarloKernel) -> None:
        self.block = kernel.standard_errors
