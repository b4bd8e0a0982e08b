"""Table 3: candidates after shared token work, validation in float32, refits in float64, the command, going on."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from scipy.stats import multivariate_normal

from embeddings import Sequences
from textkernels import cli
from textkernels.evaluation import evaluate
from textkernels.experiments import table3, validation
from textkernels.experiments.candidates import TABLE3, Candidate, stacks
from textkernels.experiments.pooled import PooledTexts, continue_features, token_stack
from textkernels.experiments.refit import refit
from textkernels.experiments.table3 import Trial
from textkernels.experiments.validation import GridScore, Split, best_score, validate
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.targets import encode_targets

CANDIDATES = [candidate for members in stacks(TABLE3).values() for candidate in members]
DIM, N, TEST = 4, 26, 7


def arrays() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((length, DIM)) for length in random.integers(1, 7, N + TEST)]


DOCUMENTS = arrays()
CODES = (np.array([document[:, 0].mean() for document in DOCUMENTS]) > 0).astype(np.int64)
SPLIT = Split(np.arange(0, N, 2), np.arange(1, N, 2), CODES[:N], 2)


def prepared(candidate: Candidate) -> tuple[FeatureKernel, DocumentFeatures]:
    """Through the shared token work, as the experiment does it."""
    stack = FeatureKernel(token_stack(candidate.architecture))
    pooled = stack.prepare(Sequences.from_arrays(DOCUMENTS), 6)
    return FeatureKernel(candidate.architecture), continue_features(candidate.architecture, pooled)


def dense(candidate: Candidate) -> dict[str, np.ndarray]:
    """Both kernels between all documents, one pair at a time, by the formulas."""
    return dict(zip(("nngp", "ntk"), oracle.gram(candidate.architecture, DOCUMENTS), strict=True))


# --- candidates ---------------------------------------------------------------------------------------------------


def test_the_classes_are_those_of_the_paper() -> None:
    assert list(TABLE3) == ["GAP-only", "GAP-FCN", "Struct"]
    assert [len(members) for members in TABLE3.values()] == [2, 6, 6]
    assert set(TABLE3["GAP-only"]) < set(TABLE3["GAP-FCN"])
    assert len(CANDIDATES) == 12
    attends = {name: {len(c.architecture.token_layers) for c in members} for name, members in TABLE3.items()}
    assert attends == {"GAP-only": {0}, "GAP-FCN": {0}, "Struct": {1}}
    depths = {(c.hidden, c.layer_norm) for c in TABLE3["Struct"]}
    assert depths == {(hidden, norm) for hidden in (0, 1, 2) for norm in (False, True)}


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda c: c.architecture.name)
def test_shared_token_work_gives_each_candidates_kernel(candidate: Candidate) -> None:
    kernel, documents = prepared(candidate)
    for ours, theirs in zip(kernel.block(documents, documents, True, 0), dense(candidate).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * theirs.max())


def test_pooled_texts_come_back_from_arrays() -> None:
    pooled = PooledTexts(DocumentFeatures(np.eye(2), np.zeros((2, 0))), np.array([0, 2]), np.ones(3), np.zeros(3, int))
    back = PooledTexts.from_arrays(pooled.arrays())
    np.testing.assert_array_equal(back.documents.nngp, np.eye(2))
    assert back.documents.ntk.shape == (2, 0)
    np.testing.assert_array_equal(back.rows, [0, 2])


# --- validation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda c: c.architecture.name)
def test_validation_agrees_with_dense_float64(candidate: Candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "BLOCK", 5)
    monkeypatch.setattr(validation, "ROWS_AT_ONCE", 4)
    kernel, documents = prepared(candidate)
    grid = (1e-2, 1.0)
    results = validate(kernel, documents[:N], SPLIT, ("nngp", "ntk"), grid)
    y, truth = SPLIT.targets(), encode_targets(CODES[SPLIT.validation], 2)
    for kind, gram in dense(candidate).items():
        solver, scores = results[kind]
        few = kernel.architecture.linear and documents.ntk.shape[1] < len(SPLIT.fitting)
        assert solver == ("primal" if few else "float32 cholesky")
        inside = gram[np.ix_(SPLIT.fitting, SPLIT.fitting)]
        for score, diag_reg in zip(scores, grid, strict=True):
            noisy = inside + diag_reg * np.trace(inside) / len(inside) * np.eye(len(inside))
            mean = gram[np.ix_(SPLIT.validation, SPLIT.fitting)] @ np.linalg.solve(noisy, y)
            assert score.diag_reg == diag_reg
            assert score.mse == pytest.approx(np.square(mean - truth).mean(), rel=1e-3)
            assert score.accuracy == pytest.approx(((mean > 0) == (truth > 0)).mean())
            if kind == "nngp":
                expected = multivariate_normal(np.zeros(len(inside)), noisy).logpdf(y[:, 0])
                assert score.log_marginal_likelihood == pytest.approx(expected, rel=1e-3)
            else:
                assert score.log_marginal_likelihood is None


def test_where_float32_fails_the_value_and_all_smaller_ones_count_as_failed() -> None:
    candidate = Candidate("gap-fcn", 1, False)
    kernel, documents = prepared(candidate)
    twice = np.tile(np.arange(8), 8)  # repeated documents: eigenvalues of zero, and of -1e-7 after rounding
    split = Split(np.arange(64), np.arange(64, 90), np.tile(CODES[:N], 4)[:90], 2)
    rows = np.concatenate([twice, np.arange(26)])
    grid = (1e-12, 1e-10, 1e-2, 1.0)
    scores = validate(kernel, documents[rows], split, ("ntk",), grid)["ntk"][1]
    assert [score.failed for score in scores] == [True, True, False, False]
    assert best_score(scores).diag_reg in (1e-2, 1.0)


def test_choice_of_the_regularizer() -> None:
    scores = [GridScore(1e-7), GridScore(1e-3, 0.8, 0.2), GridScore(1e-2, 0.8, 0.1), GridScore(1.0, 0.7, 0.05)]
    assert best_score(scores).diag_reg == 1e-2
    with pytest.raises(ValueError, match="got none"):
        best_score(scores[:1])


# --- refit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
@pytest.mark.parametrize("candidate", [CANDIDATES[0], CANDIDATES[3], CANDIDATES[10]], ids=lambda c: c.architecture.name)
def test_refit_agrees_with_dense_formulas(candidate: Candidate, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textkernels.experiments.refit.ROWS_AT_ONCE", 3)
    kernel, documents = prepared(candidate)
    train, test = documents[:N], documents[N:]
    fast = refit(kernel, train, test, CODES[:N], 2, kind == "ntk", 1e-2)
    slow = refit(kernel, train, test, CODES[:N], 2, kind == "ntk", 1e-2, uncertainty=True)
    gram = dense(candidate)[kind]
    noisy = gram[:N, :N] + 1e-2 * np.trace(gram[:N, :N]) / N * np.eye(N)
    y = encode_targets(CODES[:N], 2)
    mean = gram[N:, :N] @ np.linalg.solve(noisy, y)
    np.testing.assert_array_equal(fast.predicted, mean[:, 0] > 0)
    np.testing.assert_array_equal(slow.predicted, fast.predicted)
    assert fast.probabilities is None
    assert slow.probabilities is not None
    np.testing.assert_array_equal(slow.probabilities.argmax(axis=1), slow.predicted)
    assert (fast.diag_reg, fast.jitter) == (1e-2, 0.0)
    if kind == "nngp":
        expected = multivariate_normal(np.zeros(N), noisy).logpdf(y[:, 0])
        assert fast.log_marginal_likelihood == pytest.approx(expected, rel=1e-7)
    else:
        assert fast.log_marginal_likelihood is None


# --- the command --------------------------------------------------------------------------------------------------

WORDS = ["good", "fine", "great", "bad", "poor", "awful", "film", "plot", "actor", "the", "a", "was"]
Run = Callable[..., tuple[int, str, str]]


def review(random: np.random.Generator, positive: bool) -> str:
    mood = WORDS[:3] if positive else WORDS[3:6]
    words = [*random.choice(mood, 2), *random.choice(WORDS[6:], 6), *random.choice(WORDS[:6], 1)]
    return " ".join(random.permutation(words))


def write_reviews(path: Path, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [(review(random, i % 2 == 0), ("pos", "neg")[i % 2]) for i in range(n)]
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a folder with train.csv, test.csv and vectors.txt."""
    monkeypatch.chdir(tmp_path)
    write_reviews(tmp_path / "train.csv", 60, 1)
    write_reviews(tmp_path / "test.csv", 30, 2)
    random = np.random.default_rng(0)
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in random.standard_normal(5)) for word in WORDS]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main(["reproduce", "table3", "--embedding", "vectors.txt", "--output", "out", *arguments])
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


FILES = ("--train", "train.csv", "--test", "test.csv")


def rows_of(folder: str) -> list[dict[str, str]]:
    with (Path(folder) / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def without_costs(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if "seconds" not in k and "memory" not in k} for row in rows]


def test_reports(run: Run) -> None:
    code, out, err = run(*FILES, "--uncertainty", "--quiet")
    assert code == 0, err
    assert out == ""
    rows = rows_of("out")
    assert [row["model"] for row in rows] == ["GAP-only", "GAP-only", "GAP-FCN", "GAP-FCN", "Struct", "Struct"]
    assert [row["kernel"] for row in rows] == ["nngp", "ntk"] * 3
    for row in rows:
        low, value, high = (float(row[key]) for key in ("accuracy_low", "accuracy", "accuracy_high"))
        assert low < value <= high
        assert value > 0.7  # words alone tell the label
        assert row["n_train"] == "60"
        assert row["n_test"] == "30"
        assert (row["log_marginal_likelihood"] != "") == (row["kernel"] == "nngp")
        assert 0 <= float(row["ece"]) <= 1
    details = json.loads(Path("out/results.json").read_text())
    assert details["split"]["fitting"] == 36
    assert len(details["candidates"]) == 24
    assert [score["diag_reg"] for score in details["candidates"][0]["grid"]] == [10.0**k for k in range(-7, 1)]
    origin = details["provenance"]
    assert origin["data"]["training"]["rows"] == 60
    assert all(len(origin["data"][role]["sha256"]) == 64 for role in ("training", "test"))
    assert len(origin["vectors"]["vectors.txt"]["sha256"]) == 64
    assert origin["vectors"]["vectors.txt"]["tokenizer"] == "keras"
    assert origin["environment"]["packages"]["numpy"] == np.__version__
    text = Path("out/report.md").read_text()
    assert [name for name in TABLE3 if f"\n| {name} |" in text] == list(TABLE3)
    assert Path("out/report.html").read_text().count("<svg") == 3
    assert {path.name for path in Path("out").glob("*.svg")} == {
        "accuracy.svg",
        "regularization.svg",
        "reliability.svg",
    }


def test_the_winner_of_each_class_has_the_best_validation(run: Run) -> None:
    assert run(*FILES, "--quiet")[0] == 0
    best = {}
    for trial in json.loads(Path("out/results.json").read_text())["candidates"]:
        scores = [row["accuracy"] for row in trial["grid"] if not row["failed"]]
        best[trial["candidate"], trial["kernel"]] = max(scores)
    for row in rows_of("out"):
        names = [candidate.architecture.name for candidate in TABLE3[row["model"]]]
        assert float(row["validation_accuracy"]) == max(best[name, row["kernel"]] for name in names)


def test_an_interrupted_run_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(*FILES, "--quiet")[0] == 0
    whole = rows_of("out")
    Path("out").rename("whole")
    real, calls = table3.validate, []

    def interrupted(kernel: Any, *arguments: Any) -> Any:
        calls.append(kernel.architecture.name)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(kernel, *arguments)

    monkeypatch.setattr(table3, "validate", interrupted)
    assert run(*FILES, "--quiet")[0] == 130
    assert not Path("out/report.md").exists()
    code, _, err = run(*FILES, "--quiet")
    assert code == 0, err
    assert len(calls) == len(CANDIDATES) + 1
    assert calls[5] == calls[6]
    assert without_costs(rows_of("out")) == without_costs(whole)


def test_finished_parts_are_not_computed_again_unless_something_changes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(*FILES, "--quiet")[0] == 0
    first = rows_of("out")

    def never(*arguments: Any) -> Any:
        raise ValueError("computed")

    for name in ("validate", "refit", "pooled_texts"):
        monkeypatch.setattr(table3, name, never)
    assert run(*FILES, "--quiet")[0] == 0
    assert rows_of("out") == first
    for change in (["--seed", "1"], ["--max-tokens", "3"], ["--scale", "unit"], ["--limit", "40"]):
        code, _, err = run(*FILES, "--quiet", *change)
        assert (code, err.splitlines()[-1]) == (2, "Error: computed"), change
    write_reviews(Path("train.csv"), 60, 3)
    assert run(*FILES, "--quiet")[0] == 2


def test_without_test_texts_a_fifth_is_held_out(run: Run) -> None:
    code, out, err = run("--train", "train.csv")
    assert code == 0, err
    assert "train.csv: 20% of the rows are held out" in err
    assert {(row["n_train"], row["n_test"]) for row in rows_of("out")} == {("48", "12")}
    assert [line.split()[0] for line in out.splitlines()[1:4]] == list(TABLE3)


def test_unusable_texts(run: Run) -> None:
    """A training text without known words is left out, a test text counts as the majority class."""
    with Path("train.csv").open("a") as file:
        file.write("qwzx vrrp,pos\n" + "good film,pos\n" * 3)
    assert run(*FILES, "--quiet")[0] == 0
    before = rows_of("out")
    with Path("test.csv").open("a") as file:
        file.write("qwzx,pos\nqwzx,neg\n,pos\n")
    assert run(*FILES, "--quiet", "--uncertainty")[0] == 0
    for row, earlier in zip(rows_of("out"), before, strict=True):
        assert (row["n_train"], row["n_test"]) == ("63", "33")
        assert float(row["accuracy"]) * 33 == pytest.approx(float(earlier["accuracy"]) * 30 + 2)
    assert "Of 64 training texts 1 have no known token" in Path("out/report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--train", "none.csv"), "none.csv"),
        (("--train", "train.csv", "--test", "odd.csv"), "odd.csv, line 2: expected a label of the training data"),
        (("--train", "one.csv", "--test", "test.csv"), "expected at least two classes"),
        ((*FILES, "--output", "train.csv"), "expected a folder"),
    ],
)
def test_errors_are_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    Path("odd.csv").write_text("text,label\ngood,maybe\n")
    Path("one.csv").write_text("text,label\n" + "good,pos\n" * 30)
    code, out, err = run(*arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert last.startswith("Error: ")
    assert words in last
    assert out == ""


def test_calibration_equals_evaluate(run: Run) -> None:
    """The metrics in the report are those of the probabilities, recomputed from the confusion's numbers."""
    assert run(*FILES, "--quiet", "--uncertainty")[0] == 0
    details = json.loads(Path("out/results.json").read_text())
    metrics = details["calibration"]["Struct ntk"]
    assert metrics["n"] == 30
    assert metrics["accuracy"] == float(rows_of("out")[5]["accuracy"])
    assert set(evaluate(["a", "b"], ["a", "b"], np.eye(2), ["a", "b"])) == set(metrics)


def test_trial_takes_its_best() -> None:
    trial = Trial(CANDIDATES[0], "nngp", "primal", [GridScore(1.0, 0.5, 0.1), GridScore(0.1, 0.6, 0.2)], 1.0, 1)
    assert trial.best.diag_reg == 0.1
