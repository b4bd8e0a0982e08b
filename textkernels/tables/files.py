"""Tables in files: read csv, tsv, jsonl and parquet without losing a row, write them whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from textkernels.tables.decoding import decode_text, decompress
from textkernels.tables.delimited import delimiter_advice, parse_delimited
from textkernels.tables.jsonlines import parse_jsonlines
from textkernels.tables.records import BadRow, Records
from textkernels.tables.writers import WRITERS, write_parquet

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
# Of files whose reader is told no other.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMS = ".csv, .tsv, .jsonl or .parquet (also with .gz)"


@dataclass
class Table:
    """A table as read.

    Attributes:
        name: the source as the user wrote it.
        frame: (n_rows, n_columns) every column in the order of the source, values unchanged.
        positions: one entry a row, its place in the source.
        unit: what a position counts: "line", "row" or "file".
        checksum: SHA-256 of the source, in hexadecimal digits.
        bad: rows left out, only where that was asked for.
        notes: sentences for the user about what was read.
    """

    name: str
    frame: pd.DataFrame
    positions: list[int | str]
    unit: str
    checksum: str
    bad: list[BadRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_table(
    source: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_bad_rows: bool = False,
) -> Table:
    """Read a table file, or standard input for `-`.

    Text stays text: "NA", "null" and "007" are no numbers and not missing. Missing are an unquoted empty
    field of a csv or tsv file, null or an absent key of a jsonl file, a null of a parquet file. Compressed
    input is known by its content. Standard input is parquet or jsonl by its first bytes, else csv.

    Args:
        source: path or `-`.
        encoding: of the text; the byte order mark's or UTF-8 when None.
        delimiter: of a csv file; by the suffix when None. Makes a file of any suffix a csv file.
        skip_bad_rows: leave out rows that cannot be read, and list them in `Table.bad`.

    Raises:
        ValueError: unknown suffix, wrong encoding, no rows, or a bad row, with file and line.
        OSError: the file cannot be opened.
    """
    name = os.fspath(source)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"expected one character as delimiter, got {delimiter!r}")
    kind = suffix_of(name) if name != "-" and delimiter is None else None
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    shown = "standard input" if name == "-" else name
    checksum = hashlib.sha256(data).hexdigest()
    data = decompress(data, shown)
    if kind == ".parquet" or data[:4] == b"PAR1":
        return _read_parquet(data, shown, checksum)
    text = decode_text(data, shown, encoding)
    if kind is None and delimiter is None:
        kind = ".jsonl" if text.lstrip().startswith("{") else ".csv"
    try:
        jsonl = kind == ".jsonl"
        records = parse_jsonlines(text) if jsonl else parse_delimited(text, delimiter or DELIMITERS[str(kind)])
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from error
    if not (jsonl or skip_bad_rows) and records.bad and (advice := delimiter_advice(records.columns)):
        raise ValueError(f"{shown}: expected several columns, got one named {records.columns[0]!r}; {advice}")
    check_bad_rows(records.bad, shown, "line", skip_bad_rows)
    return _table(records, shown, checksum)


def check_bad_rows(bad: list[BadRow], name: str, unit: str, skip: bool) -> None:
    """Raise ValueError for the first bad row, with the number of others, unless they may be skipped."""
    if bad and not skip:
        more = f" ({len(bad) - 1:,} more bad rows follow)" if len(bad) > 1 else ""
        raise ValueError(
            f"{name}, {unit} {bad[0].position}: {bad[0].reason}{more}; mend the file, or pass --skip-bad-rows "
            "(skip_bad_rows=True) to leave such rows out"
        )


def suffix_of(name: str) -> str:
    """The suffix that tells the format, without .gz; ValueError for any other."""
    lower = name.lower().removesuffix(".gz")
    for suffix in SUFFIXES:
        if lower.endswith(suffix):
            return suffix
    raise ValueError(f"{name}: expected a name that ends with {FORMS}")


def _table(records: Records, name: str, checksum: str) -> Table:
    import pandas as pd

    if not records.rows:
        found = "only a line with the names of the columns" if records.columns else "an empty file"
        skipped = ""
        if records.bad:
            first = records.bad[0]
            skipped = f" ({len(records.bad):,} bad rows left out, the first: line {first.position}, {first.reason})"
        raise ValueError(f"{name}: expected at least one row, got {found}{skipped}")
    cells = zip(*records.rows, strict=True)
    # Object columns: integers with gaps, booleans and texts like "NA" stay what they are.
    columns = {
        column: pd.Series(list(values), dtype=object) for column, values in zip(records.columns, cells, strict=True)
    }
    return Table(name, pd.DataFrame(columns), records.positions, "line", checksum, records.bad)


def _read_parquet(data: bytes, name: str, checksum: str) -> Table:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{name}: expected a parquet file; {str(error).splitlines()[0]}") from error
    if not table.num_rows:
        raise ValueError(f"{name}: expected at least one row, got a parquet file without rows")
    repeated = [column for column in table.column_names if table.column_names.count(column) > 1]
    if repeated:
        raise ValueError(f"{name}: expected every column once, got {repeated[0]!r} twice; rename one")
    # Arrow types, so that integers with nulls do not become floats; an index kept by pandas is a column.
    frame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return Table(name, frame, list(range(1, table.num_rows + 1)), "row", checksum)


def check_writable(path: str | os.PathLike[str], frame: pd.DataFrame | None = None) -> None:
    """Fail now rather than after the computing: suffix, folder, and what the columns of `frame` hold.

    Raises:
        ValueError: unknown suffix, no such folder, or a column that a parquet file cannot hold.
    """
    kind = suffix_of(os.fspath(path))
    check_place(path)
    if frame is not None and kind == ".parquet":
        write_parquet(frame, io.BytesIO())


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise ValueError where write_whole cannot make a file, or would put one in the place of something else."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{target}: expected the name of a file, got a folder")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: expected the name of a file, got a device or pipe, which a file would replace")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{target}: there is no folder {target.parent}; make it first")
    if not os.access(target.absolute().parent, os.W_OK):
        raise ValueError(f"{target}: the folder {target.parent} cannot be written to")


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table as csv, tsv, jsonl or parquet by the suffix of its name (also .gz), whole or not at all.

    In csv and tsv a missing cell is an empty field and an empty text is `""`, so that reading gives back what
    was written. The file appears under its name only when it is complete. What a format has no type for becomes text:

    - jsonl, csv, tsv: bytes in base64, infinite numbers as "inf" and "-inf", dates and decimals as they print;
      NaN is a missing cell, and null inside a list or object.
    - csv, tsv, and parquet where the table is not from a parquet file: lists and objects as JSON.

    Args:
        frame: (n_rows, n_columns) columns are named by text.
        path: an existing file is replaced.

    Raises:
        ValueError: as check_writable.
        OSError: the file cannot be written.
    """
    check_writable(path)
    kind = suffix_of(os.fspath(path))
    with write_whole(path) as file:
        if os.fspath(path).lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
                WRITERS[kind](frame, cast(IO[bytes], packed))
        else:
            WRITERS[kind](frame, file)


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file for bytes that takes its name when the block ends well, and vanishes when it does not."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
