"""Which words move the latent value of a text: each is left out in turn.

The effect of a part is m(text) - m(text without the part), m being the latent mean of the predicted class. It holds for
any kernel and embedding, since it asks the model and nothing else; effects of single parts need not add up to m.
Words behind the length limit are no parts: were they, leaving out a word would let another one in.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from math import ceil
from typing import Any

# Effects below this share of the latent mean, or of the targets, are rounding: kernels may be float32.
ROUNDING = 1e-5
# Words and the white space behind them.
_WORD = re.compile(r"\S+\s*")


def words_of(text: str) -> list[str]:
    """The words of a text as they stand, each with the white space behind it."""
    return _WORD.findall(text)


def words_read(words: list[str], encoder: Any) -> list[str]:
    """The words that the encoder does not cut off, where it cuts words one after the other into tokens; else all."""
    kept = [kept for _, kept, _ in encoder.explain("".join(words))]
    if all(kept):
        return words
    counts = [len(encoder.explain(word)) for word in words]
    if sum(counts) != len(kept):
        return words
    ends = pairwise(accumulate(counts, initial=0))
    return [word for word, (start, end) in zip(words, ends, strict=True) if any(kept[start:end])]


def in_runs(words: list[str], most: int) -> list[str]:
    """The words, or as many equally long runs of them as are allowed."""
    size = max(ceil(len(words) / most), 1)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def without_each(parts: list[str]) -> list[str]:
    """As many texts, each without one of the parts."""
    return ["".join(parts[:place] + parts[place + 1 :]) for place in range(len(parts))]
