"""Parse the rows of a text or word2vec binary file into a table, row by row."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader

from embeddings.vector_layout import BYTE_ORDER_MARK, Layout

BATCH_ROWS = 4096
CHUNK_BYTES = 1 << 22
LONGEST_WORD = 100_000

_DECIMAL = re.compile(rb"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?|[+-]?\d+\.?[eE][+-]?\d+")


class BadRowError(ValueError):
    """A row that cannot be read, or a file that ends early."""


@dataclass
class Rows:
    """The table under construction.

    Attributes:
        skip: count bad rows instead of raising.
        needed: the only words to keep; None keeps all.
        words: each word and the line (text) or row (binary) it stands in, 1-based.
        values: the vectors end to end, float32.
        n_rows: rows seen, good or bad.
        skipped: what was wrong with each of the rows left out.
        n_duplicated: rows left out because their word came before.
        n_unneeded: rows left out because their word is not needed.
        cut: why the file ends too early, or "".
        notes: anything else worth a sentence.
    """

    skip: bool = False
    needed: frozenset[str] | None = None
    words: dict[str, int] = field(default_factory=dict)
    values: array[float] = field(default_factory=lambda: array("f"))
    n_rows: int = 0
    skipped: list[str] = field(default_factory=list)
    n_duplicated: int = 0
    n_unneeded: int = 0
    cut: str = ""
    notes: list[str] = field(default_factory=list)

    def admits(self, place: int, word: bytes, kind: str) -> bool:
        """Whether the word is readable, needed and new; then its vector must be appended to ``values``."""
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            self.reject(f"{kind} {place}: expected a word in UTF-8, found {word[:40]!r}")
            return False
        if self.needed is not None and text not in self.needed:
            self.n_unneeded += 1
            return False
        if text in self.words:
            self.n_duplicated += 1
            return False
        self.words[text] = place
        return True

    def reject(self, problem: str) -> None:
        """Raise BadRowError, or note that a row is left out."""
        if not self.skip:
            raise BadRowError(problem)
        self.skipped.append(problem)

    def end_early(self, problem: str) -> None:
        """Raise BadRowError, or note that the file is cut short."""
        if not self.skip:
            raise BadRowError(f"the file is cut short: {problem}")
        self.cut = problem


def read_text(stream: BufferedReader, layout: Layout, rows: Rows) -> Iterator[None]:
    """Read lines into ``rows``, pausing after each batch so that the caller can show progress."""
    dim, line = layout.dim, b""
    for number, line in enumerate(stream, 1):
        if number == 1:
            if layout.header:
                continue
            line = line.removeprefix(BYTE_ORDER_MARK)
        content = line.rstrip(b" \r\n")
        if not content:
            continue
        rows.n_rows += 1
        if rows.n_rows % BATCH_ROWS == 0:
            yield
        try:
            word, values = _parse_line(content, dim)
        except BadRowError as error:
            end = "" if line.endswith(b"\n") else "; the file ends inside this line, so it looks cut short"
            rows.reject(f"line {number}: {error}{end}")
            continue
        if rows.admits(number, word, "line"):
            rows.values.fromlist(values)
    if not line.endswith(b"\n"):
        rows.notes.append("The last line has no line end; if it was cut inside a number, nothing can tell.")


def _parse_line(line: bytes, dim: int) -> tuple[bytes, list[float]]:
    fields = line.split(b" ")
    if len(fields) == dim + 1 and fields[0]:
        word, numbers = fields[0], fields[1:]
    else:
        word, numbers = _split_from_right(line, dim)
    try:
        return word, list(map(float, numbers))
    except ValueError:
        odd = next(number for number in numbers if not _is_float(number))
        raise BadRowError(
            f"expected a word and {dim} numbers separated by spaces, found {odd[:40]!r} where a number should be"
        ) from None


def _split_from_right(line: bytes, dim: int) -> tuple[bytes, list[bytes]]:
    """The last ``dim`` fields and what stands before them: words with spaces, double spaces."""
    word = line
    numbers: list[bytes] = []
    while word and len(numbers) < dim:
        word, _, number = word.rstrip(b" ").rpartition(b" ")
        numbers.append(number)
    word = word.strip(b" ")
    expected = f"expected a word and {dim} numbers"
    if not word:
        raise BadRowError(f"{expected}, found {len(line.split()) - 1} after {line.split()[0][:40]!r}")
    last_part = word.rpartition(b" ")[2]
    # A field too many is told from a word with spaces by its decimal point: "good 0.1 | 0.2 0.3 0.4".
    if last_part != word and _DECIMAL.fullmatch(last_part):
        raise BadRowError(f"{expected}, found more: the number {last_part.decode()} ends the word {word[:40]!r}")
    return word, numbers[::-1]


def _is_float(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def read_binary(stream: BufferedReader, layout: Layout, rows: Rows) -> Iterator[None]:
    """Read word2vec's binary rows (word, space, d little-endian float32, perhaps a line feed)."""
    stream.readline()  # the header
    width = 4 * layout.dim
    buffer, start, at_end = b"", 0, False
    while True:
        space = buffer.find(b" ", start)
        end = space + 1 + width
        if space >= 0 and end <= len(buffer):
            rows.n_rows += 1
            if rows.admits(rows.n_rows, buffer[start:space].lstrip(b"\n"), "row"):
                rows.values.frombytes(buffer[space + 1 : end])
            start = end
        elif not at_end:
            if space < 0 and len(buffer) - start > LONGEST_WORD:
                raise BadRowError(
                    f"row {rows.n_rows + 1}: expected a word and a space, found {LONGEST_WORD:,} other bytes"
                )
            piece = stream.read1(CHUNK_BYTES)
            buffer, start, at_end = buffer[start:] + piece, 0, not piece
            yield
        else:
            break
    left = buffer[start:].strip(b"\n")
    if left:
        found = f"{len(left.partition(b' ')[2])} of {width} bytes of its vector"
        rows.end_early(f"row {rows.n_rows + 1} of {layout.header[0] if layout.header else '?'} has {found}")
