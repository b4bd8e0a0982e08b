"""Uploaded files of texts, read and scored without Streamlit; the same rows and values as `textkernels score`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from textkernels.datasets import Dataset, load
from textkernels.evaluation import evaluate
from textkernels.labels import match_labels
from textkernels.overlap import seen_texts
from textkernels.scoring import check_new_columns, predict_rows
from textkernels.tables.decoding import decode_text, decompress
from textkernels.tables.delimited import other_delimiter, parse_delimited
from textkernels.tables.files import DELIMITERS, read_table, suffix_of
from textkernels.tables.writers import WRITERS

# Rows between two movements of the progress bar.
CHUNK = 64
# Names that columns of texts and of labels usually have, likeliest first.
TEXT_NAMES = ("text", "review", "sentence", "content", "body", "comment")
LABEL_NAMES = ("label", "labels", "sentiment", "class", "target")
# No file has a column of this name.
NO_COLUMN = "\0"


@dataclass(frozen=True)
class Upload:
    """A file as it came.

    Attributes: ``name``; ``data``: its bytes; ``encoding``, ``delimiter``: None where the file tells them;
    ``columns``: names; ``text_column``, ``label_column``: the likeliest ones, the latter None where there is none.
    """

    name: str
    data: bytes
    encoding: str | None
    delimiter: str | None
    columns: tuple[str, ...]
    text_column: str
    label_column: str | None


@dataclass(frozen=True)
class ScoredFile:
    """A scored file.

    Attributes: ``table``: all columns and rows of the file and those of ``predict_table``; ``text_column``,
    ``label_column``: which columns were taken; ``n_added``: how many columns are new; ``statuses``: rows by status;
    ``bad``: line and reason of lines that are no rows; ``metrics``: of ``textkernels.evaluation`` for the rows with a
    label that the model knows, None without; ``n_labelled``: how many these are; ``n_seen``: rows with the text of a
    training row.
    """

    table: pd.DataFrame
    text_column: str
    label_column: str | None
    n_added: int
    statuses: dict[str, int]
    bad: pd.DataFrame
    metrics: dict[str, Any] | None
    n_labelled: int
    n_seen: int

    def in_view(self) -> pd.DataFrame:
        """The table with the text and what was found first."""
        own, added = self.table.columns[: -self.n_added], self.table.columns[-self.n_added :]
        return self.table[[self.text_column, *added, *(name for name in own if name != self.text_column)]]


def read_upload(name: str, data: bytes, encoding: str | None = None, delimiter: str | None = None) -> Upload:
    """Look at a file: its columns, and which of them hold the texts and the labels.

    Args:
        name, data: of the file.
        encoding: of a text file, None for UTF-8 or what its first bytes say.
        delimiter: of a delimited file, None for what its first line looks like.

    Raises:
        ValueError: a file that cannot be read; the message says what to change.
    """
    delimiter = delimiter or _delimiter(name, data, encoding)
    table = _at_a_path(
        name, data, lambda path: read_table(path, encoding=encoding, delimiter=delimiter, skip_bad_rows=True)
    )
    if not len(table.frame.columns):
        raise ValueError(f"{name}: expected a column with texts, got rows without any")
    frame = table.frame
    columns = tuple(str(column) for column in frame.columns)
    text = _named(columns, TEXT_NAMES) or max(columns, key=lambda column: _mean_length(frame[column]))
    label = _named(tuple(column for column in columns if column != text), LABEL_NAMES)
    return Upload(name, data, encoding, delimiter, columns, text, label)


def score_upload(
    model: Any, upload: Upload, text_column: str, label_column: str | None, advance: Callable[[float], object]
) -> ScoredFile:
    """Score every row.

    Args:
        model: fitted.
        upload: the file.
        text_column, label_column: which columns to take.
        advance: told the share of rows that are done.

    Raises:
        ValueError: a file or column that cannot be scored; the message says what to change.
    """
    dataset = _at_a_path(
        upload.name,
        upload.data,
        lambda path: load(
            path,
            text_column=text_column,
            label_column=label_column or NO_COLUMN,
            encoding=upload.encoding,
            delimiter=upload.delimiter,
            skip_bad_rows=True,
            progress=False,
        ),
    )
    dataset.name = upload.name
    check_new_columns(model, dataset)
    done = 0

    def tell(rows: int) -> None:
        nonlocal done
        done += rows
        advance(done / len(dataset))

    added = predict_rows(model, dataset.texts, tell, CHUNK)
    metrics, n_labelled = _metrics(model, dataset, added)
    return ScoredFile(
        pd.concat([dataset.frame, added], axis=1),
        text_column,
        label_column,
        added.shape[1],
        {str(status): int(count) for status, count in added["status"].value_counts().items()},
        pd.DataFrame([(row.position, row.reason) for row in dataset.bad], columns=[dataset.unit, "reason"]),
        metrics,
        n_labelled,
        0 if model.text_hashes_ is None else int(seen_texts(dataset.texts, model.text_hashes_).sum()),
    )


def to_bytes(table: pd.DataFrame, suffix: str) -> bytes:
    """A table as a file of one of the suffixes of ``textkernels.tables.files``."""
    file = io.BytesIO()
    WRITERS[suffix](table, file)
    return file.getvalue()


def _delimiter(name: str, data: bytes, encoding: str | None) -> str | None:
    """The delimiter of a delimited file whose suffix speaks of another one."""
    try:
        own = DELIMITERS.get(suffix_of(name))
        if own is None:
            return None
        text = decode_text(decompress(data, name), name, encoding)
        return other_delimiter(parse_delimited(text, own).columns) or None
    except ValueError:
        return None  # told when the rows are read


def _at_a_path(name: str, data: bytes, read: Callable[[str], Any]) -> Any:
    """What a reader of files makes of bytes; its messages speak of the file by its own name."""
    with tempfile.TemporaryDirectory(prefix="textkernels-") as folder:
        path = Path(folder) / f"upload{''.join(Path(name).suffixes[-2:])[-20:]}"
        path.write_bytes(data)
        try:
            return read(str(path))
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from None


def _named(columns: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    exact, lower = set(columns), {column.lower(): column for column in reversed(columns)}
    found = (name if name in exact else lower.get(name) for name in names)
    return next((column for column in found if column is not None), None)


def _mean_length(cells: pd.Series) -> float:
    textual = pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)
    lengths = [len(cell) for cell in cells.head(100).tolist() if isinstance(cell, str)] if textual else []
    return sum(lengths) / len(lengths) if lengths else 0.0


def _metrics(model: Any, dataset: Dataset, added: pd.DataFrame) -> tuple[dict[str, Any] | None, int]:
    """Scores of the rows whose label the model knows."""
    if dataset.labels is None:
        return None, 0
    classes = model.classes_.tolist()
    present = [row for row, label in enumerate(dataset.labels) if label is not None]
    try:
        labels = match_labels([dataset.labels[row] for row in present], classes)
    except ValueError:
        return None, 0
    known = [(row, label) for row, label in zip(present, labels, strict=True) if label in classes]
    if not known:
        return None, 0
    rows = added.iloc[[row for row, _ in known]]
    probabilities = rows[[f"probability_{name}" for name in model.classes_]].to_numpy()
    return evaluate([label for _, label in known], rows["prediction"].tolist(), probabilities, classes), len(known)
