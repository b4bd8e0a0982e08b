"""Table 4 as plain values: the rows of results.csv and the content of results.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from textkernels.experiments.intervals import wilson_interval
from textkernels.experiments.paired import crossed_mean, holm
from textkernels.experiments.table3 import Outcome, Trial
from textkernels.experiments.table4 import Table4
from textkernels.experiments.table4_candidates import describe_pass
from textkernels.experiments.table4_embedding import ROLES, Table4Embedding


def table4_records(table: Table4) -> list[dict[str, Any]]:
    """One row a class, kernel and embedding, plain values: what results.csv holds."""
    return [
        _record(embedding, outcome)
        for outcomes in zip(*(embedding.outcomes for embedding in table.embeddings.values()), strict=True)
        for embedding, outcome in zip(table.embeddings.values(), outcomes, strict=True)
    ]


def _record(embedding: Table4Embedding, outcome: Outcome) -> dict[str, Any]:
    correct, trial, result = outcome.correct, outcome.trial, outcome.result
    low, high = wilson_interval(int(correct.sum()), len(correct))
    same_class = [embedding.trials[candidate, trial.kind] for candidate in embedding.classes[outcome.model]]
    candidate = asdict(trial.candidate)
    del candidate["stack"]
    return {
        "model": outcome.model,
        "kernel": trial.kind,
        "embedding": embedding.name,
        "accuracy": float(correct.mean()),
        "accuracy_low": low,
        "accuracy_high": high,
        "candidate": trial.candidate.label,
        **candidate,
        "diag_reg": trial.best.diag_reg,
        "validation_accuracy": trial.best.accuracy,
        "log_marginal_likelihood": result["log_marginal_likelihood"],
        "jitter": result["jitter"],
        "solver": result["solver"],
        "n_train": len(embedding.encoded["train"]),
        "n_validation": len(embedding.encoded["validation"]),
        "n_test": len(correct),
        "choosing_seconds": sum(t.seconds for t in same_class),
        "test_seconds": result["seconds"],
        "peak_memory_gib": max([result["peak_bytes"], *(t.peak_bytes for t in same_class)]) / 2**30,
    }


def table4_differences(table: Table4) -> list[dict[str, Any]]:
    """High minus low embedding: difference of test accuracy by class and kernel.

    With its 95 % interval, and a p-value that allows for all of these comparisons (Holm).
    """
    low, high = table.embeddings.values()
    pairs = list(zip(high.outcomes, low.outcomes, strict=True))
    scores = [first.correct.astype(np.float64) - second.correct for first, second in pairs]
    estimates = [crossed_mean(score[None, :], 1.0) for score in scores]
    return [
        {
            "model": outcome.model,
            "kernel": outcome.trial.kind,
            "difference": estimate.mean,
            "difference_low": estimate.low,
            "difference_high": estimate.high,
            "p_value": float(p_value),
        }
        for (outcome, _), estimate, p_value in zip(
            pairs, estimates, holm([estimate.p_value for estimate in estimates]), strict=True
        )
    ]


def table4_passes(table: Table4) -> list[dict[str, Any]]:
    """Cost of every pass over token pairs."""
    found = []
    for embedding in table.embeddings.values():
        passes = [("training", inner) for inner, _ in embedding.passes]
        passes += [("validation", outer) for _, outer in embedding.passes]
        for texts, tiles in [*passes, *(("test", tiles) for tiles in embedding.test_passes)]:
            cost = tiles.cost()
            found.append(
                {
                    "embedding": embedding.name,
                    "texts": texts,
                    "networks": describe_pass(tiles.stacks),
                    "token_stacks": len(tiles.stacks),
                    "token_pairs": cost.token_pairs,
                    "seconds": cost.seconds,
                    "peak_memory_gib": cost.peak_bytes / 2**30,
                }
            )
    return found


def table4_details(table: Table4, origin: Mapping[str, Any], reductions: list[str]) -> dict[str, Any]:
    """What results.json holds beside the rows."""
    return {
        "experiment": "table4",
        "provenance": origin,
        "reductions": reductions,
        "grid": asdict(table.grid) | {"max_tokens": table.max_tokens},
        "rows_left_out": table.rows.counts,
        "parts": {role: len(table.rows.parts[role]) for role in ROLES},
        "differences": table4_differences(table),
        "passes": table4_passes(table),
        "candidates": [
            {"embedding": embedding.name, **_trial_record(trial)}
            for embedding in table.embeddings.values()
            for trial in embedding.trials.values()
        ],
    }


def _trial_record(trial: Trial) -> dict[str, Any]:
    return {
        "candidate": trial.candidate.architecture.name,
        "kernel": trial.kind,
        "solver": trial.solver,
        "seconds": trial.seconds,
        "peak_memory_gib": trial.peak_bytes / 2**30,
        "grid": [asdict(score) for score in trial.scores],
    }
