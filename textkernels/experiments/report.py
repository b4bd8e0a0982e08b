"""Reports: report.md, report.html (one file, figures inside), results.csv and results.json in one folder."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from textkernels.tables import write_table, write_whole

REPORT_FILES = ("report.md", "report.html", "results.csv", "results.json")

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2a33; }
body { max-width: 72rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid #dde3e7; overflow-wrap: break-word; }
th { border-bottom: 2px solid #8fa0ab; }
.number { text-align: right; white-space: nowrap; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #566975; } p, figcaption { max-width: 52rem; }
pre { background: #f3f6f8; padding: .7rem 1rem; overflow-x: auto; font-size: .85rem; }
"""


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Args:
        header: one name a column.
        rows: one text a column each.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A figure.

    Args:
        name: of its file beside report.md, without the ending.
        svg: the drawing, from :mod:`textkernels.experiments.plot`.
        caption: what it shows, for readers and for those who cannot see it.
    """

    name: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Code:
    """Text to be shown as it is, such as a command."""

    text: str


Block = str | Grid | Figure | Code


@dataclass
class Section:
    """A heading and what stands under it: paragraphs (texts), Grid, Figure and Code in order."""

    title: str
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Report:
    """A title and sections, written as Markdown and as HTML."""

    title: str
    sections: list[Section] = field(default_factory=list)

    def to_markdown(self) -> str:
        """GitHub's Markdown; figures are links to files beside it."""
        parts = [f"# {self.title}"]
        for section in self.sections:
            parts.append(f"## {section.title}")
            parts += [_MARKDOWN[type(block)](block) for block in section.blocks]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """One page that needs nothing else."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for section in self.sections:
            parts.append(f"<h2>{html.escape(section.title)}</h2>")
            parts += [_HTML[type(block)](block) for block in section.blocks]
        head = f'<meta charset="utf-8"><title>{html.escape(self.title)}</title><style>{_STYLE}</style>'
        head += '<meta name="viewport" content="width=device-width">'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"

    def figures(self) -> list[Figure]:
        """All figures in order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Fail before the computing if a report cannot be written there.

    Raises:
        ValueError: a file stands there, or the place cannot be written to.
    """
    path = Path(folder)
    existing = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(f"{path}: expected a folder that can be written to, but {existing} is none")


def write_report(
    folder: str | os.PathLike[str],
    report: Report,
    records: Sequence[Mapping[str, Any]],
    details: Mapping[str, Any],
) -> None:
    """Write the four files, and one .svg a figure; each is replaced whole.

    Args:
        folder: made if it is not there.
        report: for people.
        records: rows of results.csv, plain values; the first one's keys are the columns.
        details: content of results.json beside ``rows``, which are the records; NaN and infinity become null.
    """
    import pandas as pd

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    rows = [{key: plain_value(value) for key, value in record.items()} for record in records]
    frame = pd.DataFrame({key: pd.Series([row.get(key) for row in rows], dtype=object) for key in rows[0]})
    write_table(frame, target / "results.csv")
    content = {"rows": rows, **{key: plain_value(value) for key, value in details.items()}}
    texts = {"results.json": json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"}
    texts |= {f"{figure.name}.svg": figure.svg for figure in report.figures()}
    texts |= {"report.md": report.to_markdown(), "report.html": report.to_html()}
    for name, text in texts.items():
        with write_whole(target / name) as file:
            file.write(text.encode())


def plain_value(value: Any) -> Any:
    """The same in types that JSON has; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain_value(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def percent(value: float | None, digits: int = 2) -> str:
    """0.8534 as "85.34 %"; an absent value as a dash."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def duration(seconds: float) -> str:
    """Seconds as "4.2 s", "3 min 12 s" or "1 h 4 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _markdown_grid(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "|" + "|".join(" ---: " if number else " --- " for number in _numeric(grid)) + "|"
    return "\n".join([line(grid.header), rule, *map(line, grid.rows)])


def _html_grid(grid: Grid) -> str:
    classes = [' class="number"' if number else "" for number in _numeric(grid)]

    def line(cells: Sequence[str], tag: str) -> str:
        inner = "".join(f"<{tag}{c}>{html.escape(cell)}</{tag}>" for cell, c in zip(cells, classes, strict=True))
        return f"<tr>{inner}</tr>"

    body = "".join(line(row, "td") for row in grid.rows)
    return f'<div class="wide"><table><thead>{line(grid.header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _numeric(grid: Grid) -> list[bool]:
    """Which columns hold numbers (or dashes) in every row, and go to the right."""
    columns = list(zip(*grid.rows, strict=True)) or [()] * len(grid.header)
    return [bool(cells) and all(cell[:1].isdigit() or cell[:1] in "+-−–" for cell in cells) for cells in columns]


def _html_figure(figure: Figure) -> str:
    drawing = figure.svg[figure.svg.index("<svg") :]
    return f"<figure>{drawing}<figcaption>{html.escape(figure.caption)}</figcaption></figure>"


_MARKDOWN: dict[type, Any] = {
    str: lambda text: text,
    Grid: _markdown_grid,
    Figure: lambda figure: f"![{figure.name}]({figure.name}.svg)\n\n{figure.caption}",
    Code: lambda code: f"```\n{code.text}\n```",
}
_HTML: dict[type, Any] = {
    str: lambda text: f"<p>{html.escape(text)}</p>",
    Grid: _html_grid,
    Figure: _html_figure,
    Code: lambda code: f"<pre>{html.escape(code.text)}</pre>",
}
