"""textkernels compare: which embedding is better on labelled texts, and whether that can be told."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from textkernels.cli.options import (
    MAIN,
    MODEL,
    TOKENS,
    Command,
    common_options,
    data_options,
    labelled_rows,
    option,
    read_data,
)
from textkernels.cli.outputs import check_outputs, check_report_folder

if TYPE_CHECKING:
    from textkernels.architecture import Architecture
    from textkernels.datasets import Dataset
    from textkernels.experiments.compare import Comparison
    from textkernels.experiments.splits import Splits

KERNELS = ("nngp", "ntk")
TEST_SIZE = 2000


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Names between commas; a file whose own name has a comma is one name."""
    found: list[str] = []
    for part in value:
        found += [part] if Path(part).exists() else [name.strip() for name in part.split(",")]
    if not all(found) or not found:
        raise click.BadParameter("expected names with commas between them, got an empty one")
    repeated = next((name for name in found if found.count(name) > 1), None)
    if repeated is not None:
        raise click.BadParameter(f"expected different names, got {repeated!r} twice")
    return found


def _kernels(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[str]:
    found = _names(ctx, param, value)
    unknown = next((name for name in found if name not in KERNELS), None)
    if unknown is not None:
        raise click.BadParameter(f"expected {' or '.join(KERNELS)}, got {unknown!r}")
    return found


def _sizes(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[int]:
    found = _names(ctx, param, value)
    odd = next((size for size in found if not size.isdecimal() or int(size) < 2), None)
    if odd is not None:
        raise click.BadParameter(f"expected whole numbers of at least 2 with commas between them, got {odd!r}")
    return sorted(int(size) for size in found)


@click.command("compare", cls=Command, short_help="Compare embeddings: which is better, and is the difference real?")
@data_options(labels=True)
@option(
    "--embeddings",
    group=MAIN,
    metavar="A,B,...",
    multiple=True,
    required=True,
    callback=_names,
    help="Names as in fit, and files of word vectors.",
)
@option("--output", "-o", group=MAIN, metavar="DIR", required=True, help="Folder for the report.")
@option(
    "--train-sizes",
    group=MAIN,
    metavar="N,...",
    multiple=True,
    default=["16,100,1000"],
    callback=_sizes,
    help="Numbers of labels to fit to.",
)
@option("--seeds", group=MAIN, type=click.IntRange(min=1), default=5, metavar="K", help="Training draws of each size.")
@option("--test", group=MAIN, metavar="DATA", help="Labelled test texts.  [default: rows of DATA]")
@option(
    "--test-size",
    group=MAIN,
    type=click.IntRange(min=10),
    metavar="N",
    help=f"Test rows held out of DATA, or drawn from --test.  [default: {TEST_SIZE}, or all of --test]",
)
@option("--seed", group=MAIN, type=click.IntRange(min=0), default=0, metavar="S", help="Of the test rows, first draw.")
@option("--workers", group=MAIN, type=click.IntRange(min=1), metavar="N", help="Threads that encode or train vectors.")
@option(
    "--architectures",
    group=MODEL,
    metavar="NAME|FILE,...",
    multiple=True,
    default=["struct-fcn"],
    callback=_names,
    help="Names and .toml files as in fit.",
)
@option(
    "--kernels",
    group=MODEL,
    metavar="nngp,ntk",
    multiple=True,
    default=["nngp,ntk"],
    callback=_kernels,
    help="Which limits of the networks.",
)
@option("--tokenizer", group=TOKENS, metavar="NAME", help="keras or treebank.  [default: the embedding's own]")
@option("--max-tokens", group=TOKENS, type=click.IntRange(min=1), default=1000, metavar="N", help="Tokens kept.")
@option("--unknown", group=TOKENS, type=click.Choice(["mask", "zero"]), default="mask", help="As in fit.")
@option("--scale", group=TOKENS, type=click.Choice(["unit", "none"]), default="unit", help="As in fit.")
@common_options
def compare_command(
    data: str,
    embeddings: list[str],
    output: str,
    train_sizes: list[int],
    seeds: int,
    test: str | None,
    test_size: int | None,
    seed: int,
    architectures: list[str],
    kernels: list[str],
    quiet: bool,
    max_tokens: int,
    reading: dict[str, Any],
    **settings: Any,
) -> None:
    """Compare embeddings on the labelled texts of DATA: same rows, seeds and kernels for all.

    Every embedding, architecture and kernel is fitted to K draws of each number of labels and tested on the same
    texts, beside two baselines. The report says which is better, by how much, and whether the difference can be told
    from chance: report.md, report.html, results.csv and results.json in the folder. Finished parts are kept there: run
    the same command again to go on after an interruption. What fails is in the report; the others go on.

    \b
    textkernels compare bundled:imdb --embeddings glove-6b-50d,word2vec --output comparison
    textkernels compare reviews.csv --embeddings old.vec,new.vec --train-sizes 100,500 --test-size 500 --output new
    textkernels compare train.csv --test test.csv --embeddings word2vec,minilm --architectures gap-fcn,struct-fcn -o c
    """
    from embeddings import get_encoder
    from textkernels.experiments.compare import Comparison
    from textkernels.experiments.compare_report import failure_reasons
    from textkernels.experiments.splits import Splits, corpus_of

    check_report_folder(output)
    check_outputs(
        inputs={"DATA": data, "--test": test, "--embeddings": embeddings, "--architectures": architectures},
        tables={"--rejects": reading["rejects"]},
        folders={"--output": output},
    )
    networks = {name: _architecture(name) for name in architectures}
    everything, pool, held, counts = _datasets(data, test, test_size, seed, quiet, reading)
    splits = Splits.draw(pool, held, train_sizes, range(seed, seed + seeds))
    corpus = corpus_of(everything, held)

    def encoder(name: str) -> Any:
        found = get_encoder(name, max_tokens=max_tokens, seed=seed, progress=not quiet, **settings)
        return found.fit(splits.needed.texts, corpus, progress=not quiet)

    comparison = Comparison(splits, embeddings, networks, kernels, encoder, output, max_tokens, seed, not quiet).run()
    lines = _write(comparison, output, counts, seed)
    if not quiet:
        for line in lines:
            click.echo(line)
        click.echo(f"Report written to {Path(output) / 'report.md'} and report.html.")
    if comparison.failures:
        reasons = "; ".join(f"{what}: {reason}" for reason, what in failure_reasons(comparison).items())
        rows = f"{len(comparison.failures)} of {len(comparison.contenders)} rows of the report"
        raise ValueError(f"{rows} failed, the others are in {Path(output) / 'report.md'} ({reasons})")


def _architecture(name: str) -> Architecture:
    import textkernels as tk

    return tk.Architecture.load(name) if name.endswith(".toml") else tk.named_architecture(name)


def _datasets(
    data: str, test: str | None, test_size: int | None, seed: int, quiet: bool, reading: dict[str, Any]
) -> tuple[Dataset, Dataset, Dataset, dict[str, int]]:
    """All rows of DATA, rows to draw training texts from, test rows, and numbers about them."""
    from textkernels.experiments.labelled import sample
    from textkernels.experiments.splits import hold_out_rows, without_texts_of
    from textkernels.labels import check_labels

    drop_unlabeled = reading.pop("drop_unlabeled")
    everything = read_data(data, quiet=quiet, require_labels=True, **reading)
    labelled = labelled_rows(everything, drop_unlabeled)
    check_labels(labelled.labels or [])
    if test is None:
        pool, held = hold_out_rows(labelled, test_size or TEST_SIZE, seed)
    else:
        pool = labelled
        held = read_data(test, quiet=quiet, require_labels=True, beside=everything, **reading)
        held = labelled_rows(held, drop_unlabeled)
        held = held if test_size is None else sample(held, test_size, seed)
    pool, repeated = without_texts_of(pool, held)
    counts = {
        "rows of DATA": len(everything),
        "rows without a label, left out": len(everything) - len(labelled),
        "test rows": len(held),
        "training rows left out because a test row has the same text": repeated,
        "rows that training draws are from": len(pool),
    }
    return everything, pool, held, counts


def _write(comparison: Comparison, output: str, counts: dict[str, int], seed: int) -> list[str]:
    """Write the report; returns the lines for the terminal."""
    from textkernels.experiments.compare_records import compare_details, compare_records
    from textkernels.experiments.compare_report import compare_report, verdict_grid
    from textkernels.experiments.provenance import provenance
    from textkernels.experiments.report import write_report
    from textkernels.experiments.scores import score

    splits, scores = comparison.splits, score(comparison)
    seeds = {"test rows, vectors and subsets": seed, f"the first of {len(splits.seeds)} draws": splits.seeds[0]}
    origin = provenance(
        shlex.join(["textkernels", *sys.argv[1:]]), seeds, {"training": splits.pool, "test": splits.test}, {}
    )
    origin["vectors"] = comparison.origins
    records = compare_records(comparison, scores)
    report = compare_report(comparison, scores, origin, counts)
    write_report(output, report, records, compare_details(comparison, scores, origin, counts))
    grid = verdict_grid(comparison, scores)
    sentences = (f"{common}, {labels} labels: {sentence}" for common, labels, sentence in grid.rows)
    return [*_table(splits, records), "", *sentences]


def _table(splits: Splits, records: list[dict[str, Any]]) -> list[str]:
    """Accuracy of every row at every number of labels."""
    rows: dict[str, list[str]] = {}
    for record in records:
        parts = (record[name] for name in ("embedding", "architecture", "kernel"))
        name = ", ".join(part for part in parts if part)
        value = record["accuracy"]
        rows.setdefault(name, []).append("failed" if value is None else f"{100 * value:.2f} %")
    header = ["accuracy", *(f"{size:,}" for size in splits.sizes)]
    lines = [header, *([name, *values] for name, values in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
