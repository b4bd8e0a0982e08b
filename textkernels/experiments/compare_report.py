"""The report of a comparison of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textkernels.experiments.compare import Comparison
from textkernels.experiments.compare_records import peak_bytes
from textkernels.experiments.comparison_plot import Curve, learning_curves, ranking_plot
from textkernels.experiments.contender import KERNEL_NAMES, Contender, short_names
from textkernels.experiments.paired import Estimate
from textkernels.experiments.provenance import provenance_rows
from textkernels.experiments.ranking import Pair, Ranking, listed, points, verdict
from textkernels.experiments.report import Block, Code, Figure, Grid, Report, Section, duration, percent
from textkernels.experiments.scores import Score

PAIR_METHOD = (
    "Differences are taken text by text and draw by draw. Their intervals (95 %) and p-values count training draws and "
    "test texts as crossed random effects, with Student's t and more variance between draws that share texts (Nadeau "
    "and Bengio, 2003); a difference counts as told apart if its p-value is below 0.05 after Holm's correction for "
    "all pairs of rows of the same number of labels, baselines included."
)


def compare_report(
    comparison: Comparison,
    scores: Mapping[int, Sequence[Score]],
    rankings: Sequence[Ranking],
    origin: Mapping[str, Any],
    counts: Mapping[str, int],
) -> Report:
    """The report for people.

    Args:
        comparison: after its run.
        scores: from ``scores.score``.
        rankings: of the sizes that have scores.
        origin: from ``provenance``.
        counts: numbers about the data by name.
    """
    names = short_names(comparison.contenders)
    several = len(comparison.embeddings) > 1
    report = Report(f"Comparison of {'embeddings' if several else 'candidates'}")
    report.sections = [
        Section(
            f"Which {'embedding' if several else 'candidate'} is better?",
            [
                _lead(comparison),
                *_failures(comparison),
                verdict_grid(comparison, rankings),
                *_curves(comparison, scores),
            ],
        ),
        Section("Scores", _score_blocks(comparison, scores, names)),
        Section("Can they be told apart?", _ranking_blocks(comparison, rankings, names)),
        Section("What they cost", _cost_blocks(comparison, scores)),
        Section("Data", [_data_text(comparison), Grid(["rows", "count"], [[k, f"{n:,}"] for k, n in counts.items()])]),
        Section("How it was made", [Code(origin["command"]), Grid(["what", "value"], provenance_rows(origin))]),
    ]
    return report


def _lead(comparison: Comparison) -> str:
    splits = comparison.splits
    sizes = listed([f"{size:,}" for size in splits.sizes])
    draws = f"{len(splits.seeds)} draws of each number" if len(splits.seeds) > 1 else "one draw of each number"
    return (
        f"Every candidate was fitted to {sizes} labels, {draws}, and tested on the same {len(splits.test):,} texts. "
        "diag_reg and the scale of the probabilities are chosen by leave-one-out inside the training texts of each "
        "draw. What follows holds for these vectors: training them again with another seed is no part of the intervals."
    )


def _failures(comparison: Comparison) -> list[Block]:
    reasons = failure_reasons(comparison)
    if not reasons:
        return []
    rows = [[what, reason] for reason, what in reasons.items()]
    text = "These failed, in all draws or in some; where a draw failed there are no scores for that number of labels."
    return [text, Grid(["what", "why"], rows)]


def failure_reasons(comparison: Comparison) -> dict[str, str]:
    """Reason -> what failed for it: an embedding, or one network with it."""
    found: dict[str, list[Contender]] = {}
    for contender, reason in comparison.failures.items():
        found.setdefault(reason, []).append(contender)
    every = len(comparison.architectures) * len(comparison.kernels)
    return {
        reason: members[0].embedding
        if len(members) == every and len({member.embedding for member in members}) == 1
        else listed([", ".join(member.parts) for member in members])
        for reason, members in found.items()
    }


def verdict_grid(comparison: Comparison, rankings: Sequence[Ranking]) -> Grid:
    """One sentence a number of labels, architecture and kernel on its embeddings, or on all candidates."""
    if len(comparison.embeddings) == 1:
        names = short_names([c for c in comparison.contenders if not c.is_baseline])
        rows = [[f"{ranking.size:,}", _sentence(ranking, names)] for ranking in rankings]
        return Grid(["labels", "what can be said"], rows)
    rows = []
    for ranking in rankings:
        for architecture in comparison.architectures:
            for kernel in comparison.kernels:
                names = {Contender(e, architecture, kernel): e for e in comparison.embeddings}
                kind = f"{architecture}, {KERNEL_NAMES[kernel]}"
                rows.append([f"{ranking.size:,}", kind, _sentence(ranking, names)])
    return Grid(["labels", "network", "what can be said"], rows)


def _sentence(ranking: Ranking, names: Mapping[Contender, str]) -> str:
    present = {contender: names[contender] for contender in ranking.order if contender in names}
    if len(present) < 2:
        return f"Only {next(iter(present.values()))} has scores." if present else "There are no scores."
    return verdict(ranking, present)


def _curves(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Block]:
    if not any(scores.values()):
        return []
    figures: list[Block] = []
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


def _score_blocks(
    comparison: Comparison, scores: Mapping[int, Sequence[Score]], names: Mapping[Contender, str]
) -> list[Block]:
    many = len(comparison.splits.seeds) > 1
    blocks: list[Block] = [
        "Means over training draws"
        + (", with 95 % intervals over them (the test texts as they are)." if many else "; one draw has no intervals.")
        + " ECE is the expected calibration error in 15 bins."
    ]
    header = ["labels", "candidate", "accuracy", "macro F1", "log loss", "Brier", "ECE", "diag_reg"]
    rows = []
    for size, part in scores.items():
        for score in part:
            found = score.estimates
            rows.append(
                [
                    f"{size:,}",
                    names[score.contender],
                    _percentage(found["accuracy"]),
                    _number(found["macro_f1"]),
                    _number(found["log_loss"]),
                    _number(found["brier"]),
                    _percentage(found["ece"]),
                    _choices(score),
                ]
            )
    return [*blocks, Grid(header, rows)]


def _percentage(estimate: Estimate) -> str:
    text = percent(estimate.mean)
    return text if estimate.interval is None else f"{text} ±{100 * (estimate.high - estimate.mean):.2f}"


def _number(estimate: Estimate) -> str:
    text = f"{estimate.mean:.4f}"
    return text if estimate.interval is None else f"{text} ±{estimate.high - estimate.mean:.4f}"


def _choices(score: Score) -> str:
    """The regularizers chosen in the draws, the smallest first."""
    found = sorted({fact["diag_reg"] for fact in score.facts if "diag_reg" in fact})
    return "–" if not found else f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}"


def _ranking_blocks(comparison: Comparison, rankings: Sequence[Ranking], names: Mapping[Contender, str]) -> list[Block]:
    blocks: list[Block] = [PAIR_METHOD]
    if len(comparison.splits.seeds) < 2:
        blocks.append("With one draw of training texts the intervals cover the drawing of the test texts alone.")
    embeddings = list(comparison.embeddings)
    for ranking in rankings:
        rows = []
        for score in ranking.scores:
            contender = score.contender
            color = None if contender.is_baseline else embeddings.index(contender.embedding)
            rows.append((names[contender], *_ends(score.estimates["accuracy"]), color))
        svg = ranking_plot(rows, ranking.groups(), f"test accuracy with {ranking.size:,} labels")
        caption = f"With {ranking.size:,} labels. Rows along one black bar cannot be told apart."
        blocks.append(Figure(f"ranking-{ranking.size}", svg, caption))
    shown = [pair for ranking in rankings for pair in ranking.pairs.values() if _worth_showing(pair)]
    text = "Pairs that differ in one thing, and candidates against TF-IDF; results.json has all pairs."
    return [*blocks, text, _pair_grid(shown, names)]


def _worth_showing(pair: Pair) -> bool:
    baseline = next((c for c in (pair.first, pair.second) if c.is_baseline), None)
    if baseline is None:
        return pair.first.differs_in_one(pair.second)
    both = pair.first.is_baseline and pair.second.is_baseline
    return not both and baseline.embedding.startswith("TF-IDF")


def _pair_grid(pairs: Sequence[Pair], names: Mapping[Contender, str]) -> Grid:
    header = ["labels", "ahead", "behind", "accuracy, points", "interval", "p (Holm)", "log loss", "interval"]
    rows = [
        [
            f"{pair.size:,}",
            names[pair.first],
            names[pair.second],
            points(pair.accuracy),
            _interval(pair.accuracy, 100, 2),
            _probability(pair.accuracy_p),
            f"{pair.log_loss.mean:+.4f}",
            _interval(pair.log_loss, 1, 4),
            "identical" if pair.identical else "yes" if pair.apart else "cannot be told",
        ]
        for pair in pairs
    ]
    return Grid([*header, "different?"], rows)


def _interval(estimate: Estimate, factor: float, digits: int) -> str:
    if estimate.interval is None:
        return "–"
    low, high = (factor * end for end in estimate.interval)
    return f"{low:+.{digits}f} to {high:+.{digits}f}"


def _probability(value: float) -> str:
    return "0.000…" if value < 0.0005 else f"{value:.3f}"


def _cost_blocks(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Block]:
    largest = comparison.splits.sizes[-1]
    header = ["candidate", "dimensions", "known tokens", "cut texts", "no known token", "load", "encode"]
    header += ["token work", f"kernel, {largest:,}", f"solve, {largest:,}", "peak memory"]
    rows = []
    for contender in comparison.contenders:
        found = [score for part in scores.values() for score in part if score.contender == contender]
        last = next((score for score in found if score.size == largest), None)
        facts, peak = comparison.facts.get(contender, {}), peak_bytes(comparison, contender, found)
        rows.append(
            [
                ", ".join(contender.parts),
                str(facts.get("dim", "–")),
                percent(facts.get("coverage"), 1),
                _count(facts.get("truncated")),
                _count(facts["unusable_train"] + facts["unusable_test"] if facts else None),
                *(_seconds(facts.get(f"{stage}_seconds")) for stage in ("load", "encode", "token")),
                *(_seconds(last.mean_fact(f"{stage}_seconds") if last else None) for stage in ("kernel", "solve")),
                "–" if peak is None else f"{peak / 2**30:.1f} GiB",
            ]
        )
    texts = len(comparison.splits.texts)
    text = (
        f"Load is everything until texts can be encoded: reading or training vectors and setting their scale, less if "
        f"the user's cache has them. Encode and token work are for the {texts:,} texts in any draw or the test, kernel "
        f"and solve for one fit to {largest:,} labels and the test rows. Memory is that of the whole process."
    )
    return [text, Grid(header, rows)]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else duration(value) if value >= 0.95 else f"{1000 * value:.0f} ms"


def _data_text(comparison: Comparison) -> str:
    splits = comparison.splits
    classes = ", ".join(
        f"{name} {100 * float((splits.test.codes == code).mean()):.1f} %" for code, name in enumerate(splits.names)
    )
    return (
        f"Training texts come from {splits.pool.dataset.name}, test texts from {splits.test.dataset.name} ({classes}). "
        "Classes keep their shares in every draw, and the draws of one seed lie in each other. No training text, and "
        "no text that word vectors learned from, is among the test texts."
    )
