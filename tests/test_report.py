"""Reports, figures, intervals and kept results: the parts that every experiment shares."""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from textkernels.evaluation import reliability
from textkernels.experiments import plot
from textkernels.experiments.intervals import paired_difference, wilson_interval
from textkernels.experiments.report import (
    REPORT_FILES,
    Code,
    Figure,
    Grid,
    Report,
    Section,
    check_folder,
    duration,
    percent,
    write_report,
)
from textkernels.finished import FinishedParts

# --- intervals ----------------------------------------------------------------------------------------------------


def test_wilson_interval_by_hand() -> None:
    """Its ends p solve (8/10 - p)^2 = z^2 p (1 - p) / 10."""
    low, high = wilson_interval(8, 10)
    for end in (low, high):
        assert (0.8 - end) ** 2 == pytest.approx(1.959963984540054**2 * end * (1 - end) / 10)
    assert low < 0.8 < high


def test_wilson_interval_at_the_ends() -> None:
    assert wilson_interval(0, 5)[0] == 0.0
    assert wilson_interval(5, 5)[1] == 1.0
    assert 0.5 < wilson_interval(5, 5)[0] < 1.0
    with pytest.raises(ValueError, match="got 3 in 2"):
        wilson_interval(3, 2)


def test_paired_difference_by_hand() -> None:
    """Differences 1, 0, 0, -1, 1: mean 0.2, variance 0.7."""
    first, second = np.array([1, 1, 0, 0, 1]), np.array([0, 1, 0, 1, 0])
    mean, low, high = paired_difference(first, second)
    half = 1.959963984540054 * math.sqrt(0.7 / 5)
    np.testing.assert_allclose([mean, low, high], [0.2, 0.2 - half, 0.2 + half])
    assert paired_difference(first, first) == (0.0, 0.0, 0.0)


# --- kept results -------------------------------------------------------------------------------------------------


def test_results_are_found_by_content(tmp_path: Path) -> None:
    parts = FinishedParts(tmp_path / "finished")
    content = {"data": "abc", "grid": [1e-7, 1.0], "nested": {"a": 1, "b": None}}
    assert parts.get(content) is None
    parts.keep(content, {"accuracy": 0.1 + 0.2, "none": None})
    assert FinishedParts(tmp_path / "finished").get(dict(reversed(content.items()))) == {
        "accuracy": 0.1 + 0.2,
        "none": None,
    }
    assert parts.get({**content, "grid": [1e-7]}) is None
    assert [path.suffix for path in (tmp_path / "finished").iterdir()] == [".json"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"result": 1}', b"\xff"])
def test_a_damaged_file_counts_as_absent(tmp_path: Path, damage: bytes) -> None:
    parts = FinishedParts(tmp_path)
    parts.keep({"a": 1}, {"x": 1})
    next(tmp_path.iterdir()).write_bytes(damage)
    assert parts.get({"a": 1}) is None


def test_arrays_are_computed_once_and_again_when_damaged(tmp_path: Path) -> None:
    calls = []

    def compute() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"values": np.arange(6.0).reshape(2, 3).T, "rows": np.array([3, 1])}

    parts = FinishedParts(tmp_path)
    for _ in range(2):
        arrays = parts.arrays({"a": 1}, compute)
        np.testing.assert_array_equal(arrays["values"], [[0, 3], [1, 4], [2, 5]])
        assert arrays["rows"].dtype == np.int64
    assert len(calls) == 1
    next(tmp_path.iterdir()).write_bytes(b"cut short")
    parts.arrays({"a": 1}, compute)
    assert len(calls) == 2


def test_memory_is_seen_while_it_is_held() -> None:
    # In a process of its own: others give memory back whenever they please.
    code = """
import time
import numpy as np
from textkernels.experiments.measure import measured

with measured() as before:
    pass
with measured() as cost:
    block = np.ones(40_000_000, dtype=np.uint8)
    time.sleep(1)  # the watching thread looks every 0.05 seconds
    del block
print(cost.peak_bytes - before.peak_bytes, cost.seconds)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown, seconds = map(float, result.stdout.split())
    assert 35e6 < grown < 200e6
    assert seconds > 0.9


# --- reports ------------------------------------------------------------------------------------------------------


class Seen(HTMLParser):
    """Tags, texts and whatever a page would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.fetched: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def report() -> Report:
    svg = plot.interval_plot({"a": [("x", 0.5, 0.4, 0.6)], "b": [("x", 0.7, 0.6, 0.8)]}, "accuracy")
    grid = Grid(["name", "value"], [["a|b <script>", "1.5"], ["plain\ntext", "–"]])
    blocks = ["Words & <b>signs</b>.", grid, Figure("dots", svg, "Two rows."), Code("run --a 'b' <c>")]
    return Report("Title <1>", [Section("First", blocks), Section("Second", ["End."])])


def test_written_files(tmp_path: Path, report: Report) -> None:
    records = [
        {"model": "GAP-only", "accuracy": np.float64(0.1) + 0.2, "evidence": None, "n": np.int64(3), "ok": np.True_},
        {"model": 'with "quotes", and commas', "accuracy": float("nan"), "evidence": -2.5, "n": 4, "ok": False},
    ]
    folder = tmp_path / "new" / "report"
    write_report(folder, report, records, {"shape": np.array([1, 2]), "bad": float("inf")})
    assert set(REPORT_FILES) | {"dots.svg"} == {path.name for path in folder.iterdir()}
    content = json.loads((folder / "results.json").read_text())
    assert content["rows"][0] == {"model": "GAP-only", "accuracy": 0.1 + 0.2, "evidence": None, "n": 3, "ok": True}
    assert content["rows"][1]["accuracy"] is None
    assert content["shape"] == [1, 2]
    assert content["bad"] is None
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["model", "accuracy", "evidence", "n", "ok"]
    assert float(rows[0]["accuracy"]) == 0.1 + 0.2
    assert rows[0]["evidence"] == rows[1]["accuracy"] == ""
    assert rows[1]["model"] == 'with "quotes", and commas'


def test_html_is_one_page_with_everything_escaped(report: Report) -> None:
    page = report.to_html()
    seen = Seen(page)
    assert "script" not in seen.tags
    assert seen.tags.count("svg") == 1
    assert {"link", "img", "iframe"}.isdisjoint(seen.tags)
    assert all(value.startswith("#") for value in seen.fetched)
    assert not re.search(r"@import|url\((?!#)", page)
    assert {"Words & <b>signs</b>.", "a|b <script>", "run --a 'b' <c>"} <= set(seen.texts)


def test_markdown(report: Report) -> None:
    lines = report.to_markdown().splitlines()
    assert lines[0] == "# Title <1>"
    table = lines.index("| name | value |")
    assert lines[table + 1 : table + 4] == ["| --- | ---: |", "| a\\|b <script> | 1.5 |", "| plain text | – |"]
    assert "![dots](dots.svg)" in lines
    code = lines.index("```")
    assert lines[code + 1 : code + 3] == ["run --a 'b' <c>", "```"]


def test_a_place_that_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    check_folder(tmp_path / "new" / "deep")
    with pytest.raises(ValueError, match="expected a folder"):
        check_folder(tmp_path / "file")
    with pytest.raises(ValueError, match="expected a folder"):
        check_folder(tmp_path / "file" / "below")


def test_numbers_in_words() -> None:
    assert percent(0.85344) == "85.34 %"
    assert percent(None) == "–"
    assert [duration(s) for s in (4.21, 59.96, 192, 3840)] == ["4.2 s", "1 min 0 s", "3 min 12 s", "1 h 4 min"]


# --- figures ------------------------------------------------------------------------------------------------------


def table_by_hand() -> list[dict[str, float | int | None]]:
    """8 rows at 0.95, six of them right; 4 rows at 0.6, all right."""
    return reliability(np.array([1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1], dtype=bool), np.array([0.95] * 8 + [0.6] * 4))


def test_reliability_as_text() -> None:
    lines = plot.reliability_lines(table_by_hand(), width=20)
    assert [line.split()[:3] for line in lines[1:]] == [["60.0%", "100.0%", "4"], ["95.0%", "75.0%", "8"]]
    assert lines[1].endswith("============|=======")
    assert lines[2].endswith("===============    |")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.reliability_diagram(table_by_hand(), "A & B"),
        lambda: plot.interval_plot({"A & B": [("x", 0.5, 0.4, 0.6), ("y", 0.5, 0.4, 0.6)]}, "accuracy"),
        lambda: plot.grid_curves({"A & B": {"line": ([1e-3, 1.0], [0.5, 0.6]), "none": ([], [])}}, "x", "y"),
    ],
)
def test_figures_are_valid_searchable_and_the_same_every_time(draw) -> None:  # type: ignore[no-untyped-def]
    svg = draw()
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "A & B" in [(element.text or "").strip() for element in root.iter()]
    assert draw() == svg


def test_chart_files(tmp_path: Path) -> None:
    svg = plot.reliability_diagram(table_by_hand())
    plot.write_chart(tmp_path / "r.svg", svg)
    plot.write_chart(tmp_path / "r.html", svg)
    assert (tmp_path / "r.svg").read_text() == svg
    assert Seen((tmp_path / "r.html").read_text()).tags.count("svg") == 1
    for wrong in ("r.png", "missing/r.svg"):
        with pytest.raises(ValueError):
            plot.check_chart(tmp_path / wrong)
