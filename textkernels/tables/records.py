"""Records of a text file: the rows that could be read, where each stands, and those that could not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class BadRow(NamedTuple):
    """A row that cannot be read: its place in the source (counted from 1), why, and its raw text."""

    position: int | str
    reason: str
    raw: str


@dataclass
class Records:
    """Rows of one source in file order.

    Attributes:
        columns: names of the columns, in the order of the source.
        rows: one list of `len(columns)` cells a row; None is a missing cell.
        positions: one entry a row, the line (or row number, or file) it starts at, lines counted from 1.
        bad: what could not be read, in file order.
    """

    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    positions: list[int | str] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def is_missing_cell(value: object) -> bool:
    """True for None, NaN, NaT and pandas' NA; an empty text is not missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value
