"""Names to encoders. A new encoder is one row in ``ENCODERS``, and one in ``RESTORERS`` if it is a new class."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embeddings import packaged
from embeddings.corpus import CorpusTraining
from embeddings.encoder import Encoder
from embeddings.static import FORMAT, StaticEncoder
from embeddings.truncation import Truncation
from embeddings.vector_files import read_vector_file
from embeddings.word_vectors import WordVectors, report_from_config

# Packaged tables are read once a process and shared.
PACKAGED: dict[str, Callable[[], WordVectors]] = {"glove-6b-50d": cache(packaged.load_glove_6b_50d)}


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
    cache_dir: str | os.PathLike[str] | None = None
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

    def check_more(self, name: str, allowed: set[str]) -> None:
        """TypeError for options that this encoder does not have."""
        odd = sorted(set(self.more) - allowed)
        if odd:
            choices = ", ".join(sorted(allowed)) or "none beyond those of every encoder"
            raise TypeError(f"encoder {name!r} has no option {', '.join(map(repr, odd))}; it has: {choices}")


def _packaged(name: str, options: EncoderOptions) -> Encoder:
    options.check_more(name, set())
    return options.static(name, PACKAGED[name](), "treebank")


def _word2vec(name: str, options: EncoderOptions) -> Encoder:
    own = {"seed", "workers", "cache_dir"}
    options.check_more(name, {option.name for option in fields(CorpusTraining)} - own)
    training = CorpusTraining(seed=options.seed, workers=options.workers, cache_dir=options.cache_dir, **options.more)
    return options.static(name, training, "treebank")


ENCODERS: dict[str, Callable[[str, EncoderOptions], Encoder]] = {
    "glove-6b-50d": _packaged,
    "word2vec": _word2vec,
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
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **more: Any,
) -> Encoder:
    """The encoder of that name, or one with the word vectors of a file; call ``fit`` before ``encode``.

    Args:
        name_or_path: ``glove-6b-50d`` (packaged); ``word2vec`` (trained on the texts); a GloVe or word2vec
            file, text or binary, gzipped or not; a file saved by gensim (a pickle: only from sources you
            trust); or a gensim KeyedVectors.
        tokenizer: ``keras`` or ``treebank``. None: treebank, but keras for files that do not know "n't" and
            so were not made from treebank tokens.
        max_tokens: longer texts are cut; None cuts none.
        keep: which end of a long text stays: ``head``, ``tail`` or ``head+tail`` (half each).
        unknown: ``mask`` leaves unknown words out, ``zero`` keeps them as zero vectors.
        scale: ``unit`` or ``none``, see ``Encoder.fit``.
        seed: of everything random.
        workers: threads to train word vectors with. None: all cores; only 1 repeats bit for bit.
        dtype: of the documents, float32 or float64.
        cache_dir: where trained vectors are kept; the user's cache folder by default.
        progress: show progress of reading a file on standard error.
        **more: for ``word2vec`` the fields of ``CorpusTraining``; for files ``on_bad_row`` ("error" or "skip").

    Raises:
        ValueError: an unknown name, an option's value, a damaged file.
        FileNotFoundError: a path with nothing there.
        TypeError: an option that this encoder does not have.
        ImportError: a package that must be installed first; the message has the command.
    """
    options = EncoderOptions(
        tokenizer, Truncation(max_tokens, keep), unknown, scale, seed, workers, dtype, cache_dir, progress, more
    )
    if isinstance(name_or_path, str) and name_or_path in ENCODERS:
        return ENCODERS[name_or_path](name_or_path, options)
    if isinstance(name_or_path, str | os.PathLike):
        _check_path(os.fspath(name_or_path))
        options.check_more(str(name_or_path), {"on_bad_row"})
        vectors = read_vector_file(name_or_path, progress=progress, **more)
    elif hasattr(name_or_path, "index_to_key"):
        options.check_more("KeyedVectors", set())
        vectors = WordVectors.from_keyed_vectors(name_or_path)
    else:
        raise TypeError(
            f"expected the name of an encoder, a path or a gensim KeyedVectors, got {type(name_or_path).__name__}"
        )
    return options.static(vectors.report.name, vectors, "treebank" if "n't" in vectors.index else "keras")


def _check_path(path: str) -> None:
    """A string that is no file: say which names there are, if it does not look like a path."""
    if (
        Path(path).exists()
        or os.sep in path
        or "/" in path
        or Path(path).suffix in (".txt", ".vec", ".bin", ".gz", ".kv")
    ):
        return
    close = difflib.get_close_matches(path.lower(), ENCODERS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"expected an encoder named {' or '.join(map(repr, ENCODERS))}, or the path of a file of word vectors, "
        f"got {path!r}{hint}"
    )


def _restore_static(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Encoder:
    saved = config["vectors"]
    report = report_from_config(saved["report"])
    if report.format == "package":
        vectors = PACKAGED[config["name"]]().astype(config["dtype"])
    else:
        vectors = WordVectors.from_arrays(arrays, report)
    if vectors.checksum != saved["checksum"]:
        raise ValueError(
            f"encoder {config['name']!r}: expected word vectors with checksum {saved['checksum'][:12]}, got "
            f"{vectors.checksum[:12]}: the vectors are not those the model was fitted with; fit it again, or install "
            "the same version of the package"
        )
    return StaticEncoder.restore(config, vectors)


RESTORERS: dict[str, Callable[[dict[str, Any], dict[str, NDArray[Any]]], Encoder]] = {"static": _restore_static}


def restore_encoder(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Encoder:
    """The encoder that gave ``config()`` and ``arrays()``: the same texts get bit-equal vectors.

    Raises:
        ValueError: a newer format, an unknown kind, vectors that differ from those saved.
        ImportError: packaged vectors whose package is not installed.
    """
    if config.get("format") != FORMAT or config.get("kind") not in RESTORERS:
        raise ValueError(
            f"expected an encoder of format {FORMAT} and kind {' or '.join(RESTORERS)}, "
            f"got format {config.get('format')!r} and kind {config.get('kind')!r}; update textkernels"
        )
    return RESTORERS[config["kind"]](config, arrays)
