"""Tuning: what the knobs turn, the criteria against brute force, the search, and the command."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import textkernels as tk
from embeddings import Sequences
from textkernels import cli
from textkernels.tune import Objective, evidence_loss, leave_one_out_loss, tune
from textkernels.tuning_space import knobs_of, turned

RANDOM = np.random.default_rng(0)
DOCUMENTS = Sequences.from_arrays([RANDOM.standard_normal((length, 3)) for length in RANDOM.integers(2, 9, 24)])


def stack(*, activation: str = "relu", positions: tk.Positions | None = None, b_std: float = 0.1) -> tk.Architecture:
    attention = tk.SelfAttention(w_query_std=1.2, w_key_std=1.3, positions=positions)
    hidden = [tk.Dense(1.4, b_std), tk.Activation(activation)]
    return tk.Architecture([attention, tk.GlobalAveragePool(), *hidden, *hidden, tk.Dense()])


# --- knobs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        (tk.named_architecture("gap"), []),
        (tk.named_architecture("gap-fcn"), ["bias std before activations"]),
        (
            tk.named_architecture("struct-fcn"),
            ["layer 0: score scale", "layer 0: decay", "layer 0: content share", "bias std before activations"],
        ),
        (stack(b_std=0.0), ["layer 0: score scale"]),
        (
            stack(activation="erf"),
            ["layer 0: score scale", *(f"{k} std before activations" for k in ("bias", "weight"))],
        ),
        (
            stack(positions=tk.Positions(in_values=True), b_std=0.0),
            [f"layer 0: {name}" for name in ("score scale", "decay", "content share", "amplitude")],
        ),
        (
            stack(positions=tk.Positions(combine="sum", decay=0.0), b_std=0.0),
            ["layer 0: score scale", "layer 0: amplitude"],
        ),
    ],
)
def test_which_numbers_are_tuned(architecture: tk.Architecture, names: list[str]) -> None:
    assert [knob.name for knob in knobs_of(architecture)] == names


@pytest.mark.parametrize(
    "architecture",
    [stack(activation="erf", positions=tk.Positions(in_values=True)), stack(positions=tk.Positions(combine="sum"))],
)
def test_knobs_turn_one_number_each(architecture: tk.Architecture) -> None:
    knobs = knobs_of(architecture)
    start = np.array([knob.coordinate(knob.start) for knob in knobs])
    grams = [tk.gram(turned(architecture, knobs, start, "same"), DOCUMENTS)]
    np.testing.assert_allclose(grams[0], tk.gram(architecture, DOCUMENTS), rtol=1e-12)
    for place, knob in enumerate(knobs):
        assert knob.value(knob.coordinate(knob.start)) == pytest.approx(knob.start)
        moved = turned(architecture, knobs, start + 0.5 * (np.arange(len(knobs)) == place), "moved")
        others = [k for i, k in enumerate(knobs_of(moved)) if i != place]
        assert [k.start for k in others] == pytest.approx([k.start for i, k in enumerate(knobs) if i != place])
        assert knobs_of(moved)[place].start == pytest.approx(knob.value(start[place] + 0.5))
        grams.append(tk.gram(moved, DOCUMENTS))
    for i, gram in enumerate(grams):
        for other in grams[:i]:
            assert np.abs(gram - other).max() > 1e-6 * np.abs(gram).max()


def test_what_is_not_tuned_has_no_influence() -> None:
    """Amplitude against share and scale, where positions are in the scores only; weights of one ReLU layer."""
    scale, share, rho = 1.5, 0.6, 3.0
    attention = tk.SelfAttention(w_query_std=scale, positions=tk.Positions(amplitude=rho, content_share=share))
    total = share + (1 - share) * rho
    same = tk.SelfAttention(w_query_std=scale * total, positions=tk.Positions(content_share=share / total))
    tail = [tk.GlobalAveragePool(), tk.Dense()]
    np.testing.assert_allclose(
        tk.gram(tk.Architecture([attention, *tail]), DOCUMENTS),
        tk.gram(tk.Architecture([same, *tail]), DOCUMENTS),
        rtol=1e-12,
    )
    wide, narrow = (
        tk.gram(tk.Architecture([tk.GlobalAveragePool(), tk.Dense(c, 0.1 * c), tk.Activation("relu")]), DOCUMENTS)
        for c in (3.0, 1.0)
    )
    np.testing.assert_allclose(wide, 9 * narrow, rtol=1e-12)


# --- criteria -----------------------------------------------------------------------------------------------------


def problem() -> tuple[np.ndarray, np.ndarray]:
    gram = tk.gram(tk.named_architecture("gap-fcn"), DOCUMENTS)
    return gram, np.where(np.arange(len(DOCUMENTS)) % 3 == 0, 0.5, -0.5)[:, None]


def test_leave_one_out_against_refits() -> None:
    gram, y = problem()
    n, losses = len(gram), []
    for diag_reg in (1e-2, 1e-1, 1.0):
        errors = []
        for out in range(n):
            rest = np.delete(np.arange(n), out)
            noisy = gram[np.ix_(rest, rest)] + diag_reg * np.trace(gram) / n * np.eye(n - 1)
            errors.append(y[out] - gram[out, rest] @ np.linalg.solve(noisy, y[rest]))
        losses.append(np.square(errors).mean())
    assert leave_one_out_loss(gram, y, (1e-2, 1e-1, 1.0)) == pytest.approx(min(losses))


def test_evidence_against_the_density() -> None:
    """The closed form of the output variance beats every other on a fine grid, and the density there is the value."""
    gram, y = problem()
    noisy = gram + 0.1 * np.trace(gram) / len(gram) * np.eye(len(gram))
    densities = [
        multivariate_normal(np.zeros(len(gram)), c * noisy).logpdf(y[:, 0]) for c in np.geomspace(1e-2, 1e2, 2001)
    ]
    assert evidence_loss(gram, y, (0.1,)) == pytest.approx(-max(densities) / len(gram), rel=1e-5)
    assert evidence_loss(gram, y, (0.1,)) <= -max(densities) / len(gram) + 1e-12
    both = [evidence_loss(gram, y, (value,)) for value in (0.1, 1.0)]
    assert evidence_loss(gram, y, (0.1, 1.0)) == min(both)
    assert evidence_loss(9 * gram, y) == pytest.approx(evidence_loss(gram, y))


# --- search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "criterion"), [("nngp", "loo"), ("ntk", "loo"), ("nngp", "evidence")])
def test_the_search_never_ends_above_its_start(kind: str, criterion: str) -> None:
    codes = (np.array([document[:2, 0].mean() > 0 for document in DOCUMENTS])).astype(int)
    architecture = tk.named_architecture("struct-fcn")
    found = tune(architecture, DOCUMENTS, codes, 2, kind, criterion, evaluations=12, longest=9)
    again = tune(architecture, DOCUMENTS, codes, 2, kind, criterion, evaluations=12, longest=9)
    assert found.architecture == again.architecture
    assert found.loss <= found.start_loss
    assert found.evaluations <= 12
    gram = tk.gram(found.architecture, DOCUMENTS, kind=kind)
    loss = leave_one_out_loss if criterion == "loo" else evidence_loss
    assert loss(gram, np.where(codes, 0.5, -0.5)[:, None]) == pytest.approx(found.loss, rel=1e-6)
    assert [knob.start for knob in knobs_of(found.architecture)] == pytest.approx(found.values)
    assert tk.Architecture.from_toml(found.architecture.to_toml()) == found.architecture


def test_the_search_finds_a_better_number() -> None:
    """Labels drawn from the network with a large bias: starting from a tiny one, the search must raise it."""

    def network(b_std: float) -> tk.Architecture:
        return tk.Architecture([tk.GlobalAveragePool(), tk.Dense(1.0, b_std), tk.Activation("erf"), tk.Dense()])

    random = np.random.default_rng(1)
    documents = Sequences.from_arrays([random.standard_normal((3, 2)) for _ in range(150)])
    drawn = random.multivariate_normal(np.zeros(150), tk.gram(network(2.0), documents))
    codes = (drawn > np.median(drawn)).astype(int)
    found = tune(network(0.02), documents, codes, 2, evaluations=40)
    assert found.loss < found.start_loss - 1e-3
    assert math.hypot(*found.values) > 2 * math.hypot(0.02, 1.0)


def test_objective_counts_and_remembers() -> None:
    architecture = tk.named_architecture("gap-fcn")
    knobs = knobs_of(architecture)
    objective = Objective(architecture, knobs, DOCUMENTS, problem()[1], "nngp", "loo", 9)
    losses = [objective(np.array([at])) for at in (-2.0, 0.0, 1.0)]
    assert objective.count == 3
    assert (objective.start_loss, objective.best_loss) == (losses[0], min(losses))
    assert objective.best == [-2.0, 0.0, 1.0][int(np.argmin(losses))]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"architecture": tk.named_architecture("gap")}, "something to tune"),
        ({"kind": "gp"}, "nngp or ntk"),
        ({"criterion": "luck"}, "loo or evidence"),
        ({"kind": "ntk", "criterion": "evidence"}, "no marginal likelihood"),
    ],
)
def test_errors(arguments: dict[str, object], words: str) -> None:
    settings = {"architecture": tk.named_architecture("gap-fcn"), **arguments}
    with pytest.raises(ValueError, match=words):
        tune(documents=DOCUMENTS, codes=np.arange(24) % 2, n_classes=2, **settings)  # type: ignore[arg-type]


# --- the command --------------------------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(12)]
    rows = []
    for i in range(90):
        chosen = random.choice(words[:8] if i % 2 else words[4:], 6)
        rows.append(f"{' '.join(chosen)},{'pos' if i % 2 else 'neg'}\n")
    Path("d.csv").write_text("text,label\n" + "".join(rows))
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in random.standard_normal(4)) for word in words]
    Path("vectors.txt").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main([*arguments, "--embedding", "vectors.txt", "--quiet"])
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


def test_the_file_goes_to_fit(run: Run) -> None:
    code, out, err = run("tune", "d.csv", "--output", "a.toml", "--limit", "40", "--evaluations", "6")
    assert (code, out, err) == (0, "", "")
    text = Path("a.toml").read_text()
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert any("leave-one-out squared error" in line and "6 trials on 40 texts" in line for line in comments)
    assert any("content share: 0.75 -> " in line for line in comments)
    assert any("50 texts that the search never saw" in line for line in comments)
    assert [knob.name for knob in knobs_of(tk.Architecture.load("a.toml"))] == [
        knob.name for knob in knobs_of(tk.named_architecture("struct-fcn"))
    ]
    assert run("fit", "d.csv", "--model", "m", "--architecture", "a.toml")[0] == 0
    assert tk.load("m").architecture_ == tk.Architecture.load("a.toml")
    assert (
        run("tune", "d.csv", "--output", "b.toml", "--architecture", "a.toml", "--limit", "40", "--evaluations", "3")[0]
        == 0
    )


def test_command_errors(run: Run) -> None:
    for arguments, words in [
        (["--output", "a.txt"], ".toml"),
        (["--output", "none/a.toml"], "make it first"),
        (["--output", "a.toml"], "rows beyond the 2,000 to search with"),
        (["--output", "a.toml", "--architecture", "gap", "--limit", "40"], "something to tune"),
    ]:
        code, out, err = run("tune", "d.csv", *arguments)
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1
