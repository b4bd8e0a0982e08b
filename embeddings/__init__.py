"""Texts to sequences of token vectors.

    from embeddings import get_encoder

    encoder = get_encoder("glove-6b-50d").fit(texts)
    encoding = encoder.encode(texts)
    encoding.documents          # Sequences: one (L, d) array a text, unpadded
    encoding.status             # what became of each text

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from embeddings.sequences import Sequences

if TYPE_CHECKING:
    from embeddings.catalogue import ENCODERS, get_encoder
    from embeddings.concatenated import ConcatenatedEncoder
    from embeddings.contextual import ContextualEncoder
    from embeddings.corpus import CorpusTraining
    from embeddings.encoder import Encoder
    from embeddings.encoding import Encoding
    from embeddings.restore import restore_encoder
    from embeddings.static import StaticEncoder
    from embeddings.subwords import SubwordVectors
    from embeddings.tokenizer import TOKENIZERS, tokenize
    from embeddings.truncation import Truncation
    from embeddings.vector_cache import load_vector_file
    from embeddings.vector_files import read_vector_file
    from embeddings.word_vectors import LoadReport, WordVectors

_HOMES = {
    "ENCODERS": "catalogue",
    "get_encoder": "catalogue",
    "ConcatenatedEncoder": "concatenated",
    "ContextualEncoder": "contextual",
    "CorpusTraining": "corpus",
    "Encoder": "encoder",
    "Encoding": "encoding",
    "restore_encoder": "restore",
    "StaticEncoder": "static",
    "SubwordVectors": "subwords",
    "TOKENIZERS": "tokenizer",
    "tokenize": "tokenizer",
    "Truncation": "truncation",
    "load_vector_file": "vector_cache",
    "read_vector_file": "vector_files",
    "LoadReport": "word_vectors",
    "WordVectors": "word_vectors",
}

__all__ = [
    "ENCODERS",
    "TOKENIZERS",
    "ConcatenatedEncoder",
    "ContextualEncoder",
    "CorpusTraining",
    "Encoder",
    "Encoding",
    "LoadReport",
    "Sequences",
    "StaticEncoder",
    "SubwordVectors",
    "Truncation",
    "WordVectors",
    "get_encoder",
    "load_vector_file",
    "read_vector_file",
    "restore_encoder",
    "tokenize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'embeddings' has no attribute {name!r}")
    return getattr(import_module(f"embeddings.{_HOMES[name]}"), name)
