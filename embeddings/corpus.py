"""Word2Vec trained on the user's own texts, by gensim, and kept on disk for the next time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from embeddings.texts import TokenizedTexts
from embeddings.word_vectors import LoadReport, WordVectors, pack_words

# gensim silently drops what a sentence has beyond this.
LONGEST_SENTENCE = 10_000


@dataclass(frozen=True)
class CorpusTraining:
    """How to learn word vectors from texts: skip-gram or CBOW with negative sampling.

    Attributes:
        vector_size: dimension d.
        window: farthest context word, in tokens to either side.
        epochs: passes over the texts.
        min_count: words seen less often get no vector. None: 5, but 2 below 100,000 tokens and 1 below
            10,000, so that short collections keep a vocabulary.
        sg: 1 skip-gram, 0 CBOW.
        negative: noise words a context word.
        hs: 1 hierarchical softmax (with ``negative=0``).
        sample: words more frequent than this share are thinned out.
        seed: of the initial vectors and all draws.
        workers: threads. 1: the same texts and options give bit-equal vectors in any process (with the same
            gensim, BLAS and kind of processor). None: all cores, whose threads race, so that no two runs agree.
        cache_dir: folder for finished vectors; None: textkernels in the user's cache folder. The key is made
            of the tokens, the options and gensim's version.

    Source: Mikolov et al., "Distributed representations of words and phrases and their compositionality", 2013.
    """

    vector_size: int = 100
    window: int = 10
    epochs: int = 5
    min_count: int | None = None
    sg: int = 1
    negative: int = 5
    hs: int = 0
    sample: float = 1e-3
    seed: int = 0
    workers: int | None = None
    cache_dir: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        least = {"vector_size": 1, "window": 1, "epochs": 1, "negative": 0, "seed": 0, "min_count": 1, "workers": 1}
        for option, lowest in least.items():
            value = getattr(self, option)
            if value is None and option in ("min_count", "workers"):
                continue
            if isinstance(value, bool) or int(value) != value or value < lowest:
                raise ValueError(f"expected {option} to be an integer of at least {lowest}, got {value!r}")
        if self.sample < 0:
            raise ValueError(f"expected sample to be at least 0 (0 thins nothing out), got {self.sample!r}")
        if self.sg not in (0, 1) or self.hs not in (0, 1) or not (self.hs or self.negative):
            raise ValueError(
                f"expected sg and hs to be 0 or 1 and negative above 0 unless hs=1, "
                f"got sg={self.sg!r}, hs={self.hs!r}, negative={self.negative!r}"
            )

    def config(self) -> dict[str, Any]:
        """The options, without the cache folder, in types that JSON has."""
        return {key: value for key, value in asdict(self).items() if key != "cache_dir"}

    def train(self, tokens: TokenizedTexts, progress: bool = False) -> WordVectors:
        """Learn one vector for each frequent token, or take them from the cache.

        Returns:
            Words from frequent to rare, and vectors in float32.

        Raises:
            ValueError: no tokens, or no word as frequent as ``min_count``.
        """
        counts = np.bincount(tokens.ids, minlength=len(tokens.types))
        least = self._least_count(counts)
        report_name = f"Word2Vec of {len(tokens.lengths):,} texts"
        cached = self._cache_file(tokens, least)
        vectors = _read_cache(cached, report_name)
        if vectors is None:
            vectors = self._train(tokens, counts, least, report_name, progress)
            _write_cache(cached, vectors)
        return vectors

    def _least_count(self, counts: np.ndarray) -> int:
        total = int(counts.sum())
        if not total:
            raise ValueError(
                "expected texts to learn word vectors from, got texts without a token; check the text column"
            )
        least = self.min_count
        if least is None:
            least = 1 if total < 10_000 else 2 if total < 100_000 else 5
        if counts.max() < least:
            raise ValueError(
                f"expected a word seen at least min_count = {least} times, got {counts.max()} at most in {total:,} "
                "tokens; lower min_count, or leave it out to have it follow the size of the texts"
            )
        return least

    def _cache_file(self, tokens: TokenizedTexts, least: int) -> Path:
        import gensim

        options = self.config() | {"min_count": least, "workers": "one" if self.workers == 1 else "many"}
        key = hashlib.sha256(json.dumps([gensim.__version__, options], sort_keys=True).encode())
        for part in (pack_words(tokens.types), tokens.ids, tokens.lengths):
            key.update(part.tobytes())
        return _cache_folder(self.cache_dir) / f"word2vec-{key.hexdigest()[:32]}.npz"

    def _train(self, tokens: TokenizedTexts, counts: np.ndarray, least: int, name: str, progress: bool) -> WordVectors:
        from gensim.models import Word2Vec

        sentences = _Sentences(tokens)
        model = Word2Vec(
            vector_size=self.vector_size,
            window=self.window,
            min_count=least,
            sg=self.sg,
            negative=self.negative,
            hs=self.hs,
            sample=self.sample,
            seed=self.seed,
            workers=self.workers or _n_cores(),
        )
        model.build_vocab_from_freq(dict(zip(tokens.types, counts.tolist(), strict=True)), corpus_count=len(sentences))
        total = self.epochs * tokens.ids.size
        with tqdm(
            desc="Training Word2Vec", total=total, unit=" tokens", unit_scale=True, disable=not progress
        ) as sentences.bar:
            model.train(sentences, total_examples=len(sentences), epochs=self.epochs)
        report = LoadReport(name, "trained", len(model.wv.index_to_key), self.vector_size)
        return WordVectors(list(model.wv.index_to_key), model.wv.vectors, report)


class _Sentences:
    """The texts as lists of words, which gensim goes through once an epoch."""

    def __init__(self, tokens: TokenizedTexts) -> None:
        self.words = np.array(tokens.types, dtype=object)
        self.ids = tokens.ids
        # Texts end where they end, and within a text whenever gensim's limit is reached.
        self.bounds = [0]
        for length in tokens.lengths.tolist():
            start = self.bounds[-1]
            self.bounds.extend(range(start + LONGEST_SENTENCE, start + length, LONGEST_SENTENCE))
            if length:
                self.bounds.append(start + length)
        self.bar: tqdm[Any] | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[list[str]]:
        for start, end in pairwise(self.bounds):
            yield self.words[self.ids[start:end]].tolist()
            if self.bar is not None:
                self.bar.update(end - start)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cache_folder(cache_dir: str | os.PathLike[str] | None) -> Path:
    if cache_dir is not None:
        return Path(cache_dir)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textkernels"


def _read_cache(path: Path, name: str) -> WordVectors | None:
    """The vectors in a cache file, None if there is none or it is damaged (it is then made again)."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            report = LoadReport(name, "trained", *arrays["vectors"].shape)
            return WordVectors.from_arrays({key: arrays[key] for key in ("words", "vectors")}, report)
    except Exception as error:  # a damaged archive raises errors of many kinds
        warnings.warn(f"{path.name}: damaged cache file, trained again ({type(error).__name__})", stacklevel=2)
        return None


def _write_cache(path: Path, vectors: WordVectors) -> None:
    """Write whole files only, so that an interrupted or a second process leaves no half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            draft = Path(folder) / path.name
            np.savez(draft, words=pack_words(vectors.words), vectors=vectors.vectors)
            os.replace(draft, path)
    except OSError as error:
        warnings.warn(f"word vectors are not kept for next time: {error}", stacklevel=2)
