"""Probabilities of texts far shorter than the training texts: as sure as they are right."""

import numpy as np
import pytest

import textkernels as tk
from app.services import length_message, score_review
from textkernels.residual_variance import ResidualVariance
from textkernels.short_texts import _Units

GOOD, BAD = ["great", "lovely", "superb", "warm"], ["awful", "dull", "poor", "stale"]
FILLER = ["the", "film", "is", "about", "a", "man", "and", "his", "house", "in", "north", "of", "town", "where", "they"]


def reviews(n: int, length: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Long texts in which every tenth word says which class it is."""
    random = np.random.default_rng(seed)
    labels = np.array(["neg", "pos"])[np.arange(n) % 2]
    texts = []
    for label in labels:
        words = random.choice(FILLER, length).tolist()
        for place in range(0, length, 10):
            words[place + int(random.integers(10))] = random.choice(GOOD if label == "pos" else BAD)
        texts.append(" ".join(words))
    return texts, labels.tolist()


@pytest.fixture(scope="module")
def fitted() -> tk.KernelClassifier:
    return tk.KernelClassifier(architecture="gap-fcn").fit(*reviews(80, 60))


def test_residual_variance_between_and_beyond_the_lengths() -> None:
    found = ResidualVariance(np.array([4.0, 16.0]), np.array([1.0, 0.01]))
    np.testing.assert_allclose(found.at(np.array([1, 4, 8, 16, 900])), [1.0, 1.0, 0.1, 0.01, 0.01])
    assert (found.usual, found.usual_length) == (pytest.approx(0.01), 16.0)
    np.testing.assert_allclose(found.extended(2.0, 0.5).values, [1.0, 1.0, 0.01])
    np.testing.assert_array_equal(ResidualVariance.from_dict(found.to_dict()).values, found.values)


@pytest.mark.parametrize("values", [{"lengths": [1.0], "values": []}, {"lengths": 1.0, "values": 2.0}])
def test_damaged_residual_variances_are_an_error(values: dict) -> None:
    with pytest.raises(TypeError, match="two lists of equal length"):
        ResidualVariance.from_dict(values)


def test_short_pieces_are_as_sure_as_they_are_right(fitted: tk.KernelClassifier) -> None:
    # Three filler words say nothing: the old spread called them all but certain.
    texts, labels = reviews(400, 60, seed=1)
    pieces = [" ".join(text.split()[:3]) for text in texts]
    right = fitted.predict(pieces) == labels
    claimed = fitted.predict_proba(pieces).max(axis=1)
    assert 0.5 < right.mean() < 0.85
    assert abs(claimed.mean() - right.mean()) < 0.1
    usual = ResidualVariance.constant(fitted.residual_variance_.usual)
    before = np.sqrt(usual.at(3)) / np.sqrt(fitted.residual_variance_.at(3))
    assert before < 0.5


def test_s2_falls_with_the_length_and_is_the_usual_one_for_complete_texts(fitted: tk.KernelClassifier) -> None:
    found = fitted.residual_variance_
    assert found.usual_length == 60
    assert len(found.values) > 2
    assert (np.diff(found.values) <= 0).all()
    assert (np.diff(found.lengths) > 0).all()
    assert found.at(60) == found.at(1000) == pytest.approx(found.usual)


def test_a_few_short_training_texts_do_not_stand_for_all() -> None:
    texts, labels = reviews(200, 60)
    fitted = tk.KernelClassifier(architecture="gap-fcn").fit(
        [*texts, *GOOD, *BAD], [*labels, *["pos"] * 4, *["neg"] * 4]
    )
    assert fitted.residual_variance_.usual_length == 60
    assert len(fitted.residual_variance_.values) > 2


def test_texts_without_spaces_are_cut_by_characters() -> None:
    random = np.random.default_rng(0)
    units = _Units.of("".join(random.choice(list("天地人你好"), 40)), 40)
    piece = units.piece(5, random)
    assert len(piece) == 5
    assert " " not in piece
    assert units.longer_than(39)
    assert not units.longer_than(40)
    assert _Units.of("ten words " * 5, 10).piece(3, random).count(" ") == 2


def test_training_texts_of_one_word_know_one_length_only() -> None:
    fitted = tk.KernelClassifier().fit([*GOOD, *BAD], ["pos"] * 4 + ["neg"] * 4)
    assert fitted.residual_variance_.lengths.tolist() == [1.0]


def test_a_saved_model_gives_short_texts_the_same_probability(fitted: tk.KernelClassifier, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    texts = ["great", "the dull film", reviews(1, 60)[0][0]]
    got = tk.load(tmp_path / "model").predict_proba(texts)
    np.testing.assert_allclose(got, fitted.predict_proba(texts), atol=1e-12)


@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_three_classes(kernel: str) -> None:
    texts, labels = reviews(60, 40)
    labels = [label if place % 3 else "other" for place, label in enumerate(labels)]
    fitted = tk.KernelClassifier(architecture="cnn-gap", kernel=kernel, diag_reg=0.01).fit(texts, labels)
    assert len(fitted.residual_variance_.values) > 2
    table = fitted.predict_table(["great", texts[1]])
    probabilities = table[[f"probability_{name}" for name in fitted.classes_]].to_numpy()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    assert fitted.classes_[probabilities.argmax(axis=1)].tolist() == table["prediction"].tolist()


def test_the_page_says_that_a_text_is_short(fitted: tk.KernelClassifier) -> None:
    assert "Only 1 token to go on, where nearly all training reviews have at least 60" in str(
        length_message(score_review(fitted, "great"))
    )
    assert length_message(score_review(fitted, reviews(1, 60)[0][0])) is None
    assert length_message(score_review(fitted, "qwzx")) is None
