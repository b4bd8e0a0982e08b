"""Finished parts of a long computation on disk, found again by what they were computed from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from textkernels.tables import write_whole

# Part of every key: raise it when a part's result changes its meaning.
FORMAT = 1


class FinishedParts:
    """One file a part, named by a hash of everything the result depends on.

    Files are written whole, so an interruption at any moment leaves only complete ones; a damaged one is computed
    again.

    Args:
        folder: where the files lie; made at the first result.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, content: Mapping[str, Any]) -> dict[str, Any] | None:
        """The plain values that were kept for this content, or None."""
        try:
            kept = json.loads(self._path(content, ".json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        result = kept.get("result") if isinstance(kept, dict) else None
        return result if isinstance(result, dict) else None

    def keep(self, content: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Write plain values down.

        Args:
            content: plain values: whatever the result depends on.
            result: plain values that JSON can hold.
        """
        text = json.dumps({"content": content, "result": result}, indent=1, allow_nan=False)
        self._write(self._path(content, ".json"), text.encode())

    def arrays(
        self, content: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Kept arrays of this content, or new ones, which are then kept."""
        found = self.find_arrays(content)
        if found is None:
            found = {name: np.ascontiguousarray(value) for name, value in compute().items()}
            self.keep_arrays(content, found)
        return found

    def find_arrays(
        self, content: Mapping[str, Any], names: Sequence[str] | None = None
    ) -> dict[str, np.ndarray] | None:
        """Kept arrays of this content, or None; with ``names`` these alone are read."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._path(content, ".safetensors"), "numpy") as file:
                return {name: file.get_tensor(name) for name in (file.keys() if names is None else names)}
        except (OSError, SafetensorError):
            return None

    def keep_arrays(self, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Write contiguous arrays down."""
        from safetensors.numpy import save

        self._write(self._path(content, ".safetensors"), save(dict(arrays)))

    def _write(self, path: Path, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as file:
            file.write(content)

    def _path(self, content: Mapping[str, Any], suffix: str) -> Path:
        canonical = json.dumps([FORMAT, content], sort_keys=True)
        return self.folder / f"{hashlib.sha256(canonical.encode()).hexdigest()[:32]}{suffix}"
