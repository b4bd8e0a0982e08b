"""Class labels: which classes there are, what is not a label, and samples that keep the shares of classes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from textkernels.tables.records import is_missing_cell

# More classes than this, and more than half as many as rows: the column holds no classes.
PLAUSIBLE_CLASSES = 100


def is_missing_label(value: object) -> bool:
    """True for a missing cell and for a text of nothing but white space."""
    return is_missing_cell(value) or (isinstance(value, str) and not value.strip())


def check_labels(labels: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Classes and codes of labels, which come back as they went in.

    Numbers are sorted by value, texts by their characters. -1 and 1 are two classes; -1 beside 0 and 1 is
    taken as a class with a UserWarning, since it often marks rows without a label. Texts with spaces around
    them, and texts that differ in spaces or letter case only, stay as they are with a UserWarning.

    Args:
        labels: (n,) texts, numbers or booleans.

    Returns:
        classes (k,) sorted, in the dtype of the labels; codes (n,) intp with classes[codes] == labels.

    Raises:
        ValueError: no rows, a missing label, labels of several types, fewer than two classes, or nearly as
            many classes as rows. Rows are counted from 1.
    """
    values = _values(labels)
    if not values:
        raise ValueError("expected labelled rows, got none")
    missing = [row for row, value in enumerate(values, start=1) if is_missing_label(value)]
    if missing:
        raise ValueError(
            f"expected a label in every row, got {len(missing):,} of {len(values):,} rows without one "
            f"({_first_rows(missing)}); label them, or leave them out (--drop-unlabeled)"
        )
    kind = _single_kind(values)
    distinct = sorted(set(values))
    if len(distinct) < 2:
        raise ValueError(
            f"expected at least two classes, got one: all {len(values):,} rows have the label {_plain(distinct[0])!r}"
        )
    if len(distinct) > max(PLAUSIBLE_CLASSES, len(values) / 2):
        raise ValueError(
            f"expected classes that repeat, got {len(distinct):,} different labels in {len(values):,} rows; is "
            "this the column of the labels (--label-column)?"
        )
    _warn_unlabeled(distinct)
    if kind == "text":
        _warn_spelling(distinct)
    code = {value: number for number, value in enumerate(distinct)}
    dtype = getattr(labels, "dtype", None)
    keep = dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else None
    return np.asarray(distinct, dtype=keep), np.array([code[value] for value in values], dtype=np.intp)


def match_labels(labels: Iterable[Any], classes: Iterable[Any]) -> list[Any]:
    """Labels in the type of a model's classes.

    Where no label equals a class, labels are matched by their spelling: a csv file holds the text "1" where the
    model may have been fitted on the number 1 of a parquet file. What matches no class stays as it is.

    Args:
        labels: (n,) without missing ones.
        classes: (k,).

    Returns:
        (n,) labels, those that match being elements of classes.
    """
    values = _values(labels)
    by_value: dict[Hashable, Any] = {value: value for value in _values(classes)}
    if any(value in by_value for value in values):
        return [by_value.get(value, value) for value in values]
    by_spelling = {str(value): value for value in by_value}
    return [by_spelling.get(str(value), value) for value in values]


def stratified_sample(labels: Iterable[Any], limit: int, seed: int) -> np.ndarray:
    """Rows of a sample in which every class keeps its share.

    Shares are rounded by largest remainders and every class gets at least one row. The order of the rows in
    the file has no influence on the shares.

    Args:
        labels: (n,) without missing ones.
        limit: number of rows wanted, at least the number of classes; n or more takes all rows.
        seed: of the draw within each class.

    Returns:
        (min(limit, n),) sorted row indices, intp.

    Raises:
        ValueError: limit below the number of classes.
    """
    values = _values(labels)
    if limit >= len(values):
        return np.arange(len(values), dtype=np.intp)
    members: dict[Hashable, list[int]] = {}
    for row, value in enumerate(values):
        members.setdefault(value, []).append(row)
    if limit < len(members):
        raise ValueError(f"expected a limit of at least {len(members)}, one row a class, got {limit}")
    rows = [np.array(members[value]) for value in sorted(members)]  # type: ignore[type-var]
    generator = np.random.default_rng(seed)
    sizes = _shares([len(group) for group in rows], limit)
    drawn = [generator.choice(group, size, replace=False) for group, size in zip(rows, sizes, strict=True)]
    return np.sort(np.concatenate(drawn)).astype(np.intp)


def _shares(counts: list[int], limit: int) -> list[int]:
    """Integers >= 1 that sum to limit <= sum(counts), in proportion to counts and none above its count."""
    quotas = np.array(counts) * (limit / sum(counts))
    sizes = np.maximum(np.floor(quotas).astype(int), 1)
    while (excess := sizes.sum() - limit) != 0:
        step = -1 if excess > 0 else 1
        allowed = sizes > 1 if step < 0 else sizes < counts
        sizes[np.argmax(np.where(allowed, (quotas - sizes) * step, -np.inf))] += step
    return [int(size) for size in sizes]


def _values(labels: Iterable[Any]) -> list[Any]:
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError(f"expected one label a row, got an array of shape {labels.shape}")  # type: ignore[attr-defined]
    return list(labels)


def _plain(value: Any) -> Any:
    """The Python value of a NumPy scalar, which prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


def _single_kind(values: list[Any]) -> str:
    first: dict[str, tuple[int, Any]] = {}
    for row, value in enumerate(values, start=1):
        first.setdefault(_kind(value), (row, value))
    if len(first) > 1:
        named = " and ".join(f"{kind} ({_plain(v)!r} in row {row})" for kind, (row, v) in first.items())
        raise ValueError(f"expected labels of one type, got {named}; write all of them in one way")
    kind = next(iter(first))
    if kind not in ("text", "number", "boolean"):
        raise ValueError(f"expected labels that are texts, numbers or booleans, got {kind} in row 1")
    return kind


def _kind(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | float | np.integer | np.floating):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _warn_unlabeled(classes: list[Any]) -> None:
    names = {value if isinstance(value, str) else f"{value:g}" for value in classes}
    if {"-1", "0", "1"} <= names and "-2" not in names:
        warnings.warn(
            "the labels -1, 0 and 1 are taken as classes; does -1 mark rows without a label? Then remove them",
            UserWarning,
            stacklevel=3,
        )


def _warn_spelling(classes: list[str]) -> None:
    spelled: dict[str, list[str]] = {}
    for name in classes:
        spelled.setdefault(name.strip().casefold(), []).append(str(name))
    alike = next((names for names in spelled.values() if len(names) > 1), None)
    spaced = next((str(name) for name in classes if name != name.strip()), None)
    if alike:
        text = f"the labels {' and '.join(map(repr, alike))} differ in spaces or letter case only; they are kept apart"
    elif spaced is not None:
        text = f"the label {spaced!r} has spaces around it, which are kept"
    else:
        return
    warnings.warn(text, UserWarning, stacklevel=3)


def _first_rows(rows: list[int]) -> str:
    shown = ", ".join(f"{row:,}" for row in rows[:5])
    return f"row {shown}" if len(rows) == 1 else f"rows {shown}{', ...' if len(rows) > 5 else ''}"
