"""Documents of unequal length, stored flat: the one form in which token vectors leave this package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, eq=False)
class Sequences:
    """n documents of L_1 ... L_n token vectors, one after the other, without padding.

    Attributes:
        values: token vectors, shape (L_1 + ... + L_n, d), float32 or float64, C-contiguous, finite.
        lengths: tokens of each document, shape (n,), int64, each at least 1. n may be 0.

    Slices and single documents are views of ``values``. There is no mask value: whatever is in
    ``values`` is a real token, and padding exists only in what ``padded`` returns.

    Raises:
        ValueError: shapes that do not fit together, an empty document, a number that is not finite.
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]

    def __post_init__(self) -> None:
        values = np.ascontiguousarray(self.values)
        lengths = np.ascontiguousarray(self.lengths)
        if values.ndim != 2 or values.dtype not in FLOATS:
            raise ValueError(
                f"expected values of shape (tokens, d) in float32 or float64, got {values.shape} in {values.dtype}; "
                "use Sequences.from_arrays to build from a list of arrays"
            )
        if lengths.ndim != 1 or (lengths.size and lengths.dtype.kind not in "iu"):
            raise ValueError(f"expected lengths as n integers, got shape {lengths.shape} in {lengths.dtype}")
        lengths = lengths.astype(np.int64, copy=False)
        if lengths.size and lengths.min() < 1:
            raise ValueError(_empty(int(np.argmax(lengths < 1))))
        if lengths.sum() != len(values):
            raise ValueError(f"expected lengths that sum to {len(values)} tokens, got {lengths.sum()}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "lengths", lengths)
        self._check_finite()

    def _check_finite(self) -> None:
        # NaN and infinity survive min and max, which unlike isfinite need no second array.
        if not self.values.size or (np.isfinite(self.values.min()) and np.isfinite(self.values.max())):
            return
        token = int(np.argmax(~np.isfinite(self.values).all(axis=1)))
        row = int(np.searchsorted(self.offsets, token, side="right")) - 1
        raise ValueError(
            f"row {row}: expected finite numbers, got NaN or infinity in token {token - self.offsets[row]}; "
            "leave the token out (a mask says what is padding, a number never does)"
        )

    @classmethod
    def _trusted(cls, values: NDArray[Any], lengths: NDArray[np.int64]) -> Sequences:
        """Parts of checked sequences need no second check of gigabytes."""
        self = object.__new__(cls)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "lengths", lengths)
        return self

    @classmethod
    def from_arrays(cls, arrays: Iterable[Any], dtype: DTypeLike | None = None) -> Sequences:
        """Documents from arrays of shape (L_i, d).

        Args:
            arrays: one array a document. All share one dtype afterwards: float32 and float64 stay (mixed:
                float64), float16 becomes float32, integers and booleans become float64.
            dtype: float32 or float64, to convert to.

        Raises:
            ValueError: naming the row: an empty document, a shape that is not (L_i, d), a d unlike that of
                the rows before, numbers that are not real or not finite.
        """
        documents = [_document(row, array) for row, array in enumerate(arrays)]
        wanted = _float_dtype(dtype) if dtype is not None else _common_float(documents)
        if not documents:
            return cls(np.zeros((0, 0), wanted), np.zeros(0, np.int64))
        dim = documents[0].shape[1]
        for row, document in enumerate(documents):
            if document.shape[1] != dim:
                raise ValueError(f"row {row}: expected vectors of dimension {dim} as in row 0, got {document.shape[1]}")
        lengths = np.array([len(document) for document in documents], np.int64)
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused below
            return cls(np.concatenate(documents, dtype=wanted, casting="unsafe"), lengths)

    @classmethod
    def from_padded(cls, values: Any, mask: Any) -> Sequences:
        """Documents from a padded batch.

        Args:
            values: shape (n, T, d). Whatever stands where the mask is False is ignored, even NaN.
            mask: shape (n, T), boolean, True = a real token; padding may lie anywhere in a row.
        """
        values, mask = np.asarray(values), np.asarray(mask)
        if values.ndim != 3 or mask.shape != values.shape[:2]:
            raise ValueError(f"expected values (n, T, d) and a mask (n, T), got {values.shape} and {mask.shape}")
        if values.dtype.kind not in "fiub":
            raise ValueError(f"expected an array of real numbers, got {values.dtype}")
        if mask.dtype != bool:
            raise ValueError(f"expected a boolean mask, True = a real token, got {mask.dtype}; compare to make one")
        lengths = mask.sum(axis=1, dtype=np.int64)
        return cls(values[mask].astype(_common_float([values]), copy=False), lengths)

    @classmethod
    def concatenate(cls, parts: Iterable[Sequences]) -> Sequences:
        """The documents of all parts in order; parts without documents may have any d."""
        parts = list(parts)
        if not parts:
            raise ValueError("expected at least one Sequences to concatenate, got none")
        filled = [part for part in parts if len(part)] or parts[:1]
        if len({part.dim for part in filled}) > 1:
            raise ValueError(f"expected parts of equal dimension, got {[part.dim for part in filled]}")
        return cls._trusted(
            np.concatenate([part.values for part in filled]), np.concatenate([part.lengths for part in filled])
        )

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First token of each document in ``values``, and the number of tokens at the end: shape (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def dim(self) -> int:
        """Dimension d of a token vector."""
        return self.values.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"Sequences({len(self)} documents, {len(self.values)} tokens, dim={self.dim}, {self.dtype})"

    def __iter__(self) -> Iterator[NDArray[Any]]:
        offsets = self.offsets
        return (self.values[start:end] for start, end in pairwise(offsets.tolist()))

    @overload
    def __getitem__(self, index: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequences: ...
    def __getitem__(self, index: int | slice) -> NDArray[Any] | Sequences:
        """Document ``index`` as a view (L_i, d), or a slice of documents as Sequences."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(range(start, stop, step))
            first, last = self.offsets[[start, max(start, stop)]]
            return self._trusted(self.values[first:last], self.lengths[start : max(start, stop)])
        position = range(len(self))[index]
        end = int(self.lengths[: position + 1].sum())
        return self.values[end - int(self.lengths[position]) : end]

    def take(self, indices: Sequence[int] | NDArray[Any]) -> Sequences:
        """The documents at ``indices`` (integers, repeats allowed, negative from the end; or a boolean mask)."""
        chosen = np.asarray(indices)
        if chosen.dtype == bool:
            if chosen.shape != self.lengths.shape:
                raise IndexError(f"expected a mask of {len(self)} documents, got shape {chosen.shape}")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64, casting="same_kind") if chosen.size else np.zeros(0, np.int64)
        lengths = self.lengths[chosen]
        shift = self.offsets[:-1][chosen] - (np.cumsum(lengths) - lengths)
        tokens = np.arange(lengths.sum()) + np.repeat(shift, lengths)
        return self._trusted(self.values[tokens], lengths)

    def padded(self, length: int | None = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Values (n, T, d), zero behind each document's end, and the mask (n, T), True = a real token.

        Args:
            length: T; the longest document's length by default. ValueError if a document is longer.
        """
        longest = int(self.lengths.max(initial=0))
        width = longest if length is None else length
        if width < longest:
            raise ValueError(f"expected a padded length of at least {longest}, the longest document, got {width}")
        mask = np.arange(width) < self.lengths[:, None]
        values = np.zeros((len(self), width, self.dim), self.dtype)
        values[mask] = self.values
        return values, mask

    def astype(self, dtype: DTypeLike) -> Sequences:
        """The same documents in float32 or float64; not copied if they are so already."""
        with np.errstate(over="ignore"):
            values = self.values.astype(_float_dtype(dtype), copy=False)
        return self if values is self.values else Sequences(values, self.lengths)


def _document(row: int, array: Any) -> NDArray[Any]:
    document = np.asarray(array)
    if document.dtype.kind not in "fiub":
        raise ValueError(f"row {row}: expected an array of real numbers, got {document.dtype}")
    if document.ndim != 2:
        hint = "; one token is an array of shape (1, d)" if document.ndim == 1 else ""
        raise ValueError(f"row {row}: expected shape (tokens, d), got {document.shape}{hint}")
    if not len(document):
        raise ValueError(_empty(row))
    return document


def _empty(row: int) -> str:
    return f"row {row}: expected at least one token, got an empty document; drop the row or give it a neutral result"


def _float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    wanted = np.dtype(dtype)
    if wanted not in FLOATS:
        raise ValueError(f"expected float32 or float64, got {wanted}")
    return wanted


def _common_float(documents: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    common = np.result_type(*documents) if documents else FLOATS[0]
    if common in FLOATS:
        return common
    return FLOATS[0] if common == np.float16 else FLOATS[1]
