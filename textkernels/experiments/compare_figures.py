"""The figures in the report of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textkernels.experiments.compare import Comparison
from textkernels.experiments.comparison_plot import Curve, RankedRow, learning_curves, ranking_plot
from textkernels.experiments.contender import KERNEL_NAMES, short_names
from textkernels.experiments.contests import Contest
from textkernels.experiments.paired import Estimate
from textkernels.experiments.report import Figure
from textkernels.experiments.scores import Score


def curve_figures(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Figure]:
    """Learning curves of accuracy and of log loss, one panel a kernel; none without scores."""
    if not any(scores.values()):
        return []
    figures = []
    for metric, axis, share in (("accuracy", "test accuracy", True), ("log_loss", "log loss", False)):
        panels = {KERNEL_NAMES[kernel]: _panel(comparison, scores, kernel, metric) for kernel in comparison.kernels}
        caption = f"{axis.capitalize()} by number of labels, with 95 % intervals over training draws."
        figures.append(Figure(f"curves-{metric.replace('_', '-')}", learning_curves(panels, axis, share), caption))
    return figures


def _panel(comparison: Comparison, scores: Mapping[int, Sequence[Score]], kernel: str, metric: str) -> list[Curve]:
    shown = [c for c in comparison.contenders if c.kernel == kernel or c.is_baseline]
    candidates = [c for c in shown if not c.is_baseline]
    names = short_names(candidates) | {c: c.embedding for c in shown if c.is_baseline}
    curves = []
    for place, contender in enumerate([*candidates, *(c for c in shown if c.is_baseline)]):
        found = [score for part in scores.values() for score in part if score.contender == contender]
        line = [(score.size, *_ends(score.estimates[metric])) for score in found]
        color = None if contender.is_baseline else list(comparison.embeddings).index(contender.embedding)
        architectures = list(comparison.architectures)
        style = place - len(candidates) + 1 if color is None else architectures.index(contender.architecture or "")
        curves.append(Curve(names[contender], color, style, line))
    return curves


def _ends(estimate: Estimate) -> tuple[float, float | None, float | None]:
    low, high = estimate.interval or (None, None)
    return estimate.mean, low, high


def ranking_figures(comparison: Comparison, contests: Sequence[Contest]) -> dict[str, Figure]:
    """By network, its embeddings and TF-IDF at every size, and who cannot be told apart; none without scores."""
    figures = {}
    for number, common in enumerate(dict.fromkeys(contest.common for contest in contests), start=1):
        ranked = [contest for contest in contests if contest.common == common and contest.ranking is not None]
        if ranked:
            caption = f"{common}. Rows along one black bar cannot be told apart; lines are intervals over draws."
            figures[common] = Figure(f"ranking-{number}", _ranking_svg(comparison, ranked), caption)
    return figures


def _ranking_svg(comparison: Comparison, contests: Sequence[Contest]) -> str:
    colors = {name: place for place, name in enumerate(comparison.embeddings)}
    blocks = {}
    for contest in contests:
        assert contest.ranking is not None
        rows = [
            RankedRow(
                score.contender.embedding,
                *_ends(score.estimates["accuracy"]),
                None if score.contender.is_baseline else colors[score.contender.embedding],
            )
            for score in contest.ranking.scores
        ]
        blocks[f"{contest.size:,} labels"] = rows, contest.ranking.groups()
    return ranking_plot(blocks, "test accuracy")
