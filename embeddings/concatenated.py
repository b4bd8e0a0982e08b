"""Several encoders of words as one: the vectors of a token end to end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embeddings.encoder import SCALES
from embeddings.encoding import Encoding
from embeddings.static import StaticEncoder
from embeddings.texts import TokenizedTexts, read_texts, tokenize_texts
from embeddings.token_choice import choose_tokens, encode_tokens, weighted_squares
from embeddings.tokenizer import tokenize

FORMAT = 1


class ConcatenatedEncoder:
    """Tokens to (w_1 e_1, ..., w_k e_k), the vectors of k tables, in d = d_1 + ... + d_k dimensions.

    A token has a vector if any part knows its word; the parts that do not are zeros. With ``scale="unit"``
    w_i makes the mean of |w_i e_i|^2 over the tokens of the documents d / k, those zeros included. So each part
    weighs the same whatever its dimension, units and coverage, and the mean of |e|^2 / d is 1:
    <e, e'> / d is the mean over the parts of <e_i, e_i'> / d_i, each of unit scale by itself.

    Args:
        parts: at least two encoders of words with the same tokenizer, truncation and ``unknown``. They stay as they
            are: ``fit`` fits copies. Their own scales are not used.
        name: what the encoder is called in reports; the names of the parts with "+" between by default.
        scale: ``unit``, or ``none`` for the vectors' own units, all w_i = 1.

    Attributes:
        parts: the encoders put together; after ``fit`` fitted copies of them, which share tables that are not trained.
        weights_: w_1, ..., w_k, None before ``fit``.
    """

    def __init__(self, parts: Sequence[StaticEncoder], *, name: str | None = None, scale: str = "unit") -> None:
        if scale not in SCALES:
            raise ValueError(f"expected scale to be {' or '.join(map(repr, SCALES))}, got {scale!r}")
        odd = [part for part in parts if not isinstance(part, StaticEncoder)]
        if odd or len(parts) < 2:
            raise ValueError(
                "expected two or more encoders with one vector a word, got "
                f"{', '.join(str(getattr(part, 'name', part)) for part in odd or parts) or 'none'}; "
                "an encoder with word pieces of its own has other tokens and cannot be put beside them"
            )
        for what in ("tokenizer", "truncation", "unknown", "dtype"):
            values = {part.name: getattr(part, what) for part in parts}
            if len(set(values.values())) > 1:
                raise ValueError(f"expected parts with the same {what}, got {values}; choose one for all with {what}=")
        self.parts = list(parts)
        self.name = name or "+".join(part.name for part in parts)
        self.scale = scale
        self.tokenizer, self.truncation = parts[0].tokenizer, parts[0].truncation
        self.unknown, self.dtype = parts[0].unknown, parts[0].dtype
        self.weights_: list[float] | None = None

    @property
    def dim(self) -> int:
        """Dimension of a token vector."""
        return sum(part.dim for part in self.parts)

    @property
    def fitted(self) -> bool:
        """Whether ``encode`` may be called."""
        return self.weights_ is not None

    @property
    def trains_on_texts(self) -> bool:
        """Whether ``fit`` learns the vectors of some part."""
        return any(part.trains_on_texts for part in self.parts)

    def __repr__(self) -> str:
        return f"ConcatenatedEncoder({self.name!r}, dim={self.dim}, fitted={self.fitted})"

    def fit(
        self, texts: Iterable[Any], corpus: Iterable[Any] | None = None, progress: bool = False
    ) -> ConcatenatedEncoder:
        """Fit the parts, then set their weights. See ``Encoder.fit``."""
        cells = read_texts(texts)
        learned_from = None if corpus is None else read_texts(corpus)
        fitted = copy(self)
        fitted.parts = [copy(part).fit(cells, learned_from, progress) for part in self.parts]
        tokens = tokenize_texts(cells, self.tokenizer, lower=fitted._lower, progress=progress)
        weights = [1.0] * len(self.parts) if self.scale == "none" else fitted._unit_weights(tokens)
        # Together, and last: a fit that fails leaves an earlier one as it was.
        self.parts, self.weights_ = fitted.parts, weights
        return self

    def _unit_weights(self, tokens: TokenizedTexts) -> list[float]:
        found = [self._look_up(part, tokens.types) for part in self.parts]
        known = np.any([known for _, known in found], axis=0)
        chosen = choose_tokens(tokens, known, self.truncation, self.unknown)
        counts = np.bincount(chosen.ids, minlength=len(tokens.types))
        share = chosen.ids.size * self.dim / len(self.parts)
        squares = [weighted_squares(values, counts) for values, _ in found]
        if 0 in squares:
            zero = self.parts[squares.index(0)].name
            raise ValueError(f"expected vectors that are not all zero, got zeros from {zero} for every word")
        return [math.sqrt(share / one) for one in squares]

    def _look_up(self, part: StaticEncoder, words: list[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        assert part.vectors_ is not None
        if not self._lower and not part.vectors_.cased:
            words = [word.lower() for word in words]
        return part.vectors_.look_up(words)

    @property
    def _lower(self) -> bool:
        """Lower-case texts unless some part distinguishes case."""
        return not any(part.vectors_ is not None and part.vectors_.cased for part in self.parts)

    def _vectors(self, words: list[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        found = [self._look_up(part, words) for part in self.parts]
        values = np.hstack([weight * values for weight, (values, _) in zip(self._fitted(), found, strict=True)])
        return values, np.any([known for _, known in found], axis=0)

    def encode(self, texts: Iterable[Any], progress: bool = False) -> Encoding:
        """Token vectors of the texts. See ``Encoder.encode``.

        Raises:
            ValueError: not fitted yet.
            TypeError: a cell that is neither a text nor missing, naming the row.
        """
        self._fitted()
        cells = read_texts(texts)
        tokens = tokenize_texts(cells, self.tokenizer, lower=self._lower, progress=progress)
        return encode_tokens(cells, tokens, *self._vectors(tokens.types), self.truncation, self.unknown)

    def explain(self, text: str) -> list[tuple[str, bool, bool]]:
        """(token, kept by truncation, has a vector in some part) for every token of one text."""
        self._fitted()
        tokens = tokenize(text, self.tokenizer, lower=self._lower)
        kept = self.truncation.kept(np.array([len(tokens)]))
        return list(zip(tokens, kept.tolist(), self._vectors(tokens)[1].tolist(), strict=True))

    def _fitted(self) -> list[float]:
        if self.weights_ is None:
            raise ValueError(f"expected a fitted encoder, got {self!r}; call fit(texts) first")
        return self.weights_

    def config(self) -> dict[str, Any]:
        """Everything ``restore`` needs besides the tables, in types that JSON has."""
        weights = self._fitted()
        return {
            "format": FORMAT,
            "kind": "concatenated",
            "name": self.name,
            "scale": self.scale,
            "weights_": list(weights),
            "parts": [part.config() for part in self.parts],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the parts, their names preceded by the part's number and a dot."""
        return {
            f"{number}.{name}": array for number, part in enumerate(self.parts) for name, array in part.arrays().items()
        }

    @classmethod
    def restore(cls, config: dict[str, Any], parts: Sequence[StaticEncoder]) -> ConcatenatedEncoder:
        """The encoder that gave ``config``, with the same parts."""
        encoder = cls(parts, name=config["name"], scale=config["scale"])
        encoder.weights_ = [float(weight) for weight in config["weights_"]]
        return encoder
