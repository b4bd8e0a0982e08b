"""Overlapping windows over a long text, for models that read only so many tokens at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from embeddings.whole_numbers import whole_number


class Window(NamedTuple):
    """One reading of a text: the model sees tokens start ... stop - 1 and answers for first ... last - 1."""

    start: int
    stop: int
    first: int
    last: int


@dataclass(frozen=True)
class Windows:
    """How a long text is read.

    A text of L <= n tokens is one window. A longer one gets the fewest windows of n tokens whose starts are
    at most ``stride`` apart, spread evenly from its first token to its last. Each token takes its vector
    from the window whose center is nearest (of two equally near ones, the later), so a token that is not near
    the text's own ends has at least (n - stride) // 2 tokens of context on either side.

    Attributes:
        size: n, tokens the model reads at a time, special tokens not counted.
        stride: the most tokens between the starts of two windows, from 1 to n.
    """

    size: int
    stride: int

    def __post_init__(self) -> None:
        for option, highest in (("size", None), ("stride", self.size)):
            value = getattr(self, option)
            try:
                object.__setattr__(self, option, whole_number(option, value, 1, highest))
            except ValueError:
                upto = f" and at most the {highest} tokens of a window" if highest else ""
                raise ValueError(f"expected a window {option} of at least 1 token{upto}, got {value!r}") from None

    def over(self, n_tokens: int) -> list[Window]:
        """The windows of a text with that many tokens, in order; together they answer for each token once."""
        if n_tokens <= self.size:
            return [Window(0, n_tokens, 0, n_tokens)] if n_tokens else []
        steps = -(-(n_tokens - self.size) // self.stride)
        starts = [step * (n_tokens - self.size) // steps for step in range(steps + 1)]
        # Half-way between two centers; positions are those of token middles, hence the integer division.
        borders = [(left + right + self.size) // 2 for left, right in pairwise(starts)]
        return [
            Window(start, start + self.size, first, last)
            for start, first, last in zip(starts, [0, *borders], [*borders, n_tokens], strict=True)
        ]
