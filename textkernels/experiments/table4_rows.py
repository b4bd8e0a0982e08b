"""Which texts Table 4 trains on, chooses with and tests on: no text is in two of the parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from textkernels.datasets import Dataset
from textkernels.experiments.labelled import LabelledTexts, hold_out, sample
from textkernels.experiments.splits import without_texts_of
from textkernels.overlap import find_repeats

# Of 6,400 texts: 3,200 for training, 1,600 for validation, 1,600 for testing.
N_TRAIN = 3_200


@dataclass(frozen=True)
class Table4Rows:
    """Three parts with the same classes.

    Attributes:
        parts: LabelledTexts of ``train``, ``validation`` and ``test``.
        held: all rows of which the test texts were drawn, so that vectors can be trained without them.
        counts: for the report: what was left out, by name.
    """

    parts: dict[str, LabelledTexts]
    held: Dataset
    counts: dict[str, int]

    @classmethod
    def draw(cls, everything: Dataset, test: Dataset | None, n_train: int, seed: int) -> Table4Rows:
        """Draw n training texts, and half as many for validation and for testing, classes in their shares.

        Where there are fewer, the parts shrink together. Of a text that occurs several times the first row counts.

        Args:
            everything: labelled rows.
            test: labelled rows to draw test texts from; None: from ``everything``.
            n_train: n.
            seed: of the draws.

        Raises:
            ValueError: labels that do not fit, or too few rows.
        """
        pool, repeated = _distinct(everything)
        counts = {
            "rows of the training data": len(everything),
            "of them, repeating the text of an earlier row": repeated,
        }
        if test is None:
            pool = sample(pool, 2 * n_train, seed)
            pool, held = hold_out(pool, 1 / 4, seed)
        else:
            held, repeated = _distinct(test)
            held = sample(held, _half(n_train), seed)
            counts |= {"rows of the test data": len(test), "of them repeating an earlier one": repeated}
            pool, seen = without_texts_of(pool, held)
            counts["training rows left out because a test row has the same text"] = seen
            pool = sample(pool, n_train + _half(n_train), seed)
        train, validation = hold_out(pool, 1 / 3, seed)
        fitted = LabelledTexts.from_dataset(train)
        others = {"validation": validation, "test": held}
        parts = {role: LabelledTexts.from_dataset(rows, fitted.classes) for role, rows in others.items()}
        return cls({"train": fitted, **parts}, held, counts)


def _half(n: int) -> int:
    return max(round(n / 2), 1)


def _distinct(dataset: Dataset) -> tuple[Dataset, int]:
    """The first row of every text, and how many others there are."""
    first = find_repeats(dataset.texts, dataset.labels or []).first
    rows = np.flatnonzero(first == np.arange(len(dataset)))
    return dataset.select(rows), len(dataset) - len(rows)
