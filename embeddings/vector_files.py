"""Read word vectors from GloVe and word2vec files, text or binary, gzipped or not, however damaged.

The format is found from the content:

- text, one word and d numbers a line, separated by ASCII spaces. The last d fields are the vector and all
  before them is the word, which may hold spaces and no-break spaces. A first line ``count d`` is a header.
- word2vec binary: the header line, then for each word its bytes, a space and d little-endian float32.
- a file saved by gensim goes to gensim. It is a pickle: load only what you trust.

A damaged file is an error that names the line, what was expected and what was found. ``on_bad_row="skip"``
leaves out what cannot be read, counts it and warns.
"""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from embeddings.vector_layout import CUT_ERRORS, Layout, find_layout, is_gzip, opened
from embeddings.vector_rows import BadRowError, Rows, read_binary, read_text
from embeddings.word_vectors import LoadReport, WordVectors, file_checksum

BAD_ROWS = ("error", "skip")


def read_vector_file(
    path: str | PathLike[str],
    on_bad_row: str = "error",
    progress: bool = False,
    vocabulary: frozenset[str] | None = None,
) -> WordVectors:
    """Read a file of word vectors; see the module's text for the formats.

    Args:
        path: the file.
        on_bad_row: ``error``, or ``skip`` to leave out bad rows (and what is lost of a file cut short).
        progress: show progress on standard error.
        vocabulary: the only words to keep, so that the others never fill memory; None: all.

    Returns:
        The vectors, float32 (of a gensim file: its own dtype), with a report. A word that comes twice keeps
        its first vector. A header whose count differs from the rows is a warning.

    Raises:
        FileNotFoundError: no such file.
        ValueError: an empty or damaged file, an unknown format, a header whose dimension is not the rows'.
    """
    path = Path(path)
    if on_bad_row not in BAD_ROWS:
        raise ValueError(f"expected on_bad_row to be 'error' or 'skip', got {on_bad_row!r}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "nothing"
        raise FileNotFoundError(f"expected a file of word vectors at {str(path)!r}, found {kind}")
    layout = find_layout(path)
    if layout.format == "keyed_vectors":
        return _read_gensim(path) if vocabulary is None else _read_gensim(path).restrict(vocabulary)
    rows = Rows(skip=on_bad_row == "skip", needed=vocabulary)
    try:
        _read_rows(path, layout, rows, progress)
        words, vectors = _finite_table(layout, rows)
    except BadRowError as error:
        raise ValueError(
            f"{path.name}: {error}; mend the file or get it again, or use what is good of it with on_bad_row='skip'"
        ) from None
    if not words:
        if rows.n_unneeded:
            raise ValueError(
                f"{path.name}: expected a word of the vocabulary, found none of them in {rows.n_rows:,} rows"
            )
        problem = f"; first problem: {rows.skipped[0]}" if rows.skipped else f" before its end: {rows.cut}"
        raise ValueError(f"{path.name}: expected at least one word with {layout.dim} numbers, found none{problem}")
    _add_notes(layout, rows)
    report = LoadReport(
        name=path.name,
        format=layout.format,
        n_rows=rows.n_rows,
        dim=layout.dim,
        n_skipped=len(rows.skipped),
        n_duplicated=rows.n_duplicated,
        n_unneeded=rows.n_unneeded,
        header=layout.header,
        compressed=is_gzip(path),
        checksum=file_checksum(path),
        notes=tuple(rows.notes),
    )
    warn_of_notes(report)
    return WordVectors(words, vectors, report)


def _read_rows(path: Path, layout: Layout, rows: Rows, progress: bool) -> None:
    read = read_text if layout.format == "text" else read_binary
    size = path.stat().st_size
    bar = tqdm(desc=f"Reading {path.name}", total=size, unit="B", unit_scale=True, disable=not progress)
    with bar, opened(path) as (stream, raw):
        try:
            for _ in read(stream, layout, rows):
                bar.update(raw.tell() - bar.n)
        except CUT_ERRORS:
            rows.end_early(f"its gzip stream breaks off or is damaged after {rows.n_rows:,} rows")


def _finite_table(layout: Layout, rows: Rows) -> tuple[list[str], NDArray[np.float32]]:
    words = list(rows.words)
    if not words:
        return words, np.zeros((0, layout.dim), np.float32)
    vectors = np.frombuffer(rows.values, np.float32).reshape(len(words), layout.dim)
    if np.isfinite(vectors.min()) and np.isfinite(vectors.max()):
        return words, vectors
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    kind = "line" if layout.format == "text" else "row"
    for position in np.flatnonzero(~finite):
        word = words[position]
        rows.reject(f"{kind} {rows.words[word]}: expected finite float32 numbers, found NaN or infinity for {word!r}")
    return [word for word, good in zip(words, finite, strict=True) if good], vectors[finite]


def _add_notes(layout: Layout, rows: Rows) -> None:
    if rows.cut:
        rows.notes.append(f"The file is cut short: {rows.cut}; what comes before is used.")
    if rows.skipped:
        rows.notes.append(f"{len(rows.skipped):,} bad rows skipped; first: {rows.skipped[0]}.")
    if layout.header and layout.header[0] != rows.n_rows:
        hint = "; it may be cut short" if layout.header[0] > rows.n_rows else ""
        rows.notes.append(f"The header announces {layout.header[0]:,} vectors, the file holds {rows.n_rows:,}{hint}.")


def warn_of_notes(report: LoadReport) -> None:
    """Warn of what is odd about a file, but not of a missing last line end, which is common."""
    for note in report.notes:
        if not note.startswith("The last line"):
            warnings.warn(f"{report.name}: {note}", stacklevel=3)


def _read_gensim(path: Path) -> WordVectors:
    from gensim.models import KeyedVectors

    try:
        loaded = KeyedVectors.load(str(path))
    # Unpickling a foreign or damaged file can raise anything.
    except Exception as error:
        raise ValueError(
            f"{path.name}: expected word vectors saved by gensim, got a pickle that does not load "
            f"({type(error).__name__}: {error}); save them again, with the .npy files beside it"
        ) from error
    vectors = getattr(loaded, "wv", loaded)  # a whole Word2Vec model has its vectors inside
    if not hasattr(vectors, "index_to_key"):
        raise ValueError(f"{path.name}: expected gensim KeyedVectors, got {type(loaded).__name__}")
    return WordVectors.from_keyed_vectors(vectors, path.name, file_checksum(path))
