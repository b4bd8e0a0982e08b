"""Labelled texts from a prepared tensorflow-datasets folder. TensorFlow is imported when one is read."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from textkernels.datasets.sources import table_of_rows
from textkernels.tables.files import Table


def read_tfds(key: str, name: str, *, data_dir: str | None = None, progress: bool = True) -> Table:
    """One split of a dataset that tensorflow-datasets has prepared on this machine; nothing is downloaded.

    Every scalar feature becomes a column; class numbers become the names the dataset gives them, and the
    class -1, which marks rows without a label, becomes a missing cell.

    Args:
        key: dataset/split or dataset/config/split, such as imdb_reviews/train; a split may be a slice.
        name: how to call the source in messages.
        data_dir: folder that holds the dataset's folder; the usual one of tensorflow-datasets when None.
        progress: show a bar if reading takes longer than two seconds.

    Raises:
        ValueError: malformed key, no prepared data, unknown split, a text that is not UTF-8.
        ImportError: tensorflow-datasets or TensorFlow is not installed.
    """
    from tqdm import tqdm

    dataset, _, split = key.rpartition("/")
    if not dataset or not split:
        raise ValueError(f"{name}: expected tfds:DATASET/SPLIT, such as tfds:imdb_reviews/train")
    with _quiet() as terminal:
        tfds = _import_tfds(name)
        builder = _builder(tfds, dataset, name, data_dir)
        try:
            examples = builder.as_dataset(split=split)
        except ValueError as error:
            known = ", ".join(builder.info.splits)
            raise ValueError(f"{name}: expected a split among {known}, or a slice of one; got {split!r}") from error
        features = {k: f for k, f in builder.info.features.items() if f.shape == ()}
        rows = [
            tuple(_cell(features[k], example[k], f"{name}, row {number}") for k in features)
            for number, example in enumerate(
                tqdm(tfds.as_numpy(examples), desc="reading", unit="row", delay=2, file=terminal, disable=not progress),
                start=1,
            )
        ]
    if not rows:
        raise ValueError(f"{name}: expected at least one row, got an empty split")
    return table_of_rows(name, list(features), rows, range(1, len(rows) + 1), "row")


def _cell(feature: Any, value: Any, place: str) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{place}: expected UTF-8 text, got byte 0x{value[error.start]:02x}") from error
    value = value.item() if hasattr(value, "item") else value
    if hasattr(feature, "int2str"):
        return None if value < 0 else feature.int2str(value)
    return value


def _import_tfds(name: str) -> Any:
    first = "tensorflow" not in sys.modules
    try:
        tfds = import_module("tensorflow_datasets")
        tf = import_module("tensorflow")
    except ImportError as error:
        raise ImportError(
            f'{name}: tensorflow-datasets is needed here ({error}); run pip install "textkernels[data]"'
        ) from error
    if first:
        # Only files are read with it: without this it would claim the memory of every GPU.
        tf.config.set_visible_devices([], "GPU")
    return tfds


def _builder(tfds: Any, dataset: str, name: str, data_dir: str | None) -> Any:
    if data_dir is not None and not Path(data_dir).is_dir():
        raise ValueError(f"{name}: there is no folder {data_dir} (--data-dir)")
    where = data_dir or os.fspath(tfds.core.constants.DATA_DIR)
    try:
        builder = tfds.builder(dataset, data_dir=data_dir)
        prepared = bool(builder.info.splits)
    # The library raises a dozen types here, from KeyError to its own, and all mean the same to the user.
    except Exception as error:
        builder, prepared, cause = None, False, f" ({str(error).splitlines()[0]})"
    else:
        cause = ""
    if not prepared:
        raise ValueError(
            f"{name}: expected a prepared copy of {dataset} in {where}, found none{cause}; point --data-dir at the "
            f"folder that holds {dataset.split('/')[0]}, or prepare it with: tfds build {dataset} --data_dir {where}"
        )
    return builder


@contextmanager
def _quiet() -> Iterator[IO[str]]:
    """Silence what TensorFlow writes to standard error on start, below Python; gives the real one for a bar."""
    sys.stderr.flush()
    kept = os.dup(2)
    with os.fdopen(kept, "w") as terminal, tempfile.TemporaryFile() as hole, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(hole.fileno(), 2)
        try:
            yield terminal
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
