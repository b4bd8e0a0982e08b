"""Options for texts that occur more than once, and what the commands say and do about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textkernels.cli.options import FILES, note, option

if TYPE_CHECKING:
    import numpy as np

    from textkernels.datasets import Dataset
    from textkernels.overlap import Repeats

_SETTINGS = ("list_duplicates", "drop_duplicates", "drop_conflicting")


def duplicate_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--list-duplicates, --drop-duplicates and --drop-conflicting."""
    options = [
        option("--list-duplicates", group=FILES, metavar="FILE", help="Write rows whose text occurs twice to FILE."),
        option(
            "--drop-duplicates",
            group=FILES,
            is_flag=True,
            help="Leave out rows that repeat an earlier one, or a training text where a model is tested.",
        ),
        option("--drop-conflicting", group=FILES, is_flag=True, help="Leave out texts that stand under two labels."),
    ]
    for add in reversed(options):
        function = add(function)
    return function


def repeat_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Take the values of ``duplicate_options`` out of a command's settings, for ``handle_repeats``."""
    return {name: settings.pop(name) for name in _SETTINGS}


def handle_repeats(
    dataset: Dataset,
    *,
    known: np.ndarray | None = None,
    list_duplicates: str | None = None,
    drop_duplicates: bool = False,
    drop_conflicting: bool = False,
) -> tuple[Dataset, dict[str, int]]:
    """Count the rows whose text occurs more than once, say so, list them and drop them where that is asked for.

    Args:
        dataset: rows with labels.
        known: hashes of training texts (overlap.distinct_hashes), where the dataset is to test a model.
        list_duplicates: file for the rows found; by its name .csv, .tsv, .jsonl or .parquet.
        drop_duplicates: leave out rows that repeat text and label of an earlier row, or are among the known texts.
        drop_conflicting: leave out all rows of a text that has two labels.

    Returns: the remaining rows, and counts by name.
    """
    import numpy as np

    from textkernels.overlap import find_repeats, seen_texts

    found = find_repeats(dataset.texts, dataset.labels or [])
    seen = np.zeros(len(dataset), dtype=bool) if known is None else seen_texts(dataset.texts, known)
    counts = {
        "rows with the text and label of an earlier row": int(found.repeated.sum()),
        "texts with two labels": found.n_texts_with_two_labels,
    }
    if known is not None:
        counts["rows with the text of a training row"] = int(seen.sum())
    if list_duplicates is not None:
        _write_list(dataset, found, seen, list_duplicates)
    dropped = (found.repeated | seen if drop_duplicates else seen & False) | (found.conflicting & drop_conflicting)
    _report(dataset, counts, int(dropped.sum()), list_duplicates)
    if not dropped.any():
        return dataset, counts
    if dropped.all():
        raise ValueError(f"{dataset.name}: expected rows that remain without the repeated ones, got none")
    return dataset.select(np.flatnonzero(~dropped)), counts


def _report(dataset: Dataset, counts: dict[str, int], n_dropped: int, listed: str | None) -> None:
    if not any(counts.values()):
        return
    parts = ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
    done = f"{n_dropped:,} rows were left out" if n_dropped else "all of them stay"
    where = f"; they are listed in {listed}" if listed is not None else ""
    note(f"{dataset.name}: {parts}; {done}{where}.")


def _write_list(dataset: Dataset, found: Repeats, seen: np.ndarray, path: str) -> None:
    """One row for each row whose text occurs more than once, texts together."""
    import numpy as np
    import pandas as pd

    from textkernels.tables import write_table

    first, sizes = found.first, np.bincount(found.first, minlength=len(found.first))
    rows = np.flatnonzero((sizes[first] > 1) | seen)
    rows = rows[np.lexsort((rows, first[rows]))].tolist()
    labels, ids = dataset.labels or [], dataset.ids
    columns: dict[str, list[Any]] = {
        dataset.unit: [str(dataset.positions[row]) for row in rows],
        "id": [None if ids is None else str(ids[row]) for row in rows],
        "label": [str(labels[row]) for row in rows],
        f"first_{dataset.unit}": [str(dataset.positions[first[row]]) for row in rows],
        "two_labels": [bool(found.conflicting[row]) for row in rows],
        "in_training": [bool(seen[row]) for row in rows],
        "text": [dataset.texts[row] for row in rows],
    }
    write_table(pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()}), path)
