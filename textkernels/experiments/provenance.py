"""Where a result comes from: the command, seeds, data, vectors, versions and the machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from textkernels.processors import count_processors

if TYPE_CHECKING:
    from textkernels.experiments.labelled import LabelledTexts

PACKAGES = ("textkernels", "numpy", "scipy", "numba", "jax", "gensim", "onnxruntime", "pandas", "scikit-learn")
_CHECKSUMS = {"sha256": "SHA-256", "file_sha256": "SHA-256 of the file"}


def provenance(
    command: str, seeds: Mapping[str, int], texts: Mapping[str, LabelledTexts], encoders: Mapping[str, Any]
) -> dict[str, Any]:
    """Plain values for results.json; ``provenance_rows`` lays them out for the report.

    Args:
        command: as typed.
        seeds: name -> seed.
        texts: role (such as training) -> the rows in use.
        encoders: name -> fitted encoder.
    """
    return {
        "command": command,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "seeds": dict(seeds),
        "data": {role: texts_origin(rows) for role, rows in texts.items()},
        "vectors": {name: encoder_origin(encoder) for name, encoder in encoders.items()},
        "environment": environment(),
    }


def texts_origin(rows: LabelledTexts) -> dict[str, Any]:
    """Name of the source, number of rows in use, SHA-256 of the whole source and of the rows in use."""
    source = rows.dataset
    return {"name": source.name, "rows": len(rows), "sha256": source.checksum, "rows_sha256": rows.checksum}


def encoder_origin(encoder: Any) -> dict[str, Any]:
    """How texts became vectors, with the SHA-256 of the table or model, from ``config()`` of a fitted encoder.

    Of several encoders as one, ``parts`` has the same by name.
    """
    return _config_origin(encoder.config())


def _config_origin(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key not in ("format", "kind", "vectors", "model", "parts")}
    vectors, model = dict(config.get("vectors") or {}), dict(config.get("model") or {})
    kept |= {key: vectors[key] for key in ("n_words", "dim", "training") if vectors.get(key) is not None}
    kept |= {key: model[key] for key in ("source", "dim") if key in model}
    if "parts" in config:
        kept["parts"] = {part["name"]: _config_origin(part) for part in config["parts"]}
    checksum = vectors.get("checksum") or model.get("checksum") or ""
    report = vectors.get("report") or {}
    return kept | {"sha256": checksum, "file_sha256": report.get("checksum", "")}


def environment() -> dict[str, Any]:
    """Versions of packages and linear algebra, and the machine's size."""
    import psutil

    return {
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "linear_algebra": _linear_algebra(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processors": count_processors(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def provenance_rows(origin: Mapping[str, Any]) -> list[list[str]]:
    """Two columns, what and value, for a table in the report."""
    machine = origin["environment"]
    rows = [["written", origin["written"]]]
    rows += [[f"seed of {name}", str(seed)] for name, seed in origin["seeds"].items()]
    for role, data in origin["data"].items():
        rows.append([f"{role} data", f"{data['name']}, SHA-256 {data['sha256']}"])
        rows.append([f"{role} rows in use", f"{data['rows']:,}, SHA-256 {data['rows_sha256']}"])
    for name, vectors in origin["vectors"].items():
        rows += _vector_rows(name, vectors)
    rows.append(["versions", ", ".join([f"Python {machine['python']}", *map(" ".join, machine["packages"].items())])])
    rows.append(["linear algebra", machine["linear_algebra"]])
    size = f"{machine['processors']} processors, {machine['memory_gib']} GiB"
    return [*rows, ["machine", f"{machine['system']}, {machine['processor']}, {size}"]]


def _vector_rows(name: str, vectors: Mapping[str, Any]) -> list[list[str]]:
    parts = {key: value for key, value in vectors.items() if key not in ("name", "sha256", "file_sha256")}
    details = [f"{key} {value}" for key, value in parts.items() if not isinstance(value, dict | list)]
    details += [f"{title} {vectors[key]}" for key, title in _CHECKSUMS.items() if vectors[key]]
    rows = [[f"vectors {name}", ", ".join(details)]]
    if vectors.get("training"):
        rows.append([f"training of {name}", ", ".join(f"{k} {v}" for k, v in vectors["training"].items())])
    for part, own in (vectors.get("parts") or {}).items():
        rows += _vector_rows(f"{name}, {part}", own)
    return rows


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _linear_algebra() -> str:
    from threadpoolctl import threadpool_info

    found = {
        f"{pool['internal_api']} {pool.get('version') or ''} ({pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return ", ".join(sorted(found)) or "unknown"


def _processor() -> str:
    if sys.platform == "linux" and os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or "unknown processor"
