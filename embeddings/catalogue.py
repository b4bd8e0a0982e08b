"""Names to encoders. A new encoder is one row in ``ENCODERS``; a new class of them is one in ``restore.RESTORERS``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from embeddings import packaged
from embeddings.cache_folder import CacheDir
from embeddings.concatenated import ConcatenatedEncoder
from embeddings.contextual import ContextualEncoder
from embeddings.cores import check_workers
from embeddings.corpus import SUBWORD_OPTIONS, CorpusTraining
from embeddings.encoder import Encoder
from embeddings.gensim_data import PREFIX, find_gensim_data
from embeddings.onnx_model import OnnxModel
from embeddings.static import StaticEncoder
from embeddings.truncation import Truncation
from embeddings.vector_cache import load_vector_file
from embeddings.whole_numbers import LARGEST_SEED, whole_number
from embeddings.word_vectors import WordVectors

# What looks like a file that is not there, rather than like a name misspelled.
FILE_ENDINGS = (".txt", ".vec", ".bin", ".gz", ".kv")


@dataclass(frozen=True)
class EncoderOptions:
    """What ``get_encoder`` was asked for, besides the name. See there."""

    tokenizer: str | None = None
    truncation: Truncation = field(default_factory=Truncation)
    unknown: str = "mask"
    scale: str = "unit"
    seed: int = 0
    workers: int | None = None
    dtype: DTypeLike = np.float32
    cache_dir: CacheDir = None
    progress: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def static(self, name: str, vectors: WordVectors | CorpusTraining, tokenizer: str) -> StaticEncoder:
        """A StaticEncoder with these options; ``tokenizer`` is the default for these vectors."""
        return StaticEncoder(
            vectors,
            name=name,
            tokenizer=self.tokenizer or tokenizer,
            truncation=self.truncation,
            unknown=self.unknown,
            scale=self.scale,
            dtype=self.dtype,
        )

    def contextual(self, name: str, model: OnnxModel) -> ContextualEncoder:
        """A ContextualEncoder with these options."""
        self.check_more(name, {"window", "stride", "precision"})
        if self.tokenizer is not None:
            raise ValueError(
                f"expected no tokenizer for {name!r}, which reads its own word pieces, got {self.tokenizer!r}; "
                "leave it out"
            )
        return ContextualEncoder(
            model,
            name=name,
            truncation=self.truncation,
            unknown=self.unknown,
            scale=self.scale,
            workers=self.workers,
            dtype=self.dtype,
            cache_dir=self.cache_dir,
            **self.more,
        )

    def check_more(self, name: str, allowed: set[str]) -> None:
        """TypeError for options that this encoder does not have."""
        odd = sorted(set(self.more) - allowed)
        if odd:
            choices = ", ".join(sorted(allowed)) or "none beyond those of every encoder"
            raise TypeError(f"encoder {name!r} has no option {', '.join(map(repr, odd))}; it has: {choices}")


def _packaged(name: str, options: EncoderOptions) -> Encoder:
    options.check_more(name, set())
    return options.static(name, packaged.TABLES[name](), "treebank")


def _trained(name: str, options: EncoderOptions) -> Encoder:
    own = {"algorithm", "seed", "workers", "cache_dir"} | set(SUBWORD_OPTIONS if name == "word2vec" else ())
    options.check_more(name, {option.name for option in fields(CorpusTraining)} - own)
    training = CorpusTraining(
        name, seed=options.seed, workers=options.workers, cache_dir=options.cache_dir, **options.more
    )
    return options.static(name, training, "treebank")


def _minilm(name: str, options: EncoderOptions) -> Encoder:
    return options.contextual(name, OnnxModel.minilm())


ENCODERS: dict[str, Callable[[str, EncoderOptions], Encoder]] = {
    "glove-6b-50d": _packaged,
    "word2vec": _trained,
    "fasttext": _trained,
    "minilm": _minilm,
}


def get_encoder(
    name_or_path: Any,
    *,
    tokenizer: str | None = None,
    max_tokens: int | None = 1000,
    keep: str = "head",
    unknown: str = "mask",
    scale: str = "unit",
    seed: int = 0,
    workers: int | None = None,
    dtype: DTypeLike = np.float32,
    cache_dir: CacheDir = None,
    progress: bool = False,
    **more: Any,
) -> Encoder:
    """The encoder of that name, or one with the vectors of a file; call ``fit`` before ``encode``.

    Args:
        name_or_path: ``glove-6b-50d`` (packaged); ``word2vec`` or ``fasttext`` (trained on the texts);
            ``minilm`` (token vectors that depend on their context, packaged); ``gensim:NAME`` (from the
            collection gensim-data, needs a network the first time); a GloVe or word2vec file, text or binary,
            gzipped or not; a file saved by gensim (a pickle: only from sources you trust); a gensim
            KeyedVectors; a folder with a token encoder, model.onnx and tokenizer.json; or several encoders of
            words as one, ``glove-6b-50d+word2vec``.
        tokenizer: ``keras`` or ``treebank``. None: treebank, but keras for files that do not know "n't" and
            so were not made from treebank tokens.
        max_tokens: longer texts are cut; None cuts none. Word pieces where the encoder reads those.
        keep: which end of a long text stays: ``head``, ``tail`` or ``head+tail`` (half each).
        unknown: ``mask`` leaves unknown words out, ``zero`` keeps them as zero vectors.
        scale: ``unit`` or ``none``, see ``Encoder.fit``.
        seed: of everything random.
        workers: threads to train or encode with. None: all cores. Training repeats bit for bit with 1 only.
        dtype: of the documents, float32 or float64.
        cache_dir: where trained vectors, token vectors and tables of large files are kept for the next time;
            None: textkernels in the user's cache folder; False: nowhere.
        progress: show progress of reading a file on standard error.
        **more: for ``word2vec`` and ``fasttext`` the fields of ``CorpusTraining``; for files and ``gensim:``
            ``on_bad_row`` ("error" or "skip") and ``vocabulary`` (the only words to keep in memory); for
            ``minilm`` and folders ``window``, ``stride`` and ``precision``, see ``ContextualEncoder``. None
            for several as one: make their parts yourself and join them with ``ConcatenatedEncoder``.

    Raises:
        ValueError: an unknown name, an option's value, a damaged file.
        FileNotFoundError: a path with nothing there.
        OSError: ``gensim:NAME`` without a network.
        TypeError: an option that this encoder does not have.
        ImportError: a package that must be installed first; the message has the command.
    """
    seed, workers = whole_number("seed", seed, 0, LARGEST_SEED), check_workers(workers)
    options = EncoderOptions(
        tokenizer, Truncation(max_tokens, keep), unknown, scale, seed, workers, dtype, cache_dir, progress, more
    )
    return _find(name_or_path, options)


def _find(name_or_path: Any, options: EncoderOptions) -> Encoder:
    if isinstance(name_or_path, str) and name_or_path in ENCODERS:
        return ENCODERS[name_or_path](name_or_path, options)
    if isinstance(name_or_path, str) and "+" in name_or_path and not Path(name_or_path).exists():
        return _concatenated(name_or_path, options)
    if isinstance(name_or_path, str | os.PathLike):
        name = os.fspath(name_or_path)
        path = find_gensim_data(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else Path(name)
        _check_path(name, path)
        if path.is_dir():
            return options.contextual(path.resolve().name, OnnxModel.from_folder(path))
        options.check_more(name, {"on_bad_row", "vocabulary"})
        vectors = load_vector_file(path, cache_dir=options.cache_dir, progress=options.progress, **options.more)
    elif hasattr(name_or_path, "index_to_key"):
        options.check_more("KeyedVectors", set())
        vectors = WordVectors.from_keyed_vectors(name_or_path)
    else:
        raise TypeError(
            f"expected the name of an encoder, a path or a gensim KeyedVectors, got {type(name_or_path).__name__}"
        )
    return options.static(vectors.report.name, vectors, "treebank" if "n't" in vectors.index else "keras")


def _concatenated(name: str, options: EncoderOptions) -> Encoder:
    options.check_more(name, set())
    # The whole is scaled, not its parts.
    parts = [_find(part.strip(), replace(options, scale="none")) for part in name.split("+")]
    return ConcatenatedEncoder(cast(list[StaticEncoder], parts), scale=options.scale)


def _check_path(name: str, path: Path) -> None:
    """What is no file: say which names there are, if it does not look like a path."""
    if name and (path.exists() or os.sep in name or "/" in name or path.suffix in FILE_ENDINGS):
        return
    close = difflib.get_close_matches(name.lower(), ENCODERS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"expected an encoder named {', '.join(map(repr, ENCODERS))}, several of them with + between, "
        f"'{PREFIX}NAME', or the path of a file of word vectors or of a folder with an ONNX model, got {name!r}{hint}"
    )
