"""Labelled texts under one encoder: facts that are kept, token vectors only while they are needed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.experiments.labelled import LabelledTexts
from textkernels.finished import FinishedParts


class EncodedTexts:
    """n texts, of which m have a token with a vector: the documents.

    Args:
        texts: the n texts.
        encoder: fitted.
        finished: where the facts are kept.
        progress: show a progress bar while encoding.
    """

    def __init__(self, texts: LabelledTexts, encoder: Any, finished: FinishedParts, progress: bool = False) -> None:
        self.texts, self.encoder = texts, encoder
        self._finished, self._progress = finished, progress
        self._documents: Sequences | None = None

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.rows)

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the documents depend on, plain values."""
        return {"texts": self.texts.checksum, "encoder": self.encoder.config()}

    @property
    def rows(self) -> np.ndarray:
        """Places of the documents among the texts, (m,) int64, increasing."""
        return self._facts["rows"]

    @property
    def codes(self) -> np.ndarray:
        """Class of each document, (m,)."""
        return self.texts.codes[self.rows]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each document, (m,) int64."""
        return self._facts["lengths"]

    @property
    def coverage(self) -> np.ndarray:
        """Share of each text's kept tokens that have a vector, (n,)."""
        return self._facts["coverage"]

    @property
    def n_dropped(self) -> np.ndarray:
        """Tokens of each text that truncation cut, (n,) int64."""
        return self._facts["n_dropped"]

    @property
    def documents(self) -> Sequences:
        """The documents' token vectors; encoded at the first use, and again after ``release``."""
        if self._documents is None:
            self._documents = self.encoder.encode(self.texts.texts, self._progress).documents
        return self._documents

    def release(self) -> None:
        """Let the token vectors go."""
        self._documents = None

    @cached_property
    def _facts(self) -> dict[str, np.ndarray]:
        return self._finished.arrays({"part": "texts", **self.content}, self._encode)

    def _encode(self) -> dict[str, np.ndarray]:
        encoding = self.encoder.encode(self.texts.texts, self._progress)
        self._documents = encoding.documents
        facts = {name: getattr(encoding, name) for name in ("rows", "coverage", "n_dropped")}
        return {**facts, "lengths": encoding.documents.lengths}
