"""textkernels fit: a model from labelled texts."""

from __future__ import annotations

import math
from typing import Any

import click

from textkernels.cli.duplicates import duplicate_options, handle_repeats, repeat_settings
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


def _diag_reg(ctx: click.Context, param: click.Parameter, value: str) -> str | float:
    if value in ("auto", "auto-full"):
        return value
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise click.BadParameter(f"expected auto, auto-full or a number >= 0, got {value!r}")
    return number


@click.command("fit", cls=Command, short_help="Fit a classifier to labelled texts.")
@data_options(labels=True)
@option("--model", group=MAIN, metavar="DIR", required=True, help="Folder to write the model to.")
@option("--limit", group=MAIN, type=click.IntRange(min=2), metavar="N", help="Fit on a stratified sample of N rows.")
@option("--seed", group=MAIN, type=click.IntRange(min=0), default=0, metavar="S", help="Seed of every random draw.")
@option("--workers", group=MAIN, type=click.IntRange(min=1), metavar="N", help="Threads.  [default: all cores]")
@option(
    "--embedding",
    group=MODEL,
    default="glove-6b-50d",
    metavar="NAME|FILE",
    help="glove-6b-50d, minilm (contextual), word2vec or fasttext (trained on DATA's texts), a GloVe or word2vec "
    "file, a folder with an ONNX token encoder, gensim:NAME, or several static ones joined by +.",
)
@option(
    "--architecture",
    group=MODEL,
    default="struct-fcn",
    metavar="NAME|FILE",
    help="gap, gap-fcn, struct, struct-fcn, cnn-gap, cnn-struct, one with parameters such as 'cnn-gap(depth=4)', or "
    "a .toml file.",
)
@option(
    "--kernel",
    group=MODEL,
    type=click.Choice(["nngp", "ntk"]),
    default="nngp",
    help="Which limit of the network.",
)
@option(
    "--diag-reg",
    group=MODEL,
    default="auto",
    metavar="auto|auto-full|X",
    callback=_diag_reg,
    help="Noise in units of the mean diagonal; auto chooses by leave-one-out on a subset of at most 3,000 texts, "
    "auto-full on all of them (a few times the time and twice the memory).",
)
@option(
    "--engine",
    group=MODEL,
    type=click.Choice(["auto", "features", "numba", "jax"]),
    default="auto",
    help="How the kernel is computed: explicit features where they apply, else numba (processors) or jax "
    "(accelerators).",
)
@option("--tokenizer", group=TOKENS, metavar="NAME", help="keras or treebank.  [default: the embedding's own]")
@option(
    "--max-tokens",
    group=TOKENS,
    type=click.IntRange(min=1),
    default=1000,
    metavar="N",
    help="Longer texts are cut.",
)
@option(
    "--keep",
    group=TOKENS,
    type=click.Choice(["head", "tail", "head+tail"]),
    default="head",
    help="What of a longer text stays.",
)
@option(
    "--unknown",
    group=TOKENS,
    type=click.Choice(["mask", "zero"]),
    default="mask",
    help="Unknown words: left out, or zero vectors.",
)
@option(
    "--scale",
    group=TOKENS,
    type=click.Choice(["unit", "none"]),
    default="unit",
    help="Rescale vectors to mean square 1, or leave them.",
)
@duplicate_options
@common_options
def fit_command(
    data: str,
    model: str,
    limit: int | None,
    seed: int,
    architecture: str,
    quiet: bool,
    reading: dict[str, Any],
    **settings: Any,
) -> None:
    """Fit a classifier to the labelled texts of DATA and write it to a folder.

    \b
    textkernels fit bundled:imdb --model imdb.model --limit 6000
    textkernels fit reviews.csv --text-column review --label-column stars --model stars.model
    textkernels fit aclImdb/train --embedding word2vec --kernel ntk --model acl.model
    textkernels fit tfds:imdb_reviews/train --data-dir datasets --model imdb.model
    """
    import textkernels as tk
    from textkernels.cli.summary import fit_summary
    from textkernels.labels import check_labels, stratified_sample
    from textkernels.persistence import check_target

    check_target(model)
    check_outputs(
        inputs={"DATA": data, "--embedding": settings["embedding"], "--architecture": architecture},
        tables={"--rejects": reading["rejects"], "--list-duplicates": settings["list_duplicates"]},
        folders={"--model": model},
    )
    network = tk.Architecture.load(architecture) if architecture.endswith(".toml") else architecture
    drop_unlabeled = reading.pop("drop_unlabeled")
    everything = read_data(data, quiet=quiet, require_labels=True, **reading)
    dataset = labelled_rows(everything, drop_unlabeled)
    check_labels(dataset.labels or [])
    dataset, _ = handle_repeats(dataset, **repeat_settings(settings))
    if limit is not None:
        dataset = dataset.select(stratified_sample(dataset.labels or [], limit, seed))
    labels = dataset.labels or []
    classifier = tk.KernelClassifier(architecture=network, random_state=seed, progress=not quiet, **settings)
    # Vectors trained on the user's texts see all of them, whatever rows are fitted.
    corpus = [text for text in everything.texts if text is not None] if len(dataset) < len(everything) else None
    classifier.fit(dataset.texts, labels, corpus=corpus)
    classifier.save(model)
    if not quiet:
        for line in fit_summary(classifier.fit_report_, classifier.classes_, labels):
            click.echo(line)
        click.echo(f"Model written to {model}.")
