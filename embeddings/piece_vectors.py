"""Vectors of word pieces, from the cache or else from the model, a bounded amount at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from embeddings.cache_folder import CacheDir, cache_folder
from embeddings.cores import check_workers, n_cores
from embeddings.onnx_model import OnnxModel
from embeddings.token_cache import KEY_BYTES, TokenCache, token_cache
from embeddings.windows import Windows

PRECISIONS = ("float32", "float16")
# Vectors under way at a time: enough to keep all threads busy, some 50 MB.
PIECES_AT_ONCE = 1 << 15

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class PieceReader:
    """Reads texts of word pieces with a model, window by window, and remembers on disk what it has read.

    The model gets one window at a time, in as many threads as there are workers, which was measured to be
    faster than padded batches and than several threads a window.

    Attributes:
        model: the model.
        windows: how long texts are read.
        precision: of the vectors, ``float32`` or ``float16``; the latter rounds them, cached or not.
        workers: threads; None: all cores.
        cache_dir: see ``cache_folder``. Below it is one folder for each model, window, stride, precision and
            version of ONNX Runtime, since each of these changes the vectors.
    """

    model: OnnxModel
    windows: Windows
    precision: str = "float32"
    workers: int | None = None
    cache_dir: CacheDir = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"expected precision to be {' or '.join(map(repr, PRECISIONS))}, got {self.precision!r}")
        object.__setattr__(self, "workers", check_workers(self.workers))

    def vectors(self, texts: Iterable[Ids], bar: tqdm[Any]) -> Iterator[NDArray[np.float32]]:
        """The vectors (L, d) of each text in turn; ``bar`` counts the texts.

        A text is kept on disk as soon as its vectors are finished, so an interrupted run goes on where it was.
        """
        cache = self._cache()
        threads = ThreadPoolExecutor(self.workers or n_cores())
        try:
            for batch in _batches(texts):
                for values in self._read_batch(batch, cache, threads):
                    bar.update()
                    yield values
        finally:
            threads.shutdown(cancel_futures=True)

    def _read_batch(
        self, batch: list[Ids], cache: TokenCache | None, threads: ThreadPoolExecutor
    ) -> Iterator[NDArray[np.float32]]:
        under_way: dict[bytes, list[Future[NDArray[np.float32]]]] = {}
        keys = [hashlib.sha256(ids.astype("<i4").tobytes()).digest()[:KEY_BYTES] for ids in batch]
        if cache is not None:
            cache.refresh()
        for key, ids in zip(keys, batch, strict=True):
            if key not in under_way and (cache is None or key not in cache):
                under_way[key] = self._submit(ids, threads)
        for key, ids in zip(keys, batch, strict=True):
            values = None if cache is None else cache.read(key, len(ids))
            if values is None:
                values = self._assemble(ids, under_way.get(key) or self._submit(ids, threads))
                if cache is not None:
                    cache.write(key, values)
            yield values.astype(np.float32, copy=False)

    def _submit(self, ids: Ids, threads: ThreadPoolExecutor) -> list[Future[NDArray[np.float32]]]:
        return [
            threads.submit(self.model.vectors, ids[window.start : window.stop])
            for window in self.windows.over(len(ids))
        ]

    def _assemble(self, ids: Ids, readings: list[Future[NDArray[np.float32]]]) -> NDArray[Any]:
        values = np.empty((len(ids), self.model.dim), self.precision)
        for window, reading in zip(self.windows.over(len(ids)), readings, strict=True):
            values[window.first : window.last] = reading.result()[
                window.first - window.start : window.last - window.start
            ]
        return values

    def _cache(self) -> TokenCache | None:
        folder = cache_folder(self.cache_dir)
        if folder is None:
            return None
        return token_cache(folder.absolute() / f"contextual-{self._key}", self.model.dim, np.dtype(self.precision))

    @cached_property
    def _key(self) -> str:
        what = {
            "model": self.model.checksum,
            "window": [self.windows.size, self.windows.stride],
            "precision": self.precision,
            "onnxruntime": metadata.version("onnxruntime"),
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def _batches(texts: Iterable[Ids]) -> Iterator[list[Ids]]:
    batch: list[Ids] = []
    for ids in texts:
        batch.append(ids)
        if sum(map(len, batch)) >= PIECES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
