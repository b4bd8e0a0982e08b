"""A token encoder in ONNX form that a loop can imitate: vectors add up from the start of what the model reads.

Token t of a window gets E[id_0] + ... + E[id_t], special tokens included, so its vector tells which tokens the
model saw before it. The file is written by hand in the wire format of Protocol Buffers; field numbers are
those of onnx.proto.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, "good", "bad", "film", "story", "the", "is", "a", "very", "of", "in", ",", ".", "table"]
DIM = 3
# Whole numbers, so that sums are exact.
TABLE = np.random.default_rng(0).integers(-8, 8, (len(WORDS), DIM)).astype(np.float32)

_FLOAT, _INT64, _INT32 = 1, 7, 6


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _tensor(name: str, array: np.ndarray, kind: int) -> bytes:
    dims = b"".join(_field(1, size) for size in array.shape)
    return dims + _field(2, kind) + _field(8, name) + _field(9, array.tobytes())


def _value(name: str, kind: int, shape: list[int | str]) -> bytes:
    dims = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def _node(op: str, inputs: list[str], output: str) -> bytes:
    return b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, op)


def write_model(
    path: Path,
    table: np.ndarray = TABLE,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    kind: int = _INT64,
    dim: int | str = DIM,
) -> None:
    """Write the model; ``inputs`` besides input_ids are ignored by it."""
    shape: list[int | str] = ["batch", "tokens"]
    graph = b"".join(
        [
            _field(1, _node("Gather", ["table", "input_ids"], "rows")),
            _field(1, _node("CumSum", ["rows", "axis"], output)),
            _field(2, "sums"),
            _field(5, _tensor("table", table, _FLOAT)),
            _field(5, _tensor("axis", np.array(1, np.int64), _INT64)),
            *[_field(11, _value(name, kind, shape)) for name in inputs],
            _field(12, _value(output, _FLOAT, [*shape, dim])),
        ]
    )
    path.write_bytes(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 14)))


def write_tokenizer(path: Path) -> None:
    """Words at spaces, [CLS] before and [SEP] behind; cut and padded by default, as many saved ones are."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(path))


def tiny_folder(folder: Path, **model: Any) -> Path:
    """A folder with model.onnx and tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder / "model.onnx", **model)
    write_tokenizer(folder / "tokenizer.json")
    return folder


def cumulated(ids: list[int]) -> np.ndarray:
    """What the model says of word pieces it reads at once, by a plain loop; shape (L, DIM)."""
    total, rows = TABLE[2].astype(np.float64), []
    for number in ids:
        total = total + TABLE[number]
        rows.append(total)
    return np.array(rows)
