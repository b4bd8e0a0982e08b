"""FastText on the user's texts. Oracle: gensim called directly."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import ft_ngram_hashes
from gensim.models.fasttext_inner import compute_ngrams_bytes

from embeddings import CorpusTraining, SubwordVectors, get_encoder, restore_encoder, tokenize
from embeddings.subwords import ngrams_of, table_from_arrays
from embeddings.texts import tokenize_texts

TEXTS = ["the good film is lovely and warm", "a bad movie , awful and dull", "naïve café don't"] * 20


def training(**options):
    return CorpusTraining(
        "fasttext",
        **{"vector_size": 10, "workers": 1, "epochs": 3, "buckets": 1000, "cache_dir": False, **options},
    )


def trained(**options):
    return training(**options).train(tokenize_texts(TEXTS, "treebank"))


def directly(**options):
    sentences = [tokenize(text) for text in TEXTS]
    fixed = {
        "vector_size": 10,
        "window": 15,
        "sample": 1e-4,
        "min_count": 1,
        "sg": 1,
        "workers": 1,
        "epochs": 3,
        "seed": 0,
    }
    return FastText(sentences, **{**fixed, "bucket": 1000, **options}).wv


@pytest.mark.parametrize("options", [{}, {"sg": 0}, {"min_n": 2, "max_n": 4}, {"seed": 2, "window": 3}])
def test_words_agree_with_gensim_called_directly(options):
    table, oracle = trained(**options), directly(**options)
    assert table.words == oracle.index_to_key
    np.testing.assert_array_equal(table.vectors, oracle.vectors)


def test_parts_are_those_of_gensim():
    oracle = directly(min_n=1, max_n=3)
    for word in [*oracle.index_to_key, "a", "x", "ab"]:
        for lengths in [(1, 3), (2, 2), (3, 6)]:
            expected = [part.decode() for part in compute_ngrams_bytes(word, *lengths)]
            assert ngrams_of(word, *lengths) == expected


def test_a_word_of_seen_parts_agrees_with_gensim():
    """ "awful" and "dull" have all parts of "awfull"."""
    table, oracle = trained(min_n=3, max_n=3), directly(min_n=3, max_n=3)
    assert "awfull" not in table.words
    values, known = table.look_up(["awfull"])
    assert known.tolist() == [True]
    np.testing.assert_allclose(values[0], oracle.get_vector("awfull"), rtol=1e-5)


def test_parts_never_seen_do_not_count():
    table, oracle = trained(min_n=3, max_n=3), directly(min_n=3, max_n=3)
    row = dict(zip(ngrams_of("good", 3, 3), ft_ngram_hashes("good", 3, 3, 1000), strict=True))
    seen = [oracle.vectors_ngrams[row[part]] for part in ("<go", "goo", "ood", "goo", "ood")]
    values, _ = table.look_up(["goo-oodgooxood"])  # no text has "oo-", "odg" or "ox"
    np.testing.assert_allclose(values[0], np.mean([*seen, oracle.vectors_ngrams[row["od>"]]], axis=0), rtol=1e-5)


def test_a_word_of_unseen_parts_has_no_vector():
    values, known = trained().look_up(["zxqwv", "good", "x"])
    assert known.tolist() == [False, True, False]
    assert not values[[0, 2]].any()


def test_only_parts_in_use_are_kept():
    table = trained(buckets=100_000)
    assert isinstance(table, SubwordVectors)
    assert len(table.ngram_vectors) <= len(table.ngrams) < 200
    assert set(table.ngrams) == {part for word in table.words for part in ngrams_of(word, 3, 6)}


def test_without_parts_it_is_a_plain_table():
    table = training(min_n=50, max_n=60).train(tokenize_texts(TEXTS, "treebank"))
    assert not isinstance(table, SubwordVectors)
    assert table.look_up(["goodly"])[1].tolist() == [False]


def test_arrays_bring_back_the_table():
    table = trained().astype(np.float64)
    again = table_from_arrays(table.to_arrays(), table.report)
    assert again.checksum == table.checksum
    assert again.vectors.dtype == again.ngram_vectors.dtype == np.float64
    np.testing.assert_array_equal(again.look_up(["goodly"])[0], table.look_up(["goodly"])[0])


def test_finished_vectors_are_kept(tmp_path, monkeypatch):
    first = trained(cache_dir=tmp_path)
    assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["fasttext"]
    monkeypatch.setattr(CorpusTraining, "_train", lambda *_: pytest.fail("trained again"))
    again = trained(cache_dir=tmp_path)
    assert again.checksum == first.checksum
    assert again.look_up(["goodly"])[1].tolist() == [True]


def test_unseen_words_are_the_same_after_saving():
    """B17: a word that no text of fit has, and a misspelled one."""
    options = {"workers": 1, "vector_size": 10, "buckets": 1000, "cache_dir": False}
    encoder = get_encoder("fasttext", **options).fit(TEXTS)
    texts = ["goodness lovelyness", "awfull", "zxqwv"]
    encoding = encoder.encode(texts)
    assert encoding.status.tolist() == ["ok", "ok", "no_known_tokens"]
    assert encoding.coverage.tolist() == [1, 1, 0]
    config = json.loads(json.dumps(encoder.config()))
    restored = restore_encoder(config, encoder.arrays())
    np.testing.assert_array_equal(restored.encode(texts).documents.values, encoding.documents.values)
    assert config["vectors"]["training"]["algorithm"] == "fasttext"
    assert "FastText of 60 texts" in restored.vectors_.report.summary()
    changed = encoder.arrays() | {"ngram_vectors": encoder.arrays()["ngram_vectors"] + 1}
    with pytest.raises(ValueError, match="checksum"):
        restore_encoder(config, changed)


def test_broken_characters():
    table = training().train(tokenize_texts(["good \ud800film"] * 3, "treebank"))
    assert "good" in table.words
    table.look_up(["\ud800good"])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"min_n": 0}, "min_n to be an integer of at least 1"),
        ({"min_n": 5, "max_n": 4}, "max_n of at least min_n = 5, got 4"),
        ({"buckets": 0}, "buckets"),
        ({"algorithm": "glove"}, "'word2vec' or 'fasttext', got 'glove'"),
    ],
)
def test_bad_options(bad, message):
    with pytest.raises(ValueError, match=message):
        CorpusTraining(**bad)


def test_word2vec_has_no_parts():
    assert "min_n" not in CorpusTraining().config()
    with pytest.raises(TypeError, match="no option 'min_n'"):
        get_encoder("word2vec", min_n=3)
    with pytest.raises(TypeError, match="no option 'algorithm'"):
        get_encoder("fasttext", algorithm="word2vec")
