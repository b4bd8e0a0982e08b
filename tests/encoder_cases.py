"""Every encoder in one table. A new one adds a row here and gets all tests of test_encoder_contract.py.

Run as a script with the name of a folder, it prints a digest of what each row makes of ``TEXTS``.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import KeyedVectors
from tiny_token_encoder import tiny_folder

from embeddings import get_encoder, tokenize
from embeddings.encoder import Encoder

TEXTS = [
    "A good film, really good. <br /><br />I don't know why people say it's bad.",
    "Bad acting and a bad story; the film is bad!",
    "",
    "UNKNOWN",  # replaced by what the encoder has no vector for
    None,
    "The people in this story are good people, and the acting is good.",
    "   ",
    "One of the worst films I have seen in years. Really bad.",
    float("nan"),
    "good",
    "!!! ... ?",
    "A good film, really good. <br /><br />I don't know why people say it's bad.",
]
STATUS = [
    *("ok", "ok", "empty", "no_known_tokens", "missing_text", "ok"),
    *("empty", "ok", "missing_text", "ok", "no_known_tokens", "ok"),
]
UNKNOWN = TEXTS.index("UNKNOWN")
# What vectors are trained on: the unknown words are not in it.
CORPUS = [text for text in TEXTS if isinstance(text, str) and text != "UNKNOWN"]


@dataclass(frozen=True)
class EncoderCase:
    """One encoder.

    Attributes:
        make: an encoder that keeps its files in the folder, with more options of ``get_encoder``.
        unknown: a text without a token that it has a vector for.
        name: the name in the catalogue that the row is for, if any.
    """

    make: Callable[..., Encoder]
    unknown: str = "zxqwv vrrpx"
    name: str = ""

    def texts(self) -> list[Any]:
        """``TEXTS`` with this encoder's unknown text."""
        return [self.unknown if text == "UNKNOWN" else text for text in TEXTS]

    def fitted(self, folder: Path, **options: Any) -> Encoder:
        """The encoder, fitted on the texts."""
        return self.make(folder, **options).fit(self.texts(), corpus=CORPUS)


def _named(name: str, **fixed: Any) -> Callable[..., Encoder]:
    return lambda folder, **options: get_encoder(name, **{"cache_dir": folder / "cache", **fixed, **options})


def _words() -> list[str]:
    return sorted({token for text in CORPUS for token in tokenize(text)} | {"n't"})


def _vectors(dim: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((len(_words()), dim))


def _file(folder: Path, **options: Any) -> Encoder:
    path = folder / "contract.txt"
    rows = zip(_words(), _vectors(5), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows))
    return get_encoder(path, **options)


def _keyed_vectors(folder: Path, **options: Any) -> Encoder:
    keyed = KeyedVectors(4)
    keyed.add_vectors(_words(), _vectors(4).astype(np.float32))
    return get_encoder(keyed, **options)


def _folder(folder: Path, **options: Any) -> Encoder:
    path = folder / "tiny"
    if not path.exists():
        tiny_folder(path)
    return get_encoder(path, **{"window": 8, "cache_dir": folder / "cache", **options})


TRAINING: dict[str, Any] = {"workers": 1, "vector_size": 8, "epochs": 2}
SYMBOLS = "\u2603\u2603 \U0001f9ff"  # word pieces spell every word

CASES: dict[str, EncoderCase] = {
    "glove": EncoderCase(_named("glove-6b-50d"), name="glove-6b-50d"),
    "glove, zeros": EncoderCase(_named("glove-6b-50d", unknown="zero")),
    "glove, keras": EncoderCase(_named("glove-6b-50d", tokenizer="keras")),
    "word2vec": EncoderCase(_named("word2vec", **TRAINING), name="word2vec"),
    "fasttext": EncoderCase(_named("fasttext", buckets=500, **TRAINING), name="fasttext"),
    "file": EncoderCase(_file),
    "keyed vectors": EncoderCase(_keyed_vectors),
    "minilm": EncoderCase(_named("minilm", window=16), SYMBOLS, name="minilm"),
    "minilm, zeros": EncoderCase(_named("minilm", window=16, unknown="zero"), SYMBOLS),
    "minilm, rounded": EncoderCase(_named("minilm", precision="float16"), SYMBOLS),
    "minilm, no cache": EncoderCase(_named("minilm", cache_dir=False, workers=1), SYMBOLS),
    "folder": EncoderCase(_folder),
    "concatenated": EncoderCase(_named("glove-6b-50d+word2vec", workers=1)),
}


if __name__ == "__main__":
    for name, case in CASES.items():
        encoding = case.fitted(Path(sys.argv[1])).encode(case.texts())
        print(name, hashlib.sha256(encoding.documents.values.tobytes()).hexdigest(), sep="\t")
