"""Word2Vec and FastText trained on the user's own texts, by gensim, and kept on disk for the next time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from embeddings.cache_folder import CacheDir, cache_folder
from embeddings.cores import check_workers, n_cores
from embeddings.subwords import SubwordVectors, table_from_arrays
from embeddings.texts import TokenizedTexts
from embeddings.whole_numbers import LARGEST_SEED, whole_number
from embeddings.word_vectors import LoadReport, WordVectors, pack_words

# gensim silently drops what a sentence has beyond this.
LONGEST_SENTENCE = 10_000
ALGORITHMS = {"word2vec": "Word2Vec", "fasttext": "FastText"}
SUBWORD_OPTIONS = ("min_n", "max_n", "buckets")

_LEAST = {
    **dict.fromkeys(("vector_size", "window", "epochs", "min_count", *SUBWORD_OPTIONS), 1),
    "negative": 0,
    "seed": 0,
}


@dataclass(frozen=True)
class CorpusTraining:
    """How to learn word vectors from texts: skip-gram or CBOW, of words or also of parts of words.

    Attributes:
        algorithm: ``word2vec``, or ``fasttext``, which also learns vectors of parts of words: then words that
            are not in the texts have one too, see ``SubwordVectors``.
        vector_size: dimension d.
        window: farthest context word, in tokens to either side. Wide, because what a text says as a whole
            matters here more than grammar: on held-out IMDb training reviews 15 beat 10, and 10 beat 5.
        epochs: passes over the texts.
        min_count: words seen less often get no vector. None: 5, but 2 below 100,000 tokens and 1 below
            10,000, so that short collections keep a vocabulary.
        sg: 1 skip-gram, 0 CBOW.
        negative: noise words a context word.
        hs: 1 hierarchical softmax (with ``negative=0``).
        sample: words more frequent than this share are thinned out. Less than gensim's 1e-3: better on the
            same reviews (by a point) and nearly twice as fast.
        seed: of the initial vectors and all draws.
        workers: threads. 1: the same texts and options give bit-equal vectors in any process (with the same
            gensim, BLAS and kind of processor). None: all cores, whose threads race, so that no two runs agree.
        cache_dir: folder for finished vectors; None: textkernels in the user's cache folder. The key is made
            of the tokens, the options and gensim's version. False: kept nowhere.
        min_n, max_n: characters of the shortest and longest parts of words (``fasttext`` only).
        buckets: vectors for parts of words, which share them where there are more (``fasttext`` only). They
            take 4 d bytes each while training; only those in use are kept.

    Sources: Mikolov et al., "Distributed representations of words and phrases and their compositionality", 2013;
    Bojanowski et al., "Enriching word vectors with subword information", 2017.
    """

    algorithm: str = "word2vec"
    vector_size: int = 100
    window: int = 15
    epochs: int = 5
    min_count: int | None = None
    sg: int = 1
    negative: int = 5
    hs: int = 0
    sample: float = 1e-4
    seed: int = 0
    workers: int | None = None
    cache_dir: CacheDir = None
    min_n: int = 3
    max_n: int = 6
    buckets: int = 500_000

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"expected algorithm to be {' or '.join(map(repr, ALGORITHMS))}, got {self.algorithm!r}")
        for option, lowest in _LEAST.items():
            value = getattr(self, option)
            if value is not None or option != "min_count":
                most = LARGEST_SEED if option == "seed" else None
                object.__setattr__(self, option, whole_number(option, value, lowest, most))
        object.__setattr__(self, "workers", check_workers(self.workers))
        if self.max_n < self.min_n:
            raise ValueError(f"expected max_n of at least min_n = {self.min_n}, got {self.max_n}")
        if not self.sample >= 0:
            raise ValueError(f"expected sample to be at least 0 (0 thins nothing out), got {self.sample!r}")
        if self.sg not in (0, 1) or self.hs not in (0, 1) or not (self.hs or self.negative):
            raise ValueError(
                f"expected sg and hs to be 0 or 1 and negative above 0 unless hs=1, "
                f"got sg={self.sg!r}, hs={self.hs!r}, negative={self.negative!r}"
            )
        # JSON has no NumPy numbers.
        for option, kind in (("sg", int), ("hs", int), ("sample", float)):
            object.__setattr__(self, option, kind(getattr(self, option)))

    def config(self) -> dict[str, Any]:
        """The options, without the cache folder, in types that JSON has."""
        left_out = ("cache_dir", *(() if self.algorithm == "fasttext" else SUBWORD_OPTIONS))
        return {key: value for key, value in asdict(self).items() if key not in left_out}

    def train(self, tokens: TokenizedTexts, progress: bool = False) -> WordVectors:
        """Learn one vector for each frequent token, or take them from the cache.

        Returns:
            Words from frequent to rare, and vectors in float32.

        Raises:
            ValueError: no tokens, or no word as frequent as ``min_count``.
        """
        counts = np.bincount(tokens.ids, minlength=len(tokens.types))
        least = self._least_count(counts)
        report_name = f"{ALGORITHMS[self.algorithm]} of {len(tokens.lengths):,} texts"
        cached = self._cache_file(tokens, least)
        vectors = None if cached is None else _read_cache(cached, report_name)
        if vectors is None:
            vectors = self._train(tokens, counts, least, report_name, progress)
            if cached is not None:
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

    def _cache_file(self, tokens: TokenizedTexts, least: int) -> Path | None:
        import gensim

        folder = cache_folder(self.cache_dir)
        if folder is None:
            return None
        options = self.config() | {"min_count": least, "workers": "one" if self.workers == 1 else "many"}
        options.pop("algorithm")
        key = hashlib.sha256(json.dumps([gensim.__version__, options], sort_keys=True).encode())
        for part in (pack_words(tokens.types), tokens.ids, tokens.lengths):
            key.update(part.tobytes())
        return folder / f"{self.algorithm}-{key.hexdigest()[:32]}.npz"

    def _train(self, tokens: TokenizedTexts, counts: np.ndarray, least: int, name: str, progress: bool) -> WordVectors:
        if self.algorithm == "fasttext":  # it needs words in UTF-8, which has no form for a lone surrogate
            tokens = replace(tokens, types=[word.encode("utf-8", "replace").decode() for word in tokens.types])
        frequencies: Counter[str] = Counter()
        for word, count in zip(tokens.types, counts.tolist(), strict=True):
            frequencies[word] += count
        model, sentences = self._model(least), _Sentences(tokens)
        model.build_vocab_from_freq(frequencies, corpus_count=len(sentences))
        with tqdm(
            desc=f"Training {ALGORITHMS[self.algorithm]}",
            total=self.epochs * tokens.ids.size,
            unit=" tokens",
            unit_scale=True,
            disable=not progress,
        ) as sentences.bar:
            model.train(sentences, total_examples=len(sentences), epochs=self.epochs)
        report = LoadReport(name, "trained", len(model.wv.index_to_key), self.vector_size)
        if self.algorithm == "fasttext":
            return SubwordVectors.from_fasttext(model.wv, report)
        return WordVectors(list(model.wv.index_to_key), model.wv.vectors, report)

    def _model(self, least: int) -> Any:
        from gensim.models import FastText, Word2Vec

        parts_of_words = {"min_n": self.min_n, "max_n": self.max_n, "bucket": self.buckets}
        return (FastText if self.algorithm == "fasttext" else Word2Vec)(
            vector_size=self.vector_size,
            window=self.window,
            min_count=least,
            sg=self.sg,
            negative=self.negative,
            hs=self.hs,
            sample=self.sample,
            seed=self.seed,
            workers=self.workers or n_cores(),
            **(parts_of_words if self.algorithm == "fasttext" else {}),
        )


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


def _read_cache(path: Path, name: str) -> WordVectors | None:
    """The vectors in a cache file, None if there is none or it is damaged (it is then made again)."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            report = LoadReport(name, "trained", *arrays["vectors"].shape)
            return table_from_arrays(dict(arrays), report)
    except Exception as error:  # a damaged archive raises errors of many kinds
        warnings.warn(f"{path.name}: damaged cache file, trained again ({type(error).__name__})", stacklevel=2)
        return None


def _write_cache(path: Path, vectors: WordVectors) -> None:
    """Write whole files only, so that an interrupted or a second process leaves no half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            draft = Path(folder) / path.name
            np.savez(draft, allow_pickle=False, **vectors.to_arrays())
            os.replace(draft, path)
    except OSError as error:
        warnings.warn(f"word vectors are not kept for next time: {error}", stacklevel=2)
