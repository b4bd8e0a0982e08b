"""textkernels score: predictions for every row of a table, beside its own columns."""

from __future__ import annotations

from typing import Any

import click

from textkernels.cli.options import MAIN, Command, common_options, data_options, option, read_data
from textkernels.cli.outputs import check_outputs


@click.command("score", cls=Command, short_help="Predict the label of every row of a table.")
@data_options(labels=False)
@option("--model", group=MAIN, metavar="DIR", required=True, help="Folder of the fitted model.")
@option(
    "--output",
    "-o",
    group=MAIN,
    metavar="FILE",
    required=True,
    help="Where to write: .csv, .tsv, .jsonl or .parquet (also .gz).",
)
@common_options
def score_command(data: str, model: str, output: str, quiet: bool, reading: dict[str, Any]) -> None:
    """Predict the label of every row of DATA.

    All rows and columns stay, in their order. New columns: prediction, probability_<class>, mean, std (of the
    latent function of the predicted class), status, n_tokens, coverage, truncated, n_dropped. The status is ok,
    missing_text, empty or no_known_tokens; rows that are not ok get the shares of the classes.

    \b
    textkernels score reviews.csv --model imdb.model --output scored.csv
    textkernels score notes.csv --text-column note --delimiter ";" --model imdb.model --output scored.parquet
    zcat reviews.jsonl.gz | textkernels score - --model imdb.model --output scored.jsonl
    """
    import pandas as pd

    from textkernels.cli.prediction import load_model, predict_rows, status_summary
    from textkernels.scoring import check_new_columns
    from textkernels.tables import check_writable, write_table

    check_outputs(inputs={"DATA": data}, tables={"--output": output, "--rejects": reading["rejects"]}, model=model)
    classifier = load_model(model)
    dataset = read_data(data, quiet=quiet, **reading)
    check_writable(output, dataset.frame)
    check_new_columns(classifier, dataset)
    table = predict_rows(classifier, dataset.texts, quiet)
    write_table(pd.concat([dataset.frame, table], axis=1), output)
    if not quiet:
        click.echo(f"{len(table):,} rows scored: {status_summary(table)}.")
        click.echo(f"Written to {output}.")
