"""Processors: how many this process may use, and matrix products on one of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
_limits: Any = None


def count_processors() -> int:
    """Processors that the operating system lets this process use (not all that the machine has)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _controller() -> ThreadpoolController:
    """The libraries that are loaded: looking for them takes a millisecond, which a small Gram matrix would notice."""
    # SciPy brings a second BLAS: load it first, or its threads would go unseen.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Matrix products on one thread each, for code that runs many of them on threads of its own.

    The limit belongs to the process, so overlapping users are counted and the last one lifts it: limits that
    each thread saved and restored by itself would leave the process on one thread for good.
    """
    global _users, _limits
    with _lock:
        _users += 1
        if _users == 1:
            _limits = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
