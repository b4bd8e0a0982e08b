"""KernelClassifier as users touch it: texts in, labels, probabilities and statuses out, whatever the texts."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from samples import LABELS, TEXTS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import textkernels as tk
from embeddings import get_encoder
from textkernels.labels import match_labels
from textkernels.targets import encode_targets

EMPTY = {
    "": "empty",
    "   \n": "empty",
    "!!! ???": "no_known_tokens",
    "<br />": "no_known_tokens",
    "🙂🙂": "no_known_tokens",
    "qwzxvrrp": "no_known_tokens",
}


@pytest.fixture(scope="module", params=["gap", "struct", "gap-fcn", "struct-fcn", "cnn-gap", "cnn-struct"])
def architecture(request) -> str:
    return request.param


@pytest.fixture(scope="module", params=["nngp", "ntk"])
def fitted(request, architecture) -> tk.KernelClassifier:
    return tk.KernelClassifier(architecture=architecture, kernel=request.param).fit(TEXTS, LABELS)


def test_predicts_what_it_was_taught(fitted) -> None:
    assert fitted.predict(["a great film", "a boring film"]).tolist() == ["pos", "neg"]
    assert fitted.classes_.tolist() == ["neg", "pos"]


def test_probabilities_agree_with_predictions(fitted) -> None:
    texts = [*TEXTS, *EMPTY, "wonderful but boring"]
    probabilities = fitted.predict_proba(texts)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(texts)).all()


@pytest.mark.parametrize(("text", "status"), EMPTY.items())
def test_a_text_without_known_tokens_gets_the_neutral_result(fitted, text, status) -> None:
    row = fitted.predict_table([text]).iloc[0]
    assert row["status"] == status
    assert row["prediction"] == "neg"  # equal shares: the first class
    assert row["mean"] == 0
    assert row["std"] == pytest.approx(fitted.latent_.prior_std)
    assert row["probability_neg"] == row["probability_pos"] == pytest.approx(0.5)


def test_a_text_gets_one_answer_alone_in_a_batch_and_in_any_order(fitted) -> None:
    texts = ["a great film", "boring", "the story of a film " * 30, "", None, "qwzxvrrp", "I loved every minute"]
    together = fitted.predict_table(texts)
    backwards = fitted.predict_table(texts[::-1]).iloc[::-1].reset_index(drop=True)
    alone = [fitted.predict_table([text]).iloc[0] for text in texts]
    for column in ["probability_neg", "probability_pos", "mean", "std"]:
        np.testing.assert_allclose(together[column], backwards[column], atol=1e-9)
        np.testing.assert_allclose(together[column], [row[column] for row in alone], atol=1e-9)
    for column in ["prediction", "status", "n_tokens", "truncated"]:
        assert together[column].tolist() == backwards[column].tolist() == [row[column] for row in alone]


def test_other_rows_do_not_feel_a_bad_one(fitted) -> None:
    clean = fitted.predict_table(["a great film", "boring"])
    beside = fitted.predict_table(["a great film", "", None, "qwzxvrrp", "boring"]).iloc[[0, 4]]
    np.testing.assert_array_equal(clean["mean"], beside["mean"])
    np.testing.assert_array_equal(clean["probability_pos"], beside["probability_pos"])


def test_a_saved_model_predicts_the_same(fitted, tmp_path) -> None:
    texts = [*TEXTS, "", "a film nobody has seen"]
    fitted.save(tmp_path / "model")
    loaded = tk.load(tmp_path / "model")
    before, after = fitted.predict_table(texts), loaded.predict_table(texts)
    for column in before.columns:
        if before[column].dtype.kind == "f":
            np.testing.assert_allclose(before[column], after[column], rtol=0, atol=1e-12)
        else:
            assert before[column].tolist() == after[column].tolist()
    assert loaded.fit_report_ == fitted.fit_report_
    assert loaded.architecture_ == fitted.architecture_


def test_mean_and_variance_are_the_textbook_formulas() -> None:
    """Oracle: dense Gaussian-process regression on the Gram matrix of token vectors encoded by hand."""
    classifier = tk.KernelClassifier(architecture="struct-fcn", diag_reg=0.03).fit(TEXTS, LABELS)
    encoder = get_encoder("glove-6b-50d").fit(TEXTS)
    train, test = encoder.encode(TEXTS).documents, encoder.encode(["a great film", "boring evening"]).documents
    architecture = tk.named_architecture("struct-fcn")
    k_train = tk.gram(architecture, train)
    k_test = tk.gram(architecture, test, train)
    kreg = k_train + 0.03 * np.trace(k_train) / len(TEXTS) * np.eye(len(TEXTS))
    y = encode_targets(np.array([label == "pos" for label in LABELS]).astype(int), 2)
    mean = k_test @ np.linalg.solve(kreg, y)
    variance = np.diag(tk.gram(architecture, test)) - np.diag(k_test @ np.linalg.solve(kreg, k_test.T))
    table = classifier.predict_table(["a great film", "boring evening"])
    sign = np.where(table["prediction"] == "pos", 1, -1)
    np.testing.assert_allclose(table["mean"] * sign, mean[:, 0], atol=1e-8)
    np.testing.assert_allclose(table["std"], np.sqrt(variance), atol=1e-7)
    np.testing.assert_allclose(classifier.decision_function(["a great film", "boring evening"]), mean[:, 0], atol=1e-8)


@pytest.mark.parametrize(
    "labels",
    [
        [1, -1],
        [0, 1],
        [True, False],
        ["1", "0"],
        [" Positive", "NEG"],
        np.array([3, 7], dtype=np.int8),
        np.array([0.5, 1.5]),
    ],
)
@pytest.mark.filterwarnings("ignore:the label")
def test_labels_come_back_as_they_went_in(labels, tmp_path) -> None:
    given = [labels[i % 2] for i in range(len(TEXTS))]
    given = np.array(given, dtype=labels.dtype) if isinstance(labels, np.ndarray) else given
    classifier = tk.KernelClassifier(architecture="gap").fit(TEXTS, given)
    predictions = classifier.predict(["film", ""])
    assert all(prediction in list(labels) for prediction in predictions.tolist())
    assert type(predictions.tolist()[0]) is type(np.asarray(labels).tolist()[0])
    classifier.save(tmp_path / "model")
    loaded = tk.load(tmp_path / "model").predict(["film", ""])
    assert loaded.tolist() == predictions.tolist()
    assert loaded.dtype == predictions.dtype


def test_more_than_two_classes(tmp_path) -> None:
    texts = [*TEXTS[:40], "goal , match and league", "the team won the cup", "the league table", "a late goal"] * 2
    labels = [*LABELS[:40], *["sport"] * 4] * 2
    classifier = tk.KernelClassifier(random_state=3).fit(texts, labels)
    assert classifier.predict(["the cup match", "a great film"]).tolist() == ["sport", "pos"]
    table = classifier.predict_table(["the cup match", "", "boring"])
    probabilities = table[["probability_neg", "probability_pos", "probability_sport"]].to_numpy()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    shares = np.array([labels.count(name) for name in ["neg", "pos", "sport"]]) / len(labels)
    np.testing.assert_allclose(probabilities[1], shares)
    assert classifier.decision_function(["boring"]).shape == (1, 3)
    classifier.save(tmp_path / "model")
    np.testing.assert_allclose(tk.load(tmp_path / "model").predict_proba(["boring"]), probabilities[2:], atol=1e-12)


def test_nonsense_among_known_words_is_less_certain_than_a_training_text() -> None:
    classifier = tk.KernelClassifier().fit(TEXTS, LABELS)
    table = classifier.predict_table(["qwzx vrrp blorf parliament", "a wonderful film"])
    assert table["std"][0] > table["std"][1]
    assert table["probability_pos"][1] > table[["probability_pos", "probability_neg"]].iloc[0].max()


def test_words_that_training_never_saw_are_used() -> None:
    classifier = tk.KernelClassifier().fit(TEXTS, LABELS)
    row = classifier.predict_table(["dreadful"]).iloc[0]
    assert row["status"] == "ok"
    assert row["prediction"] == "neg"


@pytest.mark.parametrize(("keep", "prediction"), [("head", "neg"), ("tail", "pos"), ("head+tail", None)])
def test_long_texts_are_cut_where_asked_and_say_so(keep, prediction, tmp_path) -> None:
    text = "boring " * 590 + "in short , a wonderful film"
    classifier = tk.KernelClassifier(max_tokens=6, keep=keep).fit(TEXTS, LABELS)
    classifier.save(tmp_path / "model")
    for model in (classifier, tk.load(tmp_path / "model")):
        row = model.predict_table([text]).iloc[0]
        assert row["truncated"]
        assert row["n_tokens"] == 596
        assert row["n_dropped"] == 590
        assert prediction is None or row["prediction"] == prediction


def test_training_rows_without_known_tokens_are_dropped_and_counted() -> None:
    texts, labels = [*TEXTS, "", None, "qwzxvrrp"], [*LABELS, "pos", "neg", "pos"]
    classifier = tk.KernelClassifier().fit(texts, labels)
    clean = tk.KernelClassifier().fit(TEXTS, LABELS)
    assert classifier.fit_report_["dropped"] == {"missing_text": 1, "empty": 1, "no_known_tokens": 1}
    assert classifier.n_train_ == len(TEXTS)
    np.testing.assert_array_equal(classifier.predict_proba(["a film"]), clean.predict_proba(["a film"]))
    with pytest.raises(ValueError, match=r"3 without.*row 43, empty"):
        tk.KernelClassifier(unusable="error").fit(texts, labels)


@pytest.mark.parametrize("diag_reg", [0.0, 1e-10, 1e-6, 1e-4, "auto"])
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
@pytest.mark.parametrize("architecture", ["struct-fcn", "gap", "cnn-gap"])
def test_repeated_texts_never_give_nan(diag_reg, kernel, architecture) -> None:
    texts = TEXTS[:10] + TEXTS[20:30]
    texts = [*texts, *texts, *(text.upper() + "!" for text in texts)]
    labels = (LABELS[:10] + LABELS[20:30]) * 3
    classifier = tk.KernelClassifier(architecture=architecture, kernel=kernel, diag_reg=diag_reg).fit(texts, labels)
    assert np.isfinite(classifier.predict_proba(["a good film", "boring", ""])).all()
    assert classifier.fit_report_["jitter"] >= 0


def test_word2vec_learns_from_the_corpus_it_is_given(tmp_path) -> None:
    corpus = [*TEXTS, *["a splendid film , splendid and wonderful"] * 10]
    options = {"embedding": "word2vec", "workers": 1}
    alone = tk.KernelClassifier(**options).fit(TEXTS, LABELS)
    helped = tk.KernelClassifier(**options).fit(TEXTS, LABELS, corpus=corpus)
    assert alone.predict_table(["splendid"])["status"][0] == "no_known_tokens"
    assert helped.predict_table(["splendid"])["status"][0] == "ok"
    helped.save(tmp_path / "model")
    loaded = tk.load(tmp_path / "model").predict_proba(["splendid film"])
    np.testing.assert_allclose(loaded, helped.predict_proba(["splendid film"]), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "texts", "labels", "message"),
    [
        ({}, TEXTS, LABELS[:-1], "one label a text"),
        ({}, TEXTS, ["pos"] * len(TEXTS), "at least two classes"),
        ({}, TEXTS, [None, *LABELS[1:]], "label in every row"),
        ({}, ["", *TEXTS[1:]], ["rare", *LABELS[1:]], "none of 'rare'"),
        ({"kernel": "rbf"}, TEXTS, LABELS, "nngp, ntk"),
        ({"diag_reg": -1}, TEXTS, LABELS, "diag_reg"),
        ({"diag_reg": "best"}, TEXTS, LABELS, "diag_reg"),
        ({"architecture": "transformer"}, TEXTS, LABELS, "struct-fcn"),
        ({"embedding": "glove"}, TEXTS, LABELS, "glove-6b-50d"),
        ({"engine": "gpu"}, TEXTS, LABELS, "features"),
        (
            {"architecture": 3},
            TEXTS,
            LABELS,
            "architecture to be a name such as 'struct-fcn' or an Architecture, got int",
        ),
        ({"architecture": [tk.Dense()]}, TEXTS, LABELS, r"make one of layers: Architecture\(\[...\]\)"),
        ({"architecture": None}, TEXTS, LABELS, "got NoneType"),
        *(
            ({"embedding": embedding, option: value}, TEXTS, LABELS, f"expected {option} to be")
            for embedding in ("glove-6b-50d", get_encoder("glove-6b-50d"))
            for option, values in {
                "max_tokens": (0, -1, True, 1.5, "9", np.True_),
                "workers": (0, -1, True, 1.5),
                "random_state": (-1, None, 2**32, True, 0.5),
                "diag_reg": (True, np.True_, np.nan, np.inf, None, [1]),
                "kernel": (3, ["ntk"]),
                "unusable": (None,),
            }.items()
            for value in values
        ),
        ({"unusable": "ignore"}, TEXTS, LABELS, "drop or error"),
        ({}, [7, *TEXTS[1:]], LABELS, "text"),
    ],
)
def test_a_wrong_request_is_told_what_to_change(options, texts, labels, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        tk.KernelClassifier(**options).fit(texts, labels)


@pytest.fixture(scope="module")
def plain() -> tk.KernelClassifier:
    return tk.KernelClassifier(architecture="gap").fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    "texts",
    [
        "a film",
        b"a film",
        pd.DataFrame({"t": ["a film", "dull"]}),
        {"t": ["a film", "dull"]},
        np.array([["a film"], ["dull"]]),
        {"a film"},
        7,
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_what_is_no_list_of_texts_is_refused(plain, texts) -> None:
    for call in (plain.predict, plain.predict_proba, plain.decision_function, plain.predict_table):
        with pytest.raises(TypeError, match="expected a list"):
            call(texts)
    for arguments in ((texts, ["pos"]), (TEXTS, LABELS, texts)):
        with pytest.raises(TypeError, match="expected a list"):
            tk.KernelClassifier(architecture="gap").fit(*arguments)


def test_columns_are_lists_of_texts(plain) -> None:
    frame = pd.DataFrame({"t": TEXTS})
    expected = plain.predict_proba(TEXTS)
    for texts in (frame["t"], frame["t"].to_numpy(), tuple(TEXTS), frame["t"].astype("category"), iter(TEXTS)):
        np.testing.assert_array_equal(plain.predict_proba(texts), expected)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "predict_table", "save"])
def test_a_classifier_that_is_not_fitted_says_so(method, tmp_path) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        getattr(tk.KernelClassifier(), method)(str(tmp_path / "model") if method == "save" else TEXTS)


def answers(classifier: tk.KernelClassifier, folder) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a classifier, and of what it saves."""
    texts = ["a great film", "boring", ""]
    classifier.save(folder)
    return classifier.predict_proba(texts), tk.load(folder).predict_proba(texts)


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        ({"architecture": "gap-fcn", "diag_reg": "bad"}, (TEXTS, LABELS)),
        ({"architecture": "cnn-gap", "kernel": "ntk", "max_tokens": 3}, (["qwzx", *TEXTS[1:]], ["rare", *LABELS[1:]])),
        ({"embedding": "word2vec", "architecture": "gap-fcn", "workers": 1}, (["!"] * 42, LABELS)),
    ],
)
def test_a_refit_that_fails_leaves_the_model_as_it_was(change, arguments, tmp_path) -> None:
    classifier = tk.KernelClassifier(architecture="struct").fit(TEXTS, LABELS)
    before, fitted = answers(classifier, tmp_path / "model"), set(vars(classifier))
    with pytest.raises(ValueError, match="expected"):
        classifier.set_params(**change).fit(*arguments)
    np.testing.assert_array_equal(answers(classifier, tmp_path / "model"), before)
    assert set(vars(classifier)) == fitted
    fresh = tk.KernelClassifier().set_params(**change)
    with pytest.raises(ValueError, match="expected"):
        fresh.fit(*arguments)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_what_was_fitted_is_saved_whatever_is_set_afterwards(tmp_path) -> None:
    classifier = tk.KernelClassifier(architecture="gap-fcn").fit(TEXTS, LABELS)
    before = answers(classifier, tmp_path / "model")
    for change in (
        {"kernel": "ntk"},
        {"engine": "numba"},
        {"diag_reg": object(), "max_tokens": object(), "random_state": None},
        {"architecture": "cnn-gap", "embedding": "word2vec"},
    ):
        changed = copy.copy(classifier).set_params(**change)
        np.testing.assert_array_equal(answers(changed, tmp_path / "model"), before)
        assert {name: changed.get_params()[name] for name in change} == change
        loaded = tk.load(tmp_path / "model")
        assert (loaded.kernel, loaded.engine, loaded.diag_reg) == ("nngp", "auto", "auto")


def test_a_loaded_model_is_saved_as_it_was_fitted(tmp_path) -> None:
    classifier = tk.KernelClassifier(architecture="gap-fcn").fit(TEXTS, LABELS)
    before = answers(classifier, tmp_path / "first")
    loaded = tk.load(tmp_path / "first").set_params(kernel="ntk", engine="numba")
    np.testing.assert_allclose(answers(loaded, tmp_path / "second"), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["word2vec", "glove-6b-50d", "glove-6b-50d+word2vec", "minilm"])
def test_an_encoder_that_two_classifiers_share_stays_as_it_was(name, tmp_path) -> None:
    if name == "minilm":
        pytest.importorskip("onnxruntime", reason="the extra contextual is not installed")
    encoder = get_encoder(name, workers=1, cache_dir=tmp_path)
    first = tk.KernelClassifier(encoder, "gap", diag_reg=0.1).fit(TEXTS, LABELS)
    before = first.predict_proba(["a great film", "dull"])
    second = tk.KernelClassifier(encoder, "gap", diag_reg=0.1).fit(["goal goal", "a league"] * 3, ["x", "y"] * 3)
    np.testing.assert_array_equal(first.predict_proba(["a great film", "dull"]), before)
    assert not encoder.fitted
    assert first.embedding is second.embedding is encoder
    if name == "glove-6b-50d":
        assert first.encoder_.vectors_ is encoder.vectors_ is clone(first).embedding.vectors_


def test_numbers_of_numpy_are_numbers(tmp_path) -> None:
    options = {"max_tokens": 5, "random_state": 3, "workers": 1, "diag_reg": 1}
    expected = answers(tk.KernelClassifier("word2vec", **options).fit(TEXTS, LABELS), tmp_path / "plain")
    for kind in (np.int64, np.uint8):
        given = {name: kind(value) for name, value in options.items()}
        classifier = tk.KernelClassifier("word2vec", **given).fit(TEXTS, LABELS)
        np.testing.assert_array_equal(answers(classifier, tmp_path / "model"), expected)
        for file in ("latent.safetensors", "encoder.safetensors"):
            assert (tmp_path / "model" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()


def test_the_ntk_without_weights_is_refused_as_gram_does() -> None:
    pooling = tk.Architecture([tk.GlobalAveragePool()])
    documents = get_encoder("glove-6b-50d").fit(TEXTS).encode(TEXTS).documents
    with pytest.raises(ValueError, match="without weights is zero; add a layer") as expected:
        tk.gram(pooling, documents, kind="ntk")
    # Before any work: the encoder is never made.
    with pytest.raises(ValueError, match="without weights is zero; add a layer") as found:
        tk.KernelClassifier("no encoder", pooling, "ntk").fit(TEXTS, LABELS)
    assert str(found.value) == str(expected.value)
    tk.KernelClassifier(architecture=pooling).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("fitted", "given"),
    [
        ([1, 2.5, 4.5, 5], ["1", "2.5", "4.5", "5"]),
        (["0", "1"], [0.0, 1.0]),
        ([0.0, 1.0], ["0", "1"]),
        (["1", "5"], ["1.0", "5.0"]),
        ([True, False], ["true", "false"]),
    ],
)
def test_labels_of_another_file_format_are_the_same_classes(fitted, given, tmp_path) -> None:
    labels, others = ([values[i % len(values)] for i in range(len(TEXTS))] for values in (fitted, given))
    tk.KernelClassifier(architecture="gap").fit(TEXTS, labels).save(tmp_path / "model")
    classes = list(tk.load(tmp_path / "model").classes_)
    assert match_labels(others, classes) == labels
    assert all(label in classes for label in match_labels(others, classes))


def test_scikit_learn_can_clone_and_set_parameters() -> None:
    classifier = tk.KernelClassifier(kernel="ntk", diag_reg=0.1)
    copy = clone(classifier).set_params(architecture="gap")
    assert copy.get_params()["kernel"] == "ntk"
    assert copy.fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.9
    assert not hasattr(classifier, "classes_")
