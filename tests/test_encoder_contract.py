"""What holds for every encoder, over the table in encoder_cases.py."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys

import encoder_cases
import numpy as np
import pandas as pd
import pytest
from encoder_cases import CASES, CORPUS, STATUS, TEXTS, UNKNOWN
from safetensors.numpy import load, save

from embeddings import Encoder, get_encoder, restore_encoder
from embeddings.catalogue import ENCODERS as CATALOGUE

LIMIT = 12


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Files and caches of all rows; what a restored encoder keeps goes there too."""
    folder = tmp_path_factory.mktemp("encoders")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache of the user")
    yield folder
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def case(request):
    return request.param


@pytest.fixture
def make(case, folder):
    return lambda **options: case.make(folder, **options)


@pytest.fixture(scope="module")
def encoder(case, folder):
    return case.fitted(folder, max_tokens=LIMIT)


def assert_same_documents(actual, desired):
    np.testing.assert_array_equal(actual.lengths, desired.lengths)
    np.testing.assert_allclose(actual.values, desired.values, rtol=0, atol=1e-6)


def test_every_name_in_the_catalogue_has_a_row():
    assert {case.name for case in CASES.values() if case.name} == CATALOGUE.keys()


def test_protocol(case, make):
    encoder = make()
    assert isinstance(encoder, Encoder)
    assert not encoder.fitted
    assert encoder.dim > 0
    assert isinstance(encoder.name, str)
    for call in (lambda: encoder.encode(["good"]), encoder.config, lambda: encoder.explain("good")):
        with pytest.raises(ValueError, match="call fit"):
            call()
    assert encoder.fit(case.texts()) is encoder
    assert encoder.fitted


def test_rows_and_status(case, encoder):
    encoding = encoder.encode(case.texts())
    assert encoding.status.tolist() == STATUS
    np.testing.assert_array_equal(encoding.rows, np.flatnonzero(np.array(STATUS) == "ok"))
    assert len(encoding.documents) == len(encoding.rows)
    assert encoding.documents.dim == encoder.dim
    assert encoding.documents.dtype == np.float32
    assert len(encoding) == len(TEXTS)
    assert f"{STATUS.count('ok')} of {len(TEXTS)} texts encoded" in encoding.summary()


def test_counts(case, encoder):
    encoding = encoder.encode(case.texts())
    missing = np.isin(encoding.status, ["missing_text", "empty"])
    assert (encoding.n_tokens[missing] == 0).all()
    np.testing.assert_array_equal(encoding.n_dropped, np.maximum(encoding.n_tokens - LIMIT, 0))
    assert encoding.truncated.any()
    kept = encoding.n_tokens - encoding.n_dropped
    assert encoding.n_unknown[UNKNOWN] == kept[UNKNOWN] > 0
    assert encoding.coverage[UNKNOWN] == 0
    in_document = kept if encoder.unknown == "zero" else kept - encoding.n_unknown
    np.testing.assert_array_equal(encoding.documents.lengths, in_document[encoding.rows])


@pytest.mark.parametrize("keep", ["head", "tail", "head+tail"])
def test_explain_agrees_with_encode(case, make, keep):
    encoder = make(max_tokens=LIMIT, keep=keep).fit(case.texts(), corpus=CORPUS)
    for text in (TEXTS[0], TEXTS[5], case.unknown):
        encoding = encoder.encode([text])
        explained = encoder.explain(text)
        assert len(explained) == encoding.n_tokens[0]
        assert sum(not kept for _, kept, _ in explained) == encoding.n_dropped[0]
        assert sum(kept and not known for _, kept, known in explained) == encoding.n_unknown[0]
    kept = [position for position, (_, kept, _) in enumerate(encoder.explain(TEXTS[0])) if kept]
    n = len(encoder.explain(TEXTS[0]))
    head = {"head": LIMIT, "tail": 0, "head+tail": LIMIT // 2}[keep]
    assert kept == [*range(head), *range(n - LIMIT + head, n)]


def test_unit_scale(case, make):
    encoder = make(dtype=np.float64).fit(case.texts(), corpus=CORPUS)
    values = encoder.encode(case.texts()).documents.values
    assert values.dtype == np.float64
    np.testing.assert_allclose(np.mean(np.square(values)), 1, rtol=1e-12)
    own_units = make(dtype=np.float64, scale="none").fit(case.texts(), corpus=CORPUS)
    in_own_units = own_units.encode(case.texts()).documents.values
    assert not np.isclose(np.mean(np.square(in_own_units)), 1, rtol=1e-3)
    # One constant a table.
    used = in_own_units.any(axis=0)  # one dimension of minilm is zero when rounded
    values, in_own_units = values[:, used], in_own_units[:, used]
    factors = (values * in_own_units).sum(axis=0) / np.square(in_own_units).sum(axis=0)
    np.testing.assert_allclose(values, factors * in_own_units, rtol=1e-9)
    assert len(np.unique(factors.round(9))) == (2 if "+" in encoder.name else 1)


def test_the_order_of_the_texts_does_not_change_the_scale(case, make):
    values = [
        make().fit(texts, corpus=CORPUS).encode(["good"]).documents.values
        for texts in (case.texts(), case.texts()[::-1])
    ]
    np.testing.assert_array_equal(*values)


def test_alone_in_a_batch_in_any_order(case, encoder):
    """B09: the same text gives the same vectors, whatever it comes with, however often."""
    texts = case.texts()
    together = encoder.encode(texts)
    for row, document in zip(together.rows, together.documents, strict=True):
        alone = encoder.encode([texts[row]])
        np.testing.assert_allclose(alone.documents[0], document, rtol=0, atol=1e-6)
    assert_same_documents(encoder.encode(texts).documents, together.documents)
    order = np.random.default_rng(1).permutation(len(texts))
    shuffled = encoder.encode([texts[row] for row in order])
    assert shuffled.status.tolist() == together.status[order].tolist()
    place = {row: number for number, row in enumerate(together.rows.tolist())}
    assert_same_documents(shuffled.documents, together.documents.take([place[order[row]] for row in shuffled.rows]))


def test_saved_and_restored(case, encoder):
    arrays = load(save({name: np.ascontiguousarray(array) for name, array in encoder.arrays().items()}))
    config = json.loads(json.dumps(encoder.config()))
    restored = restore_encoder(config, arrays)
    assert restored.config() == encoder.config()
    assert (restored.name, restored.dim, restored.trains_on_texts) == (
        encoder.name,
        encoder.dim,
        encoder.trains_on_texts,
    )
    texts = [*case.texts(), "A filmgoer's dreadful storytelling"]
    before, after = encoder.encode(texts), restored.encode(texts)
    np.testing.assert_array_equal(after.documents.values, before.documents.values)
    assert after.status.tolist() == before.status.tolist()
    np.testing.assert_array_equal(after.n_unknown, before.n_unknown)


@pytest.mark.parametrize("cell", [3, 1.5, ["a"], b"a", {"a": 1}])
def test_a_cell_that_is_no_text_names_the_row(encoder, make, cell):
    for call in (encoder.encode, make().fit):
        with pytest.raises(TypeError, match="row 1: expected a text"):
            call(["good", cell])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("good film", r"\[text\]"),
        (b"good film", r"got bytes; decode them .*\[text\]"),
        ({"t": ["good"]}, "got a dict; pass its values"),
        ({"good"}, "got a set"),
        (pd.DataFrame({"t": ["good"]}), r"got DataFrame of shape \(1, 1\); pass one of its columns \(t\)"),
        (np.array([["good"]]), r"got ndarray of shape \(1, 1\); pass one column"),
        (np.array("good"), "one column of texts"),
        (3, "list of texts, got int"),
        (None, "list of texts, got NoneType"),
    ],
)
def test_what_is_no_list_of_texts(encoder, make, texts, message):
    for call in (encoder.encode, make().fit):
        with pytest.raises(TypeError, match=message):
            call(texts)


def test_a_copy_is_fitted_on_its_own_and_shares_the_table(case, make):
    first = make().fit(case.texts(), corpus=CORPUS)
    before, arrays = first.config(), first.arrays()
    second = copy.deepcopy(first)
    for name, array in second.arrays().items():
        assert name.endswith("words") or name == "ngrams" or array is arrays[name]
    second.fit(["good good bad"], corpus=["good bad"] * 3)
    assert second.config() != before
    assert first.config() == before
    assert not make().fitted


def test_a_fit_that_fails_changes_nothing(case, encoder):
    again = copy.deepcopy(encoder)
    with pytest.raises(ValueError, match="expected"):
        again.fit(["", None], corpus=["good bad"] * 3)
    assert again.config() == encoder.config()


def test_numbers_of_numpy_are_numbers(case, make):
    options = {"max_tokens": np.int64(LIMIT), "seed": np.uint8(3), "workers": np.int32(1)}
    found = make(**options).fit(case.texts(), corpus=CORPUS)
    plain = make(max_tokens=LIMIT, seed=3, workers=1).fit(case.texts(), corpus=CORPUS)
    assert json.dumps(found.config()) == json.dumps(plain.config())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"max_tokens": bad}, "max_tokens to be an integer") for bad in (0, -1, True, np.True_, 1.5, "9")),
        *(({"seed": bad}, "seed to be an integer from 0") for bad in (-1, 2**32, None, False)),
        *(({"workers": bad}, "workers to be at least 1 thread, or None") for bad in (0, True, 0.5)),
    ],
)
def test_options_that_are_no_such_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        get_encoder("word2vec", **options)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_missing_text(encoder, missing):
    encoding = encoder.encode(["NA", missing, "None"])
    assert encoding.status[1] == "missing_text"
    assert (encoding.status[[0, 2]] != "missing_text").all()


def test_pandas_columns(encoder):
    column = pd.Series(["good film", None, "bad"], index=[7, 8, 9], dtype="string")
    assert encoder.encode(column).status.tolist() == ["ok", "missing_text", "ok"]


@pytest.mark.parametrize("texts", [[], [None], ["", None, "  "]])
def test_nothing_to_encode(encoder, texts):
    encoding = encoder.encode(texts)
    assert len(encoding) == len(texts)
    assert len(encoding.documents) == 0
    assert encoding.documents.dim == encoder.dim
    assert f"0 of {len(texts)} texts" in encoding.summary()


@pytest.mark.parametrize("text", ["\u200b", "\x00", "\ud800", "<br />", "\U0001f600", "x" * 5000, "\u0301" * 50])
def test_odd_texts_leave_the_others_alone(encoder, text):
    """B04: never NaN, never a change to another row."""
    clean = encoder.encode(["good film", "bad"])
    encoding = encoder.encode(["good film", text, "bad"])
    assert encoding.status[[0, 2]].tolist() == ["ok", "ok"]
    assert encoding.status[1] in ("ok", "no_known_tokens")
    ends = encoding.documents.take([0, len(encoding.documents) - 1])
    np.testing.assert_array_equal(ends.values, clean.documents.values)


def test_fit_without_a_known_token(make):
    with pytest.raises(ValueError, match=r"got none in 2 texts|without a token"):
        make().fit(["", None])


# Variants of minilm read as it does, and take seconds.
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("minilm,")])
def test_a_text_of_ten_thousand_tokens(name, folder):
    encoder = CASES[name].make(folder, max_tokens=None).fit(CORPUS)
    text = "the film is good . " * 2000
    encoding = encoder.encode(["bad", text])
    assert encoding.n_tokens[1] == (8_000 if name == "glove, keras" else 10_000)  # that rule drops punctuation
    assert encoding.coverage[1] == 1
    assert len(encoding.documents[1]) == encoding.n_tokens[1]
    assert np.isfinite(encoding.documents.values).all()
    assert not encoding.truncated.any()


def test_another_process_makes_the_same_vectors(tmp_path, folder):
    command = [sys.executable, encoder_cases.__file__]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    digests = dict(line.split("\t") for line in done.stdout.splitlines())
    assert digests.keys() == CASES.keys()
    for name, case in CASES.items():
        values = case.fitted(folder).encode(case.texts()).documents.values
        assert hashlib.sha256(values.tobytes()).hexdigest() == digests[name], name


def test_a_long_table_of_texts_is_cut_without_change(case, encoder):
    """Callers encode a few hundred texts at a time."""
    texts = case.texts() * 3
    whole = encoder.encode(texts)
    parts = [encoder.encode(texts[start : start + 7]) for start in range(0, len(texts), 7)]
    assert_same_documents(type(whole.documents).concatenate([part.documents for part in parts]), whole.documents)
    np.testing.assert_array_equal(np.concatenate([part.n_tokens for part in parts]), whole.n_tokens)


def test_unknown_options_are_errors(case, make):
    with pytest.raises(TypeError, match="no option 'windows'"):
        make(windows=3)
    if case.name:
        with pytest.raises(ValueError, match="scale"):
            get_encoder(case.name, scale="two")
