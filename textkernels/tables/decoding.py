"""From the bytes of a file to its text: compression, byte order marks, encodings."""

from __future__ import annotations

import codecs
import gzip
import zlib

# Longest first: the UTF-32 mark starts with the UTF-16 one.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decompress(data: bytes, name: str) -> bytes:
    """Content of gzip data, known by its first two bytes; other data unchanged; ValueError if it is damaged."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name}: the gzip data is cut short or damaged ({error}); fetch the file again") from error


def decode_text(data: bytes, name: str, encoding: str | None = None) -> str:
    """Decoded bytes without byte order mark; ValueError with offset and line of the first byte that fails."""
    marked = next((codec for mark, codec in _MARKS if data.startswith(mark)), "utf-8")
    codec = encoding or marked
    try:
        return data.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        if codec == "utf-8" and b"\0" in data:
            raise ValueError(f"{name}: the file holds NUL bytes; is it UTF-16 (--encoding utf-16)?") from error
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} at offset {error.start} is not {codec}; give the "
            "file's encoding, for example --encoding cp1252 or --encoding utf-16"
        ) from error
    except (LookupError, UnicodeError) as error:
        raise ValueError(f"expected a text encoding such as utf-8 or cp1252, got {encoding!r}") from error
