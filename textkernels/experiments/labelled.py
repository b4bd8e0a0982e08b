"""Labelled texts as an experiment needs them: classes as codes, and a checksum of the rows in use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.datasets import Dataset
from textkernels.labels import check_labels, match_labels, stratified_sample


@dataclass(frozen=True)
class LabelledTexts:
    """n texts with their classes.

    Attributes:
        dataset: the rows they come from.
        classes: labels as the training data spell them, (C,).
        codes: class of each text, (n,) integers.
        checksum: SHA-256 of texts and codes in order: what a result depends on, whatever file they came from.
    """

    dataset: Dataset
    classes: np.ndarray
    codes: np.ndarray
    checksum: str

    @classmethod
    def from_dataset(cls, dataset: Dataset, classes: Sequence[Any] | np.ndarray | None = None) -> LabelledTexts:
        """Check the labels of a dataset.

        Args:
            dataset: rows with labels, none missing.
            classes: of the training data, which the labels must then be among.

        Raises:
            ValueError: fewer than two classes, or a label that the training data do not have, naming the row.
        """
        if classes is None:
            known, codes = check_labels(dataset.labels or [])
        else:
            known = np.asarray(classes)
            codes = _known_codes(dataset, known)
        digest = hashlib.sha256()
        for text, code in zip(dataset.texts, codes.tolist(), strict=True):
            body = b"" if text is None else text.encode("utf-8", "surrogatepass")
            digest.update(f"{code} {'-' if text is None else len(body)}\n".encode() + body)
        return cls(dataset, known, codes, digest.hexdigest())

    @property
    def texts(self) -> list[str | None]:
        """The n texts, None where missing."""
        return self.dataset.texts

    def __len__(self) -> int:
        return len(self.codes)


def _known_codes(dataset: Dataset, classes: np.ndarray) -> np.ndarray:
    number = {label: code for code, label in enumerate(classes.tolist())}
    labels = match_labels(dataset.labels or [], classes)
    for row, label in enumerate(labels):
        if label not in number:
            named = ", ".join(repr(name) for name in classes.tolist()[:10])
            raise ValueError(f"{dataset.place(row)}: expected a label of the training data ({named}), got {label!r}")
    return np.array([number[label] for label in labels], dtype=np.intp)


def hold_out(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Two parts of a labelled dataset, classes in their shares: what remains, and ``share`` of the rows.

    Args:
        dataset: rows with labels, none missing.
        share: above 0, below 1.
        seed: of the draw.
    """
    labels = dataset.labels or []
    held = stratified_sample(labels, round(share * len(labels)), seed)
    rest = np.setdiff1d(np.arange(len(labels)), held)
    return dataset.select(rest), dataset.select(held)


def sample(dataset: Dataset, limit: int, seed: int) -> Dataset:
    """At most ``limit`` rows of a labelled dataset, classes in their shares."""
    return dataset.select(stratified_sample(dataset.labels or [], limit, seed))
