"""Table 4: candidates, rows, kernels tile by tile against plain formulas, the choice, restarts, the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pandas as pd
import pytest

from embeddings import Sequences
from textkernels import cli
from textkernels.datasets import Dataset
from textkernels.experiments import pair_tiles, table4_candidates, table4_embedding
from textkernels.experiments.candidates import TABLE3
from textkernels.experiments.encoded import EncodedTexts
from textkernels.experiments.labelled import LabelledTexts
from textkernels.experiments.pair_tiles import PairTiles, pooled_table
from textkernels.experiments.pooled_table import PooledKernel, PooledTable
from textkernels.experiments.table4 import Table4
from textkernels.experiments.table4_candidates import FULL, QUICK, Table4Grid, TokenCandidate, by_tokens, passes
from textkernels.experiments.table4_rows import Table4Rows
from textkernels.experiments.token_stacks import FeatureStack, PairStack
from textkernels.experiments.workload import workload
from textkernels.finished import FinishedParts
from textkernels.layers import Conv, GlobalAveragePool, SelfAttention
from textkernels.pairs.numba_engine import NumbaEngine

DIM, N_TRAIN, N_OTHER = 4, 7, 3


class Lookup:
    """An encoder that knows its texts by name."""

    dim, fitted, name, trains_on_texts = DIM, True, "lookup", False

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.encoded = seed, 0

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed}

    def arrays_of(self, texts: list[Any]) -> list[np.ndarray]:
        return [self.array_of(text) for text in texts]

    def array_of(self, text: str) -> np.ndarray:
        random = np.random.default_rng([self.seed, *text.encode()])
        return random.standard_normal((1 + len(text) % 12, DIM)).astype(np.float32)

    def encode(self, texts: Any, progress: bool = False) -> Any:
        self.encoded += 1
        rows = np.array([row for row, text in enumerate(texts) if "?" not in text], np.int64)
        documents = Sequences.from_arrays(self.arrays_of([texts[row] for row in rows]))
        n = len(texts)
        zeros = np.zeros(n, np.int64)

        class Encoding:
            pass

        encoding: Any = Encoding()
        encoding.__dict__ |= {"documents": documents, "rows": rows, "n_dropped": zeros, "coverage": np.ones(n)}
        return encoding


def dataset(texts: list[str], labels: list[Any], name: str = "rows") -> Dataset:
    positions: list[int | str] = list(range(len(texts)))
    frame = pd.DataFrame({"text": texts, "label": labels})
    return Dataset(name, list(texts), list(labels), None, frame, positions, "row", "checksum")


def words(n: int, start: int = 0) -> list[str]:
    """Texts of different lengths, so documents have 1 to 12 tokens."""
    return [f"{'x' * (place * 5 % 11)}{place}" for place in range(start, start + n)]


def labelled(texts: list[str]) -> LabelledTexts:
    return LabelledTexts.from_dataset(dataset(texts, [("a", "b")[place % 2] for place in range(len(texts))]))


def encoded(texts: list[str], finished: FinishedParts, encoder: Any = None) -> EncodedTexts:
    return EncodedTexts(labelled(texts), encoder or Lookup(), finished)


TRAIN, OTHER = words(N_TRAIN), words(N_OTHER, 50)
SMALL = Table4Grid((0, 1, 2))
SMALL_CANDIDATES = list(dict.fromkeys(c for members in SMALL.classes().values() for c in members))


# --- candidates ---------------------------------------------------------------------------------------------------


def test_the_classes_are_those_of_the_paper() -> None:
    classes = FULL.classes()
    assert {name: len(members) for name, members in classes.items()} == {
        "GAP-only": 2,
        "GAP-FCN": 2 + 2 * 2 * 2,  # without hidden layers there is no activation
        "CNN-GAP": 10 + 4 * 2 * 6,
        "Struct": 5 * 2 * 2 * 2 * 6,
    }
    for members in classes.values():
        assert len({candidate.architecture for candidate in members}) == len(members)
        assert len({candidate.label for candidate in members}) == len(members)
    ours = {candidate.architecture for candidate in classes["GAP-FCN"] if candidate.activation == "relu"}
    assert ours == {candidate.architecture for candidate in TABLE3["GAP-FCN"]}
    # 8 convolutions and 2 attention layers: 7 convolutions, attention, convolution, attention, pooling.
    deepest = next(c for c in classes["Struct"] if (c.depth, c.attention, c.attention_layer_norm) == (8, 2, False))
    kinds = [type(layer) for layer in deepest.architecture.layers if isinstance(layer, Conv | SelfAttention)]
    assert kinds == [Conv] * 7 + [SelfAttention, Conv, SelfAttention]
    assert all(layer.width == 9 for layer in deepest.architecture.layers if isinstance(layer, Conv))


def test_the_quick_grid_is_part_of_the_full_one() -> None:
    for name, members in QUICK.classes().items():
        assert set(members) < set(FULL.classes()[name]) or name in ("GAP-only", "GAP-FCN")
    deep = [candidate for candidate in QUICK.classes()["Struct"] if candidate.depth]
    assert {(candidate.attention, candidate.attention_layer_norm) for candidate in deep} == {(1, False)}
    flat = [candidate for candidate in QUICK.classes()["Struct"] if not candidate.depth]
    assert {(candidate.attention, candidate.attention_layer_norm) for candidate in flat} == {
        (number, norm) for number in (1, 2) for norm in (False, True)
    }


def test_stacks_share_everything_up_to_pooling() -> None:
    stacks = by_tokens(SMALL_CANDIDATES)
    assert sum(map(len, stacks.values())) == len(SMALL_CANDIDATES)
    for stack, members in stacks.items():
        assert isinstance(stack.layers[-1], GlobalAveragePool)
        assert {candidate.architecture.token_layers for candidate in members} == {stack.token_layers}
    groups = passes(stacks)
    assert {stack for group in groups for stack in group} == {stack for stack in stacks if not stack.linear_tokens}
    for group in groups:
        assert len({stack.token_layers[0] for stack in group}) == 1


# --- rows ---------------------------------------------------------------------------------------------------------


def sizes(rows: Table4Rows) -> list[int]:
    return [len(rows.parts[role]) for role in ("train", "validation", "test")]


def test_rows_are_disjoint_stratified_and_seeded() -> None:
    texts = [*words(100), *words(30)]  # 30 texts twice
    rows = dataset(texts, [("a", "a", "a", "b")[place % 4] for place in range(130)])
    drawn = Table4Rows.draw(rows, None, 40, 3)
    assert sizes(drawn) == [40, 20, 20]
    together = [text for part in drawn.parts.values() for text in part.texts]
    assert len(set(together)) == 80
    assert [np.bincount(part.codes).tolist() for part in drawn.parts.values()] == [[30, 10], [15, 5], [15, 5]]
    assert drawn.counts["of them, repeating the text of an earlier row"] == 30
    again, other = Table4Rows.draw(rows, None, 40, 3), Table4Rows.draw(rows, None, 40, 4)
    for role, part in drawn.parts.items():
        assert part.checksum == again.parts[role].checksum
        assert part.checksum != other.parts[role].checksum


def test_rows_shrink_together_and_test_texts_may_come_from_elsewhere() -> None:
    rows = dataset(words(60), ["a", "b"] * 30)
    assert sizes(Table4Rows.draw(rows, None, 3_200, 0)) == [30, 15, 15]
    test = dataset(words(40, 50), ["a", "b"] * 20)  # ten texts of the training data
    drawn = Table4Rows.draw(rows, test, 3_200, 0)
    assert sizes(drawn)[2] == 40
    together = [text for part in drawn.parts.values() for text in part.texts]
    assert len(set(together)) == len(together) == 90
    assert drawn.counts["training rows left out because a test row has the same text"] == 10


# --- kernels ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Candidate -> kernel and documents through shared token work in tiles of three documents."""
    patch = pytest.MonkeyPatch()
    patch.setattr(pair_tiles, "TILE", 3)
    finished = FinishedParts(tmp_path_factory.mktemp("finished"))
    train, other = encoded(TRAIN, finished), encoded(OTHER, finished)
    stacks = by_tokens(SMALL_CANDIDATES)
    work: dict[Any, Any] = {}
    for group in passes(stacks):
        inner, outer = (PairTiles(group, rows, train, 12, finished) for rows in (train, other))
        work |= {stack: PairStack(stack, inner, outer) for stack in group}
    for stack in stacks:
        work.setdefault(stack, FeatureStack(stack, train, other, 12, finished))
    networks = {
        candidate: work[stack].network(candidate.architecture)
        for stack, members in stacks.items()
        for candidate in members
    }
    patch.undo()
    return networks


@pytest.mark.parametrize("candidate", SMALL_CANDIDATES[::7], ids=lambda c: c.architecture.name)
def test_sharing_gives_each_candidates_kernel(shared: Any, candidate: TokenCandidate) -> None:
    kernel, documents = shared[candidate]
    train, other = documents[:N_TRAIN], documents[N_TRAIN:]
    blocks = [kernel.block(train, train, True, 0), kernel.block(other, train, True)]
    arrays = Lookup().arrays_of([*TRAIN, *OTHER])
    for place, expected in enumerate(oracle.gram(candidate.architecture, arrays)):
        found = np.concatenate([block[place] for block in blocks])
        np.testing.assert_allclose(found, expected[:, :N_TRAIN], rtol=0, atol=2e-5 * np.abs(expected).max())


def test_repeated_documents_correlate_exactly(tmp_path: Path) -> None:
    """Equal texts in different tiles: behind a ReLU the rounding of float32 would cost 3e-4 in the tangent kernel."""
    finished = FinishedParts(tmp_path)
    texts = [*TRAIN, *TRAIN]
    train = encoded(texts, finished)
    candidate = TokenCandidate("cnn-gap", 2, True, "relu", 1)
    (stack,) = by_tokens([candidate])
    tiles = PairTiles([stack], train, train, 12, finished)
    kernel = PooledKernel(candidate.architecture, pooled_table(stack, tiles, tiles))
    places = np.arange(2 * N_TRAIN)
    for block in kernel.block(places, places, True, 0):
        assert block is not None
        np.testing.assert_allclose(block[:N_TRAIN, N_TRAIN:].diagonal(), block.diagonal()[:N_TRAIN], rtol=1e-12)


def test_blocks_of_a_table_are_looked_up() -> None:
    random = np.random.default_rng(0)
    table = PooledTable(*(random.random((5, 3)).astype(np.float32) for _ in range(2)), np.ones(5, np.float32))
    candidate = TokenCandidate("gap-fcn", 0, False)
    kernel = PooledKernel(candidate.architecture, table)
    rows, columns = np.array([4, 1]), np.array([2, 0])
    nngp, ntk = kernel.block(rows, columns, True)
    np.testing.assert_array_equal(nngp, table.nngp[[4, 1]][:, [2, 0]])
    np.testing.assert_array_equal(ntk, table.ntk[[4, 1]][:, [2, 0]].astype(np.float64) + nngp)  # the readout
    assert kernel.block(rows, columns, False)[1] is None


# --- tiles --------------------------------------------------------------------------------------------------------


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Sizes of the blocks that engines computed."""
    real, calls = NumbaEngine.pooled, []

    def counted(self: Any, rows: Any, columns: Any, *more: Any) -> Any:
        calls.append((len(rows), len(columns)))
        return real(self, rows, columns, *more)

    monkeypatch.setattr(NumbaEngine, "pooled", counted)
    monkeypatch.setattr(pair_tiles, "TILE", 3)
    return calls


STACKS = passes(by_tokens(SMALL_CANDIDATES))[0]


def test_tiles_are_computed_once_and_again_if_damaged_or_changed(
    tmp_path: Path, computed: list[tuple[int, int]]
) -> None:
    finished, encoder = FinishedParts(tmp_path), Lookup()

    def inner(texts: list[str] = TRAIN, stacks: Any = STACKS, longest: int = 12) -> PairTiles:
        train = encoded(texts, finished, encoder)
        return PairTiles(stacks, train, train, longest, finished)

    first = inner().matrices(STACKS[1])
    assert sorted(computed) == sorted([(3, 3), (3, 3), (3, 3), (1, 3), (1, 3), (1, 1)])  # the lower half of 7 x 7
    np.testing.assert_array_equal(first[0], first[0].T)
    encoder.encoded = 0
    for now, before in zip(inner().matrices(STACKS[1]), first, strict=True):
        np.testing.assert_array_equal(now, before)
    assert len(computed) == 6
    assert encoder.encoded == 0  # what is known of texts is kept, too
    sizes = sorted(tmp_path.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    sizes[-1].write_bytes(sizes[-1].read_bytes()[:-9])
    assert len(inner().missing()) == 1
    for now, before in zip(inner().matrices(STACKS[1]), first, strict=True):
        np.testing.assert_array_equal(now, before)
    assert len(computed) == 7
    assert inner().missing() == []
    for changed in (inner(words(N_TRAIN, 1)), inner(stacks=STACKS[:2]), inner(longest=13)):
        assert len(changed.missing()) == 6


def test_token_pairs_and_cost(tmp_path: Path, computed: list[tuple[int, int]]) -> None:
    finished = FinishedParts(tmp_path)
    train, other = encoded(TRAIN, finished), encoded([*OTHER, "none?"], finished)
    inner, outer = (PairTiles(STACKS, rows, train, 12, finished) for rows in (train, other))
    lengths, others = ([len(Lookup().array_of(text)) for text in texts] for texts in (TRAIN, OTHER))
    assert outer.work() == sum(others) * sum(lengths)
    blocks = [sum(lengths[start : start + 3]) for start in (0, 3, 6)]
    assert inner.work() == sum(a * b for i, a in enumerate(blocks) for b in blocks[:i]) + sum(
        block**2 / 2 for block in blocks
    )
    assert outer.entries(outer.missing()) == 2 * len(STACKS) * N_OTHER * N_TRAIN
    assert outer.cost().seconds == 0
    outer.fill()
    cost = outer.cost()
    assert cost.seconds > 0
    assert cost.peak_bytes > 1e6
    assert cost.token_pairs == sum(others) * sum(lengths)


# --- the command --------------------------------------------------------------------------------------------------

GOOD, BAD = ["good", "fine", "great"], ["bad", "poor", "awful"]
NEUTRAL = ["film", "plot", "actor", "the", "a", "was"]
Run = Callable[..., tuple[int, str, str]]


def write_reviews(path: Path, n: int, seed: int, flip: bool = False) -> None:
    random = np.random.default_rng(seed)
    lines = ["text,label"]
    for place in range(n):
        mood, label = ((GOOD, "pos"), (BAD, "neg"))[place % 2]
        said = [*random.choice(mood, 2), *random.choice(NEUTRAL, 8), *random.choice(GOOD + BAD, 1)]
        shown = {"pos": "neg", "neg": "pos"}[label] if flip else label
        lines.append(f"{' '.join(random.permutation(said))},{shown}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a folder with rows.csv, test.csv and two files of vectors; --quick means even less here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table4_candidates, "QUICK", Table4Grid((0, 1), False, False))
    monkeypatch.setattr(pair_tiles, "TILE", 16)
    write_reviews(Path("rows.csv"), 90, 1)
    write_reviews(Path("test.csv"), 20, 2)
    for name, dim in (("low.txt", 2), ("high.txt", 5)):
        random = np.random.default_rng(dim)
        lines = [f"{w} " + " ".join(f"{x:.4f}" for x in random.standard_normal(dim)) for w in GOOD + BAD + NEUTRAL]
        Path(name).write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        fixed = ["--embeddings", "low.txt,high.txt", "--output", "out", "--quick", "--limit", "40"]
        with pytest.raises(SystemExit) as exit_:
            cli.main(["reproduce", "table4", *fixed, *arguments])
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


FILES = ("--train", "rows.csv")


def rows_of(folder: str) -> list[dict[str, str]]:
    with (Path(folder) / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def without_costs(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if "seconds" not in k and "memory" not in k} for row in rows]


def details_of(folder: str) -> dict[str, Any]:
    return json.loads((Path(folder) / "results.json").read_text())


def test_reports(run: Run) -> None:
    code, out, err = run(*FILES)
    assert code == 0, err
    assert "Note: about " in err
    assert "4 passes over" in err
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["GAP-only", "GAP-FCN", "CNN-GAP", "Struct"]
    rows = rows_of("out")
    assert [(row["model"], row["kernel"], row["embedding"]) for row in rows] == [
        (model, kind, name)
        for model in ("GAP-only", "GAP-FCN", "CNN-GAP", "Struct")
        for kind in ("nngp", "ntk")
        for name in ("low.txt", "high.txt")
    ]
    for row in rows:
        low, value, high = (float(row[key]) for key in ("accuracy_low", "accuracy", "accuracy_high"))
        assert low < value <= high
        assert (row["n_train"], row["n_validation"], row["n_test"]) == ("40", "20", "20")
    assert np.mean([float(row["accuracy"]) for row in rows if row["embedding"] == "high.txt"]) > 0.7
    details = details_of("out")
    assert details["parts"] == {"train": 40, "validation": 20, "test": 20}
    assert len(details["reductions"]) == 5
    for difference, low, high in zip(details["differences"], rows[::2], rows[1::2], strict=True):
        assert difference["difference"] == pytest.approx(float(high["accuracy"]) - float(low["accuracy"]))
    assert {found["texts"] for found in details["passes"]} >= {"training", "validation"}
    text = Path("out/report.md").read_text()
    for sentence in [*details["reductions"], "the first 200 tokens of a text instead of 1,000", "0 or 1 convolutions"]:
        assert sentence in text
    assert Path("out/report.html").read_text().count("<svg") == 1


def test_the_choice_uses_validation_texts_only(run: Run) -> None:
    assert run(*FILES, "--test", "test.csv", "--quiet")[0] == 0
    first, trials = rows_of("out"), details_of("out")["candidates"]
    best: dict[tuple[str, str], float] = {}
    for trial in trials:
        scores = [score["accuracy"] for score in trial["grid"] if score["accuracy"] is not None]
        assert [score["diag_reg"] for score in trial["grid"]] == [10.0**power for power in range(-7, 1)]
        best[trial["embedding"], trial["candidate"], trial["kernel"]] = max(scores)
    classes = Table4Grid((0, 1), False, False).classes()
    for row in first:
        names = [candidate.architecture.name for candidate in classes[row["model"]]]
        expected = max(best[row["embedding"], name, row["kernel"]] for name in names)
        assert float(row["validation_accuracy"]) == expected
    # The same test texts with all labels turned round: nothing that was chosen changes, every hit is a miss.
    write_reviews(Path("test.csv"), 20, 2, flip=True)
    assert run(*FILES, "--test", "test.csv", "--quiet", "--output", "flipped")[0] == 0
    for row, other in zip(first, rows_of("flipped"), strict=True):
        for name in ("candidate", "diag_reg", "validation_accuracy"):
            assert row[name] == other[name]
        assert float(row["accuracy"]) == pytest.approx(1 - float(other["accuracy"]))


STEPS = {
    "tile": (PairTiles, "_compute"),
    "choice": (table4_embedding, "validate"),
    "test": (table4_embedding, "refit"),
}


@pytest.mark.parametrize(("step", "place"), [("tile", 9), ("tile", 30), ("choice", 30), ("test", 3)])
def test_an_interrupted_run_goes_on_to_the_same_result(
    run: Run, monkeypatch: pytest.MonkeyPatch, step: str, place: int
) -> None:
    """Stopped at the so-manieth tile, candidate or winner: what was finished is not computed again."""
    calls: dict[str, int] = {}

    def counted(name: str, real: Any) -> Any:
        def wrapped(*arguments: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            if "stop" in calls and (name, calls[name]) == (step, place):
                raise KeyboardInterrupt
            return real(*arguments)

        return wrapped

    for name, (owner, attribute) in STEPS.items():
        monkeypatch.setattr(owner, attribute, counted(name, getattr(owner, attribute)))
    assert run(*FILES, "--quiet")[0] == 0
    whole, needed = rows_of("out"), dict(calls)
    Path("out").rename("whole")
    calls.clear()
    calls["stop"] = 1
    assert run(*FILES, "--quiet")[0] == 130
    assert not Path("out/report.md").exists()
    assert run(*FILES, "--quiet")[0] == 0
    assert without_costs(rows_of("out")) == without_costs(whole)
    del calls["stop"]
    assert calls == {**needed, step: needed[step] + 1}
    # Of 40 training texts three blocks of 16: 6 tiles of the lower half, and 2 x 3 with the 20 validation texts.
    assert needed["tile"] >= 4 * (6 + 6)


def test_finished_parts_are_not_computed_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(*FILES, "--quiet")[0] == 0
    first = rows_of("out")

    def never(*arguments: Any, **named: Any) -> Any:
        raise ValueError("computed")

    for name in ("validate", "refit"):
        monkeypatch.setattr(f"textkernels.experiments.table4_embedding.{name}", never)
    monkeypatch.setattr(PairTiles, "_compute", never)
    assert run(*FILES, "--quiet")[0] == 0
    assert rows_of("out") == first
    for change in (["--seed", "1"], ["--max-tokens", "3"], ["--scale", "unit"], ["--limit", "30"]):
        code, _, err = run(*FILES, "--quiet", *change)
        assert (code, err.splitlines()[-1]) == (2, "Error: computed"), change


def test_the_work_is_counted_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = words(80)
    rows = Table4Rows.draw(dataset(texts, ["a", "b"] * 40), None, 40, 0)
    grid = Table4Grid((0, 1), False, False)
    encoders = {"one": Lookup(), "two": Lookup(1)}
    table = Table4(rows, encoders, tmp_path, grid, 12)
    work = workload(table.embeddings.values())
    lengths = {role: sum(len(Lookup().array_of(t)) for t in part.texts) for role, part in rows.parts.items()}
    pairs = lengths["train"] * (lengths["train"] / 2 + lengths["validation"])
    assert work.passes == 4
    assert work.token_pairs == pytest.approx(4 * pairs)
    assert work.candidates == 2 * len({c for members in grid.classes().values() for c in members})
    assert work.seconds > 0
    # Of 2 stacks in each of 4 passes NNGP and NTK, 4 bytes each: one tile of 40 x 40, one of 20 x 40.
    assert table.bytes_to_keep == 4 * 2 * 2 * 4 * (40 * 40 + 20 * 40)
    table.check_room()
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(OSError, match=r"0\.0 GiB of free disk; choose another folder"):
        table.check_room()
    table.run()
    left = workload(table.embeddings.values())
    assert (left.passes, left.token_pairs, left.candidates, left.seconds) == (0, 0.0, 0, 0.0)
    assert table.bytes_to_keep == 0
    assert [outcome.model for outcome in table.embeddings["two"].outcomes][::2] == list(grid.classes())


def test_texts_without_known_words(run: Run) -> None:
    """A training or validation text is left out, a test text counts as of the majority class."""
    with Path("rows.csv").open("a") as file:
        file.writelines(f"qwzx{place} vrrp,{('pos', 'neg')[place % 2]}\n" for place in range(30))
    assert run(*FILES, "--unknown", "mask", "--limit", "60", "--quiet")[0] == 0
    rows, parts = rows_of("out"), details_of("out")["parts"]
    assert parts == {"train": 60, "validation": 30, "test": 30}
    assert {row["n_test"] for row in rows} == {"30"}
    usable = int(rows[0]["n_train"]) + int(rows[0]["n_validation"])
    assert 90 - 30 <= usable < 90
    assert f"Without a known token are {60 - int(rows[0]['n_train'])} train" in Path("out/report.md").read_text()


def test_a_part_without_usable_texts_is_named(tmp_path: Path) -> None:
    parts = {"train": labelled(TRAIN), "validation": labelled(["a?", "b?"]), "test": labelled(OTHER)}
    rows = Table4Rows(parts, parts["test"].dataset, {})
    with pytest.raises(ValueError, match="one: expected a validation text with a known token, got none"):
        Table4(rows, {"one": Lookup(), "two": Lookup(1)}, tmp_path, QUICK).run()


def test_fewer_rows_than_wanted(run: Run) -> None:
    code, _, err = run(*FILES, "--limit", "100")
    assert code == 0
    assert "rows.csv: there are" in err
    assert "training texts instead of 100, for want of more rows" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--embeddings", "low.txt"), "expected two different embeddings with a comma between them"),
        (("--embeddings", "low.txt,low.txt"), "expected two different embeddings"),
        (("--embeddings", "low.txt,none.txt"), "none.txt"),
        (("--train", "one.csv"), "expected at least two classes"),
        (("--test", "odd.csv"), "odd.csv, line 2: expected a label of the training data"),
        (("--output", "rows.csv"), "expected a folder"),
        (("--train", "strange.csv"), "expected a text with a word that low.txt has a vector for"),
        (("--train", "halves.csv"), "low.txt: expected a usable training text of every class, got none of 'neg'"),
    ],
)
def test_errors_are_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    Path("odd.csv").write_text("text,label\ngood,maybe\n")
    Path("one.csv").write_text("text,label\n" + "".join(f"good {place},pos\n" for place in range(30)))
    for name, known in (("strange.csv", "q"), ("halves.csv", "good")):
        lines = [f"{(known, 'q')[place % 2]} q{place},{('pos', 'neg')[place % 2]}" for place in range(40)]
        Path(name).write_text("text,label\n" + "\n".join(lines) + "\n")
    code, out, err = run(*FILES, *arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert last.startswith("Error: ")
    assert words in last
    assert out == ""


def test_the_full_grid_is_the_default(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --quick nothing is left out but what the sizes say."""
    monkeypatch.setattr(table4_candidates, "FULL", replace(FULL, depths=(0, 1)))
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "table4", "--embeddings", "low.txt,high.txt", "-o", "o", "-q", *FILES, "--limit", "20"])
    details = details_of("o")
    assert [words.split(" training")[0] for words in details["reductions"]][:1] == ["20"]
    assert details["grid"]["max_tokens"] == 1000
    assert details["grid"]["two_attentions"] is True
