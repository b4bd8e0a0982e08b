"""The report of a comparison of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textkernels.experiments.compare import Comparison
from textkernels.experiments.compare_figures import curve_figures, ranking_figures
from textkernels.experiments.compare_records import peak_bytes
from textkernels.experiments.contender import Contender, short_names
from textkernels.experiments.contests import Contest, embedding_contests, network_contests
from textkernels.experiments.paired import Estimate
from textkernels.experiments.provenance import provenance_rows
from textkernels.experiments.ranking import Pair, listed, shown_p
from textkernels.experiments.report import Block, Code, Grid, Report, Section, duration, percent
from textkernels.experiments.scores import Score

PAIR_METHOD = (
    "Differences are taken text by text and draw by draw. Their intervals (95 %) and p-values count training draws and "
    "test texts as crossed random effects, with Student's t and more variance between draws that share texts (Nadeau "
    "and Bengio, 2003); two rows count as told apart if the p-value of their difference in accuracy is below 0.05 with "
    "Holm's correction for all pairs of rows of the same network and number of labels, TF-IDF included."
)
PAIR_HEADER = ("labels", "ahead", "behind", "different?", "accuracy, points", "p, Holm", "log loss")


def compare_report(
    comparison: Comparison,
    scores: Mapping[int, Sequence[Score]],
    origin: Mapping[str, Any],
    counts: Mapping[str, int],
) -> Report:
    """The report for people.

    Args:
        comparison: after its run.
        scores: from ``scores.score``.
        origin: from ``provenance``.
        counts: numbers about the data by name.
    """
    embeddings, networks = embedding_contests(comparison, scores), network_contests(comparison, scores)
    what = "embedding" if len(comparison.embeddings) > 1 or not networks else "network"
    lead = [_lead(comparison), *_failures(comparison), verdict_grid(comparison, scores)]
    report = Report(f"Comparison of {what}s")
    report.sections = [
        Section(f"Which {what} is better?", [*lead, *curve_figures(comparison, scores)]),
        Section("Scores", _score_blocks(comparison, scores)),
        Section("Can the embeddings be told apart?", _embedding_blocks(comparison, embeddings)),
        *([Section("Can the networks be told apart?", _network_blocks(networks))] if networks else []),
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


def verdict_grid(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> Grid:
    """One sentence a network and size on the embeddings; with a single embedding, on the networks."""
    contests = network_contests(comparison, scores) if len(comparison.embeddings) == 1 else []
    return _verdicts(contests or embedding_contests(comparison, scores))


def _verdicts(contests: Sequence[Contest]) -> Grid:
    rows = [[contest.common, f"{contest.size:,}", contest.verdict] for contest in contests]
    return Grid(["with", "labels", "what can be said"], rows)


def _score_blocks(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Block]:
    names = short_names(comparison.contenders)
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


def _embedding_blocks(comparison: Comparison, contests: Sequence[Contest]) -> list[Block]:
    blocks: list[Block] = [PAIR_METHOD]
    splits = comparison.splits
    if len(splits.seeds) < 2 or splits.share(splits.sizes[-1]) >= 1:
        blocks.append("With one draw, or draws of all rows there are, intervals cover the drawing of test texts alone.")
    figures = ranking_figures(comparison, contests)
    for common in dict.fromkeys(contest.common for contest in contests):
        if common in figures:
            blocks += [figures[common], _pair_grid([contest for contest in contests if contest.common == common])]
    return blocks


def _network_blocks(contests: Sequence[Contest]) -> list[Block]:
    blocks: list[Block] = ["As above, with Holm's correction for all pairs of networks of one embedding and number."]
    blocks.append(_verdicts(contests))
    for common in dict.fromkeys(contest.common for contest in contests):
        blocks += [f"{common}:", _pair_grid([contest for contest in contests if contest.common == common])]
    return blocks


def _pair_grid(contests: Sequence[Contest]) -> Grid:
    rows = []
    for contest in contests:
        for pair in contest.ranking.pairs.values() if contest.ranking else ():
            names = [contest.names.get(contender, contender.embedding) for contender in (pair.first, pair.second)]
            rows.append([f"{contest.size:,}", *names, *_pair_cells(pair)])
    return Grid(PAIR_HEADER, rows)


def _pair_cells(pair: Pair) -> list[str]:
    return [
        "identical" if pair.identical else "yes" if pair.apart else "cannot be told",
        _interval(pair.accuracy, 100, 2),
        shown_p(pair.accuracy_p).removeprefix("= "),
        _interval(pair.log_loss, 1, 4),
    ]


def _interval(estimate: Estimate, factor: float, digits: int) -> str:
    text = f"{factor * estimate.mean:+.{digits}f}"
    if estimate.interval is None:
        return text
    low, high = (factor * end for end in estimate.interval)
    return f"{text} ({low:+.{digits}f} to {high:+.{digits}f})"


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
        "Load is everything until texts can be encoded: reading or training vectors and setting their scale, less if "
        "the user's cache has them; a contextual encoder reads the training texts there. Encode and token work are for "
        f"the {texts:,} texts in any draw or the test, kernel and solve for one fit to {largest:,} labels and the test "
        "rows. Memory is that of the whole process."
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
