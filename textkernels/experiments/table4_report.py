"""The report of Table 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from textkernels.experiments.plot import interval_plot
from textkernels.experiments.provenance import provenance_rows
from textkernels.experiments.report import Block, Code, Figure, Grid, Report, Section, duration, percent
from textkernels.experiments.table3 import KINDS
from textkernels.experiments.table4 import Table4
from textkernels.experiments.table4_candidates import FULL
from textkernels.experiments.table4_embedding import ROLES, Table4Embedding
from textkernels.experiments.table4_records import table4_differences, table4_passes, table4_records
from textkernels.experiments.table4_rows import N_TRAIN

KIND_NAMES = {"nngp": "NNGP", "ntk": "NTK"}
MAX_TOKENS = 1_000
CHANCE = 0.05


def table4_report(table: Table4, origin: Mapping[str, Any]) -> Report:
    """The report for people.

    Args:
        table: after its run.
        origin: from ``provenance``.
    """
    records = table4_records(table)
    low, high = table.encoders
    report = Report(f"Table 4: {low} against {high}")
    report.sections = [
        Section("Test accuracy", [*_lead(table), _accuracy_grid(records), _accuracy_figure(records)]),
        Section(f"Is {high} better than {low}?", _differences(table)),
        Section("What was chosen", [_chosen_grid(records)]),
        Section("How many convolutions?", _depths(table)),
        Section("Time and memory", _costs(table)),
        Section("Data", [*_data_texts(table), _counts_grid(table.rows.counts)]),
        Section("How it was made", [Code(origin["command"]), Grid(["what", "value"], provenance_rows(origin))]),
    ]
    return report


def reductions(table: Table4) -> list[str]:
    """What this run leaves out of the paper's protocol, a phrase each."""
    found, sizes = [], [len(table.rows.parts[role]) for role in ROLES]
    if sizes != [N_TRAIN, N_TRAIN // 2, N_TRAIN // 2]:
        counts = "{:,} training, {:,} validation and {:,} test texts".format(*sizes)
        found.append(f"{counts} instead of {N_TRAIN:,}, {N_TRAIN // 2:,} and {N_TRAIN // 2:,}")
    if table.max_tokens < MAX_TOKENS:
        found.append(f"the first {table.max_tokens:,} tokens of a text instead of {MAX_TOKENS:,}")
    if table.grid.depths != FULL.depths:
        depths, all_depths = (_listed(grid.depths) for grid in (table.grid, FULL))
        found.append(f"{depths} convolutions instead of {all_depths}")
    if not table.grid.norm_behind_attention:
        found.append("LayerNorm behind attention only in networks without convolutions")
    if not table.grid.two_attentions:
        found.append("a second attention layer only in networks without convolutions")
    return found


def accuracy_lines(table: Table4) -> list[str]:
    """The table of accuracies for a terminal."""
    grid = _accuracy_grid(table4_records(table))
    lines = [grid.header, *grid.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def _listed(numbers: Sequence[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]}"


def _lead(table: Table4) -> list[Block]:
    train, validation, test = (len(table.rows.parts[role]) for role in ROLES)
    text = (
        f"Infinitely wide networks fitted to {train:,} texts and tested on {test:,}, the same under both embeddings. "
        f"In every class, network and regularizer are those most accurate on {validation:,} further texts (float32); "
        "the winner was fitted again in float64. Intervals are 95 % Wilson intervals: they cover the drawing of the "
        "test texts, not that of the training texts."
    )
    left_out = reductions(table)
    if not left_out:
        return [text]
    return [text, f"Reduced against the paper's protocol: {'; '.join(left_out)}. Everything else is as there."]


def _accuracy_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    rows: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: KINDS.index(record["kernel"])):
        interval = f"{100 * record['accuracy_low']:.1f} to {100 * record['accuracy_high']:.1f}"
        rows.setdefault(record["model"], []).append(f"{percent(record['accuracy'])} ({interval})")
    return Grid(["", *_series(records)], [[model, *cells] for model, cells in rows.items()])


def _series(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns: embeddings side by side under each kernel."""
    names = dict.fromkeys(record["embedding"] for record in records)
    return [f"{name}, {KIND_NAMES[kind]}" for kind in KINDS for name in names]


def _accuracy_figure(records: Sequence[Mapping[str, Any]]) -> Figure:
    rows: dict[str, list[tuple[str, float, float, float]]] = {}
    for record in sorted(records, key=lambda record: KINDS.index(record["kernel"])):
        name = f"{record['embedding']}, {KIND_NAMES[record['kernel']]}"
        values = (record["accuracy"], record["accuracy_low"], record["accuracy_high"])
        rows.setdefault(record["model"], []).append((name, *values))
    caption = "Accuracy on the test texts with 95 % intervals, by class of networks, embedding and kernel."
    return Figure("accuracy", interval_plot(rows, "test accuracy"), caption)


def _differences(table: Table4) -> list[Block]:
    low, high = table.encoders
    rows = []
    for found in table4_differences(table):
        difference, lower, upper = (100 * found[name] for name in ("difference", "difference_low", "difference_high"))
        better = "cannot be told" if found["p_value"] >= CHANCE else high if difference > 0 else low
        name = KIND_NAMES[found["kernel"]]
        rows.append([found["model"], name, f"{difference:+.2f}", f"{lower:+.2f} to {upper:+.2f}", better])
    text = (
        f"Test accuracy under {high} minus that under {low} in points, text by text, with 95 % intervals, each for "
        "itself. An embedding is called better where the chance of even one wrong such statement in this table is "
        f"below {100 * CHANCE:.0f} % (Holm)."
    )
    return [text, Grid(["class", "kernel", "difference", "interval", "better"], rows)]


def _chosen_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    header = ["class", "kernel", "embedding", "network", "diag_reg", "validation", "test", "jitter", "solver"]
    rows = [
        [
            record["model"],
            KIND_NAMES[record["kernel"]],
            record["embedding"],
            record["candidate"],
            f"{record['diag_reg']:g}",
            percent(record["validation_accuracy"]),
            percent(record["accuracy"]),
            f"{record['jitter']:g}",
            record["solver"],
            duration(record["choosing_seconds"]),
            duration(record["test_seconds"]),
        ]
        for record in records
    ]
    return Grid([*header, "choosing", "testing"], rows)


def _depths(table: Table4) -> list[Block]:
    rows = []
    for model in ("CNN-GAP", "Struct"):
        for name, embedding in table.embeddings.items():
            for kind in KINDS:
                best = [percent(_best_validation(embedding, model, kind, depth)) for depth in table.grid.depths]
                rows.append([model, name, KIND_NAMES[kind], *best])
    text = (
        "Accuracy on the validation texts of the best network with so many convolutions. The best of many is "
        "flattered by chance: the table shows where the choice came from, not what to expect of new texts. All "
        "candidates with all regularizers are in results.json."
    )
    return [text, Grid(["class", "embedding", "kernel", *map(str, table.grid.depths)], rows)]


def _best_validation(embedding: Table4Embedding, model: str, kind: str, depth: int) -> float:
    members = [candidate for candidate in embedding.classes[model] if candidate.depth == depth]
    return max(embedding.trials[candidate, kind].best.accuracy or 0.0 for candidate in members)


def _costs(table: Table4) -> list[Block]:
    passes = [
        [
            found["embedding"],
            found["texts"],
            found["networks"],
            f"{found['token_stacks']}",
            f"{found['token_pairs']:.3g}",
            duration(found["seconds"]),
            f"{found['token_pairs'] / max(found['seconds'], 1e-9):.2g}",
            f"{found['peak_memory_gib']:.1f} GiB",
        ]
        for found in table4_passes(table)
    ]
    header = ["embedding", "texts", "networks", "token stacks", "token pairs", "time", "pairs a second", "peak memory"]
    sums = []
    for name, embedding in table.embeddings.items():
        trials, outcomes = embedding.trials.values(), embedding.outcomes
        peak = max([*(trial.peak_bytes for trial in trials), *(outcome.result["peak_bytes"] for outcome in outcomes)])
        times = [sum(trial.seconds for trial in trials), sum(outcome.result["seconds"] for outcome in outcomes)]
        sums.append([name, str(len(trials)), *map(duration, times), f"{peak / 2**30:.1f} GiB"])
    return [
        "Passes over token pairs, NNGP and NTK together. All networks of a pass share them, and networks that differ "
        "only behind the pooling share the kernels of one token stack. Networks without convolutions need none.",
        Grid(header, passes),
        "Layers behind the pooling, regularizers and solutions:",
        Grid(["embedding", "candidates and kernels", "choosing", "testing", "peak memory"], sums),
    ]


def _data_texts(table: Table4) -> list[Block]:
    texts: list[Block] = []
    for name, embedding in table.embeddings.items():
        parts = [embedding.encoded[role] for role in ROLES]
        unusable = [f"{len(part.texts) - len(part):,} {role}" for part, role in zip(parts, ROLES, strict=True)]
        coverage = float(np.mean(np.concatenate([part.coverage for part in parts])))
        cut = sum(int((part.n_dropped > 0).sum()) for part in parts)
        tokens = float(np.mean(np.concatenate([part.lengths for part in parts])))
        texts.append(
            f"{name}: texts have {tokens:.0f} tokens on average, of which {percent(coverage, 1)} have a vector; "
            f"{cut:,} are longer than {table.max_tokens:,} tokens and were cut. Without a known token are "
            f"{', '.join(unusable)} texts; such test texts count as predicted to be of the majority class, the others "
            "were left out."
        )
    return texts


def _counts_grid(counts: Mapping[str, int]) -> Grid:
    return Grid(["rows", "count"], [[name, f"{count:,}"] for name, count in counts.items()])
