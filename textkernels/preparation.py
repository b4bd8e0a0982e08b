"""From texts to what a kernel needs of each document, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures

TEXTS_AT_ONCE = 128


@dataclass(frozen=True)
class PreparedTexts:
    """n texts, of which m have a token that the kernel can see.

    Args:
        documents: the m documents, prepared for the kernel.
        rows: their places among the texts, (m,) int64, increasing.
        status: (n,) str: ok, missing_text, empty, no_known_tokens.
        n_tokens, n_dropped: tokens of each text and how many truncation cut, (n,) int64.
        coverage: share of the kept tokens that have a vector, (n,) float64.
    """

    documents: Any
    rows: np.ndarray
    status: np.ndarray
    n_tokens: np.ndarray
    n_dropped: np.ndarray
    coverage: np.ndarray

    @property
    def n_seen(self) -> np.ndarray:
        """Tokens of each text that are kept and have a vector, (n,) int64."""
        return np.rint(self.coverage * (self.n_tokens - self.n_dropped)).astype(np.int64)


def prepare_texts(
    texts: Sequence[Any],
    encoder: Any,
    kernel: Any,
    longest: int | None,
    progress: bool = False,
    label: str = "documents",
) -> PreparedTexts:
    """Encode texts and do the token work of the kernel.

    With explicit features the token vectors of a few hundred texts exist at a time; a token-pair kernel needs
    those of all.

    Args:
        texts: n texts, None or NaN where missing.
        encoder: fitted, see :class:`embeddings.Encoder`.
        kernel: a FeatureKernel or PairKernel.
        longest: tokens of the longest document that any of these may meet.
        progress: show a progress bar, named ``label``.
    """
    from tqdm import tqdm

    streaming = isinstance(kernel, FeatureKernel)
    encodings, parts, rows = [], [], []
    with tqdm(total=len(texts), desc=label, unit="text", disable=not progress, delay=1) as bar:
        for start in range(0, max(len(texts), 1), TEXTS_AT_ONCE):
            chunk = texts[start : start + TEXTS_AT_ONCE]
            encoding = encoder.encode(chunk)
            parts.append(kernel.prepare(encoding.documents, longest) if streaming else encoding.documents)
            encodings.append(encoding)
            rows.append(encoding.rows + start)
            bar.update(len(chunk))
    documents = (
        DocumentFeatures.concatenate(parts)
        if streaming
        else kernel.prepare(Sequences.concatenate(parts), longest, progress)
    )
    return PreparedTexts(
        documents,
        np.concatenate(rows),
        np.concatenate([encoding.status for encoding in encodings]),
        np.concatenate([encoding.n_tokens for encoding in encodings]),
        np.concatenate([encoding.n_dropped for encoding in encodings]),
        np.concatenate([encoding.coverage for encoding in encodings]),
    )
