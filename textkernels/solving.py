"""Which solver makes a posterior of the training documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from textkernels.features import DocumentFeatures
from textkernels.full_selection import select_diag_reg_full
from textkernels.posterior import NNGPPosterior, NTKPosterior
from textkernels.selection import DiagRegSelection, select_diag_reg, select_diag_reg_primal
from textkernels.solvers import LARGEST_FEATURES, CholeskyFactor, LowerTriangle, PrimalRidge

AUTOMATIC = ("auto", "auto-full")


class Solved(NamedTuple):
    """A posterior, and what predictions with it need.

    Args:
        posterior: NNGPPosterior or NTKPosterior.
        selection: the table behind an automatic diag_reg, or None.
        train: the training documents that test documents meet; None where the posterior works on features.
    """

    posterior: NNGPPosterior | NTKPosterior
    selection: DiagRegSelection | None
    train: Any


class Way(NamedTuple):
    """A way to a posterior.

    Args:
        applies: whether it can, and should, for a kernel and its prepared training documents.
        solve: with the arguments of :func:`solve`.
    """

    applies: Callable[[Any, Any], bool]
    solve: Callable[..., Solved]


def solve(
    kernel: Any,
    train: Any,
    targets: np.ndarray,
    ntk: bool,
    diag_reg: float | str,
    seed: int = 0,
    progress: bool = False,
) -> Solved:
    """The posterior of the training documents by the first of ``WAYS`` that applies.

    A kernel that is linear in fewer features than documents is solved in its features (primal ridge), any other
    through a Cholesky factor in n^2 / 2 float64 numbers (the NTK keeps the NNGP matrix beside it).

    Args:
        kernel: gives blocks of the Gram matrix, see :func:`textkernels.engines.choose_kernel`.
        train: n prepared documents.
        targets: (n, C) from ``encode_targets``.
        ntk: NTK rather than NNGP.
        diag_reg: in units of the mean diagonal; or "auto": by leave-one-out squared error on a subset of at most
            3,000 documents; or "auto-full": on all of them, from the subset's choice on to better neighbors, for three
            or four factorizations more and the memory of a second matrix.
        seed: of subsets.
        progress: show progress bars.

    Raises:
        ValueError: a diag_reg that is neither, or a kernel that is no covariance; the message says what to do.
    """
    diag_reg = check_diag_reg(diag_reg)
    way = next(way for way in WAYS if way.applies(kernel, train))
    return way.solve(kernel, train, targets, ntk, diag_reg, seed, progress)


def check_diag_reg(value: Any) -> float | str:
    """One of ``AUTOMATIC``, or the number, as a float; ValueError for anything else."""
    if isinstance(value, str) and value in AUTOMATIC:
        return value
    try:
        number = math.nan if isinstance(value, bool | np.bool_) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"expected diag_reg to be auto, auto-full or a number >= 0, got {value!r}")
    return number


def linear_in_few_features(kernel: Any, train: Any) -> bool:
    """Whether the primal solver applies: explicit features to the end, fewer than documents."""
    if not isinstance(train, DocumentFeatures) or not kernel.architecture.linear:
        return False
    return max(train.nngp.shape[1], train.ntk.shape[1]) < min(len(train), LARGEST_FEATURES)


def gram_triangles(
    kernel: Any, train: Any, ntk: bool, progress: bool = False
) -> tuple[LowerTriangle, LowerTriangle | None]:
    """K and, if asked for, Theta of the training documents in one pass, as lower triangles."""
    from tqdm import tqdm

    n = len(train)
    nngp = LowerTriangle.zeros(n)
    tangent = LowerTriangle.zeros(n) if ntk else None
    blocks = list(nngp.blocks())
    for rows, columns in tqdm(blocks, "Gram matrix", unit="block", disable=not progress, delay=1):
        same = 0 if rows.start == columns.start else None
        for triangle, block in zip((nngp, tangent), kernel.block(train[rows], train[columns], ntk, same), strict=True):
            if triangle is not None:
                triangle.set_block(rows, columns, block)
    return nngp, tangent


def _primal(
    kernel: Any, train: DocumentFeatures, targets: np.ndarray, ntk: bool, diag_reg: float | str, *_: Any
) -> Solved:
    ridge = PrimalRidge.factor(train.ntk if ntk else train.nngp, 1.0)
    selection = select_diag_reg_primal(ridge, targets) if diag_reg in AUTOMATIC else None
    ridge = ridge.with_diag_reg(selection.diag_reg if selection else float(diag_reg))
    posterior = NTKPosterior.fit(ridge, train.nngp, targets) if ntk else NNGPPosterior.fit(ridge, targets)
    return Solved(posterior, selection, None)


def _cholesky(
    kernel: Any, train: Any, targets: np.ndarray, ntk: bool, diag_reg: float | str, seed: int, progress: bool
) -> Solved:
    nngp, tangent = gram_triangles(kernel, train, ntk, progress)
    matrix = nngp if tangent is None else tangent
    selection = select_diag_reg(matrix, targets, seed=seed, progress=progress) if diag_reg in AUTOMATIC else None
    if diag_reg == "auto-full" and selection is not None and selection.n_documents < len(train):
        selection = select_diag_reg_full(matrix, targets, start=selection.diag_reg, progress=progress)
    factor = CholeskyFactor.factor(matrix, selection.diag_reg if selection else float(diag_reg), progress=progress)
    posterior = NTKPosterior.fit(factor, nngp, targets) if ntk else NNGPPosterior.fit(factor, targets)
    return Solved(posterior, selection, train)


def _any_kernel(kernel: Any, train: Any) -> bool:
    return True


WAYS = (Way(linear_in_few_features, _primal), Way(_any_kernel, _cholesky))
