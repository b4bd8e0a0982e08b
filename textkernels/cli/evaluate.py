"""textkernels evaluate: how well a model does on labelled texts it has not seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from textkernels.cli.duplicates import duplicate_options, handle_repeats, repeat_settings
from textkernels.cli.options import MAIN, Command, common_options, data_options, labelled_rows, note, option, read_data
from textkernels.cli.outputs import check_outputs

if TYPE_CHECKING:
    from textkernels.datasets import Dataset


@click.command(
    "evaluate", cls=Command, short_help="Compare a model with labelled texts: accuracy, calibration, confusion."
)
@data_options(labels=True)
@option("--model", group=MAIN, metavar="DIR", required=True, help="Folder of the fitted model.")
@option("--json", "json_file", group=MAIN, metavar="FILE", help="Write the metrics to FILE, too.")
@option("--reliability", group=MAIN, metavar="FILE", help="Write the reliability diagram to FILE, .svg or .html.")
@duplicate_options
@common_options
def evaluate_command(
    data: str,
    model: str,
    json_file: str | None,
    reliability: str | None,
    quiet: bool,
    reading: dict[str, Any],
    **repeats: Any,
) -> None:
    """Compare a model's predictions with the labels of DATA.

    Prints accuracy, macro F1, log loss, Brier score, expected calibration error, a table of the classes, the
    confusion matrix and the reliability of the probabilities. Rows without usable text count; they are predicted from
    the shares of the classes. Rows with a text that the model was fitted to are counted, and stay unless dropped.

    \b
    textkernels evaluate test.parquet --model imdb.model --json metrics.json
    textkernels evaluate aclImdb/test --model imdb.model
    """
    from textkernels import evaluation
    from textkernels.cli.prediction import load_model, predict_rows
    from textkernels.cli.summary import evaluation_summary
    from textkernels.experiments.plot import reliability_diagram, reliability_lines, write_chart
    from textkernels.experiments.report import plain_value
    from textkernels.tables import write_whole

    check_outputs(
        inputs={"DATA": data},
        tables={"--rejects": reading["rejects"], "--list-duplicates": repeats["list_duplicates"]},
        charts={"--reliability": reliability},
        files={"--json": json_file},
        model=model,
    )
    classifier = load_model(model)
    drop_unlabeled = reading.pop("drop_unlabeled")
    dataset = labelled_rows(read_data(data, quiet=quiet, require_labels=True, **reading), drop_unlabeled)
    dataset, _ = handle_repeats(dataset, known=classifier.text_hashes_, **repeat_settings(repeats))
    classes = list(classifier.classes_)
    labels = _matched_labels(dataset, classes)
    table = predict_rows(classifier, dataset.texts, quiet)
    probabilities = table[[f"probability_{label}" for label in classes]].to_numpy(dtype=float)
    metrics = evaluation.evaluate(labels, table["prediction"].tolist(), probabilities, classes)
    if json_file is not None:
        with write_whole(json_file) as file:
            text = json.dumps(plain_value(metrics), indent=2, ensure_ascii=False, allow_nan=False)
            file.write((text + "\n").encode())
    not_ok = table["status"][table["status"] != "ok"].value_counts()
    if len(not_ok):
        counts = ", ".join(f"{count:,} {status}" for status, count in not_ok.items())
        note(f"{int(not_ok.sum()):,} of {len(table):,} rows have no usable text and got the class shares ({counts}).")
    for line in [*evaluation_summary(metrics), "", *reliability_lines(metrics["reliability"])]:
        click.echo(line)
    if reliability is not None:
        write_chart(reliability, reliability_diagram(metrics["reliability"]))


def _matched_labels(dataset: Dataset, classes: list[Any]) -> list[Any]:
    """Labels in the type of the model's classes; ValueError if the model knows none of them."""
    from textkernels.labels import match_labels

    labels = match_labels(dataset.labels or [], classes)
    unknown = next((row for row, label in enumerate(labels) if label not in classes), None)
    if unknown is not None and not any(label in classes for label in labels):
        named = ", ".join(repr(str(label)) for label in classes[:10])
        raise ValueError(
            f"{dataset.place(unknown)}: expected the labels of the model ({named}), got {labels[unknown]!r}; no "
            "row has a label that the model knows"
        )
    return labels
