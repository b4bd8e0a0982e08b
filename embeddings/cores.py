"""How many threads are worth starting."""

from __future__ import annotations

import os
from typing import Any

from embeddings.whole_numbers import whole_number


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_workers(workers: Any) -> int | None:
    """The number of threads asked for as an int, or None for all cores; ValueError for anything else."""
    try:
        return None if workers is None else whole_number("workers", workers, 1)
    except ValueError:
        raise ValueError(f"expected workers to be at least 1 thread, or None for all cores, got {workers!r}") from None
