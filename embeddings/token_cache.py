"""Token vectors on disk, found by the content of the text.

A cache is a folder of shards. A shard is two files that only grow: ``<name>.vectors`` holds the vectors of one
text after the other, ``<name>.index`` one record a text:

    key (16 bytes) | first byte in .vectors (uint64) | tokens (uint32) | CRC-32 of key, place and vectors (uint32)

A process writes to a shard that it has locked, or to a new one, so no two processes write to the same. The
record is written after the vectors, and half of one is not read, so a process that is killed leaves at most
bytes that no record points to. What is read is checked: a text whose bytes are not those that were written is
a text that is not there. Reads go straight into the array that is returned. Nothing else is in memory but the
index, a few hundred bytes a text, and a file that somebody cuts cannot crash the process, as it would with a
memory map.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import struct
import threading
import uuid
import warnings
import zlib
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows, where every process then writes a shard of its own
    fcntl = None  # type: ignore[assignment]

KEY_BYTES = 16
# Never fill a disk: with less than this left nothing more is kept.
FREE_BYTES = 1 << 30

_RECORD = struct.Struct("<16sQII")


class _Entry(NamedTuple):
    shard: str
    offset: int
    n_tokens: int
    checksum: int


class TokenCache:
    """Arrays of shape (tokens, dim), by keys of 16 bytes. Safe with threads and processes.

    Args:
        folder: made when something is first kept.
        dim: numbers in a vector.
        dtype: of the vectors as they are kept.
    """

    def __init__(self, folder: Path, dim: int, dtype: np.dtype[Any]) -> None:
        self.folder = folder
        self.dim = dim
        self.dtype = dtype
        # More than one where two processes kept the same text, or where one place turned out damaged.
        self._entries: dict[bytes, tuple[_Entry, ...]] = {}
        self._read_up_to: dict[str, int] = {}
        self._readers: dict[str, FileIO] = {}
        self._own: tuple[str, FileIO, FileIO] | None = None
        self._process = os.getpid()
        self._given_up = False
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def refresh(self) -> None:
        """Take note of what this and other processes have added."""
        with self._lock:
            for path in sorted(self.folder.glob("*.index")):
                seen = self._read_up_to.get(path.stem, 0)
                try:
                    with path.open("rb") as stream:
                        stream.seek(seen)
                        records = stream.read()
                except OSError:
                    continue  # somebody empties the cache
                # The last record may be half written at this moment.
                records = records[: len(records) // _RECORD.size * _RECORD.size]
                for key, *place in _RECORD.iter_unpack(records):
                    self._add(key, _Entry(path.stem, *place))
                self._read_up_to[path.stem] = seen + len(records)

    def _add(self, key: bytes, entry: _Entry) -> None:
        known = self._entries.get(key, ())
        if entry not in known:
            self._entries[key] = (*known, entry)

    def read(self, key: bytes, n_tokens: int) -> NDArray[Any] | None:
        """The vectors kept under that key, shape (n_tokens, dim), or None."""
        with self._lock:
            self._check_process()
            for entry in self._entries.get(key, ()):
                values = np.empty((n_tokens, self.dim), self.dtype)
                if entry.n_tokens == n_tokens and self._read_into(values, key, entry):
                    return values
            self._entries.pop(key, None)  # nothing good there: it will be made and kept again
            return None

    def _read_into(self, values: NDArray[Any], key: bytes, entry: _Entry) -> bool:
        try:
            reader = self._readers.get(entry.shard)
            if reader is None:
                reader = self._readers[entry.shard] = FileIO(self.folder / f"{entry.shard}.vectors")
            reader.seek(entry.offset)
            whole = reader.readinto(values.data.cast("B")) == values.nbytes
        except OSError:
            return False
        return whole and entry.checksum == _checksum(key, entry.offset, values)

    def write(self, key: bytes, values: NDArray[Any]) -> None:
        """Keep vectors of shape (tokens, dim). Where that fails, warn once and keep nothing more."""
        with self._lock:
            self._check_process()
            if self._given_up or key in self._entries:
                return
            values = np.ascontiguousarray(values, self.dtype)
            try:
                name, vectors, index = self._own_shard()
                if shutil.disk_usage(self.folder).free < FREE_BYTES + values.nbytes:
                    raise OSError(errno.ENOSPC, "the disk is nearly full")
                offset = vectors.seek(0, os.SEEK_END)
                _write_all(vectors, values.data.cast("B"))
                place = (offset, len(values), _checksum(key, offset, values))
                _write_all(index, memoryview(_RECORD.pack(key, *place)))
                self._add(key, _Entry(name, *place))
            except OSError as error:
                self._given_up = True
                self.close()
                warnings.warn(
                    f"token vectors are not kept for next time: {error.strerror or error}; make room in "
                    f"{self.folder}, or choose another cache_dir (False: none)",
                    stacklevel=2,
                )

    def _check_process(self) -> None:
        """A forked child must not share its parent's files, whose positions and lock are common to both."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self.close()

    def close(self) -> None:
        """Close files and let others write to this process's shard; what is used later is opened again."""
        with self._lock:
            for stream in [*self._readers.values(), *(self._own or ("",))[1:]]:
                stream.close()
            self._readers.clear()
            self._own = None

    def _own_shard(self) -> tuple[str, FileIO, FileIO]:
        """The shard that this process writes to, open for appending, its index locked."""
        if self._own is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            shards = sorted(path.stem for path in self.folder.glob("*.index"))
            for name in [*shards, uuid.uuid4().hex[:12]]:
                index = FileIO(self.folder / f"{name}.index", "ab")
                if _lock(index):
                    # Half a record of a killed process would shift all that follow.
                    index.truncate(index.seek(0, os.SEEK_END) // _RECORD.size * _RECORD.size)
                    self._own = name, FileIO(self.folder / f"{name}.vectors", "ab"), index
                    return self._own
                index.close()
            raise OSError("no file there can be locked")
        return self._own


@cache
def token_cache(folder: Path, dim: int, dtype: np.dtype[Any]) -> TokenCache:
    """One cache a folder and process, so that its index is read once and one shard is written."""
    kept = TokenCache(folder, dim, dtype)
    atexit.register(kept.close)
    return kept


def _lock(index: FileIO) -> bool:
    """Whether the file is now this process's own until it ends or closes it."""
    if fcntl is not None:
        try:
            fcntl.flock(index, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        except OSError:
            pass
    # Without locks only a new file is surely nobody else's: its name is random.
    return index.seek(0, os.SEEK_END) == 0


def _checksum(key: bytes, offset: int, values: NDArray[Any]) -> int:
    return zlib.crc32(values.data.cast("B"), zlib.crc32(struct.pack("<16sQI", key, offset, len(values))))


def _write_all(stream: FileIO, data: memoryview) -> None:
    while data:
        data = data[stream.write(data) :]
