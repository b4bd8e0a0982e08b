"""Word vectors that also have a vector for parts of words, and so for words never seen (FastText)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embeddings.word_vectors import LoadReport, WordVectors, pack_words, unpack_words


@dataclass(frozen=True, eq=False)
class SubwordVectors(WordVectors):
    """Words with their vectors, and the n-grams of these words with theirs.

    A word that is not in the table has the mean of the vectors of its n-grams (of ``<word>``, a repeated one
    counted again) that are parts of words in the table, and no vector if there are none. FastText would also
    count n-grams it has never seen, whose vectors are still the random numbers they started from.

    Attributes:
        ngrams: m distinct n-grams.
        ngram_rows: the row of ``ngram_vectors`` of each, shape (m,); FastText lets several share one.
        ngram_vectors: shape (r, d).

    Source: Bojanowski et al., "Enriching word vectors with subword information", 2017.
    """

    ngrams: list[str]
    ngram_rows: NDArray[np.int32]
    ngram_vectors: NDArray[Any]

    def look_up(self, words: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The vector of each word, zero where it has none, and whether it has one."""
        values, known = super().look_up(words)
        for position in np.flatnonzero(~known).tolist():
            rows = [self._rows[part] for part in self.parts(words[position]) if part in self._rows]
            if rows:
                values[position] = self.ngram_vectors[rows].mean(axis=0, dtype=np.float64)
                known[position] = True
        return values, known

    def parts(self, word: str) -> list[str]:
        """The n-grams of a word, of the lengths that the table has."""
        return ngrams_of(word, *self._lengths)

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        lengths = [len(ngram) for ngram in self.ngrams]
        return min(lengths), max(lengths)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(self.ngrams, self.ngram_rows.tolist(), strict=True))

    def astype(self, dtype: DTypeLike) -> SubwordVectors:
        """The same words and n-grams with vectors in float32 or float64."""
        if self.vectors.dtype == np.dtype(dtype):
            return self
        return replace(self, vectors=self.vectors.astype(dtype), ngram_vectors=self.ngram_vectors.astype(dtype))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of ``WordVectors``, and ``ngrams`` (packed like words), ``ngram_rows`` and ``ngram_vectors``."""
        return {
            **super().to_arrays(),
            "ngrams": pack_words(self.ngrams),
            "ngram_rows": self.ngram_rows,
            "ngram_vectors": self.ngram_vectors,
        }

    @classmethod
    def from_fasttext(cls, keyed_vectors: Any, report: LoadReport) -> WordVectors:
        """The table of gensim ``FastTextKeyedVectors``, with only those n-grams that words in it have (if any)."""
        from gensim.models.fasttext import ft_hash_bytes

        words = list(keyed_vectors.index_to_key)
        seen = dict.fromkeys(
            part for word in words for part in ngrams_of(word, keyed_vectors.min_n, keyed_vectors.max_n)
        )
        if not seen:
            return WordVectors(words, keyed_vectors.vectors, report)
        buckets = [ft_hash_bytes(part.encode("utf-8", "surrogatepass")) % keyed_vectors.bucket for part in seen]
        used, rows = np.unique(np.array(buckets, np.int64), return_inverse=True)
        return cls(
            words, keyed_vectors.vectors, report, list(seen), rows.astype(np.int32), keyed_vectors.vectors_ngrams[used]
        )


def ngrams_of(word: str, shortest: int, longest: int) -> list[str]:
    """The parts of ``<word>`` with that many characters, in FastText's order; a bracket alone is none."""
    marked = f"<{word}>"
    return [
        marked[start : start + length]
        for start in range(len(marked))
        for length in range(shortest, min(longest, len(marked) - start) + 1)
        if length > 1 or 0 < start < len(marked) - 1
    ]


def table_from_arrays(arrays: dict[str, NDArray[Any]], report: LoadReport) -> WordVectors:
    """The table that gave ``to_arrays()``, of words or of words and n-grams."""
    table = WordVectors.from_arrays(arrays, report)
    if "ngrams" not in arrays:
        return table
    return SubwordVectors(
        table.words,
        table.vectors,
        report,
        unpack_words(arrays["ngrams"]),
        arrays["ngram_rows"],
        arrays["ngram_vectors"],
    )
