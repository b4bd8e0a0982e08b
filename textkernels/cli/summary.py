"""What fit and evaluate print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def fit_summary(report: Mapping[str, Any], classes: Iterable[Any], labels: Sequence[Any]) -> list[str]:
    """Lines about a fit: rows, what was left out and why, coverage, regularization, time.

    Args:
        report: `fit_report_` of the classifier.
        classes: `classes_` of the classifier.
        labels: the labels given to fit.
    """
    counts = Counter(labels)
    shares = ", ".join(f"{label} {counts[label]:,}" for label in classes)
    lines = [_line("rows", f"{len(labels):,} ({shares})")]
    dropped = {status: count for status, count in dict(report.get("dropped") or {}).items() if count}
    if dropped:
        reasons = ", ".join(f"{count:,} {status}" for status, count in dropped.items())
        lines.append(_line("left out", f"{sum(dropped.values()):,} ({reasons})"))
    if "coverage" in report:
        lines.append(_line("known words", f"{report['coverage']:.1%}"))
    if report.get("truncated_rows"):
        cut = f"{report['truncated_rows']:,} texts cut, {report.get('tokens_dropped', 0):,} tokens lost"
        lines.append(_line("truncated", cut))
    for key in ("diag_reg", "jitter", "log_marginal_likelihood"):
        if report.get(key) is not None:
            lines.append(_line(key, f"{report[key]:.6g}"))
    seconds = report.get("seconds")
    if isinstance(seconds, Mapping):
        stages = ", ".join(f"{stage} {value:.1f} s" for stage, value in seconds.items())
        lines.append(_line("time", f"{sum(seconds.values()):.1f} s ({stages})"))
    return lines


def _line(name: str, value: str) -> str:
    return f"{name + ':':<26}{value}"


def evaluation_summary(metrics: Mapping[str, Any]) -> list[str]:
    """Lines with the metrics, a table of the classes and the confusion matrix.

    Args:
        metrics: result of evaluation.evaluate.
    """
    lines = [
        _line("rows", f"{metrics['n']:,}"),
        _line("accuracy", f"{metrics['accuracy']:.2%}"),
        _line("macro F1", f"{metrics['macro_f1']:.4f}"),
        _line("log loss", f"{metrics['log_loss']:.4f}"),
        _line("Brier score", f"{metrics['brier']:.4f}"),
        _line("calibration error (ECE)", f"{metrics['ece']:.2%}"),
    ]
    classes = [
        [name, f"{row['precision']:.4f}", f"{row['recall']:.4f}", f"{row['f1']:.4f}", f"{row['support']:,}"]
        for name, row in metrics["per_class"].items()
    ]
    names = [str(name) for name in metrics["classes"]]
    confusion = [
        [name, *(f"{count:,}" for count in row)] for name, row in zip(names, metrics["confusion"], strict=True)
    ]
    lines += ["", *_grid(["class", "precision", "recall", "F1", "rows"], classes)]
    return [*lines, "", *_grid(["true \\ predicted", *names], confusion)]


def _grid(header: list[str], rows: list[list[str]]) -> list[str]:
    """Columns of equal width, the first to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in [header, *rows]
    ]
