"""Labelled text by name: files, standard input, folders, packaged reviews, tensorflow-datasets."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textkernels.tables.delimited import delimiter_advice
from textkernels.tables.files import FORMS, SUFFIXES, Table, check_bad_rows, read_table
from textkernels.tables.records import BadRow, is_missing_cell

if TYPE_CHECKING:
    import pandas as pd

SOURCES = (
    f"a {FORMS} file, - for standard input, a folder with one sub-folder a class, bundled:imdb, "
    "bundled:rotten-tomatoes or tfds:DATASET/SPLIT"
)


@dataclass
class Dataset:
    """Texts with what is known about them, one entry a row in the order of the source.

    Attributes:
        name: the source as the user wrote it.
        texts: (n,) str, or None where the cell is missing.
        labels: (n,) values as the source holds them, None where missing; None without a label column.
        ids: (n,) values as the source holds them; None without an id column.
        frame: (n, n_columns) the whole table as read.
        positions: (n,) place in the source.
        unit: what a position counts: "line", "row" or "file".
        checksum: SHA-256 of the file, or of the rows where there is no single file.
        bad: rows left out because they cannot be read, only where that was asked for.
        notes: sentences for the user about what was read.
    """

    name: str
    texts: list[str | None]
    labels: list[Any] | None
    ids: list[Any] | None
    frame: pd.DataFrame
    positions: list[int | str]
    unit: str
    checksum: str
    bad: list[BadRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)

    def place(self, row: int) -> str:
        """Where a row stands, as in "reviews.csv, line 12"."""
        return f"{self.name}, {self.unit} {self.positions[row]}"

    def select(self, rows: Iterable[int]) -> Dataset:
        """The dataset of some rows, given by their indices, in that order."""
        chosen = [int(row) for row in rows]
        return Dataset(
            self.name,
            [self.texts[row] for row in chosen],
            None if self.labels is None else [self.labels[row] for row in chosen],
            None if self.ids is None else [self.ids[row] for row in chosen],
            self.frame.iloc[chosen].reset_index(drop=True),
            [self.positions[row] for row in chosen],
            self.unit,
            self.checksum,
            self.bad,
            self.notes,
        )


def load(
    source: str | os.PathLike[str],
    *,
    text_column: str = "text",
    label_column: str = "label",
    id_column: str = "id",
    encoding: str | None = None,
    delimiter: str | None = None,
    data_dir: str | None = None,
    require_labels: bool = False,
    skip_bad_rows: bool = False,
    progress: bool = True,
) -> Dataset:
    """Read a dataset.

    Args:
        source: a .csv, .tsv, .jsonl or .parquet file (also .gz), `-` for standard input, a folder with one
            sub-folder a class, `bundled:imdb`, `bundled:rotten-tomatoes`, or `tfds:imdb_reviews/train`.
        text_column, label_column, id_column: names of the columns. Text must be there; an id column of
            another name than the default must be there.
        encoding, delimiter: of files, see read_table.
        data_dir: of tensorflow-datasets.
        require_labels: raise if there is no label column. Missing labels in single rows come back as None.
        skip_bad_rows: leave out rows that cannot be read (listed in `bad`) instead of raising.
        progress: show a bar where reading takes long.

    Raises:
        ValueError: no such source or column, a row that cannot be read, or with ``require_labels`` a label that is an
            infinite number, with file and line.
        ImportError: the source needs a package that is not installed.
        OSError: the file cannot be opened.
    """
    table = _read(
        os.fspath(source), encoding, delimiter, data_dir=data_dir, skip_bad_rows=skip_bad_rows, progress=progress
    )
    _check_column(table, text_column, "text")
    if require_labels:
        _check_column(table, label_column, "label")
    if id_column != "id":
        _check_column(table, id_column, "id")
    table, texts = _texts(table, text_column, skip_bad_rows)
    labels = _cells(table.frame, label_column) if label_column in table.frame.columns else None
    if require_labels:
        _check_finite(table, label_column, labels or [])
    return Dataset(
        name=table.name,
        texts=texts,
        labels=labels,
        ids=_cells(table.frame, id_column) if id_column in table.frame.columns else None,
        frame=table.frame,
        positions=table.positions,
        unit=table.unit,
        checksum=table.checksum,
        bad=table.bad,
        notes=table.notes,
    )


def _read(
    source: str,
    encoding: str | None,
    delimiter: str | None,
    *,
    data_dir: str | None,
    skip_bad_rows: bool,
    progress: bool,
) -> Table:
    """Add a source: one row here."""
    from textkernels.datasets.sources import read_bundled, read_folder

    prefix, _, key = source.partition(":")
    if prefix == "bundled":
        return read_bundled(key, source)
    if prefix == "tfds":
        from textkernels.datasets.tensorflow_source import read_tfds

        return read_tfds(key, source, data_dir=data_dir, progress=progress)
    if Path(source).is_dir():
        return read_folder(Path(source), source, encoding=encoding, skip_bad_rows=skip_bad_rows, progress=progress)
    if source != "-" and not Path(source).exists():
        raise ValueError(f"{source}: there is no such file or folder; expected {SOURCES}")
    return read_table(source, encoding=encoding, delimiter=delimiter, skip_bad_rows=skip_bad_rows)


def _check_column(table: Table, column: str, noun: str) -> None:
    columns = [str(name) for name in table.frame.columns]
    if column in columns:
        return
    listed = ", ".join(map(repr, columns[:20])) + (", ..." if len(columns) > 20 else "")
    advice = delimiter_advice(columns) or f"name it with --{noun}-column"
    raise ValueError(f"{table.name}: expected a column {column!r} with the {noun}s, got the columns {listed}; {advice}")


def _check_finite(table: Table, column: str, labels: list[Any]) -> None:
    row = next((row for row, label in enumerate(labels) if isinstance(label, float) and math.isinf(label)), None)
    if row is not None:
        raise ValueError(
            f"{table.name}, {table.unit} {table.positions[row]}: column {column!r}: expected a label, got the number "
            f"{labels[row]}; write labels as texts or finite numbers"
        )


def _cells(frame: pd.DataFrame, column: str) -> list[Any]:
    return [None if is_missing_cell(value) else value for value in frame[column].tolist()]


def _texts(table: Table, column: str, skip_bad_rows: bool) -> tuple[Table, list[str | None]]:
    """The texts, and the table without the rows whose text cell holds something else."""
    texts: list[str | None] = []
    bad: list[BadRow] = []
    kept: list[int] = []
    for row, value in enumerate(_cells(table.frame, column)):
        try:
            texts.append(_text(value))
            kept.append(row)
        except ValueError as error:
            bad.append(BadRow(table.positions[row], f"column {column!r}: {error}", repr(value)))
    if not bad:
        return table, texts
    check_bad_rows(bad, table.name, table.unit, skip_bad_rows)
    frame = table.frame.iloc[kept].reset_index(drop=True)
    positions = [table.positions[row] for row in kept]
    merged = [*table.bad, *bad]
    if not kept:
        raise ValueError(f"{table.name}: expected at least one row with a text in column {column!r}, got none")
    return Table(table.name, frame, positions, table.unit, table.checksum, merged, table.notes), texts


def _text(value: Any) -> str | None:
    """A cell as text: a number as it would be typed, since spreadsheets turn "007" and "5" into numbers."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | int | float):
        return str(value)
    raise ValueError(f"expected text, got {type(value).__name__}")


__all__ = ["SOURCES", "SUFFIXES", "Dataset", "load"]
