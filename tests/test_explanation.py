"""Effects of words against predictions of texts without them, written by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from samples import LABELS, TEXTS

import textkernels as tk
from app.charts import effect_chart
from app.services import explain_review, score_review
from textkernels.explanation import in_runs, words_of


@pytest.fixture(scope="module", params=["struct-fcn", "cnn-gap"])
def model(request) -> tk.KernelClassifier:
    return tk.KernelClassifier(architecture=request.param).fit(TEXTS, LABELS)


def test_effects_are_differences_of_latent_means(model) -> None:
    found = model.explain("a wonderful , boring  film")
    assert found["text"].tolist() == ["a ", "wonderful ", ", ", "boring  ", "film"]
    whole = model.decision_function(["a wonderful , boring film"])[0]
    without = ["wonderful , boring film", "a , boring film", "a wonderful boring film", "a wonderful , film"]
    expected = whole - model.decision_function([*without, "a wonderful , boring"])
    sign = 1.0 if model.predict(["a wonderful , boring film"])[0] == "pos" else -1.0
    np.testing.assert_allclose(found["effect"], sign * expected, atol=1e-5)
    effects = dict(zip(found["text"].str.strip(), sign * found["effect"], strict=True))
    assert effects["wonderful"] > 0 > effects["boring"]


def test_an_unknown_word_has_no_effect_and_the_only_known_one_all(model) -> None:
    found = model.explain("qwzxvrrp wonderful")
    assert found["effect"].tolist()[0] == 0.0
    assert found["effect"].tolist()[1] == pytest.approx(abs(model.decision_function(["wonderful"])[0]), abs=1e-6)


@pytest.mark.parametrize(("text", "parts"), [(None, 0), ("", 0), ("  \n", 0), ("qwzx vrrp", 2)])
def test_texts_without_known_words(model, text, parts: int) -> None:
    found = model.explain(text)
    assert found["effect"].tolist() == [0.0] * parts


@pytest.mark.parametrize(
    ("text", "most", "parts"),
    [
        (" a b\n\nc", 3, ["a ", "b\n\n", "c"]),
        ("a b c d e", 2, ["a b c ", "d e"]),
        ("a b c d e", 1, ["a b c d e"]),
        ("nospaces", 5, ["nospaces"]),
        ("", 5, []),
    ],
)
def test_parts_are_the_text(text: str, most: int, parts: list[str]) -> None:
    assert in_runs(words_of(text), most) == parts
    assert len(parts) <= most


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "3", None, float("nan")])
def test_how_many_parts_is_an_integer(model, most) -> None:
    with pytest.raises(ValueError, match="expected most to be an integer of at least 1"):
        model.explain("a film", most=most)


@pytest.mark.parametrize("text", [0, 5, False, [], ["a"], {}, b"a"])
def test_what_is_no_text_is_an_error(model, text) -> None:
    with pytest.raises(TypeError, match="expected"):
        model.explain(text)


@pytest.mark.parametrize("text", [float("nan"), pd.NA])
def test_missing_values_have_no_words(model, text) -> None:
    assert model.explain(text).empty


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_words_behind_the_limit_change_nothing(keep: str) -> None:
    model = tk.KernelClassifier(max_tokens=6, keep=keep).fit(TEXTS, LABELS)
    read, unread = "a wonderful film, great acting ", "boring bad dull story boring bad awful "
    text = read + unread if keep == "head" else unread + read
    alone, cut = model.explain(read), model.explain(text)
    assert cut["text"].str.strip().tolist() == alone["text"].str.strip().tolist()
    np.testing.assert_allclose(cut["effect"], alone["effect"], atol=1e-10)
    # Few predictions are spent on many words, and none on those that are not read.
    assert len(model.explain(text * 500, most=3)) == 3


def test_rounding_is_no_effect() -> None:
    model = tk.KernelClassifier().fit(TEXTS, LABELS)
    assert model.explain("good good good")["effect"].tolist() == [0.0] * 3


def test_three_classes() -> None:
    texts = ["good great film", "bad awful film", "the man went home"] * 6
    model = tk.KernelClassifier().fit(texts, ["pos", "neg", "none"] * 6)
    text = "a great story"
    found, table = model.explain(text), model.predict_table([text])
    code = model.classes_.tolist().index(table["prediction"][0])
    without = model.decision_function(["great story", "a story", "a great"])[:, code]
    np.testing.assert_allclose(found["effect"], model.decision_function([text])[0, code] - without, atol=1e-10)


def test_the_chart_adds_up_words_that_stand_twice(model) -> None:
    text = "boring film , Boring story"
    review, effects = score_review(model, text), explain_review(model, text)
    frame = effect_chart(review, effects).data
    if len(effects) == 5:
        assert frame["words"].tolist().count("boring") == 1
        total = effects["effect"][effects["text"].str.strip().str.lower() == "boring"].sum()
        assert frame.set_index("words")["effect"]["boring"] == pytest.approx(total)
    assert (np.diff(frame["effect"].abs()) <= 0).all()
