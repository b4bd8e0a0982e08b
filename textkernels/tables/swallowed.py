"""Rows swallowed by a quote that was never closed, where another row happens to end with a quote.

Such a file is well formed to any CSV parser:

    2,"never closed
    3,a good row
    4,the quote that ends this row closes the field"

It is told from a text with line breaks by the other columns. A line that the field holds must have the file's
number of fields, and each column that is regular in the whole file must agree with it; of the first and the
last line only the part inside the field counts. Regular means numbers that only rise (then the line's number
falls in the gap that the swallowed row left) or a handful of values that repeat (then it is one of them).
Without a regular column nothing is reported.
"""

from __future__ import annotations

import itertools

from textkernels.tables.records import Records

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
        Pairs (index into records.rows, first of its lines that looks like a row, counted from 1).
    """
    starts = [int(position) - 1 for position in records.positions]
    width = len(records.columns)
    suspects = [
        (row, line, fields)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True))
        if end - start > 1 and width > 1
        for line in range(start, end)
        if len(fields := _split(lines[line], delimiter)) == width
    ]
    if not suspects:
        return []
    rising = [_rising(records, column) for column in range(width)]
    repeated = [_repeated(records, column, starts, ends) for column in range(width)]
    found: dict[int, int] = {}
    for row, line, fields in suspects:
        agreements = [
            _in_gap(records, row, column, fields[column]) if rising[column] else fields[column] in repeated[column]
            for column in _inside(records.rows[row], line == starts[row], line == ends[row] - 1)
            if rising[column] or repeated[column]
        ]
        if agreements and all(agreements):
            found.setdefault(row, line + 1)
    return list(found.items())


def _split(line: str, delimiter: str) -> list[str]:
    return [value.strip().strip('"') for value in line.rstrip("\r\n").split(delimiter)]


def _inside(fields: list[str | None], first: bool, last: bool) -> range:
    """Columns of one line of a record that would lie inside its field with line breaks."""
    broken = [column for column, cell in enumerate(fields) if cell is not None and ("\n" in cell or "\r" in cell)]
    return range(broken[0] + 1 if first else 0, broken[-1] if last else len(fields)) if broken else range(0)


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() else None


def _rising(records: Records, column: int) -> bool:
    numbers = [_number(row[column]) for row in records.rows]
    return len(numbers) > 1 and all(a is not None and b is not None and a < b for a, b in itertools.pairwise(numbers))


def _in_gap(records: Records, row: int, column: int, value: str) -> bool:
    """True for a number that only rows missing between this row's neighbours could have."""
    number, own = _number(value), _number(records.rows[row][column])
    before = _number(records.rows[row - 1][column]) if row else None
    after = _number(records.rows[row + 1][column]) if row + 1 < len(records.rows) else None
    if number is None or number == own:
        return False
    return (before is None or before < number) and (after is None or number < after)


def _repeated(records: Records, column: int, starts: list[int], ends: list[int]) -> set[str]:
    """The values of a column that has few, taken from the records of one line; empty for other columns."""
    values = [row[column] for row, a, b in zip(records.rows, starts, ends, strict=True) if b - a == 1]
    distinct = set(values)
    return distinct if len(distinct) <= MAX_VALUES and len(values) >= 2 * len(distinct) else set()
