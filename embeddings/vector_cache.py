"""Files of word vectors in a form that opens at once: written at the first reading, then mapped from disk."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from embeddings.cache_folder import CacheDir, cache_folder
from embeddings.vector_files import read_vector_file, warn_of_notes
from embeddings.vector_layout import find_layout
from embeddings.word_vectors import WordVectors, needed_words, report_from_config, report_to_config, unpack_words

FORMAT = 1
# Smaller files are read faster than anybody notices.
SMALL_BYTES = 1 << 24


def load_vector_file(
    path: str | os.PathLike[str],
    on_bad_row: str = "error",
    vocabulary: Iterable[str] | None = None,
    cache_dir: CacheDir = None,
    progress: bool = False,
) -> WordVectors:
    """What ``read_vector_file`` reads; large files at full length only the first time.

    The first reading of a file leaves its table as NumPy arrays in the cache folder, about 4 d bytes a word,
    under the file's path, size and time of change, in place of what was there for an earlier state of the
    file. Afterwards vectors are mapped: of a table of gigabytes only the rows that texts need come to memory.

    Args:
        path: the file.
        on_bad_row: see ``read_vector_file``.
        vocabulary: keep only these words (and their lower-case forms) in memory. Words that are not in it
            are unknown later, so it must have those of the texts to predict, too. The first reading then
            leaves nothing in the cache folder.
        cache_dir: None: textkernels in the user's cache folder; False: read the file each time.
        progress: show progress on standard error.

    Raises:
        FileNotFoundError, ValueError: as ``read_vector_file`` does.
    """
    path, needed = Path(path), None if vocabulary is None else needed_words(vocabulary)
    place = _place(path, on_bad_row, cache_folder(cache_dir))
    vectors = None if place is None else _open(place)
    if vectors is not None:
        warn_of_notes(vectors.report)
        return vectors if needed is None else vectors.restrict(needed)
    vectors = read_vector_file(path, on_bad_row, progress, vocabulary=needed)
    if place is None or needed is not None or not _write(place, vectors):
        return vectors
    return _open(place) or vectors


def _place(path: Path, on_bad_row: str, folder: Path | None) -> Path | None:
    """The folder for a file's table; None for a file that is small, not there, or mapped by gensim itself."""
    if folder is None or not path.is_file() or path.stat().st_size < SMALL_BYTES:
        return None
    if find_layout(path).format == "keyed_vectors":
        return None
    state = path.stat()
    which = hashlib.sha256(f"{FORMAT} {path.resolve()} {on_bad_row}".encode("utf-8", "surrogateescape")).hexdigest()
    when = hashlib.sha256(f"{state.st_size} {state.st_mtime_ns}".encode()).hexdigest()
    return folder / f"vectors-{which[:24]}-{when[:12]}"


def _open(place: Path) -> WordVectors | None:
    if not place.is_dir():
        return None
    try:
        report = report_from_config(json.loads((place / "report.json").read_text(encoding="utf-8")))
        words = unpack_words(np.load(place / "words.npy"))
        return WordVectors(words, np.load(place / "vectors.npy", mmap_mode="r"), report)
    except Exception as error:  # a damaged file raises errors of many kinds
        warnings.warn(f"{place.name}: damaged cache, the file is read again ({type(error).__name__})", stacklevel=3)
        shutil.rmtree(place, ignore_errors=True)
        return None


def _write(place: Path, vectors: WordVectors) -> bool:
    """Write a whole folder or none, and remove those of earlier states of the file."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            draft = Path(scratch) / place.name
            draft.mkdir()
            for name, array in vectors.to_arrays().items():
                with (draft / f"{name}.npy").open("wb") as stream:
                    np.save(stream, array, allow_pickle=False)
                    os.fsync(stream.fileno())
            (draft / "report.json").write_text(json.dumps(report_to_config(vectors.report)), encoding="utf-8")
            for earlier in place.parent.glob(f"{place.name.rpartition('-')[0]}-*"):
                shutil.rmtree(earlier, ignore_errors=True)
            draft.rename(place)
    except OSError as error:
        warnings.warn(f"{vectors.report.name} is not kept in a faster form for next time: {error}", stacklevel=3)
        return False
    return True
