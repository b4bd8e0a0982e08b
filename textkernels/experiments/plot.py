"""Figures of reports as SVG texts, drawn by Matplotlib: the same data give the same file."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

# Told apart in color, in gray and by people who see no red or green (Okabe and Ito's colors).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
MARKERS = ("o", "s", "^", "D", "v", "P")
MUTED = "#8fa0ab"

# Text stays text in the file, so that it can be searched and scaled; the salt makes its ids the same every time.
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "textkernels",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "grid.color": "#e6ebee",
    "axes.axisbelow": True,
    "xtick.color": "#46555f",
    "ytick.color": "#46555f",
    "legend.frameon": False,
}


@dataclass
class Drawing:
    """Axes to draw on; ``svg`` is filled in when the block of ``drawing`` ends."""

    axes: list[Axes]
    svg: str = ""


@contextmanager
def drawing(width: float, height: float, columns: int = 1, **settings: Any) -> Iterator[Drawing]:
    """A figure with ``columns`` axes side by side: ``with drawing(6, 3) as figure: figure.axes[0].plot(...)``.

    Args:
        width, height: in inches.
        columns: how many axes.
        **settings: of ``Figure.subplots``, such as ``sharey=True``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        canvas = Figure(figsize=(width, height), layout="constrained")
        result = Drawing(list(canvas.subplots(1, columns, squeeze=False, **settings)[0]))
        yield result
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
        result.svg = buffer.getvalue()


def interval_plot(rows: Mapping[str, Sequence[tuple[str, float, float, float]]], axis: str, share: bool = True) -> str:
    """Points with intervals, one line of text a row, series beside each other.

    Args:
        rows: row -> (series, value, lower, upper) for each of its points.
        axis: what the numbers are.
        share: numbers are shares, shown as percentages.

    Returns: SVG.
    """
    series = list(dict.fromkeys(name for points in rows.values() for name, *_ in points))
    with drawing(6.6, 0.9 + 0.5 * len(rows)) as figure:
        axes = figure.axes[0]
        for place, points in enumerate(rows.values()):
            for name, value, low, high in points:
                order = series.index(name)
                at = place + 0.22 * (order - (len(series) - 1) / 2)
                axes.plot([low, high], [at, at], color=COLORS[order], linewidth=2.2, solid_capstyle="butt")
                first = place == next(i for i, r in enumerate(rows.values()) if any(p[0] == name for p in r))
                label = name if first and len(series) > 1 else None
                axes.plot(value, at, MARKERS[order], color=COLORS[order], markersize=6.5, label=label)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(axis)
        if share:
            axes.xaxis.set_major_formatter(_percent)
        if len(series) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure.svg


def grid_curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], x_axis: str, y_axis: str
) -> str:
    """Shares against a logarithmic grid, one panel beside the other.

    Args:
        panels: title -> line's name -> x and y values; x above 0, y shares.
        x_axis, y_axis: what they are.

    Returns: SVG.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    with drawing(3.3 * len(panels) + 1.5, 3.1, len(panels), sharey=True) as figure:
        for axes, (title, lines) in zip(figure.axes, panels.items(), strict=True):
            for name, (x, y) in lines.items():
                order = names.index(name)
                axes.plot(x, y, color=COLORS[order % 6], marker=MARKERS[order % 6], markersize=4.5, label=name)
            axes.set_xscale("log")
            axes.set_title(title, fontsize=10, loc="left")
            axes.set_xlabel(x_axis)
            axes.yaxis.set_major_formatter(_percent)
        figure.axes[0].set_ylabel(y_axis)
        figure.axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure.svg


def reliability_diagram(table: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """Accuracy against confidence, and how many rows each bin holds.

    Args:
        table: rows of :func:`textkernels.evaluation.reliability`.
        title: above the diagram.

    Returns: SVG. The whiskers are 95 % Wilson intervals of each bin's accuracy.
    """
    from textkernels.experiments.intervals import wilson_interval

    filled = [row for row in table if row["count"]]
    with drawing(6.8, 3.3, 2, width_ratios=(1.25, 1.0)) as figure:
        axes, counts = figure.axes
        lowest = min(row["lower"] for row in filled)
        axes.plot([lowest, 1], [lowest, 1], color=MUTED, linestyle="--", linewidth=1.2, label="as they should be")
        for row in filled:
            low, high = wilson_interval(round(row["accuracy"] * row["count"]), row["count"])
            axes.plot([row["confidence"]] * 2, [low, high], color=COLORS[0], linewidth=1.6)
        x, y = [row["confidence"] for row in filled], [row["accuracy"] for row in filled]
        axes.plot(x, y, MARKERS[0], color=COLORS[0], markersize=5.5)
        axes.legend(loc="lower right", fontsize=8.5)
        axes.set(xlabel="confidence (mean top probability)", ylabel="accuracy", xlim=(lowest - 0.02, 1.02))
        axes.set_title(title, fontsize=10, loc="left")
        counts.bar(
            [row["lower"] for row in table],
            [row["count"] for row in table],
            width=1 / len(table),
            align="edge",
            color=COLORS[4],
            edgecolor="white",
        )
        counts.set(xlabel="confidence", ylabel="rows", xlim=(lowest - 0.02, 1.02))
        axes.xaxis.set_major_formatter(_percent)
        axes.yaxis.set_major_formatter(_percent)
        counts.xaxis.set_major_formatter(_percent)
    return figure.svg


def reliability_lines(table: Sequence[Mapping[str, Any]], width: int = 40) -> list[str]:
    """The same as lines of text: one bin a line, accuracy as a bar, ``|`` where the confidence is.

    Args:
        table: rows of :func:`textkernels.evaluation.reliability`.
        width: characters for 100 %.
    """
    lines = [f"{'confidence':>12} {'accuracy':>9} {'rows':>7}"]
    for row in table:
        if not row["count"]:
            continue
        filled, mark = round(row["accuracy"] * width), min(round(row["confidence"] * width), width - 1)
        bar = "".join("|" if at == mark else "=" if at < filled else " " for at in range(width))
        lines.append(f"{row['confidence']:>12.1%} {row['accuracy']:>9.1%} {row['count']:>7,}  {bar}".rstrip())
    return lines


def check_chart(path: str | os.PathLike[str]) -> None:
    """Fail before the computing if a chart cannot be written there.

    Raises:
        ValueError: another suffix than .svg or .html, or no such folder.
    """
    target = Path(path)
    if target.suffix.lower() not in (".svg", ".html"):
        raise ValueError(f"{target}: expected a name that ends in .svg or .html")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{target}: there is no folder {target.parent}; make it first")


def write_chart(path: str | os.PathLike[str], svg: str) -> None:
    """Write a drawing as .svg, or as a page around it for .html."""
    from textkernels.tables import write_whole

    content = svg
    if Path(path).suffix.lower() == ".html":
        drawing = svg[svg.index("<svg") :]
        content = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"></head><body>{drawing}</body></html>\n'
    with write_whole(path) as file:
        file.write(content.encode())


def _percent(value: float, _: float) -> str:
    return f"{100 * value:.4g} %"
