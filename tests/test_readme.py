"""What the README shows works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from samples import LABELS, TEXTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_example_runs(tmp_path) -> None:
    assert blocks("python")
    for block in blocks("python"):
        result = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert "no_known_tokens" in result.stdout or "empty" in result.stdout
    assert (tmp_path / "reviews.model" / "config.json").is_file()


def test_the_example_of_the_primer_runs_and_shows_what_it_says(tmp_path) -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "primer.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    rows = [[float(entry) for entry in re.findall(r"[0-9.]+", line)] for line in result.stdout.splitlines()]
    gap, struct, cnn = (np.array(rows[start : start + 4]) for start in (1, 6, 11))
    assert gap[0, 1] == 1 > cnn[0, 1]
    assert struct[0, 2] != struct[1, 2]
    assert all(kernel[3, :3].max() < kernel[:3, :3].min() for kernel in (gap, struct, cnn))


def test_the_commands_run_in_the_order_shown(tmp_path) -> None:
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True))
    for name in ("reviews.csv", "held-out.csv", "new.csv"):
        (tmp_path / name).write_text("text,label\n" + rows)
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("textkernels ")]
    assert {line.split()[1] for line in lines} == {"fit", "evaluate", "score", "app"}
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for line in lines:
        arguments = shlex.split(line)[1:]
        if arguments[0] == "app":
            arguments = ["app", "--help"]
        command = [sys.executable, "-m", "textkernels", *arguments]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, f"{line}\n{result.stderr}"
    assert (tmp_path / "scored.parquet").is_file()


@pytest.mark.parametrize(
    "page", [README, *(p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_every_file_named_in_a_link_exists(page) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (ROOT / target).exists() or (ROOT / "docs" / target).exists(), target


def test_every_folder_in_the_map_exists() -> None:
    for name in re.findall(r"^\| `([^`]+)`", README, flags=re.MULTILINE):
        assert (ROOT / name).exists(), name
