"""Options the commands share, and help that shows them in groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from textkernels.datasets import Dataset

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
# Headings of the help, in this order.
GROUPS = MAIN, MODEL, TOKENS, FILES, OTHER = (
    "Options",
    "The model",
    "Tokens and vectors",
    "Reading DATA",
    "Other options",
)

_READING = (
    *("text_column", "label_column", "id_column", "encoding", "delimiter", "data_dir"),
    *("drop_unlabeled", "skip_bad_rows", "rejects"),
)


class Option(click.Option):
    """An option that help lists under the heading `group`."""

    def __init__(self, *args: Any, group: str = MAIN, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Command(click.Command):
    """A command whose help lists options group by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                groups[getattr(param, "group", OTHER)].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


def option(*names: str, group: str, **settings: Any) -> Decorator:
    """click.option in a group of the help, with its default shown."""
    return click.option(*names, cls=Option, group=group, show_default=settings.pop("show_default", True), **settings)


def _delimiter(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '"\r\n'):
        raise click.BadParameter(f"expected one character, or tab; got {value!r}")
    return value


def data_options(labels: bool) -> Decorator:
    """DATA and the options for reading it, which reach the command together as `reading`."""
    group = FILES
    options: list[Decorator] = [
        click.argument("data", metavar="DATA"),
        option("--text-column", group=group, default="text", metavar="NAME", help="Column of the texts."),
        option("--id-column", group=group, default="id", metavar="NAME", help="Column of the ids, if there is one."),
        option("--encoding", group=group, metavar="NAME", help="Encoding of text files.  [default: UTF-8]"),
        option("--delimiter", group=group, metavar="CHAR", callback=_delimiter, help="Delimiter of csv files, or tab."),
        option("--data-dir", group=group, metavar="DIR", help="Folder of tensorflow-datasets, for tfds: sources."),
        option(
            "--skip-bad-rows",
            group=group,
            is_flag=True,
            help="Leave out rows that cannot be read, and say how many; without this they are an error.",
        ),
        option("--rejects", group=group, metavar="FILE", help="With --skip-bad-rows: write those rows to FILE."),
    ]
    if labels:
        label = option("--label-column", group=group, default="label", metavar="NAME", help="Column of the labels.")
        drop = option("--drop-unlabeled", group=group, is_flag=True, help="Leave out rows without a label.")
        options[2:2] = [label]
        options[-2:-2] = [drop]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def gather(**values: Any) -> Any:
            names = [name for name in values if name in _READING]
            return function(reading={name: values.pop(name) for name in names}, **values)

        decorated: Callable[..., Any] = gather
        for add in reversed(options):
            decorated = add(decorated)
        return decorated

    return decorate


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--quiet."""
    return option("--quiet", "-q", group=OTHER, is_flag=True, help="No progress bars, no summary of fit and score.")(
        function
    )


def read_data(
    data: str,
    *,
    quiet: bool,
    require_labels: bool = False,
    skip_bad_rows: bool = False,
    rejects: str | None = None,
    beside: Dataset | None = None,
    **columns: Any,
) -> Dataset:
    """The dataset that DATA names; says on standard error what was left out and writes the rejected rows.

    `beside` is a dataset that was read before with the same `rejects`, where rows of both then stand.

    Raises:
        ValueError: as datasets.load.
        click.UsageError: --rejects without --skip-bad-rows.
    """
    from textkernels.datasets import load

    if rejects is not None and not skip_bad_rows:
        raise click.UsageError("--rejects needs --skip-bad-rows")
    dataset = load(data, require_labels=require_labels, skip_bad_rows=skip_bad_rows, progress=not quiet, **columns)
    for sentence in dataset.notes:
        note(sentence)
    if dataset.bad:
        _report_rejected(dataset, rejects, beside)
    return dataset


def note(sentence: str) -> None:
    """One line for the user beside the result, on standard error."""
    click.echo(f"Note: {sentence}", err=True)


def _report_rejected(dataset: Dataset, rejects: str | None, beside: Dataset | None) -> None:
    first = ", ".join(str(bad.position) for bad in dataset.bad[:5]) + (", ..." if len(dataset.bad) > 5 else "")
    where = "" if rejects is None else f"; they are in {rejects}"
    note(f"{dataset.name}: left out {len(dataset.bad):,} bad rows ({dataset.unit} {first}){where}.")
    if rejects is not None:
        import pandas as pd

        from textkernels.tables import write_table

        frames = [_rejected(dataset)]
        if beside is not None and beside.bad:
            frames = [_rejected(each).assign(source=each.name) for each in (beside, dataset)]
        write_table(pd.concat(frames, ignore_index=True), rejects)


def _rejected(dataset: Dataset) -> pd.DataFrame:
    """One row for each row that was left out: its place, why, and what it was."""
    import pandas as pd

    return pd.DataFrame(dataset.bad, columns=[dataset.unit, "reason", "raw"]).astype(str)


def labelled_rows(dataset: Dataset, drop_unlabeled: bool) -> Dataset:
    """The rows with a label; ValueError that names the others unless they are to be dropped."""
    from textkernels.labels import is_missing_label

    labels = dataset.labels or []
    missing = [row for row, value in enumerate(labels) if is_missing_label(value)]
    if not missing:
        return dataset
    places = ", ".join(str(dataset.positions[row]) for row in missing[:5]) + (", ..." if len(missing) > 5 else "")
    found = f"{dataset.name}: {len(missing):,} of {len(labels):,} rows have no label ({dataset.unit} {places})"
    if not drop_unlabeled:
        raise ValueError(f"{found}; label them, or leave them out with --drop-unlabeled")
    if len(missing) == len(labels):
        raise ValueError(f"{found}; expected some rows with a label")
    note(f"{found}; they were left out.")
    left_out = set(missing)
    return dataset.select(row for row in range(len(labels)) if row not in left_out)
