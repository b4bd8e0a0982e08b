"""The demo's pages, run as Streamlit runs them, and what they show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from samples import LABELS, TEXTS
from streamlit.testing.v1 import AppTest

import textkernels as tk
from app.charts import evidence_chart, probability_chart
from app.services import EXAMPLES, score_review

MAIN = Path(__file__).parents[1] / "app" / "main.py"


@pytest.fixture(scope="module")
def classifier() -> tk.KernelClassifier:
    return tk.KernelClassifier().fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def folder(classifier, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("app") / "model"
    classifier.save(path)
    return str(path)


@pytest.fixture
def page(folder, monkeypatch) -> AppTest:
    monkeypatch.setenv("TEXTKERNELS_MODEL", folder)
    return AppTest.from_file(str(MAIN), default_timeout=60)


def written(page: AppTest) -> str:
    """All HTML on the page."""
    return "".join(block.proto.body for block in page.get("html"))


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def test_the_first_page_shows_a_scored_example(page, classifier) -> None:
    page.run()
    assert not page.exception
    row = classifier.predict_table([EXAMPLES["A warm one"]]).iloc[0]
    shown = metrics(page)
    assert shown["Label"] == row["prediction"]
    assert shown["Probability"] == f"{max(row['probability_pos'], row['probability_neg']):.1%}"
    assert shown["Tokens used"] == str(row["n_tokens"])


def test_own_words_get_the_answer_that_the_class_gives(page, classifier) -> None:
    page.run()
    page.selectbox[0].select("Your own words").run()
    page.text_area[0].input("a boring , qwzxvrrp story").run()
    assert not page.exception
    row = classifier.predict_table(["a boring , qwzxvrrp story"]).iloc[0]
    shown = metrics(page)
    assert shown["Label"] == row["prediction"] == "neg"
    assert shown["Latent value"] == f"{row['mean']:+.2f} ± {row['std']:.3f}"
    assert shown["Unknown, left out"] == "1"
    assert shown["Tokens used"] == "4"


def test_a_blank_text_is_asked_for_and_not_scored(page) -> None:
    page.run()
    page.selectbox[0].select("Your own words").run()
    assert not page.exception
    assert "Type a review" in page.info[0].value
    assert not page.metric


def test_unknown_words_only_are_said_to_be_no_evidence(page) -> None:
    page.run()
    page.selectbox[0].select("Words nobody knows").run()
    assert not page.exception
    assert "nothing to go on" in page.warning[0].value
    assert metrics(page)["Probability"] == "50.0%"


def test_markup_in_a_review_stays_text(page) -> None:
    page.run()
    page.selectbox[0].select("Your own words").run()
    page.text_area[0].input("film &lt;script&gt;alert(1)&lt;/script&gt; $x$").run()
    assert not page.exception
    assert "<script" not in written(page)


def test_the_page_says_why_and_markup_stays_text_there(page) -> None:
    page.run()
    page.selectbox[0].select("Your own words").run()
    page.text_area[0].input("a boring *film* [x](y) <b>story</b>\n\n# $z$ `dull` bad").run()
    assert not page.exception
    assert "Why?" in [block.value for block in page.subheader]
    assert "boring" in written(page)
    assert "&lt;b&gt;story&lt;/b&gt;" in written(page)
    assert "<b>" not in written(page)
    assert "# $z$ `dull`" in "".join(part for part in re.split("<[^>]*>", written(page)))


def test_names_of_classes_stay_text() -> None:
    texts, labels = TEXTS, [f":red[{label}] *->* $x$" for label in LABELS]
    model = tk.KernelClassifier().fit(texts, labels)
    page = AppTest.from_function(_draw_review, args=(model,), default_timeout=60).run()
    assert not page.exception
    shown = metrics(page)["Label"]
    assert shown.replace("\\", "").replace("\u2060", "") in labels
    assert ":red[" not in shown
    assert "->" not in shown


def _draw_review(model) -> None:
    from app.views import review

    review.draw(model)


@pytest.mark.parametrize(
    ("probability", "n_classes", "verdict"),
    [(0.55, 2, "undecided"), (0.61, 2, "pos"), (0.35, 4, "pos"), (0.29, 4, "undecided")],
)
def test_a_label_that_is_hardly_likelier_is_none(classifier, probability: float, n_classes: int, verdict: str) -> None:
    rest = {f"c{place}": (1 - probability) / (n_classes - 1) for place in range(n_classes - 1)}
    review = replace(
        score_review(classifier, "a good film"), prediction="pos", probabilities={"pos": probability, **rest}
    )
    assert review.verdict == verdict
    assert replace(review, status="no_known_tokens").verdict == "undecided"


def test_classes_that_are_short_floats() -> None:
    model = tk.KernelClassifier().fit(TEXTS, np.where(np.array(LABELS) == "pos", np.float32(0.1), np.float32(0.7)))
    review = score_review(model, "a boring film")
    assert review.probability == max(review.probabilities.values())


def test_a_missing_model_says_how_to_make_one(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TEXTKERNELS_MODEL", str(tmp_path / "none"))
    page = AppTest.from_file(str(MAIN), default_timeout=60).run()
    assert not page.exception
    assert "No model" in page.error[0].value
    assert "textkernels fit" in page.info[0].value


def test_a_long_review_says_what_was_cut(folder) -> None:
    model = tk.load(folder)
    review = score_review(model, "film " * 1203)
    assert (review.used, review.cut, review.unknown) == (1000, 203, 0)


def test_the_colored_area_is_the_probability(classifier) -> None:
    review = score_review(classifier, "a wonderful , boring film")
    frame = evidence_chart(review).data
    area = frame.groupby("side")["density"].sum()
    share = area[f"speaks for {review.prediction}"] / area.sum()
    assert share == pytest.approx(review.probability, abs=0.01)
    assert probability_chart(review).to_dict()
