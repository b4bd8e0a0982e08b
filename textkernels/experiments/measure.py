"""What a piece of work costs: seconds, and the most memory the process held meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

INTERVAL = 0.05


@dataclass
class Cost:
    """Filled in when the block ends.

    Attributes:
        seconds: wall-clock time.
        peak_bytes: most resident memory of the process, looked at 20 times a second.
    """

    seconds: float = 0.0
    peak_bytes: int = 0


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block: ``with measured() as cost: ...``.

    The operating system's own peak only ever grows over a process, so a thread looks instead.
    """
    import psutil

    cost, process, done = Cost(), psutil.Process(), threading.Event()

    def watch() -> None:
        while True:
            cost.peak_bytes = max(cost.peak_bytes, process.memory_info().rss)
            if done.wait(INTERVAL):
                return

    watcher = threading.Thread(target=watch, daemon=True)
    start = time.perf_counter()
    watcher.start()
    try:
        yield cost
    finally:
        done.set()
        watcher.join()
        cost.peak_bytes = max(cost.peak_bytes, process.memory_info().rss)
        cost.seconds = time.perf_counter() - start
