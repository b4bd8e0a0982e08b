"""Figures of a comparison: learning curves, and a ranking in the style of critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textkernels.experiments.plot import COLORS, MARKERS, MUTED, drawing

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
        figure.axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=8.5)
    return figure.svg


def _draw(axes: object, curve: Curve, shift: float) -> None:
    color = MUTED if curve.color is None else COLORS[curve.color % len(COLORS)]
    marker = "" if curve.color is None else MARKERS[curve.color % len(MARKERS)]
    x, y = [shift * size for size, *_ in curve.points], [value for _, value, *_ in curve.points]
    line = {"color": color, "linewidth": 1.6}
    axes.plot(  # type: ignore[attr-defined]
        x, y, STYLES[curve.style % 4], marker=marker, markersize=5, label=_shortened(curve.name), **line
    )
    for at, (_, _, low, high) in zip(x, curve.points, strict=True):
        if low is not None and high is not None:
            axes.plot([at, at], [low, high], **line | {"linewidth": 1.2})  # type: ignore[attr-defined]


def ranking_plot(
    rows: Sequence[tuple[str, float, float | None, float | None, int | None]],
    groups: Sequence[tuple[int, int]],
    axis: str,
) -> str:
    """Contenders from best to worst, and bars beside those that cannot be told apart.

    Args:
        rows: (name, value, lower, upper, color) of each, the best first; color None is gray.
        groups: first and last row of each bar.
        axis: what the values are.

    Returns: SVG.
    """
    from matplotlib.ticker import FuncFormatter

    with drawing(7.0, 0.75 + 0.27 * len(rows)) as figure:
        axes = figure.axes[0]
        for place, (_, value, low, high, color) in enumerate(rows):
            ink = MUTED if color is None else COLORS[color % len(COLORS)]
            marker = "o" if color is None else MARKERS[color % len(MARKERS)]
            if low is not None and high is not None:
                axes.plot([low, high], [place, place], color=ink, linewidth=1.8, solid_capstyle="butt")
            axes.plot(value, place, marker, color=ink, markersize=6)
        for order, (first, last) in enumerate(groups):
            at = 1.02 + 0.025 * order
            axes.plot(
                [at, at],
                [first - 0.3, last + 0.3],
                transform=axes.get_yaxis_transform(),
                color="#1d2a33",
                linewidth=3,
                solid_capstyle="butt",
                clip_on=False,
            )
        axes.set_yticks(range(len(rows)), [_shortened(name) for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
        axes.set_xlabel(axis)
    return figure.svg


def _shortened(name: str) -> str:
    """The end of a long name, which is what tells paths apart."""
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]
