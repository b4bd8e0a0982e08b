"""Which words move the latent value of a text: each is left out in turn.

The effect of a part is m(text) - m(text without the part), m being the latent mean of the predicted class. It holds for
any kernel and embedding, since it asks the model and nothing else; effects of single parts need not add up to m.
"""

from __future__ import annotations

import re
from math import ceil

# Words and the white space behind them.
_WORD = re.compile(r"\S+\s*")


def cut_into_parts(text: str, most: int) -> list[str]:
    """The words of a text as they stand, or as many equally long runs of words as are allowed.

    Args: `text`; `most`: parts, at least 1.
    Returns: the parts; joined they are the text without white space at its beginning.
    Raises: ValueError for fewer than 1 part.
    """
    if most < 1:
        raise ValueError(f"expected at least 1 part, got {most}")
    words = _WORD.findall(text)
    size = max(ceil(len(words) / most), 1)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def without_each(parts: list[str]) -> list[str]:
    """As many texts, each without one of the parts."""
    return ["".join(parts[:place] + parts[place + 1 :]) for place in range(len(parts))]
