"""A symmetric matrix kept as its lower triangle, in column panels."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from tqdm import tqdm

from textkernels.solvers.blocks import LARGEST_BLOCK, add_product

DEFAULT_BLOCK = 2_500

Fill = Callable[[slice, slice], np.ndarray]


class LowerTriangle:
    """A symmetric n x n float64 matrix in half the memory.

    Panel j holds rows j0:n of columns j0:j1 (j0 = j * block), C-contiguous; its first `block` rows are the diagonal
    block, stored in full. That is 8 n (n + block) / 2 bytes: 2.75 GB for n = 25,000 instead of 5.

    Args: `panels`: the panels in order; `n`: rows; `block`: columns of every panel but the last.
    Build one with `zeros`, `from_blocks` or `from_dense`.
    """

    def __init__(self, panels: list[np.ndarray], n: int, block: int) -> None:
        self.panels = panels
        self.n = n
        self.block = block

    @classmethod
    def zeros(cls, n: int, block: int = DEFAULT_BLOCK) -> "LowerTriangle":
        """A matrix of zeros, to be filled with `set_block`.

        Raises: ValueError for n < 1, or a block outside 1 .. 4,000 (larger library factorisations are not safe).
        """
        if n < 1:
            raise ValueError(f"expected at least one row, got n = {n}; give the kernel of one or more documents")
        if not 1 <= block <= LARGEST_BLOCK:
            raise ValueError(
                f"expected a block of 1 to {LARGEST_BLOCK:,} columns, got {block}; leave it at the default"
            )
        panels = [np.zeros((n - start, min(block, n - start))) for start in range(0, n, block)]
        return cls(panels, n, block)

    @classmethod
    def from_blocks(
        cls, n: int, fill: Fill, block: int = DEFAULT_BLOCK, progress: bool = False, label: str = "Gram matrix"
    ) -> "LowerTriangle":
        """Fill from a function of two slices, asked only for blocks on and below the diagonal.

        Args:
            n: rows.
            fill: `fill(rows, columns)` gives K[rows, columns], float32 or float64, at most block x block.
            block: panel width.
            progress: show a bar named `label`.
        Raises: ValueError for a block of the wrong shape or with a value that is not finite.
        """
        triangle = cls.zeros(n, block)
        total = sum(_extent(rows) * _extent(columns) for rows, columns in triangle.blocks())
        with tqdm(total=total, desc=label, unit="entry", unit_scale=True, disable=not progress, delay=1) as bar:
            for rows, columns in triangle.blocks():
                triangle.set_block(rows, columns, fill(rows, columns))
                bar.update(_extent(rows) * _extent(columns))
        return triangle

    @classmethod
    def from_dense(cls, matrix: np.ndarray, block: int = DEFAULT_BLOCK) -> "LowerTriangle":
        """Keep the lower triangle of an (n, n) matrix, float32 or float64; what is above the diagonal is not read."""
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"expected a square matrix, got shape {matrix.shape}; pass train against train")
        return cls.from_blocks(len(matrix), lambda rows, columns: matrix[rows, columns], block)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """The (rows, columns) of every block on and below the diagonal, panel by panel."""
        for column in range(0, self.n, self.block):
            for row in range(column, self.n, self.block):
                yield slice(row, min(row + self.block, self.n)), slice(column, min(column + self.block, self.n))

    def set_block(self, rows: slice, columns: slice, values: np.ndarray) -> None:
        """Store one of `blocks()`; a diagonal block is made symmetric from its lower triangle.

        Raises: ValueError for the wrong shape, or a value that is not finite (naming its row: one NaN voids every
        solve).
        """
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (_extent(rows), _extent(columns)):
            expected = (_extent(rows), _extent(columns))
            raise ValueError(f"expected a block of shape {expected}, got {values.shape}; fill rows {rows} x {columns}")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0] + (rows.start, columns.start)
            raise ValueError(
                f"expected finite kernel values, got {values[row - rows.start, column - columns.start]} for documents "
                f"{row} and {column}; look for an empty document or a vector with NaN"
            )
        if rows.start == columns.start:
            values = np.tril(values) + np.tril(values, -1).T
        first = columns.start
        self.panels[first // self.block][rows.start - first : rows.stop - first] = values

    @property
    def nbytes(self) -> int:
        """Memory of the panels in bytes."""
        return sum(panel.nbytes for panel in self.panels)

    @property
    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(self.diagonal().sum())

    @property
    def mean_diagonal(self) -> float:
        """trace / n: the unit of `diag_reg` and of jitter."""
        return self.trace / self.n

    def diagonal(self) -> np.ndarray:
        """A copy of the diagonal, (n,)."""
        return np.concatenate([np.diagonal(panel) for panel in self.panels])

    def set_diagonal(self, values: np.ndarray | float) -> None:
        """Replace the diagonal by (n,) values, or by one number."""
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n,))
        for start, panel in self.columns():
            index = np.arange(panel.shape[1])
            panel[index, index] = values[start : start + panel.shape[1]]

    def add_diagonal(self, values: np.ndarray | float) -> None:
        """Add (n,) values, or one number, to the diagonal."""
        self.set_diagonal(self.diagonal() + values)

    def columns(self) -> Iterator[tuple[int, np.ndarray]]:
        """Pairs (first row and column j0, panel) in order."""
        yield from zip(range(0, self.n, self.block), self.panels, strict=True)

    def matmul(self, other: np.ndarray) -> np.ndarray:
        """The symmetric product K X, 2 n^2 m flops.

        Args: X (n, m) or (n,), any float dtype. Returns: float64 of the same shape.
        """
        other = np.asarray(other)
        right = np.ascontiguousarray(other.reshape(self.n, -1), dtype=np.float64)
        out = np.zeros_like(right)
        for start, panel in self.columns():
            width = panel.shape[1]
            stop = start + width
            add_product(out[start:stop], panel[:width], right[start:stop])
            add_product(out[start:stop], panel[width:], right[stop:], transpose_left=True)
            add_product(out[stop:], panel[width:], right[start:stop])
        return out.reshape(other.shape)

    def submatrix(self, indices: np.ndarray) -> np.ndarray:
        """K[indices][:, indices] as a full float64 matrix; the indices may come in any order."""
        indices = np.asarray(indices)
        out = np.empty((len(indices), len(indices)))
        for start, panel in self.columns():
            at_columns = np.flatnonzero((indices >= start) & (indices < start + panel.shape[1]))
            at_rows = np.flatnonzero(indices >= start)
            part = panel[np.ix_(indices[at_rows] - start, indices[at_columns] - start)]
            out[np.ix_(at_rows, at_columns)] = part
            out[np.ix_(at_columns, at_rows)] = part.T
        return out

    def to_dense(self) -> np.ndarray:
        """The full (n, n) matrix, twice the memory: for small n."""
        return self.submatrix(np.arange(self.n))

    def copy(self) -> "LowerTriangle":
        """An independent copy."""
        return LowerTriangle([panel.copy() for panel in self.panels], self.n, self.block)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file without pickle; `from_arrays` reads them back."""
        return {f"panel_{index:04d}": panel for index, panel in enumerate(self.panels)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "LowerTriangle":
        """The matrix that `arrays` described.

        Raises: ValueError when the panels do not fit together (a file cut short or mixed up).
        """
        names = sorted(name for name in arrays if name.startswith("panel_"))
        panels = [np.ascontiguousarray(arrays[name], dtype=np.float64) for name in names]
        if not panels:
            raise ValueError("expected arrays panel_0000, panel_0001, ..., got none; save the model again")
        n, block = panels[0].shape
        expected = [(n - start, min(block, n - start)) for start in range(0, n, block)]
        if [panel.shape for panel in panels] != expected:
            raise ValueError(
                f"expected panels of shapes {expected}, got {[p.shape for p in panels]}; save the model again"
            )
        return cls(panels, n, block)


def _extent(part: slice) -> int:
    return int(part.stop - part.start)
