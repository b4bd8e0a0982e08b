"""Texts that occur more than once: in two rows, under two labels, or in training and test.

Texts are compared by 64 bits of a hash of their exact characters, so a fitted model can tell which texts it has seen
from 8 bytes each. Two different texts among 25,000 share a hash with probability 2e-11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# The value of a missing or blank text, which repeats nothing.
BLANK = 0


def text_hashes(texts: Iterable[Any]) -> np.ndarray:
    """64-bit hash of every text, uint64 (n,): equal texts, to the character, have equal ones.

    0 stands for a missing text (None, NaN) and for white space alone.
    """
    return np.array([_hash(text) for text in texts], dtype=np.uint64)


def _hash(text: Any) -> int:
    if not isinstance(text, str) or not text.strip():
        return BLANK
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def distinct_hashes(texts: Iterable[Any]) -> np.ndarray:
    """What a model keeps of its training texts: their distinct hashes in increasing order, uint64, without blanks."""
    distinct = np.unique(text_hashes(texts))
    return distinct[distinct != BLANK]


def seen_texts(texts: Iterable[Any], known: np.ndarray) -> np.ndarray:
    """Which texts are among those of ``distinct_hashes``, (n,) booleans; blank ones are not."""
    return np.isin(text_hashes(texts), known)


@dataclass(frozen=True)
class Repeats:
    """What repeats among n labelled texts.

    Attributes:
        first: (n,) row where the same text stands first; the row itself where there is none before.
        repeated: (n,) booleans: an earlier row has the same text and the same label.
        conflicting: (n,) booleans: some other row has the same text and another label.
    """

    first: np.ndarray
    repeated: np.ndarray
    conflicting: np.ndarray

    @property
    def n_texts_with_two_labels(self) -> int:
        """Distinct texts that stand under more than one label."""
        return len(np.unique(self.first[self.conflicting]))


def find_repeats(texts: Sequence[Any], labels: Sequence[Any]) -> Repeats:
    """Look for equal texts.

    Args:
        texts: n texts, None or NaN where missing.
        labels: n labels of any type that can be hashed.
    """
    first_row: dict[int, int] = {}
    labels_of: dict[int, set[Any]] = {}
    hashes = text_hashes(texts).tolist()
    first = np.arange(len(hashes))
    repeated = np.zeros(len(hashes), dtype=bool)
    for row, (value, label) in enumerate(zip(hashes, labels, strict=True)):
        if value == BLANK:
            continue
        first[row] = first_row.setdefault(value, row)
        found = labels_of.setdefault(value, set())
        repeated[row] = label in found
        found.add(label)
    conflicting = np.array([len(labels_of.get(value, ())) > 1 for value in hashes], dtype=bool)
    return Repeats(first, repeated, conflicting)
