"""Finished tiles of a Gram matrix in a folder, so that an interrupted computation goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.architecture import Architecture
from textkernels.gram_tiles import Tiling

FORMAT = 1
MANIFEST = "manifest.json"
PARTIAL = ".partial-"


class TileStore:
    """A folder with a manifest, which says what is computed, and a file for each finished tile.

    Files appear whole or not at all: they are written beside their place and moved there. Killed at any moment, the
    folder holds finished tiles only, and going on gives the same matrix bit for bit, since tiles are those of the
    manifest and do not depend on each other.

    Args:
        folder: made if it is missing.
        identity: what is computed, see :func:`identify`.
        tiling: how it is cut; one that is in the folder already is kept.

    Raises:
        ValueError: the folder belongs to another computation; the message says what differs.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any], tiling: Tiling) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f"{PARTIAL}*"):
            left.unlink(missing_ok=True)
        path = self.folder / MANIFEST
        if path.exists():
            self.tiling = self._read_manifest(path, identity, tiling)
        else:
            self.tiling = tiling
            manifest = {**identity, "rows": list(tiling.rows), "columns": list(tiling.columns)}
            self._write(MANIFEST, lambda file: file.write(json.dumps(manifest, indent=1).encode()))

    def _read_manifest(self, path: Path, identity: dict[str, Any], tiling: Tiling) -> Tiling:
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            rows, columns = tuple(manifest["rows"]), tuple(manifest["columns"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: expected the manifest of a Gram matrix, got something else") from None
        other = [name for name, value in identity.items() if manifest.get(name) != value]
        if other:
            raise ValueError(
                f"{self.folder}: holds tiles of another computation (differs in: {', '.join(other)}); "
                "give another folder or empty this one"
            )
        return Tiling(rows, columns, tiling.symmetric)

    def read(self, row: slice, column: slice) -> list[np.ndarray] | None:
        """The matrices of a finished tile, or None."""
        path = self.folder / _name(row, column)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return [arrays[name] for name in arrays.files]
        except (OSError, ValueError, zipfile.BadZipFile):
            return None  # damaged from outside: as good as missing

    def write(self, row: slice, column: slice, matrices: list[np.ndarray]) -> None:
        """Keep a finished tile."""
        self._write(_name(row, column), lambda file: np.savez(file, *matrices))

    def _write(self, name: str, fill: Any) -> None:
        partial = self.folder / f"{PARTIAL}{os.getpid()}-{name}"
        with open(partial, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.folder / name)


def identify(
    architecture: Architecture, documents: Sequences, other: Sequences | None, kind: str, kernel: Any
) -> dict[str, Any]:
    """What a Gram matrix depends on, as the manifest has it."""
    from textkernels import __version__

    engine = getattr(kernel, "engine", kernel)
    return {
        "format": FORMAT,
        "version": __version__,
        "architecture": hashlib.sha256(architecture.to_toml().encode()).hexdigest(),
        "engine": type(engine).__name__,
        "kind": kind,
        "documents": _digest(documents),
        "other documents": None if other is None else _digest(other),
    }


def _digest(documents: Sequences) -> str:
    digest = hashlib.sha256(f"{documents.dtype} {documents.dim}".encode())
    digest.update(documents.lengths.astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(documents.values).data)
    return digest.hexdigest()


def _name(row: slice, column: slice) -> str:
    return f"tile-{row.start:06d}-{column.start:06d}.npz"
