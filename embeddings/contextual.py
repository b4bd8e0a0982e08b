"""Encode texts with token vectors that depend on their context."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from tqdm import tqdm

from embeddings.cache_folder import CacheDir
from embeddings.encoder import SCALES
from embeddings.encoding import Encoding, text_status
from embeddings.onnx_model import OnnxModel
from embeddings.piece_vectors import PieceReader
from embeddings.sequences import FLOATS, Sequences
from embeddings.texts import read_texts
from embeddings.token_choice import UNKNOWN
from embeddings.truncation import Truncation
from embeddings.whole_numbers import whole_number
from embeddings.windows import Windows

FORMAT = 1


class ContextualEncoder:
    """Word pieces to the last hidden states of a transformer (ELMo-style token vectors), times one constant.

    A text is cut in the model's own word pieces; letter case and markup are what its tokenizer makes of them.
    Truncation comes first: the model does not read what is cut. A text longer than the model's window is read
    in overlapping windows, see ``Windows``. Special tokens ([CLS], [SEP]) go around each window and get no
    vector. The model reads one window at a time, so the vectors of a text depend on nothing but the text.

    A piece for which the tokenizer only has its unknown token is read by the model, to keep its place, and
    then treated as a word without a vector. Word pieces spell nearly everything: these are symbols of other
    scripts, emoji, and words of over 100 characters. A text of nothing else, or of punctuation alone, has the
    status no_known_tokens.

    Vectors are kept on disk, see ``PieceReader``: 460 kB for a review of 300 pieces with 384 dimensions, 12 GB
    for 25,000 reviews, and half of that with ``precision="float16"``. The folder may be deleted at any time.

    Args:
        model: the model and its tokenizer.
        name: what the encoder is called in reports.
        truncation: which pieces of a long text are kept.
        unknown: ``mask`` leaves unknown pieces out of the document; ``zero`` keeps them as zero vectors.
        scale: ``unit`` or ``none``, see ``Encoder.fit``. For ``unit``, ``fit`` has to read all its texts.
        window: tokens the model reads at a time, special tokens included.
        stride: the most tokens between the starts of two windows; None: three quarters of the room for
            tokens, so that each token has at least an eighth of it on either side.
        precision: ``float16`` rounds the model's vectors to 11 significant bits before anything else, cached or not.
        workers: threads; their number changes no result. None: all cores.
        dtype: of the documents, float32 or float64.
        cache_dir: where vectors are kept; None: textkernels in the user's cache folder; False: nowhere, so
            that ``fit`` and ``encode`` both read the same texts.

    Attributes:
        scale_: the constant, None before ``fit``.
    """

    def __init__(
        self,
        model: OnnxModel,
        *,
        name: str,
        truncation: Truncation | None = None,
        unknown: str = "mask",
        scale: str = "unit",
        window: int = 256,
        stride: int | None = None,
        precision: str = "float32",
        workers: int | None = None,
        dtype: DTypeLike = np.float32,
        cache_dir: CacheDir = None,
    ) -> None:
        for option, value, choices in [("unknown", unknown, UNKNOWN), ("scale", scale, SCALES)]:
            if value not in choices:
                raise ValueError(f"expected {option} to be {' or '.join(map(repr, choices))}, got {value!r}")
        self.name = name
        self.truncation = truncation or Truncation()
        self.unknown = unknown
        self.scale = scale
        self.window = whole_number("window", window, 1)
        room = self.window - model.n_special
        windows = Windows(room, max(1, room * 3 // 4) if stride is None else stride)
        self.reader = PieceReader(model, windows, precision, workers, cache_dir)
        self.dtype = np.dtype(dtype)
        if self.dtype not in FLOATS:
            raise ValueError(f"expected dtype float32 or float64, got {self.dtype}")
        self.scale_: float | None = None

    @property
    def dim(self) -> int:
        """Dimension of a token vector."""
        return self.reader.model.dim

    @property
    def fitted(self) -> bool:
        """Whether ``encode`` may be called."""
        return self.scale_ is not None

    @property
    def trains_on_texts(self) -> bool:
        """False: the model comes trained."""
        return False

    def __repr__(self) -> str:
        return f"ContextualEncoder({self.name!r}, dim={self.dim}, window={self.window}, fitted={self.fitted})"

    def fit(
        self, texts: Iterable[Any], corpus: Iterable[Any] | None = None, progress: bool = False
    ) -> ContextualEncoder:
        """Set the scale. See ``Encoder.fit``; ``corpus`` is for encoders that are trained on texts."""
        cells = read_texts(texts)
        pieces = self._pieces(cells)
        if not pieces.lengths.any():
            raise ValueError(
                f"expected a text with a word piece that {self.name} has a vector for, got none in {len(cells):,} "
                "texts; check the texts"
            )
        self.scale_ = 1.0 if self.scale == "none" else self._unit_scale(pieces, progress)
        return self

    def _unit_scale(self, pieces: _Pieces, progress: bool) -> float:
        # fsum is exact, so the order of the texts changes nothing.
        squares = math.fsum(
            float(np.square(vectors[known], dtype=np.float64).sum()) for vectors, known in self._read(pieces, progress)
        )
        if not squares:
            raise ValueError(f"expected vectors that are not all zero, got zeros from {self.name} for these texts")
        return math.sqrt(int(pieces.lengths.sum()) * self.dim / squares)

    def encode(self, texts: Iterable[Any], progress: bool = False) -> Encoding:
        """Token vectors of the texts. See ``Encoder.encode``.

        Raises:
            ValueError: not fitted yet; a model that cannot read so many tokens at once.
            TypeError: a cell that is neither a text nor missing, naming the row.
        """
        scale = self._fitted()
        cells = read_texts(texts)
        pieces = self._pieces(cells)
        rows = np.flatnonzero(pieces.lengths)
        values = np.zeros((pieces.lengths.sum(), self.dim), self.dtype)
        start = 0
        for vectors, known in self._read(pieces, progress):
            if self.unknown == "mask":
                vectors, known = vectors[known], known[known]
            target = values[start : start + len(vectors)]
            np.multiply(vectors, scale, out=target, where=known[:, None], dtype=self.dtype)
            start += len(vectors)
        n_dropped = self.truncation.dropped(pieces.n_tokens)
        n_known = np.array([np.count_nonzero(known) for known in pieces.known], np.int64)
        return Encoding(
            documents=Sequences(values, pieces.lengths[rows]),
            rows=rows,
            status=text_status(cells, pieces.lengths),
            n_tokens=pieces.n_tokens,
            n_dropped=n_dropped,
            n_unknown=pieces.n_tokens - n_dropped - n_known,
        )

    def explain(self, text: str) -> list[tuple[str, bool, bool]]:
        """(piece, kept by truncation, has a vector) for every word piece of one text."""
        self._fitted()
        pieces = self.reader.model.pieces(text)
        kept = self.truncation.kept(np.array([len(pieces.ids)]))
        return list(zip(pieces.tokens, kept.tolist(), pieces.known.tolist(), strict=True))

    def _fitted(self) -> float:
        if self.scale_ is None:
            raise ValueError(f"expected a fitted encoder, got {self!r}; call fit(texts) first")
        return self.scale_

    def _pieces(self, cells: list[str | None]) -> _Pieces:
        ids, known = [], []
        n_tokens, lengths = np.zeros((2, len(cells)), np.int64)
        for row, text in enumerate(cells):
            pieces = self.reader.model.pieces(text or "")
            n_tokens[row] = len(pieces.ids)
            kept = self.truncation.kept(n_tokens[row : row + 1])
            ids.append(pieces.ids[kept])
            known.append(pieces.known[kept])
            # Punctuation counts only beside a word, as with word vectors.
            if (pieces.known & pieces.words)[kept].any():
                lengths[row] = np.count_nonzero(known[-1]) if self.unknown == "mask" else len(known[-1])
        return _Pieces(ids, known, n_tokens, lengths)

    def _read(self, pieces: _Pieces, progress: bool) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
        """(vectors of all kept pieces, which of them are known) of each text that has a document."""
        rows = np.flatnonzero(pieces.lengths).tolist()
        bar = tqdm(total=len(rows), desc=f"Encoding ({self.name})", unit=" texts", disable=not progress, delay=1)
        with bar:
            vectors = self.reader.vectors((pieces.ids[row] for row in rows), bar)
            yield from zip(vectors, (pieces.known[row] for row in rows), strict=True)

    def config(self) -> dict[str, Any]:
        """Everything ``restore`` needs besides the model, in types that JSON has."""
        model = self.reader.model
        return {
            "format": FORMAT,
            "kind": "contextual",
            "name": self.name,
            "max_tokens": self.truncation.limit,
            "keep": self.truncation.keep,
            "unknown": self.unknown,
            "scale": self.scale,
            "scale_": self._fitted(),
            "window": self.window,
            "stride": self.reader.windows.stride,
            "precision": self.reader.precision,
            "dtype": self.dtype.name,
            "model": {"source": model.source, "dim": self.dim, "checksum": model.checksum},
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing: the model is found again by its package or folder, and must have the same checksum."""
        return {}

    @classmethod
    def restore(cls, config: dict[str, Any], model: OnnxModel) -> ContextualEncoder:
        """The encoder that gave ``config``, with the same model.

        It keeps nothing on disk: texts that a saved model is to score need not be the owner's to keep.
        """
        encoder = cls(
            model,
            name=config["name"],
            truncation=Truncation(config["max_tokens"], config["keep"]),
            unknown=config["unknown"],
            scale=config["scale"],
            window=config["window"],
            stride=config["stride"],
            precision=config["precision"],
            dtype=config["dtype"],
            cache_dir=False,
        )
        encoder.scale_ = float(config["scale_"])
        return encoder


class _Pieces(NamedTuple):
    """n texts: ids of the kept pieces and which are known; (n,) how many pieces it has, and its document."""

    ids: list[NDArray[np.int32]]
    known: list[NDArray[np.bool_]]
    n_tokens: NDArray[np.int64]
    lengths: NDArray[np.int64]
