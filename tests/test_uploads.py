"""Files in the demo: the rows and values of `textkernels score`, whatever columns and delimiters they have."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from samples import LABELS, TEXTS
from streamlit.testing.v1 import AppTest

import textkernels as tk
from app.uploads import read_upload, score_upload, to_bytes
from textkernels.cli import cli
from textkernels.tables import read_table
from textkernels.tables.files import suffix_of

MIXED = (
    "id,review,sentiment\n"
    '1,"a wonderful, warm film",pos\n'
    "2,,neg\n"
    "3,qwzx vrrp,neg\n"
    "4,a boring story,neg\n"
    "5,a dull film,something else\n"
    "6,a good one,\n"
)


@pytest.fixture(scope="module")
def model() -> tk.KernelClassifier:
    return tk.KernelClassifier().fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("uploads") / "model"
    model.save(path)
    return str(path)


def score(model, name: str, data: bytes):
    upload = read_upload(name, data)
    return score_upload(model, upload, upload.text_column, upload.label_column, lambda share: None)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_the_download_is_what_the_command_writes(model, folder, tmp_path: Path, suffix: str) -> None:
    frame = pd.read_csv(io.StringIO(MIXED), dtype=object).replace({np.nan: None})
    data = to_bytes(frame, suffix)
    (tmp_path / f"mixed{suffix}").write_bytes(data)
    output = tmp_path / f"scored{suffix}"
    arguments = ["score", f"{tmp_path}/mixed{suffix}", "--text-column", "review", "--model", folder, "-o", str(output)]
    result = CliRunner().invoke(cli, [*arguments, "--quiet"])
    assert result.exit_code == 0, result.output
    scored = score(model, f"mixed{suffix}", data)
    path = tmp_path / f"page{suffix}"
    path.write_bytes(to_bytes(scored.table, suffix_of(f"mixed{suffix}")))
    ours, theirs = read_table(path).frame, read_table(output).frame
    assert list(ours.columns) == list(theirs.columns)
    assert scored.statuses == {"ok": 4, "missing_text": 1, "no_known_tokens": 1}
    for name in theirs.columns:
        expected, got = theirs[name].tolist(), ours[name].tolist()
        if name.startswith("probability") or name in ("mean", "std"):
            np.testing.assert_allclose([float(v) for v in got], [float(v) for v in expected], atol=1e-12)
        else:
            assert [str(v) for v in got] == [str(v) for v in expected]


def test_labels_that_the_model_knows_are_judged_and_no_others(model) -> None:
    scored = score(model, "mixed.csv", MIXED.encode())
    assert scored.n_labelled == 4
    said = scored.table["prediction"].tolist()
    right = [said[0] == "pos", said[1] == "neg", said[2] == "neg", said[3] == "neg"]
    assert scored.metrics is not None
    assert scored.metrics["accuracy"] == pytest.approx(np.mean(right))


@pytest.mark.parametrize(
    ("text", "columns", "chosen"),
    [
        ("text,label\na film,pos\n", ("text", "label"), ("text", "label")),
        ("n,Review\n1,a film\n", ("n", "Review"), ("Review", None)),
        ("key,words,stars\nx,a long and winding film,5\n", ("key", "words", "stars"), ("words", None)),
        ("review;sentiment\na film, long;pos\n", ("review", "sentiment"), ("review", "sentiment")),
        ('a\tb\n"a ""film"" of note"\tx\n', ("a", "b"), ("a", None)),
        ("only\na film\n", ("only",), ("only", None)),
        ("Text,text,LABEL\nA,b,c\n", ("Text", "text", "LABEL"), ("text", "LABEL")),
    ],
)
def test_the_likeliest_columns(text: str, columns: tuple[str, ...], chosen: tuple[str, str | None]) -> None:
    upload = read_upload("a.csv", text.encode())
    assert upload.columns == columns
    assert (upload.text_column, upload.label_column) == chosen


def test_encoding_and_delimiter_can_be_said() -> None:
    upload = read_upload("a.csv", "text;note\nein schöner Film;x\n".encode("cp1252"), "cp1252")
    assert (upload.columns, upload.encoding, upload.delimiter) == (("text", "note"), "cp1252", ";")
    upload = read_upload("a.csv", b"Comments; suggestions\nGreat film\nBad; awful film\n", delimiter=",")
    assert upload.columns == ("Comments; suggestions",)


def test_a_date_that_pandas_cannot_hold_is_in_nobodys_way(model) -> None:
    stamps = pa.array([253_402_300_799 * 2, None], pa.int64()).cast(pa.timestamp("s"))
    file = io.BytesIO()
    pq.write_table(pa.table({"when": stamps, "words": ["a good film", "a dull one"]}), file)
    scored = score(model, "a.parquet", file.getvalue())
    assert scored.text_column == "words"
    assert to_bytes(scored.table, ".csv").count(b"\n") == 3


def test_a_line_that_is_no_row_is_named_and_harms_no_other(model) -> None:
    scored = score(model, "a.csv", b'text,n\na good film,1\n"a bad" one,2\na dull film,3\n')
    assert scored.table["n"].tolist() == ["1", "3"]
    assert scored.bad["line"].tolist() == [3]
    whole = model.predict_proba(["a good film", "a dull film"])
    np.testing.assert_allclose(scored.table[["probability_neg", "probability_pos"]].to_numpy(), whole, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.csv", b"", "a.csv: .*empty file"),
        ("a.csv", b"text\n", "a.csv: expected at least one row"),
        ("a.csv", b"text\nfine, good\n", r"1 bad rows left out, the first: line 2, expected 1 fields, got 2"),
        ("a.jsonl", b"{}\n{}\n", "a.jsonl: expected a column with texts"),
        ("文" * 100 + ".csv", b"text\n", "文.csv: expected at least one row"),
        ("a/b.csv", b"text\n", "^a/b.csv: expected at least one row"),
        ("a.xlsx", b"PK\x03\x04", "a.xlsx: expected a name that ends with"),
        ("a.csv", b"text\n\xff\xfe\x00\n", "a.csv"),
        ("a.csv.gz", b"text\na film\n", None),
        ("a.parquet", b"no parquet", "a.parquet"),
        ("a.csv", b"text,prediction\na film,pos\n", "no columns with the names of the new ones, got prediction"),
    ],
)
def test_what_cannot_be_scored_is_said_by_the_name_of_the_file(model, name: str, data: bytes, words) -> None:
    if words is None:
        assert len(score(model, name, data).table) == 1
        return
    with pytest.raises(ValueError, match=words) as caught:
        score(model, name, data)
    assert "textkernels-" not in str(caught.value)


@pytest.fixture
def page(folder, monkeypatch) -> AppTest:
    monkeypatch.setenv("TEXTKERNELS_MODEL", folder)

    def file_page() -> None:
        from app.services import load_model, model_folder
        from app.views import file

        file.draw(load_model(model_folder()))

    return AppTest.from_function(file_page, default_timeout=60)


def test_the_page_scores_a_file_when_it_is_asked_to(page, model) -> None:
    page.run()
    assert "Choose a table" in page.info[0].value
    page.file_uploader[0].set_value(("mixed.csv", MIXED.encode(), "text/csv")).run()
    assert not page.exception
    assert [box.value for box in page.selectbox] == ["automatic"] * 2 + ["review", "sentiment"]
    assert not page.metric
    page.button[0].click().run()
    assert not page.exception
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Rows"] == "6"
    assert int(shown["Predicted neg"]) + int(shown["Predicted pos"]) == 6
    assert any("1 missing_text" in warning.value for warning in page.warning)
    assert not any("training row" in warning.value for warning in page.warning)
    table = page.dataframe[0].value
    assert table.columns[0] == "review"
    assert table["prediction"].tolist() == model.predict(read_table_texts(MIXED)).tolist()


def read_table_texts(text: str) -> list[str | None]:
    frame = pd.read_csv(io.StringIO(text), dtype=object)
    return [None if cell != cell else cell for cell in frame["review"]]


def test_a_file_that_cannot_be_read_is_an_error_on_the_page(page) -> None:
    page.run()
    page.file_uploader[0].set_value(("a.csv", b"text\n", "text/csv")).run()
    assert not page.exception
    assert "expected at least one row" in page.error[0].value


def test_labels_of_other_names_are_said_to_be_so(page) -> None:
    page.run()
    page.file_uploader[0].set_value(("a.csv", b"text,label\ngood,Good\nbad,BAD\n", "text/csv")).run()
    page.button[0].click().run()
    assert not page.exception
    assert "No label in that column is one that the model knows (neg, pos)" in page.info[0].value


def test_training_rows_in_a_labelled_file_are_told(page) -> None:
    page.run()
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS[:3], LABELS[:3], strict=True))
    data = f"text,label\n{rows}a good one,pos\n".encode()
    page.file_uploader[0].set_value(("a.csv", data, "text/csv")).run()
    page.button[0].click().run()
    assert not page.exception
    assert "3 of 4 rows have the text of a training row" in page.warning[0].value


def test_another_model_in_the_folder_scores_the_file_again(model, monkeypatch, tmp_path) -> None:
    def draw(model) -> None:
        from app.views import file

        file.draw(model)

    page = AppTest.from_function(draw, args=(model,), default_timeout=60).run()
    page.file_uploader[0].set_value(("mixed.csv", MIXED.encode(), "text/csv")).run()
    page.button[0].click().run()
    assert page.dataframe
    other = tk.KernelClassifier().fit(TEXTS, ["B" if label == "pos" else "A" for label in LABELS])
    page.args = (other,)
    page.run()
    assert not page.exception
    assert not page.dataframe
    page.button[0].click().run()
    assert set(page.dataframe[0].value["prediction"]) == {"A", "B"}


def test_the_encoding_can_be_chosen(page) -> None:
    page.run()
    data = "text\nein sch\u00f6ner Film\n".encode("cp1252")
    page.file_uploader[0].set_value(("a.csv", data, "text/csv")).run()
    assert "encoding" in page.error[0].value
    page.selectbox[0].select("cp1252").run()
    assert not page.error
    page.button[0].click().run()
    assert page.dataframe[0].value["text"].tolist() == ["ein sch\u00f6ner Film"]
