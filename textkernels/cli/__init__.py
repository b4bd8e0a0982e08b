"""The `textkernels` command.

Add a command: one module with a click command, one row in COMMANDS. Modules of commands import nothing heavy
at the top, so that help answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

import click

from textkernels.cli.app import app_command
from textkernels.cli.compare import compare_command
from textkernels.cli.evaluate import evaluate_command
from textkernels.cli.fit import fit_command
from textkernels.cli.reproduce import reproduce_group
from textkernels.cli.score import score_command
from textkernels.cli.tune import tune_command

COMMANDS = (
    fit_command,
    score_command,
    evaluate_command,
    compare_command,
    tune_command,
    reproduce_group,
    app_command,
)

# Of the user's making: a wrong file, option, label, package or machine, rather than a fault of ours.
USER_ERRORS = (ValueError, OSError, ImportError, NotImplementedError, MemoryError)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="textkernels", prog_name="textkernels")
def cli() -> None:
    """Text classification with infinitely wide networks: exact NNGP and NTK kernels.

    \b
    textkernels fit bundled:imdb --model imdb.model --limit 6000
    textkernels score reviews.csv --model imdb.model --output scored.csv
    textkernels evaluate test.parquet --model imdb.model --json metrics.json
    textkernels app --model imdb.model

    \b
    DATA is one of
      a .csv, .tsv, .jsonl or .parquet file (also .gz)
      -  for standard input (csv or jsonl)
      a folder with one sub-folder a class, such as aclImdb/train
      bundled:imdb or bundled:rotten-tomatoes, the packaged reviews
      tfds:DATASET/SPLIT, such as tfds:imdb_reviews/train, with --data-dir
    """


for _command in COMMANDS:
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, or 2 after one line on standard error that begins with "Error:".

    Faults of the program itself exit with 1; TEXTKERNELS_DEBUG=1 in the environment shows where they come from.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with warnings.catch_warnings():
            _show_user_warnings()
            return int(cli.main(arguments, "textkernels", standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        advice = f" (see {context.command_path} --help)" if context is not None else ""
        return _fail(error.format_message() + advice, 2)
    except Exception as error:
        if os.environ.get("TEXTKERNELS_DEBUG"):
            raise
        if isinstance(error, USER_ERRORS):
            return _fail(_sentence(error), 2)
        return _fail(f"{type(error).__name__}: {error} (a fault of textkernels: TEXTKERNELS_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> int:
    click.echo("Error: " + " ".join(message.split()), err=True)
    return code


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory; use fewer rows (--limit) or shorter texts (--max-tokens) {error}"
    return str(error) or type(error).__name__


def _show_user_warnings() -> None:
    """One line for each different UserWarning, nothing for the libraries' own."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        text = " ".join(str(message).split())
        if issubclass(category, UserWarning) and text not in shown:
            shown.add(text)
            click.echo(f"Warning: {text}", err=True)

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show  # type: ignore[assignment]
