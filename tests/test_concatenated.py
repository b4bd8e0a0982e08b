"""Several tables as one encoder. Oracle: vectors written out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embeddings import ConcatenatedEncoder, get_encoder, restore_encoder

FIRST = {"good": (1, 0), "bad": (0, 2), "film": (1, 1)}
SECOND = {"good": (1, 2, 3), "story": (4, 5, 6)}


def write(path, table):
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in table.items()))
    return path


@pytest.fixture
def paths(tmp_path):
    return write(tmp_path / "first.txt", FIRST), write(tmp_path / "second.txt", SECOND)


@pytest.fixture
def both(paths):
    return f"{paths[0]}+{paths[1]}"


def by_hand(text, unknown, weights):
    rows = []
    for word in text.split():
        if word in FIRST or word in SECOND or unknown == "zero":
            parts = (FIRST.get(word, (0, 0)), SECOND.get(word, (0, 0, 0)))
            rows.append(np.concatenate([weight * np.array(part) for weight, part in zip(weights, parts, strict=True)]))
    return np.array(rows, float)


@pytest.mark.parametrize("unknown", ["mask", "zero"])
def test_documents_by_hand(both, unknown):
    texts = ["good story xx", "bad film", "xx", "film good good"]
    encoder = get_encoder(both, unknown=unknown, scale="none", dtype=np.float64).fit(texts)
    encoding = encoder.encode(texts)
    assert encoding.status.tolist() == ["ok", "ok", "no_known_tokens", "ok"]
    assert encoding.n_unknown.tolist() == [1, 0, 1, 0]
    assert encoder.dim == 5
    for row, document in zip(encoding.rows, encoding.documents, strict=True):
        np.testing.assert_array_equal(document, by_hand(texts[row], unknown, (1, 1)))


def test_parts_weigh_the_same(both):
    """|w_i e_i|^2 has the mean d / k over the tokens of documents, zeros of unknown words included."""
    texts = ["good story", "bad film", "xx", "film good good"]
    encoder = get_encoder(both, dtype=np.float64).fit(texts)
    tokens = np.concatenate([by_hand(text, "mask", (1, 1)) for text in texts if text != "xx"])
    squares = np.square(tokens[:, :2]).sum(axis=1).mean(), np.square(tokens[:, 2:]).sum(axis=1).mean()
    np.testing.assert_allclose(encoder.weights_, [np.sqrt(5 / 2 / square) for square in squares], rtol=1e-14)
    values = encoder.encode(texts).documents.values
    np.testing.assert_allclose(np.square(values[:, :2]).sum(axis=1).mean(), 5 / 2, rtol=1e-12)
    np.testing.assert_allclose(np.mean(np.square(values)), 1, rtol=1e-12)


def test_explain(both):
    encoder = get_encoder(both, max_tokens=2).fit(["good"])
    assert encoder.explain("story xx bad") == [("story", True, True), ("xx", True, False), ("bad", False, True)]


def test_saved_without_the_packaged_part(paths):
    encoder = get_encoder(f"glove-6b-50d+{paths[1]}", tokenizer="treebank").fit(["good story, dreadful"])
    assert encoder.name == "glove-6b-50d+second.txt"
    assert {name: array.dtype for name, array in encoder.arrays().items()} == {
        "1.words": np.uint8,
        "1.vectors": np.float32,
    }
    restored = restore_encoder(json.loads(json.dumps(encoder.config())), encoder.arrays())
    text = ["a good film, dreadful"]  # B17: the first table knows the word
    np.testing.assert_array_equal(restored.encode(text).documents.values, encoder.encode(text).documents.values)
    assert restored.explain("dreadful") == [("dreadful", True, True)]
    with pytest.raises(ValueError, match="checksum"):
        restore_encoder(encoder.config(), encoder.arrays() | {"1.vectors": encoder.arrays()["1.vectors"] + 1})


def test_a_cased_part_keeps_the_case(paths, tmp_path):
    cased = write(tmp_path / "cased.txt", {"Good": (7,), "good": (8,), "n't": (9,)})
    encoder = get_encoder(f"{paths[0]}+{cased}", tokenizer="treebank", scale="none").fit(["good"])
    np.testing.assert_array_equal(
        encoder.encode(["Good good GOOD Bad"]).documents[0], [[1, 0, 7], [1, 0, 8], [1, 0, 8], [0, 2, 0]]
    )


def test_a_trained_part_learns_from_the_corpus(paths):
    encoder = get_encoder(f"{paths[0]}+word2vec", workers=1, cache_dir=False, tokenizer="treebank")
    assert encoder.trains_on_texts
    encoder.fit(["good film"], corpus=["good novel film"] * 9)
    assert encoder.encode(["novel"]).status.tolist() == ["ok"]
    assert encoder.dim == 102


def test_parts_made_one_by_one(paths):
    parts = [get_encoder(path, scale="none") for path in paths]
    encoder = ConcatenatedEncoder(parts)
    assert encoder.name == "first.txt+second.txt"
    assert "ConcatenatedEncoder('first.txt+second.txt', dim=5" in repr(encoder)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("glove-6b-50d+minilm", {}, ValueError, "one vector a word, got minilm; an encoder with word pieces"),
        ("glove-6b-50d+nothing", {}, ValueError, "got 'nothing'"),
        ("glove-6b-50d+", {}, ValueError, "expected an encoder named"),
        ("glove-6b-50d+word2vec", {"window": 3}, TypeError, "no option 'window'"),
        ("glove-6b-50d+word2vec", {"scale": "two"}, ValueError, "scale to be"),
    ],
)
def test_bad_requests(name, options, error, message):
    with pytest.raises(error, match=message):
        get_encoder(name, **options)


def test_other_tokens_cannot_be_put_side_by_side(paths):
    with pytest.raises(ValueError, match=r"same tokenizer, got .*'glove-6b-50d': 'treebank'.*choose one for all with"):
        get_encoder(f"glove-6b-50d+{paths[0]}")
    with pytest.raises(ValueError, match="two or more encoders"):
        ConcatenatedEncoder([get_encoder(paths[0])])
    with pytest.raises(ValueError, match="same truncation"):
        ConcatenatedEncoder([get_encoder(paths[0]), get_encoder(paths[1], max_tokens=3)])


def test_zero_vectors_have_no_scale(paths, tmp_path):
    zero = write(tmp_path / "zero.txt", {"good": (0, 0)})
    with pytest.raises(ValueError, match=r"got zeros from zero\.txt"):
        get_encoder(f"{paths[0]}+{zero}").fit(["good film"])


def test_a_file_with_a_plus_in_its_name(tmp_path):
    assert get_encoder(write(tmp_path / "a+b.txt", FIRST)).dim == 2
    assert get_encoder(str(tmp_path / "a+b.txt")).name == "a+b.txt"
