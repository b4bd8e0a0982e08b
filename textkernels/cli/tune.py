"""textkernels tune: better numbers for an architecture, from training texts alone."""

from __future__ import annotations

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
from textkernels.cli.outputs import check_outputs

if TYPE_CHECKING:
    import numpy as np

    from textkernels.architecture import Architecture
    from textkernels.datasets import Dataset
    from textkernels.experiments.labelled import LabelledTexts


@click.command("tune", cls=Command, short_help="Tune the numbers of an architecture on labelled texts.")
@data_options(labels=True)
@option("--output", "-o", group=MAIN, metavar="FILE", required=True, help="Architecture file to write, .toml.")
@option("--limit", group=MAIN, type=click.IntRange(min=20), default=2000, metavar="N", help="Texts to search with.")
@option(
    "--validation",
    group=MAIN,
    type=click.IntRange(min=20),
    default=5000,
    metavar="N",
    help="Other texts, at most, to see whether it helped.",
)
@option("--evaluations", group=MAIN, type=click.IntRange(min=1), default=60, metavar="N", help="Trials of the search.")
@option(
    "--criterion",
    group=MAIN,
    type=click.Choice(["loo", "evidence"]),
    default="loo",
    help="Leave-one-out squared error, or marginal likelihood.",
)
@option("--seed", group=MAIN, type=click.IntRange(min=0), default=0, metavar="S", help="Seed of every random draw.")
@option("--architecture", group=MODEL, default="struct-fcn", metavar="NAME|FILE", help="Where to start.")
@option("--kernel", group=MODEL, type=click.Choice(["nngp", "ntk"]), default="nngp", help="Which limit.")
@option("--embedding", group=MODEL, default="glove-6b-50d", metavar="NAME|FILE", help="As in fit.")
@option("--tokenizer", group=TOKENS, metavar="NAME", help="keras or treebank.  [default: the embedding's own]")
@option("--max-tokens", group=TOKENS, type=click.IntRange(min=1), default=1000, metavar="N", help="Tokens kept.")
@option("--unknown", group=TOKENS, type=click.Choice(["mask", "zero"]), default="mask", help="As in fit.")
@option("--scale", group=TOKENS, type=click.Choice(["unit", "none"]), default="unit", help="As in fit.")
@common_options
def tune_command(
    data: str,
    output: str,
    limit: int,
    validation: int,
    evaluations: int,
    criterion: str,
    seed: int,
    architecture: str,
    kernel: str,
    embedding: str,
    quiet: bool,
    max_tokens: int,
    reading: dict[str, Any],
    **tokens: Any,
) -> None:
    """Tune content share, decay, score scale and variances of an architecture on the labelled texts of DATA.

    The search sees N texts. Others, which it never sees, tell whether the result is better than the start; both are
    fitted to the N texts. The file goes to fit as --architecture.

    \b
    textkernels tune bundled:imdb --output tuned.toml
    textkernels tune reviews.csv --architecture gap-fcn --kernel ntk --limit 1000 --output tuned.toml
    textkernels fit bundled:imdb --architecture tuned.toml --model imdb.model
    """
    import textkernels as tk
    from embeddings import get_encoder
    from textkernels.held_out import HeldOut
    from textkernels.tune import describe, tune

    if not output.endswith(".toml"):
        raise ValueError(f"{output}: expected a name that ends in .toml")
    check_outputs(
        inputs={"DATA": data, "--embedding": embedding, "--architecture": architecture},
        tables={"--rejects": reading["rejects"]},
        files={"--output": output},
    )
    start = (
        tk.Architecture.load(architecture) if architecture.endswith(".toml") else tk.named_architecture(architecture)
    )
    searched, held, corpus = _texts(data, limit, validation, seed, quiet, reading)
    encoder = get_encoder(embedding, max_tokens=max_tokens, seed=seed, progress=not quiet, **tokens)
    encoder = encoder.fit(searched.texts, corpus, progress=not quiet)
    encoding = encoder.encode(searched.texts)
    codes, n_classes = searched.codes[encoding.rows], len(searched.classes)
    found = tune(
        start, encoding.documents, codes, n_classes, kernel, criterion, evaluations, max_tokens, progress=not quiet
    )
    comparison = HeldOut(encoder, searched, held, kernel, max_tokens, seed).compare(start, found.architecture)
    lines = [*describe(found, criterion), *comparison]
    _write(output, found.architecture, [f"textkernels tune {data}, {kernel}", *lines])
    if not quiet:
        for line in lines:
            click.echo(line)
        click.echo(f"Architecture written to {output}.")


def _texts(
    data: str, limit: int, validation: int, seed: int, quiet: bool, reading: dict[str, Any]
) -> tuple[LabelledTexts, LabelledTexts, list[str]]:
    """Texts to search with, texts to judge by, and those on which vectors may be trained: all but the latter."""
    from textkernels.experiments.labelled import LabelledTexts

    drop_unlabeled = reading.pop("drop_unlabeled")
    everything = labelled_rows(read_data(data, quiet=quiet, require_labels=True, **reading), drop_unlabeled)
    rows, held_rows = _two_samples(everything, limit, validation, seed)
    searched = LabelledTexts.from_dataset(everything.select(rows))
    held = LabelledTexts.from_dataset(everything.select(held_rows), searched.classes)
    judged = set(held_rows.tolist())
    corpus = [text for row, text in enumerate(everything.texts) if text is not None and row not in judged]
    return searched, held, corpus


def _write(output: str, architecture: Architecture, comments: list[str]) -> None:
    from textkernels.tables import write_whole
    from textkernels.tune import to_commented_toml

    with write_whole(output) as file:
        file.write(to_commented_toml(architecture, comments).encode())


def _two_samples(everything: Dataset, limit: int, validation: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to search with and others to judge by, no text in both."""
    import numpy as np

    from textkernels.labels import check_labels, stratified_sample
    from textkernels.overlap import distinct_hashes, seen_texts

    labels = everything.labels or []
    check_labels(labels)
    rows = stratified_sample(labels, limit, seed)
    rest = np.setdiff1d(np.arange(len(everything)), rows)
    known = distinct_hashes(everything.texts[row] for row in rows)
    rest = rest[~seen_texts([everything.texts[row] for row in rest], known)]
    if len(rest) < 20:
        raise ValueError(
            f"{everything.name}: expected rows beyond the {limit:,} to search with, got {len(rest):,}; use --limit"
        )
    return rows, rest[stratified_sample([labels[row] for row in rest], validation, seed)]
