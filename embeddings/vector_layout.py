"""Find out what kind of word-vector file lies there, from its content and never from its name."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

HEAD_BYTES = 1 << 20
SAMPLED_LINES = 200
CUT_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HEADER = re.compile(rb"[ \t]*(\d{1,12})[ \t]+(\d{1,6})[ \t\r]*")

_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x93NUMPY": "a NumPy array, which has no words; pass a gensim KeyedVectors made from it",
    b"\xba\x16\x4f\x2f": "a fastText model; load it with gensim and pass its KeyedVectors",
    b"PAR1": "a Parquet table; pass a gensim KeyedVectors made from it",
}


@dataclass(frozen=True)
class Layout:
    """How to read a file.

    Attributes:
        format: ``text``, ``binary`` or ``keyed_vectors`` (a pickle saved by gensim, whose d gensim knows: 0 here).
        dim: numbers in a vector.
        header: the count and dimension of the first line, or None.
    """

    format: str
    dim: int = 0
    header: tuple[int, int] | None = None


def is_gzip(path: Path) -> bool:
    """Whether the file starts as gzip does."""
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BufferedReader, IO[bytes]]]:
    """The (unpacked) bytes of a file, and the file itself, whose position shows progress."""
    with path.open("rb") as raw:
        if not is_gzip(path):
            yield raw, raw
            return
        with gzip.GzipFile(fileobj=raw) as unpacked, BufferedReader(cast(Any, unpacked)) as stream:
            yield stream, raw


def find_layout(path: Path) -> Layout:
    """The layout of a file.

    Raises:
        ValueError: an empty file, a file of another kind, a header whose dimension is not the rows'.
    """
    head = _head(path)
    if not head:
        if is_gzip(path):
            raise ValueError(f"{path.name}: the gzip file is cut short or empty: nothing to unpack; download it again")
        raise ValueError(f"{path.name}: expected word vectors, got an empty file (0 bytes); download it again")
    for magic, kind in _OTHER_FORMATS.items():
        if head.startswith(magic):
            raise ValueError(f"{path.name}: expected word vectors as text or word2vec binary, got {kind}")
    if head[:1] == b"\x80":
        return Layout("keyed_vectors")
    head = head.removeprefix(BYTE_ORDER_MARK)
    first, _, rest = head.partition(b"\n")
    announced = _HEADER.fullmatch(first)
    if announced:
        return _with_header(path, (int(announced[1]), int(announced[2])), rest)
    dim = _infer_dim(head)
    if dim is None or _has_control_bytes(head):
        raise ValueError(
            f"{path.name}: expected lines of a word and its numbers, or a first line 'count dimension', "
            f"got {first[:40]!r}; give a GloVe or word2vec file"
        )
    return Layout("text", dim)


def _with_header(path: Path, header: tuple[int, int], rest: bytes) -> Layout:
    count, dim = header
    if not rest.strip() or not dim:
        raise ValueError(f"{path.name}: the header announces {count:,} vectors of dimension {dim}, got no vectors")
    inferred = _infer_dim(rest)
    if not _is_text(rest) and _infer_dim(rest.partition(b"\n")[0]) is None:
        return Layout("binary", dim, header)
    if inferred is not None and inferred != dim:
        raise ValueError(
            f"{path.name}: the header announces dimension {dim}, but the rows hold {inferred} numbers; "
            "correct the header or remove it"
        )
    return Layout("text", dim, header)


def _head(path: Path) -> bytes:
    head = b""
    try:
        with opened(path) as (stream, _):
            # In small pieces, to have what comes before the end of a gzip stream that is cut short.
            while len(head) < HEAD_BYTES and (piece := stream.read1(1 << 16)):
                head += piece
    except CUT_ERRORS:
        pass
    return head


def _is_text(sample: bytes) -> bool:
    """UTF-8 without control characters; a character cut at the end of the sample does not count."""
    sample = sample[:4096]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return not _has_control_bytes(sample)


def _has_control_bytes(sample: bytes) -> bool:
    return any(byte < 32 and byte not in b"\t\n\r" for byte in sample[:4096])


def _infer_dim(sample: bytes) -> int | None:
    """The number of numbers at the end of most lines, leaving one field for the word; of a tie the larger.

    Words may hold spaces or be numbers themselves, and single lines may be damaged, so no one line decides.
    """
    lines = sample.split(b"\n")
    if len(lines) > 1 and len(sample) >= HEAD_BYTES // 2:
        lines.pop()  # cut by the end of the sample
    votes: Counter[int] = Counter()
    for line in lines[:SAMPLED_LINES]:
        fields = [field for field in line.strip(b" \r").split(b" ") if field]
        numbers = 0
        while numbers < len(fields) - 1 and _is_number(fields[-1 - numbers]):
            numbers += 1
        if numbers:
            votes[numbers] += 1
    return max(votes, key=lambda dim: (votes[dim], dim)) if votes else None


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
