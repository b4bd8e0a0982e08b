"""A fitted model as a folder: config.json and safetensors files, never pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from textkernels.classifier import KernelClassifier

FORMAT = 3
# Format 2 has one residual variance for texts of every length.
READABLE = (2, FORMAT)
CONFIG, LATENT, ENCODER = "config.json", "latent.safetensors", "encoder.safetensors"
# In the order in which they take their places: a folder without config.json is no model.
FILES = (LATENT, ENCODER, CONFIG)
# Keys that together are in no other program's config.json.
MARKS = {"format", "version", "parameters", "architecture", "encoder", "classes"}
# Folder inside the model's that holds a new one until it is complete; an interrupted process may leave it.
SCRATCH = ".textkernels-saving-"
# Name of an array beside the latent model's own; models written before it existed lack it.
HASHES = "texts.hashes"
_MEND = "bring back the file as it was, or fit the model again"


def save(classifier: KernelClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a folder; links are followed.

    An older model there is replaced when the new one is complete, and no other file is ever removed. A process that
    is killed in the moment of the replacement leaves a folder that :func:`load` refuses, never a mixture of two models.

    Raises:
        ValueError: a path that holds something else or cannot be written to.
    """
    target = check_target(folder)
    new = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=target))
    try:
        _write(classifier, scratch)
        for name in FILES:
            os.replace(scratch / name, target / name)
        scratch.rmdir()
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        if new:
            with suppress(OSError):
                target.rmdir()
        raise


def check_target(folder: str | os.PathLike[str]) -> Path:
    """The place of a model with all links followed: a new path, an empty folder, or one with an older model alone.

    Raises:
        ValueError: anything else stands there, or it cannot be written to; call this before a long fit.
    """
    path, target = Path(folder), Path(os.path.realpath(folder))
    if not os.fspath(folder):
        raise ValueError("expected the name of a folder for the model, got an empty one")
    wanted = f"{path}: expected a new folder or one with a textkernels model"
    if target.is_symlink():
        raise ValueError(f"{wanted}, got a link that leads back to itself")
    if target.is_dir() and (others := _others(target)):
        shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        raise ValueError(f"{wanted} and nothing else, but something else is there ({shown}); give another name")
    existing = next(place for place in (target, *target.parents) if place.exists())
    if target.exists() and not target.is_dir():
        raise ValueError(f"{wanted}, got a file; give another name")
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"{path}: expected a place that can be written to, but {existing} cannot")
    return target


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a model that :func:`save` wrote, of this format or an older one."""
    try:
        config = json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and set(config) >= MARKS


def load(folder: str | os.PathLike[str]) -> KernelClassifier:
    """Read a classifier that :func:`save` wrote; its predictions are the same.

    Every file is compared with its SHA-256 in config.json. Of config.json itself only the place of a token encoder's
    folder may have been edited.

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
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path / CONFIG}: not valid JSON ({error}); fit the model again") from None
    if not isinstance(config, dict) or config.get("format") not in READABLE:
        found = config.get("format") if isinstance(config, dict) else None
        raise ValueError(
            f"{path}: expected model format {FORMAT}, got {found!r}; use the version that wrote it, or refit"
        )
    try:
        _check_sums(path, config)
        return _restore(config, _read(path / LATENT), _read(path / ENCODER))
    except KeyError as error:
        raise ValueError(f"{path}: the model lacks {error}; it is incomplete, fit it again") from None
    except (TypeError, AttributeError, IndexError) as error:
        # Checksums that were edited along with the rest.
        raise ValueError(f"{path / CONFIG}: damaged ({error}); {_MEND}") from None


def _write(classifier: KernelClassifier, folder: Path) -> None:
    from safetensors.numpy import save_file

    seen = {} if classifier.text_hashes_ is None else {HASHES: classifier.text_hashes_}
    save_file(_contiguous({**classifier.latent_.arrays(), **seen}), folder / LATENT)
    save_file(_contiguous(classifier.encoder_.arrays()), folder / ENCODER)
    # As it will be read back: tuples are lists, NumPy's numbers plain ones.
    config = json.loads(json.dumps(_config(classifier), default=_plain))
    config["checksums"] = checksums(folder, config)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in (LATENT, ENCODER):
        shutil.copymode(folder / CONFIG, folder / name)  # safetensors leaves its files to their owner alone


def checksums(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of the files of a model in hexadecimal digits; that of config.json is of its content."""
    content = {name: value for name, value in config.items() if name != "checksums"}
    encoder = content.get("encoder")
    if isinstance(encoder, dict) and isinstance(encoder.get("model"), dict):
        # Where a token encoder lies may change, and its files have a checksum of their own.
        content["encoder"] = {**encoder, "model": {**encoder["model"], "source": None}}
    sums = {CONFIG: hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    for name in (LATENT, ENCODER):
        with open(folder / name, "rb") as file:
            sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _check_sums(folder: Path, config: dict[str, Any]) -> None:
    saved = config["checksums"]
    try:
        found = checksums(folder, config)
    except OSError as error:
        raise ValueError(f"{error.filename}: cannot be read ({error.strerror}); it is missing, {_MEND}") from None
    for name, value in found.items():
        if saved[name] != value:
            raise ValueError(f"{folder / name}: damaged or edited since it was saved (its SHA-256 differs); {_MEND}")


def _others(folder: Path) -> list[str]:
    """Names of what is in a folder beside a model's files; all names where there is no model."""
    known = set(FILES) if is_model(folder) else set()
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(SCRATCH)]
    return [entry.name for entry in entries if entry.name not in known or entry.is_dir()]


def _config(classifier: KernelClassifier) -> dict[str, Any]:
    import textkernels

    return {
        "format": FORMAT,
        "version": textkernels.__version__,
        "parameters": classifier.parameters_,
        "architecture": classifier.architecture_.to_toml(),
        "encoder": classifier.encoder_.config(),
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "class_shares": classifier.class_shares_.tolist(),
        "residual_variance": classifier.residual_variance_.to_dict(),
        "longest": classifier.longest_,
        "n_train": classifier.n_train_,
        "fit_report": classifier.fit_report_,
    }


def _restore(config: dict[str, Any], latent: dict[str, Any], encoder: dict[str, Any]) -> KernelClassifier:
    from embeddings import restore_encoder
    from textkernels.architecture import Architecture
    from textkernels.classifier import KernelClassifier
    from textkernels.engines import choose_kernel
    from textkernels.latent import LatentModel
    from textkernels.residual_variance import ResidualVariance

    architecture = Architecture.from_toml(config["architecture"])
    fitted = restore_encoder(config["encoder"], encoder)
    classifier = KernelClassifier(embedding=fitted, architecture=architecture, **config["parameters"])
    classifier.architecture_ = architecture
    classifier.encoder_ = fitted
    classifier.parameters_ = config["parameters"]
    kernel = choose_kernel(architecture, classifier.engine)
    classifier.latent_ = LatentModel.from_arrays(kernel, classifier.kernel == "ntk", latent)
    classifier.classes_ = np.array(config["classes"], dtype=np.dtype(config["classes_dtype"]))
    classifier.class_shares_ = np.array(config["class_shares"], dtype=np.float64)
    if classifier.classes_.shape != classifier.class_shares_.shape or classifier.classes_.ndim != 1:
        raise TypeError("expected lists of classes and of their shares, of equal length")
    read = ResidualVariance.constant if config["format"] == 2 else ResidualVariance.from_dict
    classifier.residual_variance_ = read(config["residual_variance"])
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
    """What JSON has no type for: NumPy's numbers, which callers may give for any option, and arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"expected a plain value in a model's configuration, got {type(value).__name__}")
