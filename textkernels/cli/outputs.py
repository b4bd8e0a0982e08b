"""What commands write: refused before any computing where it would replace or mix with something else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

# Options whose folder is read by sub-folders of texts; files beside those are not read.
_DATA = ("DATA", "--train", "--test")

Paths = Mapping[str, str | None]


def check_outputs(
    *,
    inputs: Mapping[str, str | Iterable[str] | None],
    tables: Paths | None = None,
    charts: Paths | None = None,
    files: Paths | None = None,
    folders: Paths | None = None,
    model: str | None = None,
) -> None:
    """Check all places that a command writes to, before anything is read or computed.

    Args:
        inputs: option -> what it names; values that are no path (bundled:imdb, names of embeddings) do no harm.
        tables: option -> table to write, csv and so on by its suffix; None where the option is not given. The same for
        charts: .svg or .html,
        files: of any suffix, and
        folders: of a model or report; these check their content themselves.
        model: folder of the model that the command reads.

    Raises:
        ValueError: a file that cannot be written, would replace an input or another output, or lies in a folder of an
            input, of a model or of another output; the message names the option.
    """
    read = [(option, path) for option, value in inputs.items() for path in _paths(option, value)]
    made = _given(folders)
    written = {**_given(tables), **_given(charts), **_given(files)}
    _check_files(_given(tables), _given(charts), _given(files))
    for option, path in (written | made).items():
        for name, source in read:
            _check_against_input(option, path, name, source, option in made)
        _check_no_model(option, path)
        if model is not None and _inside(path, model):
            raise ValueError(f"{path}: {option} lies in the folder of --model; give another place")
    for (first, one), (second, other) in combinations((written | made).items(), 2):
        if _same(one, other) or _inside(one, other) or _inside(other, one):
            raise ValueError(f"{one}: {first} and {second} name the same place; give another name for one of them")


def check_report_folder(folder: str) -> None:
    """Raise ValueError unless a report can go to a folder: a new or empty one, or one with an earlier report alone."""
    from textkernels.experiments.report import REPORT_FILES, check_folder
    from textkernels.persistence import is_model

    check_folder(folder)
    path = Path(folder)
    if is_model(path):
        raise ValueError(f"{path}: expected a folder for the report, got one with a model; give another name")
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")] if path.is_dir() else []
    others = [e.name for e in entries if e.name not in (*REPORT_FILES, "finished") and e.suffix != ".svg"]
    if entries and not others and not _holds_report(path):
        others = [entry.name for entry in entries]
    if others:
        shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        raise ValueError(
            f"{path}: expected a new folder, or one with an earlier report alone, but something else is there "
            f"({shown}); give another name"
        )


def _holds_report(folder: Path) -> bool:
    """Whether a run of ours has been there: finished parts, or results with their provenance."""
    if (folder / "finished").is_dir():
        return True
    try:
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(results, dict) and {"rows", "provenance"} <= set(results)


def _given(paths: Paths | None) -> dict[str, str]:
    return {option: path for option, path in (paths or {}).items() if path is not None}


def _paths(option: str, value: str | Iterable[str] | None) -> list[str]:
    """Files and folders that the value of an option names: of embeddings joined by + each."""
    values = [] if value is None else [value] if isinstance(value, str) else list(value)
    joined = [part for text in values for part in text.split("+")] if option.startswith("--embedding") else []
    return [path for path in dict.fromkeys([*values, *joined]) if path == "-" or os.path.exists(path)]


def _check_files(tables: Mapping[str, str], charts: Mapping[str, str], files: Mapping[str, str]) -> None:
    from textkernels.tables import check_place, check_writable

    for path in tables.values():
        check_writable(path)
    for path in (*charts.values(), *files.values()):
        check_place(path)
    if charts:
        from textkernels.experiments.plot import check_chart

        for path in charts.values():
            check_chart(path)


def _check_against_input(option: str, path: str, name: str, source: str, folder: bool) -> None:
    if _same(path, source) or (source == "-" and _is_standard_input(path)):
        raise ValueError(f"{path}: {option} would replace {name}; give another name")
    if folder and _inside(source, path):
        raise ValueError(f"{path}: the folder of {option} holds {name} ({source}); give another name")
    beside = name in _DATA and not folder and _same(Path(path).absolute().parent, source)
    if _inside(path, source) and not beside:
        raise ValueError(f"{path}: {option} lies in the folder of {name}, which is read; give another place")


def _check_no_model(option: str, path: str) -> None:
    from textkernels.persistence import is_model

    holder = next((place for place in Path(os.path.realpath(path)).parents if is_model(place)), None)
    if holder is not None:
        raise ValueError(f"{path}: {option} lies in {holder}, which holds a model; give another place")


def _same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths name one place, by whatever spelling or link."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, at any depth."""
    return any(_same(parent, folder) for parent in Path(os.path.realpath(path)).parents)


def _is_standard_input(path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(0), os.stat(path))
    except OSError:
        return False
