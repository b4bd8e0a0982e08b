"""Files of word vectors, good and damaged. Oracles: tables by hand, and gensim's own reader and writer."""

import gzip
import struct

import numpy as np
import pytest
from gensim.models import KeyedVectors

from embeddings import LoadReport, WordVectors, read_vector_file
from embeddings.word_vectors import report_from_config, report_to_config

GOOD = "good 0.1 0.2 0.3\n"
BAD = "bad -1 2e-1 .5\n"
TABLE = {"good": [0.1, 0.2, 0.3], "bad": [-1, 0.2, 0.5]}


def binary(table, count=None, end=b""):
    rows = [word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end for word, row in table.items()]
    dim = len(next(iter(table.values())))
    return f"{len(rows) if count is None else count} {dim}\n".encode() + b"".join(rows)


@pytest.fixture
def write(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def assert_table(vectors, table):
    assert vectors.words == list(table)
    np.testing.assert_array_equal(vectors.vectors, np.array(list(table.values()), np.float32))
    assert vectors.vectors.dtype == np.float32
    assert [vectors.index[word] for word in table] == list(range(len(table)))


FORMATS = {
    "glove": GOOD + BAD,
    "word2vec": "2 3\n" + GOOD + BAD,
    "windows line ends": ("2 3\n" + GOOD + BAD).replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + GOOD + BAD,
    "byte order mark and header": "\ufeff2 3\n" + GOOD + BAD,
    "spaces at the ends": GOOD.replace("\n", " \n") + BAD.replace("\n", "  \n"),
    "double spaces": "good  0.1 0.2 0.3\nbad -1   0.2 0.5\n",
    "blank lines": GOOD + "\n  \n" + BAD + "\n\n",
    "no line end": GOOD + BAD.rstrip(),
    "binary": binary(TABLE),
    "binary with line feeds": binary(TABLE, end=b"\n"),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize("name", ["vectors.txt", "vectors.bin"])
def test_format_is_found_from_the_content_whatever_the_name(write, content, pack, name):
    path = write(pack(content.encode() if isinstance(content, str) else content), name)
    vectors = read_vector_file(path)
    assert_table(vectors, TABLE)
    report = vectors.report
    assert (report.n_rows, report.n_skipped, report.n_duplicated, report.dim) == (2, 0, 0, 3)
    assert report.compressed == (pack is gzip.compress)
    assert len(report.checksum) == 64


def test_words_with_spaces(write):
    """B14: the last d fields are the vector, all before them is the word; only ASCII spaces separate."""
    text = "good 0.1 0.2 0.3\n. . . 0.4 0.5 0.6\nat x.example 0.7 0.8 0.9\n"
    text += "10\u00a0km 1 2 3\nx\u2028y\u0085z 4 5 6\n7 8 8 8\n"
    expected = {
        "good": [0.1, 0.2, 0.3],
        ". . .": [0.4, 0.5, 0.6],
        "at x.example": [0.7, 0.8, 0.9],
        "10\u00a0km": [1, 2, 3],
        "x\u2028y\u0085z": [4, 5, 6],
        "7": [8, 8, 8],
    }
    vectors = read_vector_file(write(text))
    assert_table(vectors, expected)
    again = WordVectors.from_arrays(vectors.to_arrays(), vectors.report)
    assert_table(again, expected)
    assert again.checksum == vectors.checksum
    rewritten = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in expected.items())
    assert_table(read_vector_file(write(f"6 3\n{rewritten}")), expected)


@pytest.mark.parametrize("as_binary", [False, True])
def test_agrees_with_gensim(tmp_path, as_binary):
    rng = np.random.default_rng(0)
    ours = KeyedVectors(20)
    ours.add_vectors([f"w{row}é" for row in range(500)], rng.standard_normal((500, 20)).astype(np.float32))
    path = str(tmp_path / "vectors")
    ours.save_word2vec_format(path, binary=as_binary)
    oracle = KeyedVectors.load_word2vec_format(path, binary=as_binary)
    vectors = read_vector_file(path)
    assert vectors.words == oracle.index_to_key
    np.testing.assert_array_equal(vectors.vectors, oracle.vectors)
    assert vectors.report.format == ("binary" if as_binary else "text")
    assert vectors.report.header == (500, 20)


CUT_GZIP = gzip.compress("".join(f"w{row} {row}.25 0.5 {row % 7}\n" for row in range(20_000)).encode())

# content, and what the message must say
DAMAGED = {
    "empty": ("", "0 bytes"),
    "only a header": ("2 3\n", "got no vectors"),
    "last line cut": (
        GOOD + BAD + "worse 0.1 0.2",
        "line 3: expected a word and 3 numbers, found 2 after b'worse'.*cut",
    ),
    "short line": (GOOD + "bad 0.1 0.2\n" + GOOD, "line 2: expected a word and 3 numbers, found 2"),
    "long line": (GOOD + BAD + "worse 0.1 0.2 0.3 0.4\n", "line 3: expected a word and 3 numbers, found more"),
    "no word": (GOOD + BAD + "0.1 0.2 0.3\n", "line 3: expected a word and 3 numbers, found 2"),
    "not a number": (GOOD + BAD + "worse 0.1 x 0.3\n", "line 3: .*b'x' where a number should be"),
    "tabs": (GOOD + BAD + "worse\t0.1\t0.2\t0.3\n", "line 3: "),
    "nan": (GOOD + "bad nan 1 2\n", "line 2: .*NaN.*'bad'"),
    "infinity": (GOOD + "bad 1 inf 2\n", "line 2: .*infinity"),
    "too large": (GOOD + "bad 1 1e39 2\n", "line 2: .*infinity"),
    "wrong dimension in the header": ("2 4\n" + GOOD + BAD, "dimension 4, but the rows hold 3"),
    "not UTF-8": (GOOD.encode() + BAD.encode() + b"\xff\xfe 1 2 3\n", "line 3: .*UTF-8"),
    "binary cut in a vector": (binary(TABLE)[:-5], "cut short: row 2 of 2 has 7 of 12 bytes"),
    "binary with a bad word": (binary(TABLE).replace(b"good", b"go\xffd"), "row 1: .*UTF-8"),
    "binary with NaN": (binary({"good": [0, float("nan")]}), "row 1: .*NaN"),
    "binary without spaces": (b"2 3\n" + b"\x01" * 200_000, "row 1: expected a word and a space"),
    "gzip cut": (CUT_GZIP[: len(CUT_GZIP) // 2], "cut short: its gzip stream breaks off"),
    "gzip cut at once": (CUT_GZIP[:12], "cut short or empty"),
    "gzip damaged": (CUT_GZIP[:-8] + b"\0" * 8, "breaks off or is damaged after [0-9,]+ rows"),
    "zip": (b"PK\x03\x04" + b"x" * 50, "zip archive; unpack"),
    "fastText": (b"\xba\x16\x4f\x2f" + b"x" * 50, "fastText"),
    "NumPy": (b"\x93NUMPY" + b"x" * 50, "NumPy array"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR 1 2 3\n", "count dimension"),
    "prose": ("This is no table of vectors.\n", "a word and its numbers"),
    "broken pickle": (b"\x80\x04\x95 broken", "does not load"),
}


@pytest.mark.parametrize(("content", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_said_in_words(write, content, message):
    """B15: never a bare traceback, never a silently accepted dimension."""
    with pytest.raises(ValueError, match=message) as caught:
        read_vector_file(write(content))
    assert str(caught.value).startswith("vectors.txt")


# content, words left, rows, skipped
SKIPPABLE = {
    "short line": (GOOD + "worse 0.1 0.2\n" + BAD, ["good", "bad"], 3, 1),
    "nan": (GOOD + "worse nan 1 2\n" + BAD, ["good", "bad"], 3, 1),
    "not UTF-8": (GOOD.encode() + b"\xff 1 2 3\n" + BAD.encode(), ["good", "bad"], 3, 1),
    "binary cut in a vector": (binary(TABLE, count=2)[:-5], ["good"], 1, 0),
    "binary with NaN": (binary({"good": [1, 2], "worse": [0, np.nan]}), ["good"], 2, 1),
}


@pytest.mark.parametrize(("content", "words", "n_rows", "n_skipped"), SKIPPABLE.values(), ids=SKIPPABLE)
def test_bad_rows_are_skipped_and_counted_on_request(write, content, words, n_rows, n_skipped):
    with pytest.warns(UserWarning, match=r"skipped; first: |cut short|announces"):
        vectors = read_vector_file(write(content), on_bad_row="skip")
    assert vectors.words == words
    assert (vectors.report.n_rows, vectors.report.n_skipped) == (n_rows, n_skipped)
    assert vectors.report.notes


def test_what_a_cut_gzip_still_holds_can_be_used(write):
    with pytest.warns(UserWarning, match="cut short"):
        vectors = read_vector_file(write(CUT_GZIP[: len(CUT_GZIP) // 2]), on_bad_row="skip")
    assert 1000 < len(vectors.words) < 20_000
    np.testing.assert_array_equal(vectors.vectors[:, 0], np.arange(len(vectors.words)) + 0.25)


def test_nothing_left_is_an_error(write):
    with pytest.raises(ValueError, match=r"at least one word.*line 1.*NaN"):
        read_vector_file(write("good nan 1 1\n"), on_bad_row="skip")


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("content", ["{} 3\n" + GOOD + BAD, binary], ids=["text", "binary"])
def test_a_wrong_count_warns_with_both_numbers(write, content, count):
    content = content.format(count) if isinstance(content, str) else content(TABLE, count)
    with pytest.warns(UserWarning, match=f"announces {count} vectors, the file holds 2"):
        vectors = read_vector_file(write(content))
    assert_table(vectors, TABLE)
    assert "announces" in vectors.report.summary()


@pytest.mark.parametrize("content", [GOOD + "good 9 9 9\n" + BAD, binary(TABLE, 3) + binary({"good": [9, 9, 9]})[4:]])
def test_the_first_of_two_equal_words_counts(write, content):
    vectors = read_vector_file(write(content))
    assert_table(vectors, TABLE)
    assert (vectors.report.n_rows, vectors.report.n_duplicated) == (3, 1)


def test_binary_read_in_pieces(write, monkeypatch):
    monkeypatch.setattr("embeddings.vector_rows.CHUNK_BYTES", 7)
    assert_table(read_vector_file(write(binary(TABLE))), TABLE)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="found nothing"):
        read_vector_file(tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match="found a folder"):
        read_vector_file(tmp_path)
    with pytest.raises(ValueError, match="'error' or 'skip'"):
        read_vector_file(tmp_path, on_bad_row="ignore")


def test_gensim_files(tmp_path):
    keyed = KeyedVectors(2)
    keyed.add_vectors(["a", "b"], np.array([[1, 2], [3, 4]], np.float32))
    keyed.save(str(tmp_path / "vectors.kv"))
    vectors = read_vector_file(tmp_path / "vectors.kv")
    assert_table(vectors, {"a": [1, 2], "b": [3, 4]})
    assert vectors.report.format == "keyed_vectors"
    assert_table(WordVectors.from_keyed_vectors(keyed), {"a": [1, 2], "b": [3, 4]})


def test_other_pickles(tmp_path):
    import pickle

    (tmp_path / "x.kv").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"x\.kv"):
        read_vector_file(tmp_path / "x.kv")


def test_lookup_is_as_written_then_lower_case(write):
    """B17: an explicit case policy with a fallback."""
    cased = read_vector_file(write("great 1 0\nGreat 2 0\nParis 3 0\n"))
    assert cased.cased
    np.testing.assert_array_equal(cased.rows_of(["GREAT", "great", "Great", "paris", "x"]), [0, 0, 1, -1, -1])
    assert not read_vector_file(write(GOOD)).cased


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a", "b"], np.ones((1, 2)), "one vector a word"),
        ([], np.ones((0, 2)), "one vector a word"),
        (["a", "a"], np.ones((2, 2)), "1 repeats"),
        (["a\nb"], np.ones((1, 2)), "line feeds"),
        (["a", "b"], np.array([[1.0], [np.inf]]), "infinity for 'b'"),
    ],
)
def test_bad_tables(words, vectors, message):
    with pytest.raises(ValueError, match=message):
        WordVectors(words, vectors, LoadReport("table", "text", len(words), 2))


def test_keys_that_are_no_words():
    keyed = KeyedVectors(1)
    keyed.add_vectors([3], np.ones((1, 1), np.float32))
    with pytest.raises(ValueError, match="got 3 of type int"):
        WordVectors.from_keyed_vectors(keyed)


def test_checksum_follows_words_and_numbers():
    report = LoadReport("table", "text", 2, 1)
    tables = [
        WordVectors(words, np.array(values, np.float32), report)
        for words, values in [(["a", "b"], [[1], [2]]), (["a", "c"], [[1], [2]]), (["a", "b"], [[1], [3]])]
    ]
    assert len({table.checksum for table in tables}) == 3
    assert tables[0].checksum == WordVectors(["a", "b"], np.array([[1], [2]], np.float32), report).checksum


def test_report_survives_json(write):
    import json

    with pytest.warns(UserWarning, match="announces"):
        report = read_vector_file(write("9 3\n" + GOOD)).report
    assert report_from_config(json.loads(json.dumps(report_to_config(report)))) == report


def test_progress_goes_to_standard_error(write, capsys):
    read_vector_file(write(GOOD), progress=True)
    captured = capsys.readouterr()
    assert not captured.out
    assert "vectors.txt" in captured.err
    read_vector_file(write(GOOD))
    assert not capsys.readouterr().err
