"""Training draws and test rows of a comparison: the same for every candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from textkernels.datasets import Dataset
from textkernels.experiments.labelled import LabelledTexts, hold_out
from textkernels.labels import stratified_sample
from textkernels.overlap import distinct_hashes, seen_texts


@dataclass(frozen=True, eq=False)
class Draw:
    """Training rows of one seed and size.

    Attributes:
        size: how many labels.
        seed: of the draw.
        rows: places among the texts of ``Splits.needed``, (size,), increasing.
        codes: their classes, (size,).
        checksum: SHA-256 of their texts and classes.
    """

    size: int
    seed: int
    rows: np.ndarray
    codes: np.ndarray
    checksum: str


@dataclass(frozen=True)
class Splits:
    """All training draws, and the test rows.

    Attributes:
        pool: what is drawn from; no text of it is a test text.
        test: test rows.
        needed: the rows of the pool that occur in any draw, so that no other text has to be encoded.
        draws: one a seed and size, seeds in order and sizes increasing; those of one seed lie in each other.
    """

    pool: LabelledTexts
    test: LabelledTexts
    needed: LabelledTexts
    draws: tuple[Draw, ...]

    @classmethod
    def draw(cls, pool: Dataset, test: Dataset, sizes: Sequence[int], seeds: Sequence[int]) -> Splits:
        """Draw training rows, classes in their shares.

        Args:
            pool: labelled rows, without the texts of the test rows (see ``without_texts_of``).
            test: labelled rows.
            sizes: numbers of labels.
            seeds: one a draw of each size.

        Raises:
            ValueError: too few rows for a size, or fewer labels than classes.
        """
        labelled = LabelledTexts.from_dataset(pool)
        tested = LabelledTexts.from_dataset(test, labelled.classes)
        _check_sizes(labelled, sizes)
        chosen = {(seed, size): rows for seed in seeds for size, rows in _nested(labelled.codes, sizes, seed).items()}
        needed = np.unique(np.concatenate(list(chosen.values())))
        draws = []
        for (seed, size), rows in chosen.items():
            part = LabelledTexts.from_dataset(pool.select(rows), labelled.classes)
            draws.append(Draw(size, seed, np.searchsorted(needed, rows), part.codes, part.checksum))
        union = LabelledTexts.from_dataset(pool.select(needed), labelled.classes)
        return cls(labelled, tested, union, tuple(draws))

    @cached_property
    def texts(self) -> list[str | None]:
        """Texts of ``needed``, then those of ``test``."""
        return [*self.needed.texts, *self.test.texts]

    @property
    def checksum(self) -> str:
        """Of ``texts`` and their classes."""
        return f"{self.needed.checksum} {self.test.checksum}"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.pool.classes)

    @property
    def names(self) -> list[str]:
        """Names of the classes."""
        return [str(name) for name in self.pool.classes.tolist()]

    @property
    def sizes(self) -> list[int]:
        """Numbers of labels, increasing."""
        return sorted({draw.size for draw in self.draws})

    @property
    def seeds(self) -> list[int]:
        """Seeds in order."""
        return list(dict.fromkeys(draw.seed for draw in self.draws))

    def share(self, size: int) -> float:
        """The part of the pool that a draw of this size takes."""
        return size / len(self.pool)


def _nested(codes: np.ndarray, sizes: Sequence[int], seed: int) -> dict[int, np.ndarray]:
    """Rows by size, small sizes first; each lies in the next larger one, so that learning curves are paired, too."""
    rows, found = np.arange(len(codes)), {}
    for size in sorted(sizes, reverse=True):
        rows = rows[stratified_sample(codes[rows], size, seed)]
        found[size] = rows
    return dict(reversed(found.items()))


def _check_sizes(pool: LabelledTexts, sizes: Sequence[int]) -> None:
    name, classes = pool.dataset.name, len(pool.classes)
    if max(sizes) > len(pool):
        raise ValueError(
            f"{name}: expected at least {max(sizes):,} rows to draw training rows from, got {len(pool):,} beside the "
            "test rows; use smaller --train-sizes or a smaller --test-size"
        )
    if min(sizes) < classes:
        raise ValueError(f"{name}: expected train sizes of at least {classes}, one row a class, got {min(sizes)}")


def hold_out_rows(everything: Dataset, n: int, seed: int) -> tuple[Dataset, Dataset]:
    """The remaining rows, and ``n`` test rows with classes in their shares.

    Raises:
        ValueError: not more than ``n`` rows.
    """
    if len(everything) <= n:
        raise ValueError(
            f"{everything.name}: expected more than the {n:,} rows that are held out as test rows, got "
            f"{len(everything):,}; use a smaller --test-size, or --test"
        )
    return hold_out(everything, n / len(everything), seed)


def without_texts_of(rows: Dataset, test: Dataset) -> tuple[Dataset, int]:
    """Rows whose text is not that of a test row, and how many were left out.

    Raises:
        ValueError: none remain.
    """
    seen = seen_texts(rows.texts, distinct_hashes(test.texts))
    if not seen.any():
        return rows, 0
    if seen.all():
        raise ValueError(f"{rows.name}: expected rows with texts that are not in {test.name}, got none")
    return rows.select(np.flatnonzero(~seen)), int(seen.sum())


def corpus_of(everything: Dataset, test: Dataset) -> list[Any]:
    """All texts of the training data, labelled or not, except those of test rows: what word vectors may learn from."""
    seen = seen_texts(everything.texts, distinct_hashes(test.texts))
    return [text for text, known in zip(everything.texts, seen, strict=True) if text is not None and not known]
