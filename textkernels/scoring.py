"""Predictions for all rows of a table, beside its own columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from textkernels.classifier import KernelClassifier
    from textkernels.datasets import Dataset

# A chunk of the kernel against 25,000 training rows is 200 MB at this size.
CHUNK = 1024


def predict_rows(
    model: KernelClassifier,
    texts: Sequence[Any],
    advance: Callable[[int], object] | None = None,
    chunk: int | None = None,
) -> pd.DataFrame:
    """``predict_table`` of all texts, (n, columns) in their order.

    Args:
        model: fitted.
        texts: n of them, at least 1.
        advance: told how many rows were done since it was last told.
        chunk: rows at a time, by default 1,024; the predictions do not depend on it.
    """
    import pandas as pd

    chunk, chunks = chunk or CHUNK, []
    for start in range(0, len(texts), chunk):
        part = texts[start : start + chunk]
        chunks.append(model.predict_table(part, progress=False))
        if advance is not None:
            advance(len(part))
    return pd.concat(chunks, ignore_index=True)


def check_new_columns(model: KernelClassifier, dataset: Dataset) -> None:
    """Raise ValueError if the table has columns with names that ``predict_table`` gives; one row is scored to know."""
    added = model.predict_table(dataset.texts[:1], progress=False).columns
    clash = [str(name) for name in added if name in dataset.frame.columns]
    if clash:
        raise ValueError(
            f"{dataset.name}: expected no columns with the names of the new ones, got {', '.join(clash)}; rename or "
            "remove them (has this file been scored before?)"
        )
