"""The model and its predictions for all rows of a dataset, as the commands need them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def load_model(folder: str) -> Any:
    """The fitted model in a folder; ValueError that says how to make one if there is none."""
    import textkernels as tk

    check_model(folder)
    return tk.load(folder)


def check_model(folder: str) -> None:
    """ValueError unless the folder holds a model."""
    from textkernels.persistence import CONFIG

    if not (Path(folder) / CONFIG).is_file():
        raise ValueError(f"{folder}: there is no model; make one with: textkernels fit DATA --model {folder}")


def predict_rows(model: Any, texts: Sequence[str | None], quiet: bool) -> pd.DataFrame:
    """predict_table of all texts, (n, columns) in their order, behind a progress bar."""
    from tqdm import tqdm

    from textkernels import scoring

    with tqdm(total=len(texts), desc="scoring", unit="row", delay=1, disable=quiet) as bar:
        return scoring.predict_rows(model, texts, bar.update)


def status_summary(table: pd.DataFrame) -> str:
    """Counts of rows by status, and of truncated ones."""
    counts = table["status"].value_counts()
    parts = [f"{counts[status]:,} {status}" for status in counts.index]
    truncated = int(table["truncated"].sum()) if "truncated" in table else 0
    return ", ".join(parts) + (f"; {truncated:,} texts truncated" if truncated else "")
