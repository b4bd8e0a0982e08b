"""Table 3 as plain values: the rows of results.csv and the content of results.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textkernels.experiments.candidates import TABLE3
from textkernels.experiments.intervals import wilson_interval
from textkernels.experiments.table3 import Outcome, Table3, Trial


def table3_records(table: Table3) -> list[dict[str, Any]]:
    """One row a class and kernel, plain values: what results.csv holds."""
    return [_record(table, outcome) for outcome in table.outcomes]


def _record(table: Table3, outcome: Outcome) -> dict[str, Any]:
    correct, trial = outcome.correct, outcome.trial
    low, high = wilson_interval(int(correct.sum()), len(correct))
    same_class = [table.trials[candidate, trial.kind] for candidate in TABLE3[outcome.model]]
    record = {
        "model": outcome.model,
        "kernel": trial.kind,
        "accuracy": float(correct.mean()),
        "accuracy_low": low,
        "accuracy_high": high,
        "candidate": trial.candidate.label,
        "hidden": trial.candidate.hidden,
        "layer_norm": trial.candidate.layer_norm,
        "diag_reg": trial.best.diag_reg,
        "validation_accuracy": trial.best.accuracy,
        "log_marginal_likelihood": outcome.result["log_marginal_likelihood"],
        "jitter": outcome.result["jitter"],
        "solver": outcome.result["solver"],
        "n_train": len(table.split.codes),
        "n_test": len(correct),
        "choosing_seconds": sum(t.seconds for t in same_class),
        "test_seconds": outcome.result["seconds"],
        "peak_memory_gib": max([outcome.result["peak_bytes"], *(t.peak_bytes for t in same_class)]) / 2**30,
    }
    metrics = outcome.result.get("metrics") or {}
    return record | {name: metrics[name] for name in ("log_loss", "brier", "ece") if name in metrics}


def table3_details(table: Table3, origin: Mapping[str, Any], repeats: Mapping[str, int]) -> dict[str, Any]:
    """What results.json holds beside the rows."""
    return {
        "experiment": "table3",
        "provenance": origin,
        "repeated_texts": dict(repeats),
        "split": {"fitting": len(table.split.fitting), "validation": len(table.split.validation), "seed": table.seed},
        "candidates": [_trial_record(trial) for trial in table.trials.values()],
        "calibration": {
            f"{outcome.model} {outcome.trial.kind}": outcome.result["metrics"]
            for outcome in table.outcomes
            if "metrics" in outcome.result
        },
    }


def _trial_record(trial: Trial) -> dict[str, Any]:
    return {
        "candidate": trial.candidate.architecture.name,
        "kernel": trial.kind,
        "solver": trial.solver,
        "seconds": trial.seconds,
        "peak_memory_gib": trial.peak_bytes / 2**30,
        "grid": [
            {
                "diag_reg": score.diag_reg,
                "accuracy": score.accuracy,
                "mse": score.mse,
                "log_marginal_likelihood": score.log_marginal_likelihood,
                "failed": score.failed,
            }
            for score in trial.scores
        ],
    }
