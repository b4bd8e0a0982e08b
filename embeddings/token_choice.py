"""Which tokens of a text make its document, and the documents of texts whose words have one vector each."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embeddings.encoding import Encoding, text_status
from embeddings.sequences import Sequences
from embeddings.texts import TokenizedTexts
from embeddings.truncation import Truncation

UNKNOWN = ("mask", "zero")


class ChosenTokens(NamedTuple):
    """The tokens in the documents of n texts.

    Attributes:
        ids: positions in ``TokenizedTexts.types``, all documents end to end.
        lengths: tokens in each document, 0 where there is none, shape (n,).
        n_known: tokens with a vector among those that truncation keeps, shape (n,).
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    n_known: NDArray[np.int64]


def choose_tokens(
    tokens: TokenizedTexts, known: NDArray[np.bool_], truncation: Truncation, unknown: str
) -> ChosenTokens:
    """Of the tokens that truncation keeps, those with a vector, or with ``unknown="zero"`` all.

    A text without a known word has no document, and punctuation alone is no word.

    Args:
        tokens: the texts.
        known: whether each of ``tokens.types`` has a vector.
        truncation: which tokens are kept.
        unknown: ``mask`` or ``zero``.
    """
    n = len(tokens.lengths)
    kept = truncation.kept(tokens.lengths)
    ids = tokens.ids[kept]
    text = np.repeat(np.arange(n), tokens.lengths)[kept]
    words = known & np.array([any(map(str.isalnum, token)) for token in tokens.types], bool)
    has_word = np.bincount(text[words[ids]], minlength=n) > 0
    in_document = has_word[text]
    if unknown == "mask":
        in_document &= known[ids]
    return ChosenTokens(
        ids[in_document], np.bincount(text[in_document], minlength=n), np.bincount(text[known[ids]], minlength=n)
    )


def encode_tokens(
    cells: list[str | None],
    tokens: TokenizedTexts,
    values: NDArray[Any],
    known: NDArray[np.bool_],
    truncation: Truncation,
    unknown: str,
) -> Encoding:
    """The encoding of texts whose distinct tokens have the vectors ``values``, zero where not ``known``."""
    chosen = choose_tokens(tokens, known, truncation, unknown)
    n_dropped = truncation.dropped(tokens.lengths)
    rows = np.flatnonzero(chosen.lengths)
    return Encoding(
        documents=Sequences(values[chosen.ids], chosen.lengths[rows]),
        rows=rows,
        status=text_status(cells, chosen.lengths),
        n_tokens=tokens.lengths,
        n_dropped=n_dropped,
        n_unknown=tokens.lengths - n_dropped - chosen.n_known,
    )


def weighted_squares(values: NDArray[Any], counts: NDArray[np.int64]) -> float:
    """sum_i counts_i |values_i|^2, exactly rounded, so that the order of the texts changes nothing."""
    squares = np.einsum("ij,ij->i", values, values, dtype=np.float64)
    return math.fsum((squares * counts).tolist())
