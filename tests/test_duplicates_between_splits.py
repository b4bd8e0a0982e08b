"""Texts that occur twice are counted, listed on request and dropped on request only: fit, evaluate and reproduce."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import textkernels as tk
from textkernels import cli
from textkernels.overlap import distinct_hashes, find_repeats, seen_texts, text_hashes

TEXTS = ["a", "b", "a", None, "", "  ", "a", "b", "c", "A", "a ", float("nan"), ""]
LABELS = ["x", "x", "x", "x", "y", "y", "y", "x", "y", "y", "y", "y", "y"]


def test_repeats_by_hand() -> None:
    found = find_repeats(TEXTS, LABELS)
    assert np.flatnonzero(found.repeated).tolist() == [2, 7]
    assert np.flatnonzero(found.conflicting).tolist() == [0, 2, 6]
    assert found.n_texts_with_two_labels == 1
    assert found.first.tolist() == [0, 1, 0, 3, 4, 5, 0, 1, 8, 9, 10, 11, 12]


def test_hashes_are_of_the_exact_text() -> None:
    hashes = text_hashes(TEXTS)
    assert hashes.dtype == np.uint64
    assert len(set(hashes.tolist())) == 6  # a, b, c, A, "a " and blank
    assert hashes[3] == hashes[4] == hashes[5] == hashes[11] == 0
    assert text_hashes(["caf\u00e9"])[0] != text_hashes(["cafe\u0301"])[0]
    assert text_hashes(["\ud800"])[0] != 0  # broken input has a hash, too
    # BLAKE2b of 64 bits as the command b2sum has it, first byte lowest: models on disk hold these numbers.
    assert text_hashes(["a"])[0] == int.from_bytes(bytes.fromhex("40f89e395b66422f"), "little")


def test_known_texts() -> None:
    known = distinct_hashes(TEXTS)
    assert len(known) == 5
    assert (np.diff(known.astype(object)) > 0).all()
    assert seen_texts(["c", "d", "", None, "A"], known).tolist() == [True, False, False, False, True]
    assert seen_texts(["c"], distinct_hashes([])).tolist() == [False]


# --- commands -----------------------------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]
TRAIN = [("good film", "pos"), ("bad film", "neg")] * 2 + [
    ("fine plot", "pos"),
    ("fine plot", "neg"),
    *[(f"good {w}", "pos") for w in ("plot", "actor", "end")],
    *[(f"bad {w}", "neg") for w in ("plot", "actor", "end")],
]
TEST = [("good film", "pos"), ("good day", "pos"), ("bad day", "neg"), ("bad day", "neg"), ("fine plot", "neg")]


def write(path: str, rows: list[tuple[str, str]]) -> None:
    Path(path).write_text("id,text,label\n" + "".join(f"r{i},{t},{label}\n" for i, (t, label) in enumerate(rows)))


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    write("train.csv", TRAIN)
    write("test.csv", TEST)
    random = np.random.default_rng(0)
    words = ["good", "bad", "fine", "film", "plot", "actor", "end", "day"]
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in random.standard_normal(4)) for word in words]
    Path("vectors.txt").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main([*arguments, "--quiet"])
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


FIT = ("fit", "train.csv", "--embedding", "vectors.txt", "--model", "m")
NOTE = "Note: train.csv: rows with the text and label of an earlier row: 2, texts with two labels: 1; "


@pytest.mark.parametrize(
    ("options", "n", "done"),
    [
        ([], 12, "all of them stay."),
        (["--drop-duplicates"], 10, "2 rows were left out."),
        (["--drop-conflicting"], 10, "2 rows were left out."),
        (["--drop-duplicates", "--drop-conflicting"], 8, "4 rows were left out."),
    ],
)
def test_fit(run: Run, options: list[str], n: int, done: str) -> None:
    code, _, err = run(*FIT, *options)
    assert (code, err) == (0, NOTE + done + "\n")
    model = tk.load("m")
    assert model.n_train_ == n
    assert model.text_hashes_ is not None
    assert seen_texts(["good film", "fine plot", "good day"], model.text_hashes_).tolist() == [
        True,
        "--drop-conflicting" not in options,
        False,
    ]


def test_fit_lists(run: Run) -> None:
    code, _, err = run(*FIT, "--list-duplicates", "list.csv")
    assert code == 0
    assert err == NOTE + "all of them stay; they are listed in list.csv.\n"
    rows = read("list.csv")
    assert [row["id"] for row in rows] == ["r0", "r2", "r1", "r3", "r4", "r5"]
    assert [row["line"] for row in rows] == ["2", "4", "3", "5", "6", "7"]
    assert [row["first_line"] for row in rows] == ["2", "2", "3", "3", "6", "6"]
    assert [row["two_labels"] for row in rows] == ["False"] * 4 + ["True"] * 2
    assert rows[0]["text"] == "good film"


def test_evaluate(run: Run) -> None:
    assert run(*FIT)[0] == 0
    options = ("evaluate", "test.csv", "--model", "m", "--json", "m.json")
    code, _, err = run(*options, "--list-duplicates", "list.jsonl")
    assert code == 0
    note = (
        "rows with the text and label of an earlier row: 1, rows with the text of a training row: 2; all of them stay"
    )
    assert f"test.csv: {note}; they are listed in list.jsonl." in err
    assert json.loads(Path("m.json").read_text())["n"] == 5
    listed = [json.loads(line) for line in Path("list.jsonl").read_text().splitlines()]
    assert [(row["id"], row["in_training"]) for row in listed] == [
        ("r0", True),
        ("r2", False),
        ("r3", False),
        ("r4", True),
    ]
    code, _, err = run(*options, "--drop-duplicates")
    assert code == 0
    assert "3 rows were left out" in err
    assert json.loads(Path("m.json").read_text())["n"] == 2


def test_a_model_without_hashes_still_evaluates(run: Run) -> None:
    """Models written before they were kept: nothing is known about their texts."""
    from safetensors.numpy import load_file, save_file

    from textkernels.persistence import checksums

    assert run(*FIT)[0] == 0
    arrays = load_file("m/latent.safetensors")
    save_file({name: value for name, value in arrays.items() if "hashes" not in name}, "m/latent.safetensors")
    config = json.loads(Path("m/config.json").read_text())
    Path("m/config.json").write_text(json.dumps({**config, "checksums": checksums(Path("m"), config)}))
    code, _, err = run("evaluate", "test.csv", "--model", "m")
    assert code == 0
    assert "training row" not in err
    tk.load("m").save("again")
    assert tk.load("again").text_hashes_ is None


def test_nothing_left_is_an_error(run: Run) -> None:
    assert run(*FIT)[0] == 0
    write("test.csv", TEST[:1])
    code, _, err = run("evaluate", "test.csv", "--model", "m", "--drop-duplicates")
    assert code == 2
    assert "expected rows that remain" in err


def test_reproduce(run: Run) -> None:
    write("train.csv", TRAIN * 3)
    options = ("reproduce", "table3", "--train", "train.csv", "--test", "test.csv", "--embedding", "vectors.txt")
    assert run(*options, "--output", "out")[0] == 0
    counts = json.loads(Path("out/results.json").read_text())["repeated_texts"]
    assert list(counts.values()) == [26, 1, 1, 0, 2]
    assert "| test: rows with the text of a training row | 2 |" in Path("out/report.md").read_text()
    code, _, err = run(*options, "--output", "less", "--drop-duplicates", "--list-duplicates", "list.csv")
    assert code == 0, err
    assert [row["n_train"] for row in read("less/results.csv")] == ["10"] * 6
    assert [row["n_test"] for row in read("less/results.csv")] == ["2"] * 6
    assert [row["id"] for row in read("list.csv")] == ["r0", "r2", "r3", "r4"]
