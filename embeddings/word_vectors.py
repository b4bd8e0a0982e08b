"""A table of word vectors, with an account of where it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class LoadReport:
    """What was read, and what was not.

    Attributes:
        name: file name, package name or ``KeyedVectors``.
        format: ``text``, ``binary`` (word2vec), ``keyed_vectors`` (gensim), ``package`` or ``trained``.
        n_rows: vectors found; of these ``n_skipped`` were bad and left out on request, and
            ``n_duplicated`` repeated a word (the first vector counts), ``n_unneeded`` were not in the vocabulary
            asked for. The rest are the words of the table.
        dim: numbers in a vector.
        header: the count and dimension that the file announces, or None.
        compressed: whether the file is gzipped.
        checksum: SHA-256 of the file as it lies on disk, "" where there is no single file.
        notes: anything else worth a sentence.
    """

    name: str
    format: str
    n_rows: int
    dim: int
    n_skipped: int = 0
    n_duplicated: int = 0
    n_unneeded: int = 0
    header: tuple[int, int] | None = None
    compressed: bool = False
    checksum: str = ""
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """One or two sentences for people."""
        kept = self.n_rows - self.n_skipped - self.n_duplicated - self.n_unneeded
        gzipped = ", gzipped" if self.compressed else ""
        text = (
            f"{self.name} ({self.format}{gzipped}): {kept:,} words of dimension {self.dim} from {self.n_rows:,} rows, "
            f"{self.n_skipped:,} skipped, {self.n_duplicated:,} duplicated"
            + (f", {self.n_unneeded:,} not needed." if self.n_unneeded else ".")
        )
        return " ".join([text, *self.notes])


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors. Never changed once made, so copies of what uses them share them.

    Attributes:
        words: n distinct words; they may hold spaces but no line feed.
        vectors: shape (n, d), float32 or float64, C-contiguous, finite.
        report: how they were read.

    Raises:
        ValueError: shapes that do not fit, repeated words, a line feed in a word, NaN or infinity.
    """

    words: list[str]
    vectors: NDArray[Any]
    report: LoadReport
    # Not an argument: one look-up table for all encoders that share these vectors.
    index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.vectors.size:
            raise ValueError(
                f"{self.report.name}: expected one vector a word, got {len(self.words)} words and vectors of shape "
                f"{self.vectors.shape}"
            )
        index = {word: row for row, word in enumerate(self.words)}
        if len(index) != len(self.words):
            raise ValueError(f"{self.report.name}: expected distinct words, got {len(self.words) - len(index)} repeats")
        if any("\n" in word for word in self.words):
            raise ValueError(f"{self.report.name}: expected words without line feeds; rename those words")
        if not (np.isfinite(self.vectors.min()) and np.isfinite(self.vectors.max())):
            row = int(np.argmax(~np.isfinite(self.vectors).all(axis=1)))
            raise ValueError(
                f"{self.report.name}: expected finite vectors, got NaN or infinity for {self.words[row]!r}"
            )
        object.__setattr__(self, "vectors", np.ascontiguousarray(self.vectors))
        object.__setattr__(self, "index", index)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # 400,000 words are 150 MB, and scikit-learn makes a deep copy of an encoder for every fold.
        return self

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self.vectors.shape[1]

    @cached_property
    def cased(self) -> bool:
        """Whether any word has an upper-case letter. Then texts keep their case: see ``rows_of``."""
        return any(word != word.lower() for word in self.words)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of words and vectors: equal for equal tables, whatever file they came from."""
        digest = hashlib.sha256(f"{self.vectors.shape} {self.vectors.dtype.str}\n".encode())
        for array in self.to_arrays().values():
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def rows_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word: as it is written, else in lower case, else -1."""
        find = self.index.get
        rows = np.fromiter((find(word, -1) for word in words), np.int64, len(words))
        if self.cased:
            for position in np.flatnonzero(rows < 0).tolist():
                rows[position] = find(words[position].lower(), -1)
        return rows

    def look_up(self, words: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The vector of each word, zero where it has none, shape (n, d), and whether it has one, shape (n,)."""
        rows = self.rows_of(words)
        values, known = self.vectors[rows], rows >= 0
        values[~known] = 0
        return values, known

    def astype(self, dtype: DTypeLike) -> WordVectors:
        """The same words with vectors in float32 or float64."""
        if self.vectors.dtype == np.dtype(dtype):
            return self
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
            return WordVectors(self.words, self.vectors.astype(dtype), self.report)

    def restrict(self, words: Collection[str]) -> WordVectors:
        """The table with only these words, its vectors in memory.

        Raises:
            ValueError: none of them is in the table.
        """
        rows = [row for word, row in self.index.items() if word in words]
        if not rows:
            raise ValueError(f"{self.report.name}: expected a vocabulary with words of the table, got none of them")
        report = replace(self.report, n_unneeded=self.report.n_unneeded + len(self.words) - len(rows))
        return WordVectors([self.words[row] for row in rows], self.vectors[rows], report)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """``words`` (UTF-8 joined by line feeds, uint8) and ``vectors``."""
        return {"words": pack_words(self.words), "vectors": self.vectors}

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]], report: LoadReport) -> WordVectors:
        """The inverse of ``to_arrays``."""
        return WordVectors(unpack_words(arrays["words"]), arrays["vectors"], report)

    @classmethod
    def from_keyed_vectors(cls, keyed_vectors: Any, name: str = "KeyedVectors", checksum: str = "") -> WordVectors:
        """The table of a gensim ``KeyedVectors`` (FastText's too: its whole words, not its subwords)."""
        words, vectors = list(keyed_vectors.index_to_key), np.asarray(keyed_vectors.vectors)
        odd = next((word for word in words if not isinstance(word, str)), None)
        if odd is not None:
            raise ValueError(f"{name}: expected words as keys, got {odd!r} of type {type(odd).__name__}")
        if vectors.dtype not in (np.float32, np.float64):
            vectors = vectors.astype(np.float32)
        # gensim over-allocates the table of vectors that grow.
        vectors = vectors[: len(words)]
        report = LoadReport(name, "keyed_vectors", len(words), vectors.shape[-1], checksum=checksum)
        return cls(words, vectors, report)


def pack_words(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words as UTF-8 joined by line feeds, uint8; a lone surrogate (broken input text) survives."""
    return np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), np.uint8)


def needed_words(vocabulary: Iterable[str]) -> frozenset[str]:
    """What a table must keep for texts with these words: see ``WordVectors.rows_of``.

    "n't" is always among them: it tells which tokenizer a table was made with.

    Raises:
        TypeError: one string instead of several.
    """
    if isinstance(vocabulary, str):
        raise TypeError("expected a vocabulary of words, got one string; put the words in a set")
    words = set(vocabulary)
    return frozenset(words | {word.lower() for word in words} | {"n't"})


def unpack_words(packed: NDArray[np.uint8]) -> list[str]:
    """The inverse of ``pack_words``."""
    return packed.tobytes().decode("utf-8", "surrogatepass").split("\n")


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def report_from_config(values: dict[str, Any]) -> LoadReport:
    """A report from what ``dataclasses.asdict`` and JSON made of it."""
    header = values.get("header")
    return LoadReport(
        **{**values, "notes": tuple(values.get("notes", ())), "header": tuple(header) if header else None}
    )


def report_to_config(report: LoadReport) -> dict[str, Any]:
    """A report in types that JSON has."""
    values = asdict(report)
    values["notes"] = list(report.notes)
    values["header"] = list(report.header) if report.header else None
    return values
