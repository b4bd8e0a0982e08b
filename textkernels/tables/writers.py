"""Tables to bytes: csv, tsv, jsonl and parquet, and what becomes of cells that a format has no type for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from textkernels.tables.records import is_missing_cell

if TYPE_CHECKING:
    import pandas as pd


def plain_cell(value: Any) -> Any:
    """A cell in types that JSON has.

    Missing cells and NaN become None, infinite numbers the texts "inf" and "-inf", bytes base64, and whatever else JSON
    lacks (dates, decimals) its own text; lists and objects are gone through.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {str(key): plain_cell(inner) for key, inner in value.items()}
    if type(value).__module__ == "numpy":
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_cell(inner) for inner in value]
    if is_missing_cell(value):
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, bool | int | float) else str(value)


def _to_json(value: Any) -> str:
    """Plain values on one line; ValueError for a number that JSON lacks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _columns(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if is_missing_cell(v) else v for v in _cells(frame[column])] for column in frame.columns]


def _cells(column: pd.Series) -> list[Any]:
    try:
        return column.tolist()
    except OverflowError:  # dates outside of the years that Python's calendar has, as Parquet may hold them
        import pyarrow as pa

        return pa.Array.from_pandas(column).cast(pa.string()).to_pylist()


def _write_delimited(frame: pd.DataFrame, file: IO[bytes], delimiter: str) -> None:
    special = ('"', "\n", "\r", delimiter)

    def written(value: Any) -> str:
        value = plain_cell(value)
        if value is None:
            return ""
        text = _to_json(value) if isinstance(value, list | dict) else str(value)
        return '"' + text.replace('"', '""') + '"' if not text or any(c in text for c in special) else text

    file.write((delimiter.join(written(str(name)) for name in frame.columns) + "\n").encode())
    for row in zip(*_columns(frame), strict=True):
        file.write((delimiter.join(map(written, row)) + "\n").encode())


def _write_jsonl(frame: pd.DataFrame, file: IO[bytes]) -> None:
    names = [str(name) for name in frame.columns]
    for row in zip(*_columns(frame), strict=True):
        file.write((_to_json(plain_cell(dict(zip(names, row, strict=True)))) + "\n").encode())


def write_parquet(frame: pd.DataFrame, file: IO[bytes]) -> None:
    """Write the columns in their own types; ValueError names a column that has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype == object:
            # Of objects with other keys in every row, or none, Arrow makes types that parquet lacks.
            column = column.map(lambda cell: _to_json(plain_cell(cell)) if isinstance(cell, list | dict) else cell)
        try:
            arrays[str(name)] = pa.Array.from_pandas(column)
        except (pa.ArrowException, OverflowError) as error:
            raise ValueError(
                f"the column {name!r} holds values of several types, which parquet cannot; write .jsonl or .csv"
            ) from error
    pq.write_table(pa.table(arrays), file)


# Suffix of a file's name -> its writer.
WRITERS: dict[str, Callable[[pd.DataFrame, IO[bytes]], None]] = {
    ".csv": lambda frame, file: _write_delimited(frame, file, ","),
    ".tsv": lambda frame, file: _write_delimited(frame, file, "\t"),
    ".jsonl": _write_jsonl,
    ".parquet": write_parquet,
}
