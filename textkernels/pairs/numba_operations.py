"""Operations on rows of token-pair blocks, and what is kept of a block: the parts of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LINES = 9  # rows of a window that an activation takes along, at most

GROUP = 16  # rows that one operation does in a row: to dispatch it costs as much as a row of work
LARGE_GROUP = 64  # where no block is kept, so that more rows need no more cache
ALIGNED = 16  # floats in a cache line
PRODUCT_ROWS = 96  # rows of a block that meet attention weights at a time

CODES = (
    *("source", "window", "affine", "relu", "erf", "norm", "mix", "pool"),
    *("attend", "attended", "correlate", "correlated", "copy"),
)
CODE = {name: code for code, name in enumerate(CODES)}


class Operation(NamedTuple):
    """One operation on rows; a column of ``Program.operations`` each, but for the parameters.

    Args:
        code: see CODES; ``stage``: in which it runs.
        lag: rows by which it runs behind the first block of the stage.
        source, other, target: blocks, by number. -1: none; for the source of a window, the products of features.
        half: of the window, in rows; -1: no window.
        slot: of the variances of tokens; ``digest``: of their digests.
        fresh: of ``source`` and ``window``: 1 where there is no Theta yet and nobody looks for it.
        affine: whether K <- weight K + bias, Theta <- K + weight Theta is part of it; 2 where there is no Theta yet.
        place: which attention or pooling; of a relu, a pooling that takes its values instead of a block.
        weight, bias: parameters, squares of standard deviations or shares.
    """

    code: int
    stage: int
    lag: int
    source: int = -1
    other: int = -1
    target: int = -1
    half: int = -1
    slot: int = -1
    digest: int = -1
    fresh: int = 0
    affine: int = 0
    place: int = -1
    weight: float = 1.0
    bias: float = 0.0


FIELD = {name: place for place, name in enumerate(Operation._fields[:12])}


@dataclass
class Block:
    """Rows of one block in scratch.

    Args:
        stage: in which it is made; ``lag``: rows behind the first block of that stage.
        whole: whether all rows are kept; else the last ``rows``.
        skewed: whether windows read it: rows are one entry short of whole cache lines then, so that neighbours on a
            diagonal are whole lines apart and every load of a window is aligned; ``rows`` is a multiple of ALIGNED.
    """

    stage: int
    lag: int
    whole: bool = False
    rows: int = GROUP
    skewed: bool = False


class Layout(NamedTuple):
    """Where blocks and attention products lie in float32 scratch of ``size`` entries; see :meth:`Program.layout`.

    Args:
        blocks: int64 (blocks, 6), as :mod:`textkernels.pairs.numba_rows` wants them.
        attention: int64 (attentions, 4): where rows on their way into attention weights lie, those on their way out,
            K G'^T, and how many rows that has.
        zeros: where a line of zeros is.
    """

    blocks: np.ndarray
    attention: np.ndarray
    zeros: int
    size: int
