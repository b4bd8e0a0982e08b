"""Strict reader for JSON Lines: one object a line, every other line a reason with its number."""

from __future__ import annotations

import json
import math
from typing import Any

from textkernels.tables.records import BadRow, Records


def parse_jsonlines(text: str) -> Records:
    """Records of a text with one JSON object a line.

    Lines of white space are no rows. Columns are the keys in the order in which they first appear; a key that
    a line lacks is a missing cell (None), as is null. NaN and Infinity are no JSON and make a bad row, and so
    does a number beyond 1.8e308, which would be read as infinite.

    Args:
        text: the decoded file, without byte order mark.

    Returns:
        Records with any JSON value as cells; `positions` are lines.

    Raises:
        ValueError: the file holds one JSON array instead of lines.
    """
    objects: list[dict[str, Any]] = []
    positions: list[int | str] = []
    bad: list[BadRow] = []
    decode = json.JSONDecoder(
        parse_float=_finite, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys
    ).decode
    # Split on line feeds only: JSON strings may hold U+2028 and U+0085, which str.splitlines breaks at.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not objects and not bad and line.lstrip().startswith("["):
            raise ValueError("expected one JSON object a line, got a JSON array; write each element on its own line")
        try:
            value = decode(line.strip())
            _check_object(value, line)
        except (ValueError, RecursionError) as error:
            bad.append(BadRow(number, _reason(error), line.rstrip("\r")))
            continue
        objects.append(value)
        positions.append(number)
    columns = list(dict.fromkeys(key for value in objects for key in value))
    rows = [[value.get(column) for column in columns] for value in objects]
    return Records(columns, rows, positions, bad)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; write null for a missing value")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"the number {number} is too large; write it as a text, in quotes")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return value


def _check_object(value: object, line: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f'expected an object such as {{"text": ...}}, got {type(value).__name__}')
    if "\\ud" in line.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half of a surrogate pair (\\ud800 to \\udfff) is no character") from error


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
