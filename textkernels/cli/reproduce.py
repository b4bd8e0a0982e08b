"""textkernels reproduce: the paper's tables."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from textkernels.cli.duplicates import duplicate_options, handle_repeats, repeat_settings
from textkernels.cli.options import (
    FILES,
    MAIN,
    TOKENS,
    Command,
    common_options,
    labelled_rows,
    note,
    option,
    read_data,
)
from textkernels.cli.outputs import check_outputs, check_report_folder
from textkernels.cli.table4 import table4_command

if TYPE_CHECKING:
    from textkernels.datasets import Dataset

TEST_SHARE = 0.2


@click.group("reproduce", short_help="Make a table of the paper again.")
def reproduce_group() -> None:
    """Make a table of "Infinite attention" (Hron et al. 2020) again, on any labelled texts."""


reproduce_group.add_command(table4_command)


@reproduce_group.command("table3", cls=Command, short_help="GAP-only, GAP-FCN and Struct: NNGP and NTK.")
@option("--output", "-o", group=MAIN, metavar="DIR", required=True, help="Folder for the report.")
@option("--train", group=MAIN, default="bundled:imdb", metavar="DATA", help="Labelled training texts.")
@option("--test", group=MAIN, metavar="DATA", help="Labelled test texts.  [default: 1/5 of the training texts]")
@option(
    "--embedding",
    group=MAIN,
    default="glove-6b-50d",
    metavar="NAME|FILE",
    help="Packaged vectors, word2vec (trained on the training texts), or a GloVe or word2vec file.",
)
@option("--limit", group=MAIN, type=click.IntRange(min=20), metavar="N", help="At most N training and N test texts.")
@option("--seed", group=MAIN, type=click.IntRange(min=0), default=0, metavar="S", help="Seed of every random draw.")
@option("--uncertainty", group=MAIN, is_flag=True, help="Variances and probabilities of the test texts, too.")
@option("--workers", group=MAIN, type=click.IntRange(min=1), metavar="N", help="Threads to train vectors with.")
@option("--tokenizer", group=TOKENS, default="keras", metavar="NAME", help="keras, as in the paper, or treebank.")
@option("--max-tokens", group=TOKENS, type=click.IntRange(min=1), default=1000, metavar="N", help="Tokens kept.")
@option(
    "--unknown",
    group=TOKENS,
    type=click.Choice(["mask", "zero"]),
    default="zero",
    help="Words without a vector: zero vectors, as in the paper, or left out.",
)
@option(
    "--scale",
    group=TOKENS,
    type=click.Choice(["unit", "none"]),
    default="none",
    help="Vectors in their own units, as in the paper, or rescaled to mean square 1.",
)
@option("--text-column", group=FILES, default="text", metavar="NAME", help="Column of the texts.")
@option("--label-column", group=FILES, default="label", metavar="NAME", help="Column of the labels.")
@option("--data-dir", group=FILES, metavar="DIR", help="Folder of tensorflow-datasets, for tfds: sources.")
@duplicate_options
@common_options
def table3_command(
    output: str,
    train: str,
    test: str | None,
    limit: int | None,
    seed: int,
    uncertainty: bool,
    quiet: bool,
    max_tokens: int,
    **settings: Any,
) -> None:
    """Table 3 of the paper: sentiment of film reviews by GAP-only, GAP-FCN and Struct networks, NNGP and NTK.

    In every class, network and regularizer are chosen on 2/5 of the training texts in float32; the winner is refitted
    to all of them and tested in float64. Writes report.md, report.html, results.csv and results.json to the folder.
    Finished parts are kept there: run the same command again to go on after an interruption.

    \b
    textkernels reproduce table3 --output table3 --test test.parquet
    textkernels reproduce table3 --output trial --limit 1000
    textkernels reproduce table3 --output table3 --train aclImdb/train --test aclImdb/test --embedding word2vec
    """
    from embeddings import get_encoder
    from textkernels.experiments.labelled import LabelledTexts
    from textkernels.experiments.provenance import provenance
    from textkernels.experiments.report import write_report
    from textkernels.experiments.table3 import Table3
    from textkernels.experiments.table3_records import table3_details, table3_records
    from textkernels.experiments.table3_report import table3_report

    check_report_folder(output)
    check_outputs(
        inputs={"--train": train, "--test": test, "--embedding": settings["embedding"]},
        tables={"--list-duplicates": settings["list_duplicates"]},
        folders={"--output": output},
    )
    reading = {name: settings.pop(name) for name in ("text_column", "label_column", "data_dir")}
    training, held, corpus, counts = _datasets(train, test, limit, seed, quiet, reading, repeat_settings(settings))
    fitted = LabelledTexts.from_dataset(training)
    tested = LabelledTexts.from_dataset(held, fitted.classes)
    embedding = settings.pop("embedding")
    encoder = get_encoder(embedding, max_tokens=max_tokens, seed=seed, progress=not quiet, **settings)
    encoder = encoder.fit(fitted.texts, corpus, progress=not quiet)
    table = Table3(fitted, tested, encoder, output, max_tokens, seed, uncertainty, not quiet).run()
    origin = provenance(
        shlex.join(["textkernels", *sys.argv[1:]]),
        {"samples, split and vectors": seed},
        {"training": fitted, "test": tested},
        {embedding: encoder},
    )
    report = table3_report(table, origin, counts)
    write_report(output, report, table3_records(table), table3_details(table, origin, counts))
    if not quiet:
        for row in _rows(report):
            click.echo(row)
        click.echo(f"Report written to {Path(output) / 'report.md'} and report.html.")


def _datasets(
    train: str,
    test: str | None,
    limit: int | None,
    seed: int,
    quiet: bool,
    reading: dict[str, Any],
    repeats: dict[str, Any],
) -> tuple[Dataset, Dataset, list[str] | None, dict[str, int]]:
    """Training rows, test rows, texts to train vectors on (None: the training rows), and what repeats."""
    from textkernels.experiments.labelled import hold_out, sample
    from textkernels.overlap import distinct_hashes

    everything = labelled_rows(read_data(train, quiet=quiet, require_labels=True, **reading), False)
    if test is None:
        note(f"{everything.name}: {TEST_SHARE:.0%} of the rows are held out as test rows, for want of --test.")
        training, held = hold_out(everything, TEST_SHARE, seed)
    else:
        training = everything
        held = labelled_rows(read_data(test, quiet=quiet, require_labels=True, **reading), False)
    corpus = None
    if limit is not None:
        corpus = [text for text in training.texts if text is not None]
        training, held = sample(training, limit, seed), sample(held, limit, seed)
    listed = repeats.pop("list_duplicates")
    training, found = handle_repeats(training, **repeats)
    held, found_test = handle_repeats(held, known=distinct_hashes(training.texts), list_duplicates=listed, **repeats)
    counts = {f"training: {name}": count for name, count in found.items()}
    return training, held, corpus, counts | {f"test: {name}": count for name, count in found_test.items()}


def _rows(report: Any) -> list[str]:
    """The table of accuracies, for the terminal."""
    grid = report.sections[0].blocks[1]
    widths = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in [grid.header, *grid.rows]]
