"""Encoders again from what they saved of themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from embeddings import packaged
from embeddings.concatenated import ConcatenatedEncoder
from embeddings.contextual import ContextualEncoder
from embeddings.encoder import Encoder
from embeddings.onnx_model import OnnxModel
from embeddings.static import FORMAT, StaticEncoder
from embeddings.subwords import table_from_arrays
from embeddings.word_vectors import report_from_config

Arrays = dict[str, NDArray[Any]]


def _restore_static(config: dict[str, Any], arrays: Arrays) -> StaticEncoder:
    saved = config["vectors"]
    report = report_from_config(saved["report"])
    if report.format == "package":
        vectors = packaged.TABLES[config["name"]]().astype(config["dtype"])
    else:
        vectors = table_from_arrays(arrays, report)
    if vectors.checksum != saved["checksum"]:
        raise ValueError(
            f"encoder {config['name']!r}: expected word vectors with checksum {saved['checksum'][:12]}, got "
            f"{vectors.checksum[:12]}: the vectors are not those the model was fitted with; fit it again, or install "
            "the same version of the package"
        )
    return StaticEncoder.restore(config, vectors)


def _restore_contextual(config: dict[str, Any], arrays: Arrays) -> ContextualEncoder:
    name, saved = config["name"], config["model"]
    if saved["source"] == "package":
        model = OnnxModel.minilm()
        hint = "install the same version of the package"
    else:
        try:
            model = OnnxModel.from_folder(Path(saved["source"]))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"encoder {name!r}: {error}; the model was fitted with the token encoder in that folder: bring it "
                "back, or write its new place in the config.json of the fitted model"
            ) from None
        hint = "bring back the files it was fitted with"
    if model.checksum != saved["checksum"]:
        raise ValueError(
            f"encoder {name!r}: expected a token encoder with checksum {saved['checksum'][:12]}, got "
            f"{model.checksum[:12]}: it is not the one the model was fitted with; {hint}, or fit the model again"
        )
    return ContextualEncoder.restore(config, model)


def _restore_concatenated(config: dict[str, Any], arrays: Arrays) -> ConcatenatedEncoder:
    parts = []
    for number, part in enumerate(config["parts"]):
        prefix = f"{number}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        parts.append(_restore_static(part, own))
    return ConcatenatedEncoder.restore(config, parts)


RESTORERS: dict[str, Callable[[dict[str, Any], Arrays], Encoder]] = {
    "static": _restore_static,
    "contextual": _restore_contextual,
    "concatenated": _restore_concatenated,
}


def restore_encoder(config: dict[str, Any], arrays: Arrays) -> Encoder:
    """The encoder that gave ``config()`` and ``arrays()``: the same texts get bit-equal vectors.

    Raises:
        ValueError: a newer format, an unknown kind, vectors or a model that differ from those saved.
        FileNotFoundError: the folder of a token encoder is gone.
        ImportError: a package is not installed.
    """
    if config.get("format") != FORMAT or config.get("kind") not in RESTORERS:
        raise ValueError(
            f"expected an encoder of format {FORMAT} and kind {' or '.join(RESTORERS)}, "
            f"got format {config.get('format')!r} and kind {config.get('kind')!r}; update textkernels"
        )
    return RESTORERS[config["kind"]](config, arrays)
