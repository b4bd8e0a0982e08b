"""Encode texts with one fixed vector a word."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embeddings.corpus import CorpusTraining
from embeddings.encoder import SCALES
from embeddings.encoding import Encoding
from embeddings.texts import TokenizedTexts, read_texts, tokenize_texts
from embeddings.token_choice import UNKNOWN, choose_tokens, encode_tokens, weighted_squares
from embeddings.tokenizer import check_rule, tokenize
from embeddings.truncation import Truncation
from embeddings.word_vectors import WordVectors, report_to_config

FORMAT = 1


class StaticEncoder:
    """Tokens to rows of a table of word vectors, times one constant.

    Letter case: if no word of the table has an upper-case letter, texts are lower-cased. Otherwise they keep
    their case, and a word is looked up as it stands, then in lower case ("GREAT" finds "great", and "Great"
    its own vector where there is one).

    Args:
        vectors: the table, or how to train one on the texts that ``fit`` gets.
        name: what the encoder is called in reports.
        tokenizer: a key of ``embeddings.tokenizer.TOKENIZERS``.
        truncation: which tokens of a long text are kept, counted before unknown words are left out.
        unknown: ``mask`` leaves words without a vector out of the document; ``zero`` keeps them as zero
            vectors, as the paper does (they take part in means and attention). A text with no known word
            (punctuation alone is none) gives no document either way.
        scale: ``unit``, so that the mean of |e|^2 / d over the tokens of the texts given to ``fit`` is 1,
            or ``none`` for the vectors' own units.
        dtype: of the documents, float32 or float64.

    Attributes:
        vectors_: the table in use (WordVectors), None before training.
        scale_: the constant, None before ``fit``.
    """

    def __init__(
        self,
        vectors: WordVectors | CorpusTraining,
        *,
        name: str,
        tokenizer: str = "treebank",
        truncation: Truncation | None = None,
        unknown: str = "mask",
        scale: str = "unit",
        dtype: DTypeLike = np.float32,
    ) -> None:
        check_rule(tokenizer)
        for option, value, choices in [("unknown", unknown, UNKNOWN), ("scale", scale, SCALES)]:
            if value not in choices:
                raise ValueError(f"expected {option} to be {' or '.join(map(repr, choices))}, got {value!r}")
        self.name = name
        self.tokenizer = tokenizer
        self.truncation = truncation or Truncation()
        self.unknown = unknown
        self.scale = scale
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"expected dtype float32 or float64, got {self.dtype}")
        self.training = vectors if isinstance(vectors, CorpusTraining) else None
        self.vectors_ = vectors.astype(self.dtype) if isinstance(vectors, WordVectors) else None
        self.scale_: float | None = None

    @property
    def dim(self) -> int:
        """Dimension of a token vector."""
        if self.vectors_ is not None:
            return self.vectors_.dim
        assert self.training is not None
        return self.training.vector_size

    @property
    def fitted(self) -> bool:
        """Whether ``encode`` may be called."""
        return self.scale_ is not None

    @property
    def trains_on_texts(self) -> bool:
        """Whether ``fit`` learns the vectors."""
        return self.training is not None

    def __repr__(self) -> str:
        return f"StaticEncoder({self.name!r}, dim={self.dim}, tokenizer={self.tokenizer!r}, fitted={self.fitted})"

    def fit(self, texts: Iterable[Any], corpus: Iterable[Any] | None = None, progress: bool = False) -> StaticEncoder:
        """Train the vectors if they are to be trained, then set the scale. See ``Encoder.fit``."""
        labelled = read_texts(texts)
        vectors, tokens = self.vectors_, None
        if self.training is not None:
            learned_from = tokenize_texts(
                labelled if corpus is None else read_texts(corpus), self.tokenizer, progress=progress
            )
            vectors = self.training.train(learned_from, progress).astype(self.dtype)
            tokens = learned_from if corpus is None else None
        assert vectors is not None
        if tokens is None:
            tokens = tokenize_texts(labelled, self.tokenizer, lower=not vectors.cased, progress=progress)
        scale = self._scale(vectors, tokens)
        self.vectors_, self.scale_ = vectors, scale
        return self

    def _scale(self, vectors: WordVectors, tokens: TokenizedTexts) -> float:
        values, known = vectors.look_up(tokens.types)
        chosen = choose_tokens(tokens, known, self.truncation, self.unknown)
        if not chosen.ids.size:
            raise ValueError(
                f"expected a text with a word that {self.name} has a vector for, got none in {len(tokens.lengths):,} "
                f"texts ({len(tokens.types):,} distinct tokens); check the texts, their language and the tokenizer"
            )
        if self.scale == "none":
            return 1.0
        sum_of_squares = weighted_squares(values, np.bincount(chosen.ids, minlength=len(values)))
        if sum_of_squares == 0:
            raise ValueError("expected vectors that are not all zero, got zeros for every word of these texts")
        return math.sqrt(chosen.ids.size * vectors.dim / sum_of_squares)

    def encode(self, texts: Iterable[Any], progress: bool = False) -> Encoding:
        """Token vectors of the texts. See ``Encoder.encode``.

        Raises:
            ValueError: not fitted yet.
            TypeError: a cell that is neither a text nor missing, naming the row.
        """
        vectors, scale = self._fitted()
        cells = read_texts(texts)
        tokens = tokenize_texts(cells, self.tokenizer, lower=not vectors.cased, progress=progress)
        values, known = vectors.look_up(tokens.types)
        values *= scale
        return encode_tokens(cells, tokens, values, known, self.truncation, self.unknown)

    def explain(self, text: str) -> list[tuple[str, bool, bool]]:
        """(token, kept by truncation, has a vector) for every token of one text."""
        vectors, _ = self._fitted()
        tokens = tokenize(text, self.tokenizer, lower=not vectors.cased)
        kept = self.truncation.kept(np.array([len(tokens)]))
        _, known = vectors.look_up(tokens)
        return list(zip(tokens, kept.tolist(), known.tolist(), strict=True))

    def _fitted(self) -> tuple[WordVectors, float]:
        if self.vectors_ is None or self.scale_ is None:
            raise ValueError(f"expected a fitted encoder, got {self!r}; call fit(texts) first")
        return self.vectors_, self.scale_

    def config(self) -> dict[str, Any]:
        """Everything ``restore`` needs besides the table, in types that JSON has."""
        vectors, scale = self._fitted()
        return {
            "format": FORMAT,
            "kind": "static",
            "name": self.name,
            "tokenizer": self.tokenizer,
            "max_tokens": self.truncation.limit,
            "keep": self.truncation.keep,
            "unknown": self.unknown,
            "scale": self.scale,
            "scale_": scale,
            "dtype": self.dtype.name,
            "vectors": {
                "n_words": len(vectors.words),
                "dim": vectors.dim,
                "cased": vectors.cased,
                "checksum": vectors.checksum,
                "report": report_to_config(vectors.report),
                "training": None if self.training is None else self.training.config(),
            },
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The table, ``words`` and ``vectors``; nothing for packaged vectors, which are found again by name."""
        vectors, _ = self._fitted()
        return {} if vectors.report.format == "package" else vectors.to_arrays()

    @classmethod
    def restore(cls, config: dict[str, Any], vectors: WordVectors) -> StaticEncoder:
        """The encoder that gave ``config``, with the same table."""
        encoder = cls(
            vectors,
            name=config["name"],
            tokenizer=config["tokenizer"],
            truncation=Truncation(config["max_tokens"], config["keep"]),
            unknown=config["unknown"],
            scale=config["scale"],
            dtype=config["dtype"],
        )
        training = config["vectors"]["training"]
        encoder.training = None if training is None else CorpusTraining(**training)
        encoder.scale_ = float(config["scale_"])
        return encoder
