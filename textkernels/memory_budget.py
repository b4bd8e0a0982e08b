"""Memory: what a computation may take, and how to say it."""

from __future__ import annotations

import math
import re
import sys

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
SHARE = 0.8  # of what is free, when nothing is said: others need some too


def memory_bytes(budget: int | float | str | None) -> int:
    """A budget in bytes.

    Args:
        budget: bytes; or a number with a unit, "4GB", "500 MB", "1.5 GiB"; or None for most of what is free now.

    Raises:
        ValueError: nothing of the kind.
    """
    if budget is None:
        return int(SHARE * free_memory())
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", budget)
        if match and match[2].upper() in UNITS and match[1].count(".") < 2 and match[1] != ".":
            return int(float(match[1]) * UNITS[match[2].upper()])
    elif not isinstance(budget, bool) and math.isfinite(budget) and budget >= 0:
        return int(budget)
    raise ValueError(f"expected memory_budget as bytes or as text like '4GB', got {budget!r}")


def free_memory() -> int:
    """Bytes that this process may still take: of the machine, of its container, and of its own address space."""
    import psutil

    free = psutil.virtual_memory().available
    limit, used = _container()
    if limit is not None:
        free = min(free, limit - used)
    if sys.platform != "win32":
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            free = min(free, soft - psutil.Process().memory_info().vms)
    return max(free, 0)


def _container() -> tuple[int | None, int]:
    """Limit and use of a control group (version 2), bytes."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            text = limit.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as used:
            return (None, 0) if text == "max" else (int(text), int(used.read()))
    except (OSError, ValueError):
        return None, 0


def readable(size: float) -> str:
    """Bytes for people: 4.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit in ("bytes", "kB") else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def readable_time(seconds: float) -> str:
    """Seconds for people: 40 s, 12 minutes, 3.4 hours."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than a second"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:,.1f} hours"
