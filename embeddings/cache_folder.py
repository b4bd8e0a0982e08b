"""Where work that took long is kept for the next time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

CacheDir = str | os.PathLike[str] | Literal[False] | None


def cache_folder(cache_dir: CacheDir) -> Path | None:
    """The folder: the given one; of None, textkernels in the user's cache folder; of False none, keep nothing."""
    if cache_dir is False:
        return None
    if cache_dir is not None:
        return Path(cache_dir)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textkernels"
