"""Strict reader for comma- and tab-separated text: a row in is a row out, or a reason with its line.

The csv module of the standard library accepts a file whose quotes do not match by joining lines into one
field. Here each record knows the lines it spans, a fault rejects the line it starts on and nothing else, and
a field that has swallowed rows of the file's own shape is reported.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from textkernels.tables.records import BadRow, Records
from textkernels.tables.swallowed import swallowed_rows

# A review may be longer than the 131,072 characters csv allows by default; this fits a C long everywhere.
FIELD_LIMIT = 2**31 - 1


class _Span(NamedTuple):
    """One record: its fields (None where the quoting is wrong), first line, line after the last, fault."""

    fields: list[str] | None
    start: int
    end: int
    fault: str


def parse_delimited(text: str, delimiter: str = ",") -> Records:
    r"""Records of a delimited text whose first line names the columns.

    Quotes are double quotes, doubled inside a quoted field; quoted fields may hold line breaks. An unquoted
    empty field is a missing cell (None), a quoted one (`""`) an empty text. Blank lines are no rows, except
    in a file of one column, where each is a missing cell.

    Args:
        text: the decoded file, without byte order mark.
        delimiter: one character.

    Returns:
        Records with str or None cells; `positions` are lines.

    Raises:
        ValueError: no header, a header that cannot be read, or a column named twice.
    """
    lines = _lines(text)
    spans = _spans(lines, delimiter)
    names = _header(spans)
    records = Records(list(names))
    ends: list[int] = []
    for fields, start, end, fault in spans:
        raw = "".join(lines[start:end]).rstrip("\r\n")
        if fields is not None and _blank(fields):
            if len(names) > 1:
                continue
            fields = fields or [""]
        if fields is None or (fault := _fault(fields, len(names), delimiter)):
            records.bad.append(BadRow(start + 1, fault, raw))
            continue
        records.rows.append(_mark_missing(fields, raw, delimiter) if "" in fields else [*fields])
        records.positions.append(start + 1)
        ends.append(end)
    _reject_swallowed(records, ends, lines, delimiter)
    return records


def other_delimiter(columns: list[str]) -> str:
    """The character that separates the fields where the names of the columns were read as one; empty elsewhere."""
    alone = columns[0] if len(columns) == 1 else ""
    return next((mark for mark in ";\t|," if mark in alone), "")


def delimiter_advice(columns: list[str]) -> str:
    """What to tell who gave no delimiter; empty where it is not that."""
    mark = other_delimiter(columns)
    shown = "tab" if mark == "\t" else repr(mark)
    return f"are the fields separated otherwise? Give --delimiter {shown}" if mark else ""


def _lines(text: str) -> list[str]:
    """Lines with their ends. A lone carriage return ends a line only where the file has no line feed."""
    return list(io.StringIO(text, newline="\n" if "\n" in text else ""))


def _spans(lines: list[str], delimiter: str) -> Iterator[_Span]:
    # Left raised on purpose: lowering it again would fail another thread's file half way.
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_LIMIT))
    position = 0
    while position < len(lines):
        base = position
        reader = csv.reader(itertools.islice(lines, base, None), delimiter=delimiter, strict=True)
        try:
            for fields in reader:
                start, position = position, base + reader.line_num
                yield _Span(fields, start, position, "")
        except csv.Error as error:
            # One line is given up, not all that an open quote ran through.
            position += 1
            yield _Span(None, position - 1, position, _quoting_fault(str(error), base + reader.line_num))


def _quoting_fault(message: str, line: int) -> str:
    if "end of data" in message:
        return "a quoted field that opens here is never closed; close it, or double the quotes inside the text"
    if "expected after" in message:
        return f"text follows the closing quote of a field on line {line}; double the quotes inside the text"
    if "new-line" in message:
        return "a carriage return stands inside an unquoted field; quote the field"
    return message


def _blank(fields: list[str]) -> bool:
    return not fields or (len(fields) == 1 and not fields[0].strip())


def _header(spans: Iterator[_Span]) -> list[str]:
    """Names of the columns, from the first record that is not blank."""
    for names, start, _, fault in spans:
        if names is None:
            raise ValueError(f"line {start + 1}: expected the names of the columns; {fault}")
        if _blank(names):
            continue
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"expected every column once, got {name!r} {names.count(name)} times; rename one")
            if "\0" in name:
                raise ValueError(f"line {start + 1}: {_NUL}")
        return names
    raise ValueError("expected a first line with the names of the columns, got an empty file")


_NUL = "a NUL byte, which no text holds; is the encoding right (--encoding utf-16), or the file damaged?"


def _fault(fields: list[str], width: int, delimiter: str) -> str:
    """Why a record cannot be a row; empty if it can."""
    if len(fields) != width:
        shown = "a tab" if delimiter == "\t" else repr(delimiter)
        return f"expected {width} fields, got {len(fields)}; quote a text that holds {shown} or a line break"
    return _NUL if any("\0" in cell for cell in fields) else ""


def _mark_missing(fields: list[str], raw: str, delimiter: str) -> list[str | None]:
    """The fields with None for each empty one that is not written as a quoted empty text."""
    if '""' not in raw:
        return [cell or None for cell in fields]
    written = re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(delimiter)}]*')
    marked: list[str | None] = []
    place = 0
    for cell in fields:
        match = written.match(raw, place)
        quoted = match is not None and match.group().startswith('"')
        marked.append(cell if cell or quoted else None)
        place = match.end() + 1 if match else len(raw)
    return marked


def _reject_swallowed(records: Records, ends: list[int], lines: list[str], delimiter: str) -> None:
    """Move the records of which one field holds a line that looks like a row of its own to `bad`."""
    for row, line in reversed(swallowed_rows(records, ends, lines, delimiter)):
        start = int(records.positions[row])
        reason = (
            f"one quoted field runs on to line {ends[row]}, and line {line} looks like a row of its own; close "
            "the quote, or save the table as .jsonl or .parquet if the text really holds that line"
        )
        raw = "".join(lines[start - 1 : ends[row]]).rstrip("\r\n")
        records.bad.append(BadRow(start, reason, raw))
        del records.rows[row], records.positions[row]
    records.bad.sort(key=lambda bad: int(bad.position))
