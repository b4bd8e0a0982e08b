"""The report of Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from textkernels.experiments.candidates import TABLE3
from textkernels.experiments.intervals import paired_difference
from textkernels.experiments.plot import grid_curves, interval_plot, reliability_diagram
from textkernels.experiments.provenance import provenance_rows
from textkernels.experiments.report import Block, Code, Figure, Grid, Report, Section, duration, percent
from textkernels.experiments.table3 import KINDS, Table3
from textkernels.experiments.table3_records import table3_records

KIND_NAMES = {"nngp": "NNGP", "ntk": "NTK"}


def table3_report(table: Table3, origin: Mapping[str, Any], repeats: Mapping[str, int]) -> Report:
    """The report for people.

    Args:
        table: after its run.
        origin: from ``provenance``.
        repeats: sentences' numbers: what repeats in the data, by name.
    """
    records = table3_records(table)
    report = Report("Table 3: GAP-only, GAP-FCN and Struct")
    report.sections = [
        Section("Test accuracy", [_lead(table), _accuracy_grid(records), _accuracy_figure(records)]),
        Section("What was chosen", [_chosen_grid(records), _curves(table), *_failures(table)]),
        Section("Are the classes different?", _differences(table)),
        *_calibration(table),
        Section("All candidates", [_candidates_grid(table)]),
        Section("Data", [_data_text(table), _repeats_grid(repeats)]),
        Section("How it was made", [Code(origin["command"]), Grid(["what", "value"], provenance_rows(origin))]),
    ]
    return report


def _lead(table: Table3) -> str:
    split = table.split
    return (
        f"Infinitely wide networks fitted to {len(split.codes):,} texts and tested on {len(table.test):,}. In every "
        f"class, network and regularizer are those most accurate on {len(split.validation):,} of the training texts "
        f"after fitting the other {len(split.fitting):,} (float32); the winner was refitted to all of them (float64). "
        "Intervals are 95 % Wilson intervals: they cover the drawing of the test texts, not that of the training texts."
    )


def _accuracy_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    cells = {(record["model"], record["kernel"]): _with_interval(record) for record in records}
    rows = [[model, *(cells[model, kind] for kind in KINDS)] for model in TABLE3]
    return Grid(["", *(KIND_NAMES[kind] for kind in KINDS)], rows)


def _with_interval(record: Mapping[str, Any]) -> str:
    interval = f"{100 * record['accuracy_low']:.2f} to {100 * record['accuracy_high']:.2f}"
    return f"{percent(record['accuracy'])} ({interval})"


def _accuracy_figure(records: Sequence[Mapping[str, Any]]) -> Figure:
    rows: dict[str, list[tuple[str, float, float, float]]] = {}
    for record in records:
        point = (KIND_NAMES[record["kernel"]], record["accuracy"], record["accuracy_low"], record["accuracy_high"])
        rows.setdefault(record["model"], []).append(point)
    caption = "Accuracy on the test texts with 95 % intervals, by class of networks and kernel."
    return Figure("accuracy", interval_plot(rows, "test accuracy"), caption)


def _chosen_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    header = ["class", "kernel", "network behind pooling", "diag_reg", "validation", "log marginal likelihood"]
    header += ["jitter", "solver", "choosing", "test", "peak memory"]
    rows = [
        [
            record["model"],
            KIND_NAMES[record["kernel"]],
            record["candidate"],
            f"{record['diag_reg']:g}",
            percent(record["validation_accuracy"]),
            _evidence(record["log_marginal_likelihood"]),
            f"{record['jitter']:g}",
            record["solver"],
            duration(record["choosing_seconds"]),
            duration(record["test_seconds"]),
            f"{record['peak_memory_gib']:.1f} GiB",
        ]
        for record in records
    ]
    return Grid(header, rows)


def _evidence(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _curves(table: Table3) -> Figure:
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {KIND_NAMES[kind]: {} for kind in KINDS}
    for outcome in table.outcomes:
        scores = [score for score in outcome.trial.scores if score.accuracy is not None]
        line = [score.diag_reg for score in scores], [score.accuracy or 0.0 for score in scores]
        panels[KIND_NAMES[outcome.trial.kind]][outcome.model] = line
    caption = (
        "Accuracy on the validation texts against the regularizer, for the network that each class chose. Values at "
        "which the float32 factorization failed are left out."
    )
    return Figure("regularization", grid_curves(panels, "diag_reg", "validation accuracy"), caption)


def _failures(table: Table3) -> list[str]:
    failed = [score.diag_reg for trial in table.trials.values() for score in trial.scores if score.failed]
    if not failed:
        return []
    counts = ", ".join(f"{value:g} ({failed.count(value)} times)" for value in sorted(set(failed)))
    return [
        "In float32 the regularized kernel was not positive definite at the smallest values of the grid, which counts "
        f"as failed: {counts}. Networks without hidden layers are linear in their pooled features and are solved there."
    ]


def _differences(table: Table3) -> list[Block]:
    pairs = [("GAP-FCN", "GAP-only"), ("Struct", "GAP-only"), ("Struct", "GAP-FCN")]
    correct = {(outcome.model, outcome.trial.kind): outcome.correct for outcome in table.outcomes}
    rows = []
    for first, second in pairs:
        for kind in KINDS:
            difference, low, high = paired_difference(correct[first, kind], correct[second, kind])
            certain = "yes" if low > 0 or high < 0 else "cannot be told"
            interval = f"{100 * low:+.2f} to {100 * high:+.2f}"
            rows.append([f"{first} − {second}", KIND_NAMES[kind], f"{100 * difference:+.2f}", interval, certain])
    text = "Differences of test accuracy in points, text by text, with 95 % intervals."
    return [text, Grid(["classes", "kernel", "difference", "interval", "different?"], rows)]


def _calibration(table: Table3) -> list[Section]:
    outcomes = [outcome for outcome in table.outcomes if "metrics" in outcome.result]
    if not outcomes:
        return []
    rows = []
    for outcome in outcomes:
        metrics = outcome.result["metrics"]
        numbers = [f"{metrics['log_loss']:.4f}", f"{metrics['brier']:.4f}", percent(metrics["ece"])]
        rows.append([outcome.model, KIND_NAMES[outcome.trial.kind], *numbers])
    best = max(outcomes, key=lambda outcome: outcome.correct.mean())
    name = f"{best.model}, {KIND_NAMES[best.trial.kind]}"
    figure = Figure(
        "reliability",
        reliability_diagram(best.result["metrics"]["reliability"], name),
        f"Reliability of the most accurate network ({name}): accuracy of test texts by their confidence.",
    )
    text = "The scale of the probabilities is fitted to leave-one-out predictions of training texts."
    return [Section("Calibration", [text, Grid(["class", "kernel", "log loss", "Brier", "ECE"], rows), figure])]


def _candidates_grid(table: Table3) -> Grid:
    header = ["network", "kernel", "solver", "diag_reg", "validation", "squared error", "log marginal likelihood"]
    rows = [
        [
            trial.candidate.architecture.name,
            KIND_NAMES[trial.kind],
            trial.solver,
            f"{trial.best.diag_reg:g}",
            percent(trial.best.accuracy),
            f"{trial.best.mse:.4f}",
            _evidence(trial.best.log_marginal_likelihood),
            duration(trial.seconds),
        ]
        for trial in table.trials.values()
    ]
    return Grid([*header, "time"], rows)


def _data_text(table: Table3) -> str:
    train, test = table.pooled("gap-fcn", "train"), table.pooled("gap-fcn", "test")
    unusable = [len(table.train) - len(train.rows), len(table.test) - len(test.rows)]
    return (
        f"Of {len(table.train):,} training texts {unusable[0]:,} have no known token and were left out; of "
        f"{len(table.test):,} test texts {unusable[1]:,}, which count as predicted to be of the majority class. On "
        f"average {percent(float(np.mean(train.coverage)), 1)} of a training text's tokens have a vector; "
        f"{int((train.n_dropped > 0).sum()):,} training texts are longer than {table.max_tokens:,} tokens and were cut."
    )


def _repeats_grid(repeats: Mapping[str, int]) -> Grid:
    return Grid(["repeated texts", "count"], [[name, f"{count:,}"] for name, count in repeats.items()])
