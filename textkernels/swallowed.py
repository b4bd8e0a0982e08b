"""Rows swallowed by a quote that was never closed, where another row happens to end with a quote.

Such a file is well formed to any CSV parser:

    2,"never closed
    3,a good row
    4,the quote that ends this row closes the field"

It is told from a text with line breaks by the other columns: the inner line must have the file's number of
fields, and each column that is regular in the whole file must agree. Regular means numbers that only rise
(then the inner line's number lies between this row's and the next row's) or a handful of values that repeat
(then it is one of them). Without any regular column nothing is reported.
"""

from __future__ import annotations

import itertools

from textkernels.records import Records

# A column is "a handful of values that repeat" up to this many, each twice on average.
MAX_VALUES = 20


def swallowed_rows(records: Records, ends: list[int], lines: list[str], delimiter: str) -> list[tuple[int, int]]:
    """Records that look like several.

    Args:
        records: rows of a delimited file with `positions` as lines counted from 1.
        ends: (n_rows,) the line after each record, counted from 0.
        lines: the file.
        delimiter: one character.

    Returns:
        Pairs (index into records.rows, first inner line that looks like a row, counted from 1).
    """
    starts = [int(position) - 1 for position in records.positions]
    width = len(records.columns)
    suspects = [
        (row, inner)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True))
        for inner in range(start + 1, end)
        if width > 1 and len(_split(lines[inner], delimiter)) == width
    ]
    if not suspects:
        return []
    rising = [_rising(records, column) for column in range(width)]
    repeated = [_repeated(records, column, starts, ends) for column in range(width)]
    found: dict[int, int] = {}
    for row, inner in suspects:
        agreements = [
            _between(records, row, column, value) if rising[column] else value in (repeated[column] or ())
            for column, value in enumerate(_split(lines[inner], delimiter))
            if rising[column] or repeated[column]
        ]
        if agreements and all(agreements):
            found.setdefault(row, inner + 1)
    return list(found.items())


def _split(line: str, delimiter: str) -> list[str]:
    return [value.strip().strip('"') for value in line.rstrip("\r\n").split(delimiter)]


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def _rising(records: Records, column: int) -> bool:
    numbers = [_number(row[column]) for row in records.rows]
    return len(numbers) > 1 and all(a is not None and b is not None and a < b for a, b in itertools.pairwise(numbers))


def _between(records: Records, row: int, column: int, value: str) -> bool:
    number, own = _number(value), _number(records.rows[row][column])
    after = _number(records.rows[row + 1][column]) if row + 1 < len(records.rows) else None
    return number is not None and own is not None and own < number and (after is None or number < after)


def _repeated(records: Records, column: int, starts: list[int], ends: list[int]) -> set[str] | None:
    """The values of a column that has few, taken from the records of one line."""
    values = [row[column] for row, a, b in zip(records.rows, starts, ends, strict=True) if b - a == 1]
    distinct = set(values)
    return distinct if len(distinct) <= MAX_VALUES and len(values) >= 2 * len(distinct) > 0 else None
