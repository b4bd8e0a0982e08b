"""Comparison of embeddings.

Oracles: paired t-tests and hand-made examples for the statistics, simulated data whose truth is known for their
intervals, KernelClassifier and scikit-learn's pipeline for the cells; then the command on copies of packaged vectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import textkernels as tk
from embeddings import get_encoder
from embeddings.packaged import TABLES
from textkernels import cli
from textkernels.architecture import Architecture
from textkernels.datasets import Dataset, load
from textkernels.engines import choose_kernel
from textkernels.experiments import baselines, compare, stacked
from textkernels.experiments.baselines import LabelledPart, majority_class, tfidf_regression
from textkernels.experiments.cells import Cell, fit_cell
from textkernels.experiments.compare import Comparison
from textkernels.experiments.contender import Contender, short_names
from textkernels.experiments.paired import Estimate, crossed_mean, holm, mean_over_draws
from textkernels.experiments.ranking import Ranking, verdict
from textkernels.experiments.scores import Score, score
from textkernels.experiments.splits import Splits, corpus_of, hold_out_rows, without_texts_of
from textkernels.experiments.tabulated import TabulatedKernel
from textkernels.layers import Activation, Conv, Dense, GlobalAveragePool
from textkernels.residual_variance import ResidualVariance

ROWS = 3000
SIZES = (16, 100)


@pytest.fixture(scope="module")
def reviews() -> Dataset:
    """3,000 sentences about films, half of them of the class neg."""
    everything = load("bundled:rotten-tomatoes", progress=False)
    order = np.random.default_rng(1).permutation(len(everything))
    labels = np.array(everything.labels, dtype=object)[order]
    return everything.select([*order[labels == "pos"][: ROWS // 2], *order[labels == "neg"][: ROWS // 2]])


# --- statistics --------------------------------------------------------------------------------------------------


def test_one_draw_is_a_paired_t_test() -> None:
    scores = np.random.default_rng(0).normal(0.1, 1.0, (1, 40))
    oracle = stats.ttest_1samp(scores[0], 0.0)
    found = crossed_mean(scores, 0.01)
    assert found.mean == pytest.approx(scores.mean())
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert found.interval == pytest.approx(tuple(oracle.confidence_interval()))


def test_crossed_mean_is_the_two_way_analysis_of_variance() -> None:
    scores = np.array([[1.0, 2.0, 4.0], [0.0, 2.0, 1.0]])
    draws, rows, share = 2, 3, 0.25
    by_draw, by_row, mean = [7 / 3, 1.0], [0.5, 2.0, 2.5], 5 / 3
    rest = sum((scores[s, i] - by_draw[s] - by_row[i] + mean) ** 2 for s in range(draws) for i in range(rows))
    between_draws = sum((value - mean) ** 2 for value in by_draw) * (1 / draws + share / (1 - share))
    between_rows = sum((value - mean) ** 2 for value in by_row) / (rows - 1) / rows
    common = rest / (draws * rows * (draws - 1) * (rows - 1))
    variance = between_draws + between_rows - common
    spread = between_draws**2 / (draws - 1) + between_rows**2 / (rows - 1) + common**2 / ((draws - 1) * (rows - 1))
    freedom = variance**2 / spread
    found = crossed_mean(scores, share)
    assert found.interval == pytest.approx(stats.t.interval(0.95, freedom, mean, np.sqrt(variance)))
    assert found.p_value == pytest.approx(2 * stats.t.sf(mean / np.sqrt(variance), freedom))


@pytest.mark.parametrize("spread", [(0.05, 0.1), (0.0, 0.3), (0.02, 0.3)], ids=["draws", "rows", "both"])
def test_intervals_hold_the_truth_when_draws_and_rows_both_vary(spread: tuple[float, float]) -> None:
    generator, hits, times, truth = np.random.default_rng(0), 0, 400, 0.03
    for _ in range(times):
        draws, rows = (
            scale * generator.normal(size=shape) for scale, shape in zip(spread, [(5, 1), (1, 200)], strict=True)
        )
        found = crossed_mean(truth + draws + rows + 0.5 * generator.normal(size=(5, 200)), 1e-9)
        hits += found.low <= truth <= found.high
    assert 0.92 <= hits / times <= 0.985


def test_draws_from_a_small_pool_share_rows_and_count_less() -> None:
    generator, hits, times = np.random.default_rng(0), 0, 400
    for _ in range(times):
        pool = generator.normal(size=200)
        means = [pool[generator.choice(200, 100, replace=False)].mean() for _ in range(5)]
        found = mean_over_draws(means, 100 / 200)
        hits += found.low <= 0.0 <= found.high
    assert 0.92 <= hits / times <= 0.985
    assert mean_over_draws(means, 1e-12).high - found.mean < found.high - found.mean


@pytest.mark.parametrize(
    ("scores", "share", "p_value"),
    [(np.zeros((3, 10)), 0.1, 1.0), (np.ones((3, 10)), 0.1, 0.0), (np.zeros((1, 1)), 0.1, 1.0)],
    ids=["no difference", "always better", "one number"],
)
def test_scores_without_spread(scores: np.ndarray, share: float, p_value: float) -> None:
    assert crossed_mean(scores, share).p_value == p_value


def test_the_whole_pool_in_every_draw_tells_nothing_about_draws() -> None:
    scores = np.random.default_rng(0).normal(0.1, 1.0, (1, 40)).repeat(3, axis=0)
    one, all_alike = crossed_mean(scores[:1], 0.5), crossed_mean(scores, 1.0)
    assert all_alike.interval == pytest.approx(one.interval)
    assert mean_over_draws([0.5, 0.5, 0.5], 1.0).interval is None
    assert mean_over_draws([0.5], 0.1).interval is None


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])


# --- ranking -----------------------------------------------------------------------------------------------------


def ranking_of(rates: dict[str, float], share: float = 0.01) -> Ranking:
    """Contenders that are right in these shares of 500 rows; a row right for a worse one is right for a better one."""
    scores = []
    for name, rate in rates.items():
        correct = np.tile(np.arange(500) < 500 * rate, (3, 1))
        estimate = Estimate(rate, rate, rate, 0.0)
        estimates = {"accuracy": estimate, "log_loss": Estimate(1 - rate, 0.0, 0.0, 0.0)}
        scores.append(Score(Contender(name, "gap", "ntk"), 16, [], correct, 1.0 - correct, estimates, []))
    return Ranking.of(scores, share)


def names_of(ranking: Ranking) -> dict[Contender, str]:
    return {contender: contender.embedding for contender in ranking.order}


def test_ranking_orders_groups_and_tells_apart() -> None:
    ranking = ranking_of({"a": 0.8, "c": 0.6, "b": 0.8, "d": 0.602})
    assert [contender.embedding for contender in ranking.order] == ["a", "b", "d", "c"]
    assert ranking.groups() == [(0, 1), (2, 3)]
    assert ranking.pairs[ranking.order[0], ranking.order[1]].identical
    assert verdict(ranking, names_of(ranking)) == (
        "a is better than d (+19.80 points) and c (+20.00 points) but cannot be told apart from b (+0.00 points); "
        "b is better than d (+19.80 points) and c (+20.00 points)."
    )


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"a": 0.7, "b": 0.7}, "a and b cannot be told apart: they predict the same for every text."),
        ({"a": 0.7, "b": 0.702}, "b and a cannot be told apart: the largest difference is +0.20 points, 95 % interval"),
        ({"a": 0.7, "b": 0.5}, "a is better than b (+20.00 points)."),
        ({"a": 0.7}, "Only a has scores."),
    ],
    ids=["same", "close", "apart", "alone"],
)
def test_verdict(rates: dict[str, float], sentence: str) -> None:
    ranking = ranking_of(rates)
    assert verdict(ranking, names_of(ranking)).startswith(sentence)


def test_groups_never_join_two_that_are_told_apart() -> None:
    """A chain in which neighbors are close and ends are not."""
    ranking = ranking_of({str(place): 0.5 + 0.007 * place for place in range(6)})
    order = ranking.order
    for first, last in ranking.groups():
        inside = order[first : last + 1]
        assert not any(pair.apart for pair in ranking.among(inside))
    assert ranking.pairs[order[0], order[-1]].apart
    assert any(first < last for first, last in ranking.groups())


def test_names_leave_out_what_all_share() -> None:
    baseline = Contender("majority class")
    one, two = Contender("a", "gap", "ntk"), Contender("b", "gap", "ntk")
    assert short_names([baseline, one, two]) == {baseline: "majority class", one: "a", two: "b"}
    assert short_names([one, Contender("a", "gap", "nngp")])[one] == "a, NTK"


# --- draws -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def splits(reviews: Dataset) -> Splits:
    pool, held = hold_out_rows(reviews, 300, 0)
    return Splits.draw(pool, held, SIZES, [3, 4])


def test_draws_are_balanced_nested_and_apart_from_test_rows(splits: Splits, reviews: Dataset) -> None:
    assert [(draw.seed, draw.size) for draw in splits.draws] == [(3, 16), (3, 100), (4, 16), (4, 100)]
    for small, large in (splits.draws[:2], splits.draws[2:]):
        assert set(small.rows) < set(large.rows)
        np.testing.assert_array_equal(np.bincount(small.codes), [8, 8])
    assert set(splits.draws[1].rows) != set(splits.draws[3].rows)
    for draw in splits.draws:
        texts = [splits.texts[row] for row in draw.rows]
        labels = dict(zip(reviews.texts, reviews.labels or [], strict=True))
        assert [splits.names[code] for code in draw.codes] == [labels[text] for text in texts]
    assert not set(splits.needed.texts) & set(splits.test.texts)
    assert len(splits.needed) == len({row for draw in splits.draws for row in draw.rows})


def test_draws_depend_on_the_seed_alone(splits: Splits, reviews: Dataset) -> None:
    pool, held = hold_out_rows(reviews, 300, 0)
    again = Splits.draw(pool, held, [100], [4])
    assert again.draws[0].checksum == splits.draws[3].checksum


def test_no_training_text_is_a_test_text(reviews: Dataset) -> None:
    repeated = reviews.select([*range(100), 0, 1])
    held = reviews.select([0, 1, 2])
    pool, left_out = without_texts_of(repeated, held)
    assert (len(pool), left_out) == (97, 5)
    assert corpus_of(repeated, held) == reviews.texts[3:100]
    with pytest.raises(ValueError, match="expected rows with texts that are not in"):
        without_texts_of(held, held)


@pytest.mark.parametrize(
    ("sizes", "test_size", "words"),
    [
        ([16], ROWS, "expected more than the 3,000 rows that are held out"),
        ([16, 2800], 300, "expected at least 2,800 rows to draw training rows from, got 2,700 beside the test rows"),
        ([1], 300, "expected train sizes of at least 2"),
    ],
)
def test_too_few_rows_are_told_before_anything_is_computed(
    reviews: Dataset, sizes: list[int], test_size: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Splits.draw(*hold_out_rows(reviews, test_size, 0), sizes, [0])


# --- cells -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["gap", "struct-fcn"])
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_a_cell_is_what_the_classifier_predicts(splits: Splits, tmp_path: Path, architecture: str, kernel: str) -> None:
    encoder = get_encoder("glove-6b-50d", scale="none").fit(splits.needed.texts)
    networks = {architecture: tk.named_architecture(architecture)}
    result = Comparison(splits, ["glove"], networks, [kernel], lambda name: encoder, tmp_path).run()
    assert result.failures == {}
    draw = splits.draws[1]
    classifier = tk.KernelClassifier("glove-6b-50d", architecture, kernel, scale="none")
    classifier.fit([splits.texts[row] for row in draw.rows], [splits.names[code] for code in draw.codes])
    cell = result.cells[Contender("glove", architecture, kernel), draw]
    said = [splits.names[code] for code in cell.predicted]
    assert said == classifier.predict(splits.test.texts).tolist()
    # Comparisons know one spread of labels, that of complete texts.
    classifier.residual_variance_ = ResidualVariance.constant(classifier.residual_variance_.usual)
    np.testing.assert_allclose(cell.probabilities, classifier.predict_proba(splits.test.texts), atol=1e-6)
    assert cell.facts["diag_reg"] == classifier.fit_report_["diag_reg"]


def test_scores_by_hand(splits: Splits, tmp_path: Path) -> None:
    comparison = Comparison(splits, [], {}, [], lambda name: None, tmp_path)
    true, draw_a, draw_b = splits.test.codes, splits.draws[0], splits.draws[2]
    contender = Contender(baselines.MAJORITY)
    for draw, probability in ((draw_a, 0.9), (draw_b, 0.6)):
        probabilities = np.full((len(true), 2), 1 - probability)
        probabilities[np.arange(len(true)), true] = probability
        comparison.cells[contender, draw] = Cell(true, probabilities, {"n_train": 16})
    found = score(comparison)
    assert found[100] == []
    (only,) = found[16]
    assert only.estimates["accuracy"].mean == 1.0
    assert only.estimates["log_loss"].mean == pytest.approx(-(np.log(0.9) + np.log(0.6)) / 2)
    assert only.estimates["brier"].mean == pytest.approx((0.1**2 + 0.4**2) / 2)
    assert only.estimates["ece"].mean == pytest.approx((0.1 + 0.4) / 2)
    np.testing.assert_allclose(only.log_loss[1], -np.log(0.6))


class ByHand:
    """Documents are numbers: K = 1 + x y, Theta = 2 K."""

    def __init__(self) -> None:
        self.entries = 0

    def block(self, rows: np.ndarray, columns: np.ndarray, ntk: bool, diagonal: int | None = None) -> Any:
        nngp = 1.0 + np.outer(rows, columns)
        self.entries += nngp.size
        if diagonal == 0:
            nngp = np.tril(nngp) + np.triu(np.full_like(nngp, np.nan), 1)
        return nngp, 2.0 * nngp if ntk else None

    def diagonal(self, rows: np.ndarray) -> np.ndarray:
        return 1.0 + rows**2


def test_token_pairs_are_computed_once_for_all_sizes_and_kernels() -> None:
    generator, kernel = np.random.default_rng(0), ByHand()
    train, test = generator.normal(size=300), generator.normal(size=70)
    table = TabulatedKernel(kernel, train, test, ntk=True)
    whole = 1.0 + np.outer(np.concatenate([train, test]), train)
    assert kernel.entries < whole.size
    rows, columns = np.array([299, 3, 310]), np.array([0, 299, 256])
    nngp, ntk = table.block(rows, columns, True)
    np.testing.assert_array_equal(nngp, whole[np.ix_(rows, columns)])
    np.testing.assert_array_equal(ntk, 2.0 * nngp)
    np.testing.assert_allclose(table.diagonal(np.arange(370)), 1.0 + np.concatenate([train, test]) ** 2)
    assert table.block(rows, columns, False)[1] is None
    assert table.seconds_for(300) == pytest.approx(table.seconds)
    assert table.seconds_for(30) == pytest.approx(table.seconds * (30 * 85) / (300 * 220))


def test_a_network_of_token_pairs_is_compared_too(splits: Splits, tmp_path: Path) -> None:
    network = Architecture([Conv(3), Activation("relu"), GlobalAveragePool(), Dense()], name="cnn")
    small = Splits.draw(splits.pool.dataset, splits.test.dataset.select(range(20)), [8, 16], [0])
    encoder = get_encoder("glove-6b-50d", scale="none", max_tokens=8).fit(small.needed.texts)
    result = Comparison(small, ["glove"], {"cnn": network}, ["nngp", "ntk"], lambda name: encoder, tmp_path).run()
    assert result.failures == {}
    kernel, draw = choose_kernel(network), small.draws[0]
    texts = [*(small.texts[row] for row in draw.rows), *small.test.texts]
    documents = kernel.prepare(encoder.encode(texts).documents, 1000)
    for kind in ("nngp", "ntk"):
        parts = documents[:8], draw.codes, documents[8:], np.arange(20), 20, 2, kind == "ntk"
        direct = fit_cell(kernel, *parts)
        cell = result.cells[Contender("glove", "cnn", kind), draw]
        np.testing.assert_allclose(cell.probabilities, direct.probabilities, atol=1e-5)


def test_a_draw_without_a_usable_text_of_a_class_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rows = [("good film", "pos")] * 10 + [("qwzx", "neg")] * 10
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, index=False)
    data = load(path, progress=False)
    other = data.select([0, 1, 10, 11])
    other.texts[:] = ["a good one", "fine", "a bad one", "qwzx"]
    parts = Splits.draw(data, other, [4], [0])
    encoder = get_encoder("glove-6b-50d").fit(parts.needed.texts)
    result = Comparison(parts, ["glove"], {"gap": tk.named_architecture("gap")}, ["nngp"], lambda n: encoder, tmp_path)
    result.run()
    reason = result.failures[Contender("glove", "gap", "nngp")]
    assert reason.startswith("4 labels, seed 0: expected a usable text of every class among 2 training texts")
    assert len(result.cells) == 2


# --- baselines ---------------------------------------------------------------------------------------------------

PART = LabelledPart(
    ["good film", "a good one", None, "bad film", "bad"], np.array([2, 2, 2, 0, 0]), ["a good film", None, "bad bad"], 3
)


def test_majority_class() -> None:
    cell = majority_class(PART, 0)
    assert cell.predicted.tolist() == [2, 2, 2]
    np.testing.assert_allclose(cell.probabilities, [[0.4, 0.0, 0.6]] * 3)


def test_tfidf_is_the_pipeline_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    monkeypatch.setattr(baselines, "STRENGTHS", (10.0,))
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10.0))
    oracle = pipeline.fit([text or "" for text in PART.texts], PART.codes)
    cell = tfidf_regression(PART, 0)
    expected = oracle.predict_proba([text or "" for text in PART.test])
    np.testing.assert_allclose(cell.probabilities[:, [0, 2]], expected, atol=1e-4)
    assert cell.predicted.tolist()[2] == 0
    assert (cell.probabilities[:, 1] == 0).all()


# --- the command -------------------------------------------------------------------------------------------------


def write_vectors(path: Path, words: list[str], vectors: np.ndarray) -> None:
    rows = [" ".join([word, *(f"{value:.5f}" for value in row)]) for word, row in zip(words, vectors, strict=True)]
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def files(reviews: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews.csv and vectors: two copies, two with noise, and one that is broken."""
    folder = tmp_path_factory.mktemp("compare")
    table = TABLES["glove-6b-50d"]()
    known = {word for text in reviews.texts for word in re.findall(r"[\w']+|\W", (text or "").lower())} | {"n't"}
    rows = [row for row, word in enumerate(table.words) if word in known]
    words, vectors = [table.words[row] for row in rows], np.asarray(table.vectors[rows])
    generator = np.random.default_rng(0)
    write_vectors(folder / "one.txt", words, vectors)
    write_vectors(folder / "copy.txt", words, vectors)
    for name in ("noisy.txt", "noisy-too.txt"):
        noise = 3.0 * vectors.std() * generator.normal(size=vectors.shape)
        write_vectors(folder / name, words, vectors + noise)
    (folder / "broken.txt").write_text("good 0.1 0.2\nbad 0.1\n")
    pd.DataFrame({"text": reviews.texts, "label": reviews.labels}).to_csv(folder / "reviews.csv", index=False)
    return folder


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run compare beside the files: exit status, standard output, standard error."""
    monkeypatch.chdir(files)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main(["compare", "reviews.csv", "--quiet", *arguments])
        return int(exit_.value.code or 0), *capsys.readouterr()

    return run


FOUR = ["--embeddings", "one.txt,copy.txt,broken.txt,noisy.txt,noisy-too.txt", "--architectures", "gap"]
FOUR += ["--train-sizes", "16,200", "--seeds", "5", "--test-size", "800"]


@pytest.fixture(scope="module")
def report(files: Path, request: pytest.FixtureRequest) -> Path:
    """The report on the five files, NNGP alone."""
    output = files / "report"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(files)
        with pytest.raises(SystemExit) as exit_:
            cli.main(["compare", "reviews.csv", "--quiet", *FOUR, "--kernels", "nngp", "--output", str(output)])
    assert exit_.value.code == 2
    return output


def test_copies_cannot_be_told_apart_and_noise_can(report: Path) -> None:
    found = json.loads((report / "results.json").read_text())
    pairs = {(p["first"]["embedding"], p["second"]["embedding"], p["train_size"]): p for p in found["pairs"]}
    same = pairs["one.txt", "copy.txt", 200]
    assert same["told_apart"] is False
    assert same["accuracy"]["difference"] == same["accuracy"]["low"] == same["accuracy"]["high"] == 0.0
    assert pairs["one.txt", "noisy.txt", 200]["told_apart"] is True
    assert pairs["one.txt", "noisy.txt", 200]["accuracy"]["low"] > 0
    noisy = next(p for names, p in pairs.items() if set(names) == {"noisy.txt", "noisy-too.txt", 200})
    assert noisy["told_apart"] is False
    text = (report / "report.md").read_text()
    assert "one.txt is better than noisy" in text
    assert "but cannot be told apart from copy.txt (+0.00 points); copy.txt is better than noisy" in text


def test_one_failure_leaves_the_others_and_ends_with_an_error(report: Path, run: Run) -> None:
    status, out, err = run(*FOUR, "--kernels", "nngp", "--output", str(report))
    assert status == 2
    assert out == ""
    assert err.startswith("Error: 1 of 7 rows of the report failed, the others are in ")
    assert "broken.txt: " in err
    assert err.count("\n") == 1
    table = pd.read_csv(report / "results.csv")
    assert set(table["embedding"]) == {*baselines.BASELINES, *FOUR[1].split(",")}
    failed = table["embedding"] == "broken.txt"
    assert table.loc[failed, "accuracy"].isna().all()
    assert table.loc[failed, "error"].str.contains("broken.txt").all()
    assert table.loc[~failed, ["accuracy", "macro_f1", "log_loss", "brier", "ece", "accuracy_low"]].notna().all().all()
    assert "| broken.txt | " in (report / "report.md").read_text()


def test_report_is_complete_and_needs_nothing_else(report: Path) -> None:
    names = {path.name for path in report.iterdir()}
    assert {"report.md", "report.html", "results.csv", "results.json", "curves-accuracy.svg", "ranking-1.svg"} <= names
    page = (report / "report.html").read_text()
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="(?!#)', page)
    text = (report / "report.md").read_text()
    for words in ("majority class", "TF-IDF + logistic regression", "coverage", "peak memory", "SHA-256", "Holm"):
        assert words in text or words == "coverage"
    for figure in re.findall(r"\]\(([\w.-]+\.svg)\)", text):
        assert (report / figure).is_file()
    details = json.loads((report / "results.json").read_text())
    assert details["provenance"]["vectors"]["one.txt"]["file_sha256"]
    assert len(details["cells"]) == 6 * 2 * 5


def forbid(*_: Any, **__: Any) -> Any:
    raise AssertionError("computed again")


def test_finished_cells_are_not_computed_again(report: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads((report / "results.json").read_text())
    monkeypatch.setattr(stacked, "fit_cell", forbid)
    monkeypatch.setattr(compare, "StackedTexts", forbid)
    monkeypatch.setattr(compare, "BASELINES", dict.fromkeys(baselines.BASELINES, forbid))
    assert run(*FOUR, "--kernels", "nngp", "--output", str(report))[0] == 2
    after = json.loads((report / "results.json").read_text())
    del before["provenance"], after["provenance"]
    assert after == before


def test_an_interrupted_run_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = ["--embeddings", "one.txt", "--architectures", "gap,gap-fcn", "--train-sizes", "16,32", "--seeds", "2"]
    arguments += ["--test-size", "50", "--output"]
    whole, parts, fits = tmp_path / "whole", tmp_path / "parts", []

    def interrupted(*given: Any) -> Cell:
        fits.append(given)
        if len(fits) == 6:
            raise KeyboardInterrupt
        return fit_cell(*given)

    monkeypatch.setattr(stacked, "fit_cell", interrupted)
    assert run(*arguments, str(parts))[0] == 130
    assert not (parts / "report.md").exists()
    assert run(*arguments, str(parts))[0] == 0
    assert len(fits) == 1 + 2 * 2 * 2 * 2
    monkeypatch.setattr(stacked, "fit_cell", fit_cell)
    assert run(*arguments, str(whole))[0] == 0
    assert measures(parts) == measures(whole)
    assert "Which network is better?" in (parts / "report.md").read_text()


def measures(folder: Path) -> list[tuple[Any, ...]]:
    rows = json.loads((folder / "results.json").read_text())["rows"]
    return [(row["embedding"], row["kernel"], row["train_size"], row["accuracy"], row["log_loss"]) for row in rows]


def test_trained_vectors_see_all_texts_but_test_rows(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    class Recorder:
        def __init__(self, name: str, **options: Any) -> None:
            self.encoder = get_encoder("glove-6b-50d")

        def fit(self, texts: list[str], corpus: list[str], progress: bool) -> Any:
            seen["texts"], seen["corpus"] = texts, corpus
            return self.encoder.fit(texts)

    monkeypatch.setattr("embeddings.get_encoder", Recorder)
    arguments = ["--architectures", "gap", "--kernels", "nngp", "--train-sizes", "16", "--seeds", "2"]
    run("--embeddings", "x", *arguments, "--test-size", "300", "--output", str(tmp_path / "held-out"))
    everything = set(pd.read_csv("reviews.csv")["text"])
    assert len(set(seen["corpus"])) == len(everything) - 300
    assert set(seen["texts"]) < set(seen["corpus"])
    test = tmp_path / "test.csv"
    pd.read_csv("reviews.csv").iloc[[0, 1, 1500, 1501]].to_csv(test, index=False)
    run("--embeddings", "x", *arguments, "--test", str(test), "--output", str(tmp_path / "given"))
    assert set(seen["corpus"]) == everything - set(pd.read_csv(test)["text"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--embeddings a,,b", "expected names with commas between them, got an empty one"),
        ("--embeddings a,b,a", "expected different names, got 'a' twice"),
        ("--embeddings a --kernels rbf", "expected nngp or ntk, got 'rbf'"),
        ("--embeddings a --train-sizes 16,1", "expected whole numbers of at least 2 with commas between them, got '1'"),
        ("--embeddings a --train-sizes many", "got 'many'"),
        ("--embeddings a --architectures mlp", "expected an architecture among gap"),
        ("--embeddings a --architectures no.toml", "no.toml"),
        (
            "--embeddings a --test-size 3000",
            "expected more than the 3,000 rows that are held out as test rows, got 3,000",
        ),
        ("--embeddings a --test-size 600 --label-column stars", "expected a column 'stars'"),
        ("--embeddings a --test-size 600 --output reviews.csv", "expected a folder that can be written to"),
    ],
)
def test_errors_come_before_the_computing(run: Run, line: str, words: str, tmp_path: Path) -> None:
    arguments = line.split()
    output = [] if "--output" in arguments else ["--output", str(tmp_path / "out")]
    status, out, err = run(*arguments, *output)
    assert (status, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "out").exists()
