"""Word2Vec on the user's texts. Oracles: gensim called directly; the same run in another process."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from gensim.models import Word2Vec

from embeddings import CorpusTraining, get_encoder, tokenize
from embeddings.corpus import LONGEST_SENTENCE, _Sentences
from embeddings.texts import tokenize_texts

SUBJECTS = ["film", "movie", "story", "cast"]
WORDS = {"good": ["great", "lovely", "warm"], "bad": ["awful", "dull", "cold"]}


def reviews(n, seed=0):
    rng = np.random.default_rng(seed)
    texts = []
    for row in range(n):
        words = WORDS["good" if row % 2 else "bad"]
        texts.append(" ".join(f"the {rng.choice(SUBJECTS)} is {rng.choice(words)} ." for _ in range(8)))
    return texts


def training(tmp_path, **options):
    return CorpusTraining(**{"vector_size": 10, "workers": 1, "epochs": 3, "cache_dir": tmp_path, **options})


@pytest.mark.parametrize(
    "options",
    [{}, {"sg": 0}, {"window": 2, "negative": 3, "sample": 0}, {"hs": 1, "negative": 0}, {"seed": 3, "min_count": 40}],
)
def test_agrees_with_gensim_called_directly(tmp_path, options):
    texts = reviews(60)
    vectors = training(tmp_path, **options).train(tokenize_texts(texts, "treebank"))
    direct = {"window": 15, "sample": 1e-4, "sg": 1, "min_count": 1, "seed": 0, **options}
    oracle = Word2Vec([tokenize(text) for text in texts], vector_size=10, workers=1, epochs=3, **direct).wv
    assert vectors.words == oracle.index_to_key
    np.testing.assert_array_equal(vectors.vectors, oracle.vectors)


def test_one_worker_repeats_bit_for_bit_in_any_process(tmp_path):
    code = (
        "import sys, json\n"
        "from embeddings import CorpusTraining\n"
        "from embeddings.texts import tokenize_texts\n"
        "training = CorpusTraining(vector_size=10, workers=1, epochs=3, cache_dir=sys.argv[2])\n"
        "print(training.train(tokenize_texts(json.loads(sys.argv[1]), 'treebank')).checksum)\n"
    )
    texts = reviews(40)
    checksums = {training(tmp_path / "here").train(tokenize_texts(texts, "treebank")).checksum}
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", code, json.dumps(texts), str(tmp_path / hash_seed)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        checksums.add(done.stdout.strip())
    assert len(checksums) == 1


def test_seed_and_options_matter(tmp_path):
    tokens = tokenize_texts(reviews(40), "treebank")
    options = [{}, {"seed": 1}, {"window": 3}, {"sg": 0}, {"epochs": 1}, {"negative": 2}, {"sample": 0}]
    assert len({training(tmp_path, **option).train(tokens).checksum for option in options}) == len(options)


def test_finished_vectors_are_kept(tmp_path, monkeypatch):
    tokens = tokenize_texts(reviews(40), "treebank")
    first = training(tmp_path).train(tokens)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]
    monkeypatch.setattr(CorpusTraining, "_train", lambda *_: pytest.fail("trained again"))
    again = training(tmp_path).train(tokens)
    assert again.words == first.words
    np.testing.assert_array_equal(again.vectors, first.vectors)
    monkeypatch.undo()
    # Other texts, other order, other options, racing threads: other files.
    training(tmp_path).train(tokenize_texts(reviews(40)[::-1], "treebank"))
    training(tmp_path).train(tokenize_texts(reviews(40), "keras"))
    training(tmp_path, window=3).train(tokens)
    training(tmp_path, workers=2).train(tokens)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_damaged_cache_is_made_again(tmp_path):
    tokens = tokenize_texts(reviews(40), "treebank")
    first = training(tmp_path).train(tokens)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="damaged cache"):
        assert training(tmp_path).train(tokens).checksum == first.checksum
    assert training(tmp_path).train(tokens).checksum == first.checksum


def test_a_cache_folder_that_cannot_be_made_is_no_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="not kept for next time"):
        training(tmp_path / "file").train(tokenize_texts(reviews(20), "treebank"))


def test_the_default_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    training(None).train(tokenize_texts(reviews(20), "treebank"))
    assert len(list((tmp_path / "textkernels").glob("word2vec-*.npz"))) == 1


@pytest.mark.parametrize(("n_tokens", "least"), [(9_990, 1), (10_000, 2), (99_990, 2), (100_000, 5)])
def test_min_count_follows_the_size_of_the_texts(tmp_path, n_tokens, least):
    rare = ["once", *["twice"] * 2, *["fourfold"] * 4, *["fivefold"] * 5]
    tokens = tokenize_texts([" ".join([*rare, *["often"] * (n_tokens - len(rare))])], "keras")
    words = training(tmp_path, epochs=1, vector_size=2).train(tokens).words
    counts = {"once": 1, "twice": 2, "fourfold": 4, "fivefold": 5, "often": n_tokens}
    assert set(words) == {word for word, count in counts.items() if count >= least}


def test_twenty_short_texts_and_even_one_word(tmp_path):
    texts = [f"film number {row} was fine" for row in range(20)]
    encoder = get_encoder("word2vec", cache_dir=tmp_path, workers=1).fit(texts)
    assert (encoder.encode(texts).status == "ok").all()
    assert get_encoder("word2vec", cache_dir=tmp_path, workers=1).fit(["film"]).encode(["film"]).status == ["ok"]


def test_nothing_to_learn_from(tmp_path):
    with pytest.raises(ValueError, match="without a token"):
        training(tmp_path).train(tokenize_texts(["", None], "treebank"))
    with pytest.raises(ValueError, match="min_count = 50 times, got 20 at most in 100 tokens"):
        training(tmp_path, min_count=50).train(tokenize_texts(["film number x was fine"] * 20, "treebank"))


def test_texts_longer_than_gensims_limit_are_not_cut():
    lengths = [3, LONGEST_SENTENCE, 0, 2 * LONGEST_SENTENCE + 1, 1]
    texts = [" ".join(f"w{row}" for row in range(length)) for length in lengths]
    sentences = _Sentences(tokenize_texts(texts, "keras"))
    pieces = list(sentences)
    assert [len(piece) for piece in pieces] == [3, LONGEST_SENTENCE, LONGEST_SENTENCE, LONGEST_SENTENCE, 1, 1]
    assert len(pieces) == len(sentences)
    assert [word for piece in pieces for word in piece] == [word for text in texts for word in text.split()]


def test_a_larger_corpus_than_the_labelled_texts(tmp_path):
    corpus, labelled = reviews(60), ["great film", "dull cast"]
    encoder = get_encoder("word2vec", cache_dir=tmp_path, workers=1, dtype=np.float64, scale="unit")
    encoder.fit(labelled, corpus=corpus)
    alone = get_encoder("word2vec", cache_dir=tmp_path, workers=1).fit(corpus)
    np.testing.assert_array_equal(encoder.vectors_.vectors, alone.vectors_.vectors)
    np.testing.assert_allclose(np.mean(encoder.encode(labelled).documents.values ** 2), 1, rtol=1e-12)
    assert encoder.trains_on_texts
    training_options = encoder.config()["vectors"]["training"]
    assert training_options["workers"] == 1
    assert "cache_dir" not in training_options


def test_it_learns_what_goes_together(tmp_path):
    """Words of one kind of review share their contexts, so their vectors lie together."""
    vectors = training(tmp_path, epochs=20, sample=0).train(tokenize_texts(reviews(400), "treebank"))
    unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    at = vectors.index
    within = unit[at["great"]] @ unit[at["lovely"]]
    across = max(unit[at["great"]] @ unit[at[word]] for word in WORDS["bad"])
    assert within > across + 0.1


def test_progress_goes_to_standard_error(tmp_path, capsys):
    training(tmp_path).train(tokenize_texts(reviews(20), "treebank"), progress=True)
    captured = capsys.readouterr()
    assert not captured.out
    assert "Training Word2Vec: 100%" in captured.err


@pytest.mark.parametrize(
    "bad",
    [{"epochs": 0}, {"vector_size": 1.5}, {"workers": 0}, {"sg": 2}, {"negative": 0}, {"sample": -1}, {"seed": -1}],
)
def test_bad_options(bad):
    with pytest.raises(ValueError, match="expected"):
        CorpusTraining(**bad)
