"""Figures of a comparison: learning curves, and a ranking in the style of critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textkernels.experiments.plot import COLORS, MARKERS, MUTED, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", ":", "-.")
LONGEST_NAME = 34


@dataclass(frozen=True)
class Curve:
    """One line of a learning curve.

    Attributes:
        color, style: places in the lists of colors and line styles; None is gray, for a baseline.
        points: (labels, value, lower, upper); both ends None where there is no interval.
    """

    name: str
    color: int | None
    style: int
    points: Sequence[tuple[int, float, float | None, float | None]]


def learning_curves(panels: Mapping[str, Sequence[Curve]], axis: str, share: bool) -> str:
    """A metric against the number of labels, one panel beside the other.

    Args:
        panels: title -> lines.
        axis: the metric.
        share: shown as percentages.

    Returns: SVG. Lines are set apart by up to 4 % of the labels, so that their intervals do not hide each other.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    sizes = sorted({size for curves in panels.values() for curve in curves for size, *_ in curve.points})
    with drawing(3.4 * len(panels) + 2.6, 3.5, len(panels), sharey=True) as figure:
        for axes, (title, curves) in zip(figure.axes, panels.items(), strict=True):
            for place, curve in enumerate(curves):
                shift = 1 + 0.08 * (place / max(len(curves) - 1, 1) - 0.5)
                _draw(axes, curve, shift)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(sizes))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value):,}"))
            axes.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
            axes.set_title(title, fontsize=10, loc="left")
            axes.set_xlabel("labels")
        if share:
            figure.axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
        figure.axes[0].set_ylabel(axis)
        figure.axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=8.5, handlelength=3.2)
    return figure.svg


def _draw(axes: Axes, curve: Curve, shift: float) -> None:
    color = MUTED if curve.color is None else COLORS[curve.color % len(COLORS)]
    marker = "" if curve.color is None else MARKERS[curve.color % len(MARKERS)]
    x, y = [shift * size for size, *_ in curve.points], [value for _, value, *_ in curve.points]
    axes.plot(
        x,
        y,
        STYLES[curve.style % 4],
        color=color,
        marker=marker,
        markersize=5,
        linewidth=1.6,
        label=_shortened(curve.name),
    )
    for at, (_, _, low, high) in zip(x, curve.points, strict=True):
        if low is not None and high is not None:
            axes.plot([at, at], [low, high], color=color, linewidth=1.2)


@dataclass(frozen=True)
class RankedRow:
    """One row of a ranking: ``color`` is a place in the list of colors, None is gray; ends None: no interval."""

    name: str
    value: float
    low: float | None
    high: float | None
    color: int | None


def ranking_plot(blocks: Mapping[str, tuple[Sequence[RankedRow], Sequence[tuple[int, int]]]], axis: str) -> str:
    """Contenders from best to worst, and bars beside those that cannot be told apart.

    Args:
        blocks: heading -> rows, the best first, and first and last row of each bar.
        axis: what the values are.

    Returns: SVG.
    """
    from matplotlib.ticker import FuncFormatter

    lines = sum(len(rows) + 1 for rows, _ in blocks.values())
    with drawing(7.0, 0.7 + 0.25 * lines) as figure:
        axes = figure.axes[0]
        labels: list[str] = []
        for heading, (rows, groups) in blocks.items():
            first = len(labels) + 1
            for place, row in enumerate(rows):
                _draw_row(axes, first + place, row)
            for order, (top, bottom) in enumerate(groups):
                _draw_bar(axes, 1.02 + 0.025 * order, first + top - 0.3, first + bottom + 0.3)
            labels += [heading, *(_shortened(row.name) for row in rows)]
        axes.set_yticks(range(len(labels)), labels)
        for tick, label in zip(axes.get_yticklabels(), labels, strict=True):
            tick.set_fontweight("bold" if label in blocks else "normal")
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
        axes.set_xlabel(axis)
    return figure.svg


def _draw_row(axes: Axes, place: int, row: RankedRow) -> None:
    ink = MUTED if row.color is None else COLORS[row.color % len(COLORS)]
    marker = "o" if row.color is None else MARKERS[row.color % len(MARKERS)]
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [place, place], color=ink, linewidth=1.8, solid_capstyle="butt")
    axes.plot(row.value, place, marker, color=ink, markersize=6)


def _draw_bar(axes: Axes, at: float, top: float, bottom: float) -> None:
    """Beside the axes: x in their width, y in rows."""
    axes.plot(
        [at, at],
        [top, bottom],
        transform=axes.get_yaxis_transform(),
        color="#1d2a33",
        linewidth=3,
        solid_capstyle="butt",
        clip_on=False,
    )


def _shortened(name: str) -> str:
    """The end of a long name, which is what tells paths apart."""
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]
