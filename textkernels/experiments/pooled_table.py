"""Networks behind one pooled token-pair kernel: the token work is looked up, only the layers after it are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from textkernels.architecture import Architecture
from textkernels.tile import Tile


@dataclass(frozen=True)
class PooledTable:
    """Pooled kernels of n training documents with themselves and with m others.

    Engines compute in float32, so no more is kept. Variances are rounded alike: equal documents then correlate
    exactly, where float64 beside float32 would cost 3e-4 in the tangent kernel behind a ReLU.

    Attributes:
        nngp, ntk: float32 (n + m, n), the training documents first.
        variance: K of every document with itself, float32 (n + m,).
    """

    nngp: np.ndarray
    ntk: np.ndarray
    variance: np.ndarray


class PooledKernel:
    """Blocks of NNGP and NTK Gram matrices, as :class:`textkernels.feature_kernel.FeatureKernel` has them.

    Prepared documents are integer arrays, places in the table; columns must be training documents.

    Args:
        architecture: whose token layers the table was made with.
        table: pooled kernels.
    """

    def __init__(self, architecture: Architecture, table: PooledTable) -> None:
        self.architecture, self.table = architecture, table

    def block(
        self, rows: np.ndarray, columns: np.ndarray, ntk: bool, diagonal: int | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """K and, if asked for, Theta between documents, float64 (len(rows), len(columns)).

        Args:
            rows, columns: places in the table.
            ntk: whether Theta is wanted.
            diagonal: row i is the same document as column i + diagonal; None: unknown or none.
        """
        table, place = self.table, np.ix_(rows, columns)
        tile = Tile(
            table.nngp[place].astype(np.float64),
            table.ntk[place].astype(np.float64) if ntk else None,
            table.variance[rows].astype(np.float64),
            table.variance[columns].astype(np.float64),
            diagonal,
        )
        for layer in self.architecture.document_layers:
            layer.tile(tile)
        return tile.nngp, tile.ntk
