"""Class labels: which classes there are, what is not a label, and samples that keep the shares of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from textkernels.label_values import KINDS, label_kind, label_list, label_number, label_word, plain_label
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
    them, and texts that differ in spaces or letter case only or spell one number, stay as they are with a
    UserWarning.

    Args:
        labels: (n,) texts, numbers or booleans.

    Returns:
        classes (k,) sorted, in the dtype of the labels; codes (n,) intp with classes[codes] == labels.

    Raises:
        ValueError: no rows, a missing label, labels of several types, fewer than two classes, nearly as many
            classes as rows, or labels that a NumPy array would change. Rows are counted from 1.
        TypeError: one string, a dict or a set instead of a list.
    """
    values = label_list(labels)
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
            f"expected at least two classes, got one: all {len(values):,} rows have the label "
            f"{plain_label(distinct[0])!r}"
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
    return _class_array(distinct, getattr(labels, "dtype", None)), np.array([code[v] for v in values], dtype=np.intp)


def match_labels(labels: Iterable[Any], classes: Iterable[Any]) -> list[Any]:
    """Labels in the type of a model's classes, whatever file either comes from.

    A label that equals a class is that class. Where all classes are numbers or texts that spell numbers, others are
    compared as numbers: the "1" of a csv file, the 1 of a jsonl file and the 1.0 of a parquet file are one label.
    Elsewhere texts are compared as they stand, numbers with the classes that spell one, and booleans with true and
    false in any letter case. What matches no class stays as it is.

    Args:
        labels: (n,) without missing ones.
        classes: (k,).

    Returns:
        (n,) labels, those that match being elements of classes.

    Raises:
        ValueError: a label that may be either of two classes, such as the number 1 where "1" and "01" are classes; a
            label that is neither text, number nor boolean.
    """
    names = label_list(classes)
    exact: dict[Hashable, Any] = {name: name for name in names}
    numbers, words = _grouped(names, label_number), _grouped(names, label_word)
    numeric = all(label_number(name) is not None for name in names)
    logical = all(label_kind(name) == "boolean" for name in names)
    # By kind, too: Python takes True and 1 for one key.
    matched: dict[Hashable, Any] = {}
    keys = [(label_kind(label), label) for label in label_list(labels)]
    for row, (kind, label) in enumerate(keys, start=1):
        if kind not in KINDS:
            raise ValueError(f"expected labels that are texts, numbers or booleans, got {kind} in row {row:,}")
        if (kind, label) in matched:
            continue
        found = [exact[label]] if label in exact else []
        if not found and (kind == "boolean" or logical):
            found = words.get(label_word(label), [])
        if not found and (kind != "text" or numeric):
            found = numbers.get(label_number(label), [])
        if len(found) > 1:
            raise ValueError(
                f"expected labels that are one class each, got {plain_label(label)!r} in row {row:,}, which may be "
                f"{' or '.join(repr(plain_label(name)) for name in found)}; write it as the training data do"
            )
        matched[kind, label] = found[0] if found else label
    return [matched[key] for key in keys]


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
    values = label_list(labels)
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


def _class_array(distinct: list[Any], dtype: Any) -> np.ndarray:
    """Classes in the dtype of the labels where it is a NumPy one of numbers; ValueError if an array changes any."""
    keep = dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else None
    classes = np.asarray(distinct, dtype=keep)
    for given, kept in zip(map(plain_label, distinct), classes.tolist(), strict=True):
        if given != kept and isinstance(given, str):
            raise ValueError(
                f"expected labels that do not end in a NUL character, got {given!r}, which NumPy would make {kept!r}; "
                "remove that character"
            )
        if given != kept:
            raise ValueError(
                f"expected numbers that one NumPy array can hold, got {given!r}, which would become {kept!r} beside "
                "the others; write the labels as texts"
            )
    return classes


def _grouped(names: list[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Names by their key, those without one left out."""
    groups: dict[Any, list[Any]] = {}
    for name in names:
        if (value := key(name)) is not None:
            groups.setdefault(value, []).append(name)
    return groups


def _single_kind(values: list[Any]) -> str:
    first: dict[str, tuple[int, Any]] = {}
    for row, value in enumerate(values, start=1):
        first.setdefault(label_kind(value), (row, value))
    if len(first) > 1:
        named = " and ".join(f"{kind} ({plain_label(v)!r} in row {row})" for kind, (row, v) in first.items())
        raise ValueError(f"expected labels of one type, got {named}; write all of them in one way")
    kind = next(iter(first))
    if kind not in KINDS:
        raise ValueError(f"expected labels that are texts, numbers or booleans, got {kind} in row 1")
    return kind


def _warn_unlabeled(classes: list[Any]) -> None:
    numbers = {label_number(value) for value in classes}
    if {-1, 0, 1} <= numbers and -2 not in numbers:
        warnings.warn(
            "the labels -1, 0 and 1 are taken as classes; does -1 mark rows without a label? Then remove them",
            UserWarning,
            stacklevel=3,
        )


def _warn_spelling(classes: list[str]) -> None:
    alike = _first_group(classes, label_word)
    spaced = next((str(name) for name in classes if name != name.strip()), None)
    if alike:
        text = f"the labels {alike} differ in spaces or letter case only; they are kept apart"
    elif all(label_number(name) is not None for name in classes) and (alike := _first_group(classes, label_number)):
        text = f"the labels {alike} are one number in two spellings; they are kept apart"
    elif spaced is not None:
        text = f"the label {spaced!r} has spaces around it, which are kept"
    else:
        return
    warnings.warn(text, UserWarning, stacklevel=3)


def _first_group(names: list[str], key: Callable[[Any], Any]) -> str:
    """The first names that share a key, for a message; "" where none do."""
    groups = (group for group in _grouped(names, key).values() if len(group) > 1)
    return " and ".join(repr(str(name)) for name in next(groups, []))


def _first_rows(rows: list[int]) -> str:
    shown = ", ".join(f"{row:,}" for row in rows[:5])
    return f"row {shown}" if len(rows) == 1 else f"rows {shown}{', ...' if len(rows) > 5 else ''}"
