"""The `textkernels` command: options reach the library, rows stay, errors are one line (CASES B09, B13, B21, B22, B24).

Most tests put a stand-in for the classifier: its prediction is a function of the text that can be done by hand.
Those at the end run the installed command on tiny word vectors.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import textkernels as tk
from textkernels import cli, persistence, scoring
from textkernels.cli import app

COMMANDS = ("fit", "score", "evaluate", "compare", "app")
Run = Callable[..., tuple[int, str, str]]


class StandIn:
    """Predicts "pos" for texts that hold "good"; remembers what it was given."""

    made: StandIn
    text_hashes_ = None

    def __init__(self, **settings: Any) -> None:
        self.settings, self.calls = settings, 0
        StandIn.made = self

    def fit(self, texts: list[Any], labels: list[Any], corpus: list[str] | None = None) -> StandIn:
        self.texts, self.labels, self.corpus = texts, labels, corpus
        self.classes_ = np.unique(labels)
        self.fit_report_ = {
            "n": len(texts),
            "dropped": {"empty": 2, "missing_text": 0},
            "coverage": 0.925,
            "truncated_rows": 1,
            "tokens_dropped": 1234,
            "diag_reg": 0.01,
            "jitter": 0.0,
            "log_marginal_likelihood": -12.5,
            "seconds": {"vectors": 1.25, "inference": 0.5},
        }
        return self

    def save(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "config.json").write_text("{}")

    def predict_table(self, texts: list[str | None], progress: bool = False) -> pd.DataFrame:
        self.calls += 1
        good = [text is not None and "good" in text for text in texts]
        pos = np.where(good, 0.9, 0.2)
        return pd.DataFrame(
            {
                "prediction": self.classes_[np.array(good, dtype=int)],
                **{f"probability_{name}": p for name, p in zip(self.classes_, (1 - pos, pos), strict=True)},
                "mean": pos - 0.5,
                "std": 0.1,
                "status": ["missing_text" if text is None else "ok" if text else "empty" for text in texts],
                "n_tokens": [len((text or "").split()) for text in texts],
                "truncated": False,
            }
        )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main(list(arguments))
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    """A stand-in with the classes neg and pos, as folder `model`."""
    made = StandIn()
    made.classes_ = np.array(["neg", "pos"])
    made.save(str(tmp_path / "model"))
    monkeypatch.setattr(tk, "load", lambda folder: made)
    monkeypatch.setattr(tk, "KernelClassifier", StandIn)
    return made


def failed(result: tuple[int, str, str], words: str, code: int = 2) -> None:
    """One line on standard error, which begins with Error: and holds the words."""
    status, out, err = result
    assert status == code, err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert words in err
    assert out == ""


# --- help --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys, textkernels.cli
try:
    textkernels.cli.main({arguments!r})
finally:
    print([m for m in ("numpy", "pandas", "pyarrow", "jax", "numba", "gensim", "sklearn", "scipy") if m in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    assert len(result.stdout) > 20


def test_help_of_every_command_has_an_example(run: Run) -> None:
    _, out, _ = run("--help")
    for name in COMMANDS:
        assert f"\n  {name} " in out
        assert f"  textkernels {name} " in run(name, "--help")[1]


def test_help_is_grouped(run: Run) -> None:
    _, out, _ = run("fit", "--help")
    headings = ["Options:", "The model:", "Tokens and vectors:", "Reading DATA:", "Other options:"]
    places = [out.index(f"\n{heading}\n") for heading in headings]
    assert places == sorted(places)
    assert places[1] < out.index("--kernel [nngp|ntk]") < places[2]


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"textkernels, version {tk.__version__}\n", "")


# --- errors ------------------------------------------------------------------------------------------------------

ERRORS = [
    ("nonsense", "No such command 'nonsense'"),
    ("fit", "Missing argument 'DATA'. (see textkernels fit --help)"),
    ("fit d.csv", "Missing option '--model'"),
    ("fit d.csv --model m --kernel rbf", "'rbf' is not one of 'nngp', 'ntk'"),
    ("fit d.csv --model m --diag-reg -1", "expected auto, auto-full or a number >= 0, got '-1'"),
    ("fit d.csv --model m --diag-reg nan", "expected auto, auto-full or a number >= 0"),
    ("fit d.csv --model m --limit 1", "1 is not in the range x>=2"),
    ("fit d.csv --model m --delimiter ab", "expected one character, or tab; got 'ab'"),
    ("fit d.csv --model m --rejects r.csv", "--rejects needs --skip-bad-rows"),
    ("fit d.csv --model m --architecture no.toml", "no.toml"),
    ("fit d.csv --model d.csv", "d.csv: expected a new folder"),
    ("fit d.csv --model other", "other: expected a new folder"),
    ("fit d.csv --model m --limit 2 --label-column three", "at least 3, one row a class, got 2"),
    ("fit d.csv --model m --label-column one", "expected at least two classes, got one"),
    ("fit d.csv --model m --label-column gaps", "d.csv: 1 of 3 rows have no label (line 3); label them"),
    ("fit d.csv --model m --label-column stars", "expected a column 'stars' with the labels"),
    ("fit no.csv --model m", "no.csv: there is no such file or folder"),
    ("fit secret.csv --model m --encoding klingon", "klingon"),
    ("score d.csv --model model --output out.txt", "out.txt: expected a name that ends with .csv"),
    ("score d.csv --model model --output no/out.csv", "there is no folder no"),
    ("score d.csv --model model --output d.csv", "d.csv: --output would replace DATA"),
    ("score d.csv --model none --output out.csv", "none: there is no model; make one with: textkernels fit"),
    ("score d.csv --model other --output out.csv", "other: there is no model"),
    ("score bad.csv --model model --output out.csv", "bad.csv, line 3: a quoted field that opens here"),
    ("score scored.csv --model model --output out.csv", "got prediction, mean; rename or remove them"),
    ("score mixed.jsonl --model model --output out.parquet", "the column 'x' holds values of several types"),
    ("score d.csv --model model --output out.csv --text-column texts", "got the columns 'text', 'three'"),
    ("score - --model model --output out.csv", "standard input: expected a first line"),
    ("evaluate d.csv --model model --json no/m.json", "there is no folder no"),
    ("evaluate d.csv --model model --label-column three", "d.csv, line 2: expected the labels of the model"),
    ("app --model none", "none: there is no model"),
    ("app --model model --port 0", "0 is not in the range"),
]


@pytest.mark.parametrize(("line", "words"), ERRORS, ids=[line for line, _ in ERRORS])
def test_errors_are_one_line(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch, line: str, words: str) -> None:
    Path("d.csv").write_text("text,three,one,gaps\ngood,a,x,pos\nbad,b,x,\nfair,c,x,neg\n")
    Path("secret.csv").write_text("text,label\ngood,a\n")
    Path("bad.csv").write_text('id,text\n1,a\n2,"b\n3,c\n')
    Path("scored.csv").write_text("text,prediction,mean\na,pos,1\n")
    Path("mixed.jsonl").write_text('{"text": "a", "x": 1}\n{"text": "b", "x": "1"}\n')
    Path("other").mkdir()
    Path("other/file").touch()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    failed(run(*line.split()), words)
    assert not Path("out.csv").exists()
    assert not Path("m").exists()


# Paths in a folder with d.csv, its links, a model, folders of texts, of an encoder and of an older report.
REFUSED = [
    ("score d.csv --model model --output ./sub/../d.csv", "./sub/../d.csv: --output would replace DATA"),
    ("score d.csv --model model --output link.csv", "link.csv: --output would replace DATA"),
    ("score link.csv --model model --output d.csv", "d.csv: --output would replace DATA"),
    ("score d.csv --model model --output hard.csv", "hard.csv: --output would replace DATA"),
    ("score d.csv --model model --output model/o.csv", "model/o.csv: --output lies in the folder of --model"),
    ("score d.csv --model model-link --output model/o.csv", "model/o.csv: --output lies in the folder of --model"),
    ("score d.csv --model model --output o.csv --skip-bad-rows --rejects d.csv", "--rejects would replace DATA"),
    ("score d.csv --model model --output o.csv --skip-bad-rows --rejects ./o.csv", "--output and --rejects name the"),
    ("score d.csv --model model --output other-model/o.csv", "other-model, which holds a model"),
    ("score texts --model model --output texts/neg/o.csv", "lies in the folder of DATA, which is read"),
    ("evaluate d.csv --model model --json d.csv", "d.csv: --json would replace DATA"),
    ("evaluate d.csv --model model --json link.csv", "link.csv: --json would replace DATA"),
    ("evaluate d.csv --model model --json model/config.json", "--json lies in the folder of --model"),
    ("evaluate d.csv --model model --json sub", "sub: expected the name of a file, got a folder"),
    ("evaluate d.csv --model model --json pipe", "pipe: expected the name of a file, got a device or pipe"),
    ("evaluate texts --model model --json texts/neg/1.txt", "--json lies in the folder of DATA"),
    ("evaluate d.csv --model model --list-duplicates d.csv", "--list-duplicates would replace DATA"),
    ("evaluate d.csv --model model --list-duplicates l.txt", "l.txt: expected a name that ends with .csv"),
    ("evaluate d.csv --model model --list-duplicates no/l.csv", "there is no folder no"),
    ("evaluate d.csv --model model --list-duplicates l.csv --json l.csv", "name the same place"),
    ("evaluate d.csv --model model --reliability r.html --json sub/../r.html", "name the same place"),
    ("evaluate d.csv --model model --reliability model/r.svg", "--reliability lies in the folder of --model"),
    ("fit d.csv --model m --list-duplicates link.csv", "--list-duplicates would replace DATA"),
    ("fit d.csv --model m --skip-bad-rows --rejects hard.csv", "--rejects would replace DATA"),
    ("fit d.csv --model m --skip-bad-rows --rejects r.csv --list-duplicates r.csv", "name the same place"),
    ("fit d.csv --model m --embedding v.csv --list-duplicates v.csv", "--list-duplicates would replace --embedding"),
    ("fit d.csv --model m --embedding v.csv+x.vec --list-duplicates v.csv", "would replace --embedding"),
    ("fit d.csv --model m --embedding encoder --list-duplicates encoder/l.csv", "lies in the folder of --embedding"),
    ("fit d.csv --model other-model --list-duplicates other-model/l.csv", "l.csv: --list-duplicates lies in"),
    ("fit d.csv --model other-model/m", "other-model, which holds a model"),
    ("fit texts --model texts/m", "texts/m: --model lies in the folder of DATA"),
    ("fit d.csv --model encoder", "something else is there (config.json, model.onnx)"),
    ("fit d.csv --model loop", "loop: expected a new folder or one with a textkernels model, got a link that leads"),
    ("tune d.csv --output net.toml --architecture sub/../net.toml", "net.toml: --output would replace --architecture"),
    ("tune d.csv --output other-model/a.toml", "other-model, which holds a model"),
    ("tune d.toml --delimiter , --output d.toml", "d.toml: --output would replace DATA"),
    ("tune d.csv --output a.toml --skip-bad-rows --rejects d.csv", "--rejects would replace DATA"),
    ("compare d.csv --embeddings a -o other-model", "got one with a model"),
    ("compare d.csv --embeddings a -o encoder", "something else is there (config.json, model.onnx)"),
    ("compare d.csv --embeddings a -o drawings", "something else is there (mine.svg)"),
    ("compare d.csv --embeddings a -o thesis", "something else is there (report.md)"),
    ("compare d.csv --embeddings a -o other-model/out", "other-model, which holds a model"),
    ("compare report/results.csv --embeddings a -o report", "the folder of --output holds DATA"),
    ("compare d.csv --embeddings a -o out --test t.csv --skip-bad-rows --rejects t.csv", "would replace --test"),
    ("compare d.csv --embeddings a -o report --skip-bad-rows --rejects report/r.csv", "name the same place"),
    ("reproduce table3 --train d.csv -o other-model", "got one with a model"),
    ("reproduce table3 --train d.csv -o encoder", "something else is there"),
    ("reproduce table3 --train d.csv -o out --list-duplicates d.csv", "--list-duplicates would replace --train"),
    ("reproduce table4 --train d.csv -o other-model", "got one with a model"),
    ("reproduce table4 --train d.csv -o encoder", "something else is there"),
]


def contents(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("line", "words"), REFUSED, ids=[line for line, _ in REFUSED])
def test_nothing_is_written_over_something_else(
    run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, words: str
) -> None:
    for name in ("d.csv", "t.csv", "v.csv", "d.toml"):
        Path(name).write_text("text,label\ngood,pos\nbad,neg\n")
    tk.named_architecture("gap").save("net.toml")
    for name, text in {
        "texts/neg/1.txt": "bad",
        "texts/pos/1.txt": "good",
        "sub/x": "",
        "encoder/config.json": '{"model_type": "bert"}',
        "encoder/model.onnx": "weights",
        "drawings/mine.svg": "<svg/>",
        "thesis/report.md": "# Mine",
        "report/results.csv": "text,label\ngood,pos\nbad,neg\n",
        "report/results.json": '{"rows": [], "provenance": {}}',
        "other-model/config.json": json.dumps(dict.fromkeys(persistence.MARKS)),
        "other-model/latent.safetensors": "weights",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path("link.csv").symlink_to("d.csv")
    Path("model-link").symlink_to("model")
    Path("loop").symlink_to("loop")
    os.link("d.csv", "hard.csv")
    os.mkfifo("pipe")
    before = contents(tmp_path)

    def forbid(*_: object, **__: object) -> None:
        raise AssertionError("read or computed before the check")

    monkeypatch.setattr(tk, "load", forbid)
    monkeypatch.setattr("textkernels.datasets.load", forbid)
    failed(run(*line.split()), words)
    assert contents(tmp_path) == before


def test_standard_input_is_not_replaced(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    from textkernels.cli import outputs

    Path("d.csv").write_text("text\ngood\n")
    with open("d.csv", "rb") as source:
        status = os.fstat(source.fileno())
        monkeypatch.setattr(outputs.os, "fstat", lambda descriptor: status)
        failed(run("score", "-", "--model", "model", "--output", "d.csv"), "d.csv: --output would replace DATA")


@pytest.mark.parametrize("output", ["o.csv", "texts/o.csv", "sub/o.csv", "d.csv.gz"])
def test_what_may_be_written_is(run: Run, model: StandIn, output: str) -> None:
    for name in ("texts/neg/1.txt", "texts/pos/1.txt", "sub/x"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("good")
    for _ in range(2):
        code, _, err = run("score", "texts", "--model", "model", "--output", output, "-q")
        assert (code, err) == (0, "")


def test_names_that_are_no_paths_are_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from textkernels.cli.outputs import check_outputs

    monkeypatch.chdir(tmp_path)
    inputs = {"DATA": "bundled:imdb", "--embedding": "glove-6b-50d+minilm", "--architecture": "struct-fcn"}
    check_outputs(inputs=inputs, folders={"--model": "."}, files={"--json": str(tmp_path.parent / "x.json")})


@pytest.mark.parametrize("files", [(), (".DS_Store",), ("finished/a.json", "report.md"), ("results.json", "a.svg")])
def test_folders_for_a_report(tmp_path: Path, files: tuple[str, ...]) -> None:
    from textkernels.cli.outputs import check_report_folder

    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"rows": [], "provenance": {}}')
    check_report_folder(str(tmp_path))
    check_report_folder(str(tmp_path / "new"))


def test_rejects_of_both_sources_are_kept(run: Run) -> None:
    from textkernels.cli.options import read_data

    Path("d.csv").write_text("text,label\ngood,pos\na,b,c\n")
    Path("t.csv").write_text("text,label\nd,e,f\ngood,pos\n")
    options: dict[str, Any] = {"quiet": True, "skip_bad_rows": True, "rejects": "r.csv"}
    first = read_data("d.csv", **options)
    read_data("t.csv", beside=first, **options)
    rows = pd.read_csv("r.csv", dtype=str)
    assert rows[["source", "line", "raw"]].to_numpy().tolist() == [["d.csv", "3", "a,b,c"], ["t.csv", "2", "d,e,f"]]


def test_no_arguments_show_help(run: Run) -> None:
    code, _, err = run()
    assert code == 2
    assert err.startswith("Usage: textkernels")


def test_faults_of_our_own_show_no_traceback(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(texts: object, progress: bool = False) -> None:
        raise ZeroDivisionError("division\nby zero")

    Path("d.csv").write_text("text\na\n")
    model.predict_table = fail  # type: ignore[assignment, method-assign]
    failed(
        run("score", "d.csv", "--model", "model", "--output", "o.csv"), "ZeroDivisionError: division by zero", code=1
    )
    monkeypatch.setenv("TEXTKERNELS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["score", "d.csv", "--model", "model", "--output", "o.csv"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("asked for 5 GB"), "not enough memory; use fewer rows (--limit) or shorter texts"),
        (PermissionError(13, "Permission denied", "x.bin"), "x.bin: Permission denied"),
        (NotImplementedError("Conv comes later"), "Conv comes later"),
        (ImportError('run pip install "textkernels[data]"'), 'run pip install "textkernels[data]"'),
    ],
)
def test_errors_of_the_library(
    run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(folder: str) -> None:
        raise error

    monkeypatch.setattr(tk, "load", fail)
    failed(run("score", "d.csv", "--model", "model", "--output", "o.csv"), words)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--embedding", "no-such-vectors.txt"], "no-such-vectors.txt"),
        (["--architecture", "no-such-network"], "no-such-network"),
        (["--tokenizer", "no-such-rule"], "no-such-rule"),
    ],
)
def test_names_that_only_the_classifier_knows(run: Run, option: list[str], words: str) -> None:
    Path("d.csv").write_text("text,label\ngood,pos\nbad,neg\n")
    Path("v.txt").write_text(VECTORS)
    failed(run("fit", "d.csv", "--model", "m", "--embedding", "v.txt", *option, "--quiet"), words)
    assert not Path("m").exists()


def test_interrupt(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(folder: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tk, "load", interrupt)
    assert run("score", "d.csv", "--model", "model", "--output", "o.csv") == (130, "", "\nStopped.\n")


# --- fit ---------------------------------------------------------------------------------------------------------


def test_fit_hands_everything_on(run: Run, model: StandIn) -> None:
    Path("d.csv").write_text("text,label\ngood,pos\n,neg\nNA,neg\n")
    line = (
        "fit d.csv --model m --embedding word2vec --architecture gap --kernel ntk --diag-reg 1e-3 --seed 7 "
        "--engine jax --workers 2 "
        "--tokenizer keras --max-tokens 50 --keep head+tail --unknown zero --scale none"
    )
    code, out, err = run(*line.split())
    assert (code, err) == (0, "")
    assert StandIn.made.settings == {
        "embedding": "word2vec",
        "architecture": "gap",
        "kernel": "ntk",
        "diag_reg": 1e-3,
        "random_state": 7,
        "tokenizer": "keras",
        "max_tokens": 50,
        "keep": "head+tail",
        "unknown": "zero",
        "engine": "jax",
        "scale": "none",
        "workers": 2,
        "progress": True,
    }
    assert StandIn.made.texts == ["good", None, "NA"]
    assert StandIn.made.labels == ["pos", "neg", "neg"]
    assert StandIn.made.corpus is None
    assert Path("m/config.json").is_file()
    lines = dict(line.split(":", 1) for line in out.splitlines()[:-1])
    assert {name: value.strip() for name, value in lines.items()} == {
        "rows": "3 (neg 2, pos 1)",
        "left out": "2 (2 empty)",
        "known words": "92.5%",
        "truncated": "1 texts cut, 1,234 tokens lost",
        "diag_reg": "0.01",
        "jitter": "0",
        "log_marginal_likelihood": "-12.5",
        "time": "1.8 s (vectors 1.2 s, inference 0.5 s)",
    }
    assert out.endswith("Model written to m.\n")


def test_defaults_of_fit_are_those_of_the_classifier(run: Run, model: StandIn) -> None:
    import inspect

    from textkernels.classifier import KernelClassifier

    Path("d.csv").write_text("text,label\ngood,pos\nbad,neg\n")
    assert run("fit", "d.csv", "--model", "m", "--quiet") == (0, "", "")
    defaults = {name: p.default for name, p in inspect.signature(KernelClassifier).parameters.items()}
    assert {**defaults, **StandIn.made.settings} == defaults


def test_limit_on_a_sorted_file_keeps_shares_and_the_corpus_keeps_all_texts(run: Run, model: StandIn) -> None:
    rows = [("pos", n) for n in range(60)] + [("neg", n) for n in range(30)] + [("", n) for n in range(5)]
    Path("d.csv").write_text("text,label\n" + "".join(f"{label}{n},{label}\n" for label, n in rows))
    code, _, err = run("fit", "d.csv", "--model", "m", "--limit", "9", "--drop-unlabeled", "--seed", "3")
    assert code == 0
    assert "d.csv: 5 of 95 rows have no label (line 92, 93, 94, 95, 96); they were left out." in err
    made = StandIn.made
    assert made.labels == ["pos"] * 6 + ["neg"] * 3
    assert [text.startswith(label) for text, label in zip(made.texts, made.labels, strict=True)] == [True] * 9
    assert len(set(made.texts)) == 9
    assert made.corpus == [f"{label}{n}" for label, n in rows]
    first = made.texts
    run("fit", "d.csv", "--model", "n", "--limit", "9", "--drop-unlabeled", "--seed", "3", "--quiet")
    assert StandIn.made.texts == first
    run("fit", "d.csv", "--model", "o", "--limit", "9", "--drop-unlabeled", "--seed", "4", "--quiet")
    assert StandIn.made.texts != first


def test_architecture_from_a_file(run: Run, model: StandIn) -> None:
    network = tk.named_architecture("gap-fcn", hidden=2)
    network.save("net.toml")
    Path("d.csv").write_text("text,label\ngood,pos\nbad,neg\n")
    assert run("fit", "d.csv", "--model", "m", "--architecture", "net.toml", "-q")[0] == 0
    assert StandIn.made.settings["architecture"] == network


def test_doubtful_labels_warn_once(run: Run, model: StandIn) -> None:
    Path("d.csv").write_text("text,label\na, Positive\nb,NEG\n")
    code, _, err = run("fit", "d.csv", "--model", "m", "-q")
    assert (code, err) == (0, "Warning: the label ' Positive' has spaces around it, which are kept\n")
    assert StandIn.made.labels == [" Positive", "NEG"]


def test_unsup_folder_is_no_class(run: Run, model: StandIn) -> None:
    for name in ("neg/1.txt", "pos/2.txt", "unsup/3.txt"):
        Path("acl", name).parent.mkdir(parents=True)
        Path("acl", name).write_text(name)
    code, _, err = run("fit", "acl", "--model", "m", "-q")
    assert (code, err) == (0, "Note: acl: the folder unsup holds texts without labels and was left out.\n")
    assert StandIn.made.labels == ["neg", "pos"]


# --- score -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.csv.gz"])
def test_score_keeps_rows_order_and_columns(
    run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    from textkernels.tables import read_table

    monkeypatch.setattr(scoring, "CHUNK", 2)
    Path("in.csv").write_text('note,text,id\nx,good,007\n,NA,008\n"a\nb",,009\nx,"",010\nx,good,007\n')
    code, out, err = run("score", "in.csv", "--model", "model", "--output", output)
    assert (code, err) == (0, "")
    assert out == f"5 rows scored: 3 ok, 1 missing_text, 1 empty.\nWritten to {output}.\n"
    frame = read_table(output).frame
    added = ["prediction", "probability_neg", "probability_pos", "mean", "std", "status", "n_tokens", "truncated"]
    assert frame.columns.tolist() == ["note", "text", "id", *added]
    cells = [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(dtype=object).tolist()]
    assert [row[:4] for row in cells] == [
        ["x", "good", "007", "pos"],
        [None, "NA", "008", "neg"],
        ["a\nb", None, "009", "neg"],
        ["x", "", "010", "neg"],
        ["x", "good", "007", "pos"],
    ]
    assert [float(row[5]) for row in cells] == [0.9, 0.2, 0.2, 0.2, 0.9]
    # One row to see the names of the new columns, then chunks of 2, 2 and 1.
    assert model.calls == 4


def test_skipped_rows_are_counted_and_kept_aside(run: Run, model: StandIn) -> None:
    Path("in.csv").write_text('id,text\n1,good\n2,"open\n3,b,c\n4,bad\n')
    arguments = ["score", "in.csv", "--model", "model", "--output", "out.jsonl", "--skip-bad-rows"]
    code, out, err = run(*arguments, "--rejects", "rejects.csv")
    assert code == 0
    assert err == "Note: in.csv: left out 2 bad rows (line 3, 4); they are in rejects.csv.\n"
    assert out.startswith("2 rows scored")
    assert [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()] == ["1", "4"]
    rejects = pd.read_csv("rejects.csv", dtype=str)
    assert rejects["line"].tolist() == ["3", "4"]
    assert rejects["raw"].tolist() == ['2,"open', "3,b,c"]
    assert "expected 2 fields, got 3" in rejects["reason"][1]


def test_score_a_folder(run: Run, model: StandIn) -> None:
    for name, text in (("neg/1.txt", "bad"), ("pos/2.txt", "good")):
        Path("acl", name).parent.mkdir(parents=True)
        Path("acl", name).write_text(text)
    assert run("score", "acl", "--model", "model", "--output", "out.csv", "-q") == (0, "", "")
    frame = pd.read_csv("out.csv")
    assert frame[["id", "text", "label", "prediction"]].to_numpy().tolist() == [
        ["neg/1.txt", "bad", "neg", "neg"],
        ["pos/2.txt", "good", "pos", "pos"],
    ]


# --- evaluate ----------------------------------------------------------------------------------------------------


def test_evaluate_by_hand(run: Run, model: StandIn) -> None:
    Path("d.csv").write_text("text,label\ngood,pos\ngood,neg\nbad,neg\n,pos\n")
    code, out, err = run("evaluate", "d.csv", "--model", "model", "--json", "m.json")
    assert code == 0
    assert err == (
        "Note: d.csv: texts with two labels: 1; all of them stay.\n"
        "Note: 1 of 4 rows have no usable text and got the class shares (1 missing_text).\n"
    )
    metrics = json.loads(Path("m.json").read_text())
    assert {"accuracy", "macro_f1", "log_loss", "brier", "ece", "confusion", "per_class", "n"} <= set(metrics)
    assert metrics["n"] == 4
    assert metrics["accuracy"] == 0.5
    assert metrics["confusion"] == [[1, 1], [1, 1]]
    assert metrics["brier"] == pytest.approx((0.1**2 + 0.9**2 + 0.2**2 + 0.8**2) / 4)
    assert metrics["log_loss"] == pytest.approx(-np.log([0.9, 0.1, 0.8, 0.2]).mean())
    lines = out.splitlines()
    assert "accuracy:                 50.00%" in lines
    assert lines[-6:-4] == ["neg                 1    1", "pos                 1    1"]
    # One bin of confidence each at 80 % and 90 %, half of either right.
    assert [line.split()[:3] for line in lines[-2:]] == [["80.0%", "50.0%", "2"], ["90.0%", "50.0%", "2"]]
    assert ["pos", "0.5000", "0.5000", "0.5000", "2"] in [line.split() for line in lines]


def test_metrics_are_json_without_nan(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    from textkernels import evaluation

    honest = evaluation.evaluate

    def without_value(*given: Any) -> dict[str, Any]:
        return {**honest(*given), "ece": float("nan"), "brier": float("inf")}

    monkeypatch.setattr(evaluation, "evaluate", without_value)
    Path("d.csv").write_text("text,label\ngood,pos\nbad,neg\n")
    assert run("evaluate", "d.csv", "--model", "model", "--json", "m.json")[0] == 0
    metrics = json.loads(Path("m.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert metrics["ece"] is metrics["brier"] is None


def test_labels_of_another_type_are_matched(run: Run, model: StandIn) -> None:
    model.classes_ = np.array([0, 1])
    Path("d.csv").write_text("text,label\ngood,1\nbad,0\n")
    assert run("evaluate", "d.csv", "--model", "model", "--json", "m.json")[0] == 0
    assert json.loads(Path("m.json").read_text())["accuracy"] == 1.0


def test_a_label_the_model_does_not_know_counts_as_wrong(run: Run, model: StandIn) -> None:
    Path("d.csv").write_text("text,label\ngood,pos\nbad,odd\n")
    code, _, err = run("evaluate", "d.csv", "--model", "model", "--json", "m.json")
    assert code == 0
    assert err.startswith("Warning: ")
    assert "odd" in err
    assert json.loads(Path("m.json").read_text())["accuracy"] == 0.5


# --- app ---------------------------------------------------------------------------------------------------------


def test_app_script_is_found_without_importing_it() -> None:
    pytest.importorskip("streamlit")
    code = "import sys; from textkernels.cli.app import app_script; print(app_script()); print('app' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    path, imported = result.stdout.splitlines()
    assert Path(path).parts[-2:] == ("app", "main.py")
    assert imported == "False"


def test_app_without_streamlit(run: Run, model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    failed(run("app", "--model", "model"), 'run pip install "textkernels[app]"')


@pytest.mark.skipif(find_spec("streamlit") is None, reason="Streamlit is not installed (extra app)")
def test_app_on_a_port_in_use(run: Run, model: StandIn) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        failed(run("app", "--model", "model", "--port", str(port)), f"port {port} is in use")


# --- the installed command ---------------------------------------------------------------------------------------

COMMAND = Path(sys.executable).with_name("textkernels")
VECTORS = "good 1 0.1 0.2\nfine 0.9 0 0.1\nbad -1 0.2 0\ndull -0.9 -0.1 0.1\nfilm 0 1 0\nplot 0 0.8 0.3\n"

installed = pytest.mark.skipif(not COMMAND.exists(), reason="the package is not installed in this environment")


def command(folder: Path, *arguments: str, data: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(COMMAND), *arguments], cwd=folder, input=data, capture_output=True, text=True, env=environment, timeout=120
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model fitted by the command, and its data."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "vectors.txt").write_text(VECTORS)
    rows = [
        (f"{a} {b}", "pos" if a in ("good", "fine") else "neg")
        for a in VECTORS.split()[::4][:4]
        for b in ("film", "plot")
    ]
    (folder / "train.csv").write_text(
        "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows * 2) + ",pos\n"
    )
    result = command(folder, "fit", "train.csv", "--model", "m", "--embedding", "vectors.txt")
    assert result.returncode == 0, result.stderr
    assert "rows:                     17 (neg 8, pos 9)" in result.stdout
    assert "left out:                 1 (1 missing_text)" in result.stdout
    assert "Traceback" not in result.stderr
    return folder


@installed
def test_installed_command_scores_every_row_alike_alone_and_together(fitted: Path) -> None:
    texts = ["good film", "qwzx vrrp", "", "bad dull good plot", "NA"]
    table = "id,text\n" + "".join(f'00{n},"{text}"\n' for n, text in enumerate(texts)) + "005,\n"
    result = command(fitted, "score", "-", "--model", "m", "--output", "out.csv", data=table)
    assert result.returncode == 0, result.stderr
    frame = pd.read_csv(fitted / "out.csv", dtype={"id": str}, keep_default_na=False)
    assert frame["id"].tolist() == [f"00{n}" for n in range(6)]
    assert frame["status"].tolist() == ["ok", "no_known_tokens", "empty", "ok", "no_known_tokens", "missing_text"]
    assert frame["prediction"][[0, 3]].tolist() == ["pos", "neg"]
    assert np.allclose(frame["probability_neg"] + frame["probability_pos"], 1.0)
    assert not frame.isna().any().any()
    result = command(fitted, "score", "-", "--model", "m", "--output", "alone.csv", data=f"text\n{texts[3]}\n")
    assert result.returncode == 0, result.stderr
    alone = pd.read_csv(fitted / "alone.csv")
    assert alone["prediction"][0] == frame["prediction"][3]
    for column in ("probability_pos", "mean", "std"):
        assert alone[column][0] == pytest.approx(frame[column][3], abs=1e-6)


@installed
def test_installed_command_evaluates(fitted: Path) -> None:
    result = command(fitted, "evaluate", "train.csv", "--model", "m", "--json", "metrics.json")
    assert result.returncode == 0, result.stderr
    metrics = json.loads((fitted / "metrics.json").read_text())
    assert metrics["n"] == 17
    assert metrics["accuracy"] >= 16 / 17
    assert f"{metrics['accuracy']:.2%}" in result.stdout


@installed
def test_installed_command_fails_in_one_line(fitted: Path) -> None:
    result = command(fitted, "fit", "no.csv", "--model", "n")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: no.csv: there is no such file or folder")
    assert result.stderr.count("\n") == 1


@installed
@pytest.mark.skipif(find_spec("streamlit") is None, reason="Streamlit is not installed (extra app)")
def test_installed_command_opens_the_app(fitted: Path) -> None:
    server = subprocess.Popen(
        [str(COMMAND), "app", "--model", "m"], cwd=fitted, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("The pages are open at http://127.0.0.1:"), server.stderr and server.stderr.read()
        address = line.split()[5]
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=30) as answer:
            assert answer.read() == b"ok"
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 143
        host, port = address.removeprefix("http://").split(":")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))):
                    return
            time.sleep(0.1)
        pytest.fail("the server outlived the command")
    finally:
        server.kill()
        server.communicate()
