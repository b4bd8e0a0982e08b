"""A fitted model as a folder: config.json and safetensors files, never pickle."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from textkernels.classifier import KernelClassifier

FORMAT = 2
CONFIG, LATENT, ENCODER = "config.json", "latent.safetensors", "encoder.safetensors"
# Name of an array beside the latent model's own; models written before it existed lack it.
HASHES = "texts.hashes"
PARAMETERS = (
    "kernel",
    "diag_reg",
    "random_state",
    "tokenizer",
    "max_tokens",
    "keep",
    "unknown",
    "scale",
    "workers",
    "engine",
    "unusable",
)


def save(classifier: KernelClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a folder, whole or not at all.

    An existing model in that folder is replaced; any other folder that is not empty is left alone.

    Raises:
        ValueError: a classifier that is not fitted, a path that holds something else.
    """
    from safetensors.numpy import save_file

    if not hasattr(classifier, "latent_"):
        raise ValueError("expected a fitted classifier; call fit before save")
    target = Path(folder)
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        (scratch / CONFIG).write_text(json.dumps(_config(classifier), indent=2) + "\n", encoding="utf-8")
        seen = {} if classifier.text_hashes_ is None else {HASHES: classifier.text_hashes_}
        save_file(_contiguous({**classifier.latent_.arrays(), **seen}), scratch / LATENT)
        save_file(_contiguous(classifier.encoder_.arrays()), scratch / ENCODER)
        scratch.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def check_target(folder: str | os.PathLike[str]) -> None:
    """Raise ValueError unless a model may be written there: a new path, an empty folder or an older model."""
    path = Path(folder)
    if path.is_file() or (path.is_dir() and any(path.iterdir()) and not (path / CONFIG).is_file()):
        raise ValueError(f"{path}: expected a new folder or one with a textkernels model, got something else there")


def load(folder: str | os.PathLike[str]) -> KernelClassifier:
    """Read a classifier that :func:`save` wrote; its predictions are the same.

    Raises:
        ValueError: no model there, a format of another version, a file that is damaged; the message names it.
        ImportError: packaged word vectors whose package is not installed.
    """
    path = Path(folder)
    if not (path / CONFIG).is_file():
        raise ValueError(
            f"{path}: expected a folder with a textkernels model ({CONFIG}); make one with textkernels fit"
        )
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path / CONFIG}: not valid JSON ({error}); fit the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        found = config.get("format") if isinstance(config, dict) else None
        raise ValueError(
            f"{path}: expected model format {FORMAT}, got {found!r}; use the version that wrote it, or refit"
        )
    try:
        return _restore(config, _read(path / LATENT), _read(path / ENCODER))
    except KeyError as error:
        raise ValueError(f"{path}: the model lacks {error}; it is incomplete, fit it again") from None


def _config(classifier: KernelClassifier) -> dict[str, Any]:
    import textkernels

    return {
        "format": FORMAT,
        "version": textkernels.__version__,
        "parameters": {name: _plain(getattr(classifier, name)) for name in PARAMETERS},
        "architecture": classifier.architecture_.to_toml(),
        "encoder": classifier.encoder_.config(),
        "classes": [_plain(name) for name in classifier.classes_],
        "classes_dtype": classifier.classes_.dtype.str,
        "class_shares": classifier.class_shares_.tolist(),
        "residual_variance": classifier.residual_variance_,
        "longest": int(classifier.longest_),
        "n_train": classifier.n_train_,
        "fit_report": classifier.fit_report_,
    }


def _restore(config: dict[str, Any], latent: dict[str, Any], encoder: dict[str, Any]) -> KernelClassifier:
    from embeddings import restore_encoder
    from textkernels.architecture import Architecture
    from textkernels.classifier import KernelClassifier
    from textkernels.engines import choose_kernel
    from textkernels.latent import LatentModel

    architecture = Architecture.from_toml(config["architecture"])
    fitted = restore_encoder(config["encoder"], encoder)
    classifier = KernelClassifier(embedding=fitted, architecture=architecture, **config["parameters"])
    classifier.architecture_ = architecture
    classifier.encoder_ = fitted
    kernel = choose_kernel(architecture, classifier.engine)
    classifier.latent_ = LatentModel.from_arrays(kernel, classifier.kernel == "ntk", latent)
    classifier.classes_ = np.array(config["classes"], dtype=np.dtype(config["classes_dtype"]))
    classifier.class_shares_ = np.array(config["class_shares"])
    classifier.residual_variance_ = config["residual_variance"]
    classifier.longest_ = config["longest"]
    classifier.n_train_ = config["n_train"]
    classifier.text_hashes_ = latent.get(HASHES)
    classifier.fit_report_ = config["fit_report"]
    return classifier


def _read(path: Path) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error}); it is missing or damaged, fit the model again") from None


def _contiguous(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The format stores memory as it lies: views and transposed arrays must become plain ones first."""
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
