"""What a label is: a text, a number or a boolean, however a file spells it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

KINDS = ("text", "number", "boolean")

# "nan", "inf", "1_000" and digits of other scripts are words here, though float() reads them.
_SPELLED = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_CHARACTERS = 400


def label_list(labels: Iterable[Any]) -> list[Any]:
    """Labels as a list.

    Raises:
        TypeError: one string, a dict or a set, which go through something else than one label a row.
        ValueError: an array or a table with several columns.
    """
    if isinstance(labels, str | bytes | Mapping | Set):
        raise TypeError(f"expected a list of labels, one a row, got {type(labels).__name__}; pass a list or one column")
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError(
            f"expected one label a row, got an array of shape {labels.shape}; pass one column"  # type: ignore[attr-defined]
        )
    return list(labels)


def label_kind(value: object) -> str:
    """One of ``KINDS``, or the name of the type of what is no label."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | float | np.integer | np.floating):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def plain_label(value: Any) -> Any:
    """The Python value of a NumPy scalar, which prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


def label_number(label: Any) -> int | float | None:
    """The number that a label is or spells: an int where it is whole, so that all spellings of it are equal.

    Booleans are 0 and 1. A float of 32 bits counts as what it prints, 0.1 and not 0.10000000149.

    Returns: None where it is no finite number.
    """
    if isinstance(label, str):
        text = label.strip()
        if len(text) > _MOST_CHARACTERS or not _SPELLED.fullmatch(text):
            return None
        return int(text) if text.lstrip("+-").isdigit() else _whole(float(text))
    if isinstance(label, bool | int | np.bool_ | np.integer):
        return int(label)
    if isinstance(label, np.float16 | np.float32):
        return _whole(float(str(label)))
    return _whole(float(label)) if isinstance(label, float | np.floating) else None


def label_word(label: Any) -> str:
    """The label as a text without spaces around it and letter case, as people take true and TRUE for the same."""
    return str(label).strip().casefold()


def _whole(value: float) -> int | float | None:
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() else value
