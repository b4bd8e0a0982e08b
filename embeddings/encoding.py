"""What comes out of an encoder: documents, and what became of every text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embeddings.sequences import Sequences

STATUSES = ("ok", "missing_text", "empty", "no_known_tokens")


@dataclass(frozen=True, eq=False)
class Encoding:
    """The result of encoding n texts.

    Attributes:
        documents: token vectors of the m texts with at least one known token, in the order of the texts.
        rows: the positions of those among the n texts, shape (m,), int64, increasing.
        status: shape (n,), str. ``ok``; ``missing_text`` (None, NaN); ``empty`` (blank);
            ``no_known_tokens`` (characters, but no word with a vector among the kept tokens).
        n_tokens: tokens of the whole text, shape (n,), int64.
        n_dropped: tokens cut by truncation, shape (n,), int64.
        n_unknown: tokens without a vector among those kept, shape (n,), int64.
    """

    documents: Sequences
    rows: NDArray[np.int64]
    status: NDArray[np.str_]
    n_tokens: NDArray[np.int64]
    n_dropped: NDArray[np.int64]
    n_unknown: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.status)

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether truncation cut the text, shape (n,)."""
        return self.n_dropped > 0

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of the kept tokens that have a vector, shape (n,); 0 where there are no tokens."""
        kept = self.n_tokens - self.n_dropped
        return (kept - self.n_unknown) / np.maximum(kept, 1)

    def summary(self) -> str:
        """One sentence: rows by status, mean coverage of texts with tokens, and what truncation cut."""
        counts = {status: int(np.count_nonzero(self.status == status)) for status in STATUSES}
        left_out = [
            f"{counts[status]:,} {words}"
            for status, words in [
                ("missing_text", "missing"),
                ("empty", "empty"),
                ("no_known_tokens", "without a known token"),
            ]
            if counts[status]
        ]
        with_tokens = self.coverage[self.n_tokens > 0]
        parts = [f"{counts['ok']:,} of {len(self):,} texts encoded" + (f" ({', '.join(left_out)})" if left_out else "")]
        if with_tokens.size:
            parts.append(f"{with_tokens.mean():.1%} of a text's tokens known on average")
        cut, n_cut = int(self.truncated.sum()), int(self.n_dropped.sum())
        if cut:
            parts.append(f"{cut:,} texts cut, {n_cut:,} of {int(self.n_tokens.sum()):,} tokens dropped")
        else:
            parts.append("none cut")
        return "; ".join(parts) + "."


def text_status(texts: list[Any], lengths: NDArray[np.int64]) -> NDArray[np.str_]:
    """The status of each text from the length of its document, 0 where there is none."""
    status = np.full(len(texts), "ok", dtype="<U15")
    for row in np.flatnonzero(np.asarray(lengths) == 0):
        text = texts[row]
        if text is None:
            status[row] = "missing_text"
        else:
            status[row] = "no_known_tokens" if text.strip() else "empty"
    return status
