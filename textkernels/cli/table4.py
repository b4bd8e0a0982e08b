"""textkernels reproduce table4: a low- and a high-quality embedding under four classes of networks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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

if TYPE_CHECKING:
    from textkernels.experiments.table4 import Table4
    from textkernels.experiments.table4_rows import Table4Rows

# Of --quick: training texts, and tokens of each.
QUICK_ROWS, QUICK_TOKENS = 1_600, 200


def _two_names(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, str]:
    names = [name.strip() for name in value.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise click.BadParameter(f"expected two different embeddings with a comma between them, got {value!r}")
    return names[0], names[1]


@click.command("table4", cls=Command, short_help="Low- and high-quality embeddings under four classes of networks.")
@option("--output", "-o", group=MAIN, metavar="DIR", required=True, help="Folder for the report.")
@option(
    "--embeddings",
    group=MAIN,
    default="glove-6b-50d,word2vec",
    metavar="LOW,HIGH",
    callback=_two_names,
    help="Names as in fit, or files of word vectors.",
)
@option("--train", group=MAIN, default="bundled:imdb", metavar="DATA", help="Labelled texts.")
@option(
    "--test", group=MAIN, metavar="DATA", help="Labelled texts to draw test texts from.  [default: those of --train]"
)
@option("--quick", group=MAIN, is_flag=True, help="Fewer, shorter texts and fewer networks: minutes.")
@option(
    "--limit",
    group=MAIN,
    type=click.IntRange(min=20),
    metavar="N",
    help="N texts to train on, half as many to choose with and to test on.  [default: 3200; with --quick: 1600]",
)
@option("--seed", group=MAIN, type=click.IntRange(min=0), default=0, metavar="S", help="Seed of every random draw.")
@option("--workers", group=MAIN, type=click.IntRange(min=1), metavar="N", help="Threads that encode or train vectors.")
@option(
    "--tokenizer",
    group=TOKENS,
    default="keras",
    metavar="NAME",
    help="Of word vectors: keras, as in the paper, or treebank.",
)
@option(
    "--max-tokens",
    group=TOKENS,
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens kept.  [default: 1000; with --quick: 200]",
)
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
@common_options
def table4_command(
    output: str,
    embeddings: tuple[str, str],
    train: str,
    test: str | None,
    quick: bool,
    limit: int | None,
    seed: int,
    quiet: bool,
    max_tokens: int | None,
    **settings: Any,
) -> None:
    """Table 4 of the paper: film reviews under a low- and a high-quality embedding, NNGP and NTK.

    GAP-only, GAP-FCN, CNN-GAP and Struct networks are fitted to 3,200 texts; in every class, network and regularizer
    are chosen on 1,600 further texts and tested on 1,600 others. The full grid takes days on a few processors: how long
    is estimated before it starts. Writes report.md, report.html, results.csv and results.json to the folder. Finished
    parts are kept there: run the same command again to go on after an interruption.

    \b
    textkernels reproduce table4 --output table4 --quick
    textkernels reproduce table4 --output trial --quick --limit 200
    textkernels reproduce table4 --output table4 --quick --limit 3200 --max-tokens 1000
    textkernels reproduce table4 --output table4 --embeddings glove-6b-50d,minilm --test test.parquet
    """
    from textkernels.experiments.provenance import provenance
    from textkernels.experiments.report import write_report
    from textkernels.experiments.table4 import Table4
    from textkernels.experiments.table4_candidates import FULL, QUICK
    from textkernels.experiments.table4_records import table4_details, table4_records
    from textkernels.experiments.table4_report import accuracy_lines, reductions, table4_report
    from textkernels.experiments.table4_rows import N_TRAIN

    check_report_folder(output)
    check_outputs(inputs={"--train": train, "--test": test, "--embeddings": embeddings}, folders={"--output": output})
    reading = {name: settings.pop(name) for name in ("text_column", "label_column", "data_dir")}
    rows, corpus = _rows(train, test, limit or (QUICK_ROWS if quick else N_TRAIN), seed, quiet, reading)
    tokens = max_tokens or (QUICK_TOKENS if quick else 1000)
    settings |= {"max_tokens": tokens, "seed": seed}
    encoders = {name: _encoder(name, rows, corpus, quiet, settings) for name in embeddings}
    table = Table4(rows, encoders, output, QUICK if quick else FULL, tokens, not quiet)
    table.check_room()
    if not quiet:
        _announce(table)
    table.run()
    origin = provenance(shlex.join(["textkernels", *sys.argv[1:]]), {"samples and vectors": seed}, rows.parts, encoders)
    write_report(
        output, table4_report(table, origin), table4_records(table), table4_details(table, origin, reductions(table))
    )
    if not quiet:
        for line in accuracy_lines(table):
            click.echo(line)
        click.echo(f"Report written to {Path(output) / 'report.md'} and report.html.")


def _rows(
    train: str, test: str | None, n_train: int, seed: int, quiet: bool, reading: dict[str, Any]
) -> tuple[Table4Rows, list[Any]]:
    """The three parts, and the texts that vectors may be trained on."""
    from textkernels.experiments.splits import corpus_of
    from textkernels.experiments.table4_rows import Table4Rows

    everything = read_data(train, quiet=quiet, require_labels=True, **reading)
    labelled = labelled_rows(everything, False)
    held = None if test is None else labelled_rows(read_data(test, quiet=quiet, require_labels=True, **reading), False)
    rows = Table4Rows.draw(labelled, held, n_train, seed)
    sizes = {role: len(part) for role, part in rows.parts.items()}
    if sizes["train"] < n_train:
        note(f"{train}: there are {sizes['train']:,} training texts instead of {n_train:,}, for want of more rows.")
    return rows, corpus_of(everything, rows.held)


def _encoder(name: str, rows: Table4Rows, corpus: list[Any], quiet: bool, settings: dict[str, Any]) -> Any:
    from embeddings import get_encoder

    # Encoders that read texts themselves have their own tokenizer.
    own = name == "minilm" or Path(name).is_dir()
    chosen = settings | {"tokenizer": None} if own else settings
    encoder = get_encoder(name, progress=not quiet, **chosen)
    return encoder.fit(rows.parts["train"].texts, corpus, progress=not quiet)


def _announce(table: Table4) -> None:
    """Say what is to come."""
    from textkernels.experiments.report import duration
    from textkernels.experiments.workload import workload
    from textkernels.processors import count_processors

    total = workload(table.embeddings.values())
    kept = f"{table.bytes_to_keep / 2**30:.1f} GiB go to {Path(table.folder) / 'finished'}"
    note(
        f"about {duration(total.seconds)} on {count_processors()} processors, by a short measurement: {total.passes} "
        f"passes over {total.token_pairs:.2g} token pairs, and {total.candidates:,} candidates with two kernels each. "
        f"{kept}; an interrupted run goes on there."
    )
