"""What results.csv and results.json of a comparison hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textkernels.experiments.compare import Comparison
from textkernels.experiments.contender import Contender
from textkernels.experiments.contests import embedding_contests, network_contests
from textkernels.experiments.paired import Estimate
from textkernels.experiments.ranking import Pair
from textkernels.experiments.scores import METRICS, Score


def compare_records(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[dict[str, Any]]:
    """One row a contender and size, plain values; a failed one has the reason and no numbers."""
    found = {(score.contender, score.size): score for part in scores.values() for score in part}
    return [
        _record(comparison, contender, size, found.get((contender, size)))
        for size in comparison.splits.sizes
        for contender in comparison.contenders
    ]


def _record(comparison: Comparison, contender: Contender, size: int, score: Score | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "embedding": contender.embedding,
        "architecture": contender.architecture,
        "kernel": contender.kernel,
        "train_size": size,
        "seeds": len(comparison.splits.seeds),
        "n_test": len(comparison.splits.test),
    }
    for name in METRICS:
        estimate = None if score is None else score.estimates[name]
        ends = (None, None) if estimate is None or estimate.interval is None else estimate.interval
        record |= {name: None if estimate is None else estimate.mean, f"{name}_low": ends[0], f"{name}_high": ends[1]}
    facts = comparison.facts.get(contender, {})
    record |= {name: facts.get(name) for name in ("dim", "coverage", "truncated", "tokens_dropped")}
    record |= {name: facts.get(name) for name in ("unusable_train", "unusable_test")}
    record |= {name: facts.get(name) for name in ("load_seconds", "encode_seconds", "token_seconds")}
    for name in ("kernel_seconds", "solve_seconds"):
        record[name] = None if score is None else score.mean_fact(name)
    peak = peak_bytes(comparison, contender, [] if score is None else [score])
    record["peak_memory_gib"] = None if peak is None else peak / 2**30
    record["error"] = None if score is not None else comparison.failures.get(contender, "not computed")
    return record


def peak_bytes(comparison: Comparison, contender: Contender, scores: Sequence[Score]) -> int | None:
    """The most memory the process held while it worked on a contender."""
    facts = comparison.facts.get(contender, {})
    found = [facts[name] for name in ("load_peak_bytes", "peak_bytes") if name in facts]
    found += [fact["peak_bytes"] for score in scores for fact in score.facts if "peak_bytes" in fact]
    return max(found, default=None)


def compare_details(
    comparison: Comparison,
    scores: Mapping[int, Sequence[Score]],
    origin: Mapping[str, Any],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """What results.json holds beside the rows."""
    splits = comparison.splits
    contests = [*embedding_contests(comparison, scores), *network_contests(comparison, scores)]
    return {
        "experiment": "compare",
        "provenance": origin,
        "data": dict(counts),
        "draws": [{"train_size": draw.size, "seed": draw.seed, "sha256": draw.checksum} for draw in splits.draws],
        "cells": [row for part in scores.values() for score in part for row in _cells(score, splits.seeds)],
        "verdicts": [{"with": c.common, "train_size": c.size, "sentence": c.verdict} for c in contests],
        "pairs": [_pair(c.common, pair) for c in contests if c.ranking for pair in c.ranking.pairs.values()],
        "failures": [{**_names(contender), "reason": reason} for contender, reason in comparison.failures.items()],
    }


def _cells(score: Score, seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {**_names(score.contender), "train_size": score.size, "seed": seed, **metrics, **facts}
        for seed, metrics, facts in zip(seeds, score.metrics, score.facts, strict=True)
    ]


def _pair(common: str, pair: Pair) -> dict[str, Any]:
    return {
        "with": common,
        "train_size": pair.size,
        "first": _names(pair.first),
        "second": _names(pair.second),
        "accuracy": _estimate(pair.accuracy, pair.accuracy_p),
        "log_loss": _estimate(pair.log_loss, pair.log_loss_p),
        "told_apart": pair.apart,
    }


def _estimate(estimate: Estimate, adjusted: float) -> dict[str, float]:
    return {
        "difference": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "p_value": estimate.p_value,
        "p_value_holm": adjusted,
    }


def _names(contender: Contender) -> dict[str, str | None]:
    return {"embedding": contender.embedding, "architecture": contender.architecture, "kernel": contender.kernel}
