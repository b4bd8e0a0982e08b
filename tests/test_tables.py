"""Table files: rows in are rows out, or an error that names the line. Oracles: by hand, csv and json of Python."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textkernels.tables import files as tables
from textkernels.tables.delimited import parse_delimited
from textkernels.tables.files import check_writable, read_table, write_table
from textkernels.tables.jsonlines import parse_jsonlines


def rows_of(table: tables.Table) -> list[list[object]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in table.frame.to_numpy(dtype=object).tolist()]


# --- what is read ------------------------------------------------------------------------------------------------


def test_text_like_missing_values_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "b21.csv"
    path.write_text('id,text\n1,NA\n2,None\n3,\n4,"null"\n5,007\n006,nan\n7,""\n8,-1.#IND\n')
    table = read_table(path)
    assert rows_of(table) == [
        ["1", "NA"],
        ["2", "None"],
        ["3", None],
        ["4", "null"],
        ["5", "007"],
        ["006", "nan"],
        ["7", ""],
        ["8", "-1.#IND"],
    ]
    assert table.positions == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('a,b\n1,"two\n\nlines"\n2,x\n', [["1", "two\n\nlines"], ["2", "x"]]),
        ('a,b\r\n1,"two\r\nlines"\r\n2,x\r\n', [["1", "two\r\nlines"], ["2", "x"]]),
        ("a,b\r1,x\r2,y\r", [["1", "x"], ["2", "y"]]),
        ('a,b\n1,"a lone \r in quotes"\n', [["1", "a lone \r in quotes"]]),
        ('a,b\n1,"say ""hi"", you"\n', [["1", 'say "hi", you']]),
        ('a,b\n1,5" screen\n', [["1", '5" screen']]),
        ("a,b\n1,x", [["1", "x"]]),
        ("\n\na,b\n\n1,x\n  \n2,y\n\n", [["1", "x"], ["2", "y"]]),
        ("text\nfoo\n\nbar\n", [["foo"], [None], ["bar"]]),
        ('text\n""\n', [[""]]),
        ("a,b,c\n,,\n", [[None, None, None]]),
        ('a,b,c\n"",,""\n', [["", None, ""]]),
        ('a,b,c\n"x,""""y",,""\n', [['x,""y', None, ""]]),
        ("a,b\n1,line\u2028sep\x85and\x0bmore\x1c\n", [["1", "line\u2028sep\x85and\x0bmore\x1c"]]),
    ],
)
def test_csv_rows(content: str, rows: list[list[str | None]]) -> None:
    records = parse_delimited(content)
    assert records.rows == rows
    assert not records.bad


def test_long_text_is_one_field(tmp_path: Path) -> None:
    text = "word, " * 100_000
    (tmp_path / "long.csv").write_text(f'id,text\n1,"{text}"\n')
    assert rows_of(read_table(tmp_path / "long.csv")) == [["1", text]]


JSONL_ROWS = [
    ('{"id": 1, "text": "a"}\n\n{"id": 2, "text": null}\n', [[1, "a"], [2, None]]),
    ('{"id": 1}\n{"text": "b", "id": 2}\n', [[1, None], [2, "b"]]),
    ('{"id": true, "text": "x"}\r\n{"id": "007", "text": "y"}', [[True, "x"], ["007", "y"]]),
    ('{"id": 12345678901234567890, "text": "\u2028 \x85"}\n', [[12345678901234567890, "\u2028 \x85"]]),
    ('{"id": 1.5, "text": "\\ud83d\\ude00"}\n', [[1.5, "\U0001f600"]]),
]


@pytest.mark.parametrize(("content", "rows"), JSONL_ROWS)
def test_jsonl_rows_keep_their_types(tmp_path: Path, content: str, rows: list[list[object]]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content.encode())
    read = rows_of(read_table(path))
    assert read == rows
    assert [[type(cell) for cell in row] for row in read] == [[type(cell) for cell in row] for row in rows]


def test_parquet_keeps_integers_with_nulls_and_columns_kept_by_pandas_as_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["007", "8"], "text": ["NA", None]}).set_index("id")
    frame["stars"] = pd.array([5, None], dtype="Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.frame.columns.tolist() == ["text", "stars", "id"]
    assert rows_of(table) == [["NA", 5, "007"], [None, None, "8"]]
    assert table.unit == "row"
    assert table.positions == [1, 2]


@pytest.mark.parametrize(
    ("encoding", "given"),
    [("utf-8", None), ("utf-8-sig", None), ("utf-16", None), ("utf-32", None), ("utf-8-sig", "utf-8")]
    + [(name, name) for name in ("cp1252", "utf-16-le", "utf-16", "latin-1")],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_encodings(tmp_path: Path, encoding: str, given: str | None, suffix: str) -> None:
    text = 'text,id\r\n"café, née",1\r\n' if suffix == ".csv" else '{"text": "café, née", "id": "1"}\r\n'
    path = tmp_path / f"a{suffix}"
    path.write_bytes(text.encode(encoding))
    table = read_table(path, encoding=given)
    assert table.frame.columns.tolist() == ["text", "id"]
    assert rows_of(table) == [["café, née", "1"]]


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV.GZ", "packed-under-another-name.tsv"])
def test_tsv_and_gzip_by_content(tmp_path: Path, name: str) -> None:
    content = b"text\tid\nhello, you\t1\n"
    (tmp_path / name).write_bytes(content if name == "a.tsv" else gzip.compress(content))
    assert rows_of(read_table(tmp_path / name)) == [["hello, you", "1"]]


@pytest.mark.parametrize(
    ("content", "delimiter", "rows"),
    [
        (b'  \n{"text": "a"}\n', None, [["a"]]),
        (b"\xef\xbb\xbf" + b'{"text": "a"}\n', None, [["a"]]),
        (b"text,id\na,1\n", None, [["a", "1"]]),
        (b"text;id\na,b;1\n", ";", [["a,b", "1"]]),
        (b'{text};id\n"x";1\n', ";", [["x", "1"]]),
        (gzip.compress(b"text\na\n"), None, [["a"]]),
    ],
)
def test_standard_input_is_guessed(
    monkeypatch: pytest.MonkeyPatch, content: bytes, delimiter: str | None, rows: list[list[str]]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    table = read_table("-", delimiter=delimiter)
    assert rows_of(table) == rows
    assert table.name == "standard input"


def test_standard_input_may_be_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", None]}), buffer)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(buffer.getvalue())))
    assert rows_of(read_table("-")) == [["a"], [None]]


def test_checksum_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\nabc\n")
    # printf 'text\nabc\n' | sha256sum
    assert read_table(tmp_path / "a.csv").checksum == CHECKSUM


CHECKSUM = "91e00a489dc04b3ca37f3a0eb2449ad36514a9ca53ea2f397f8737e7d0e87578"


# --- what is refused ---------------------------------------------------------------------------------------------

# content, line of the first bad row, words of the message, rows that remain when bad ones are skipped
BAD_CSV = [
    ('id,text\n1,a\n2,"unclosed\n3,b\n4,c\n', 3, "never closed", ["1", "3", "4"]),
    ('id,text\n1,a\n2,"unclosed\n3,b\n4,"fine, text"\n', 3, "line 5", ["1", "3", "4"]),
    ('id,text\n1,a\n2,"x" y\n3,b\n', 3, "closing quote", ["1", "3"]),
    ("id,text\n1,a\n2,b,c\n3,d\n", 3, "expected 2 fields, got 3", ["1", "3"]),
    ("id,text\n1,a\n2\n3,d\n", 3, "expected 2 fields, got 1", ["1", "3"]),
    ("id,text\n1,a\n2,b\0c\n3,d\n", 3, "NUL", ["1", "3"]),
    ("id,text\n1,a\n2,b\rc\n3,d\n", 3, "carriage return", ["1", "3"]),
    ('id,text\n1,"x\ny"\n2,"open\n3,c\n', 4, "never closed", ["1", "3"]),
    ('id,text\n1,a\n2,"open\n3,b\n4,ends here"\n5,c\n', 3, "line 4 looks like a row", ["1", "5"]),
]


@pytest.mark.parametrize(("content", "line", "words", "kept"), BAD_CSV)
def test_bad_csv_rows(tmp_path: Path, content: str, line: int, words: str, kept: list[str]) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content.encode())
    with pytest.raises(ValueError, match=rf"bad\.csv, line {line}: .*{words}"):
        read_table(path)
    table = read_table(path, skip_bad_rows=True)
    assert [row[0] for row in rows_of(table)] == kept
    assert table.bad[0].position == line
    assert table.bad[0].raw.split("\n")[0] == content.split("\n")[line - 1]


BAD_JSONL = [
    ('{"id": 1}\n{"id": 1e999}\n{"id": 3}\n', 2, "the number 1e999 is too large"),
    ('{"id": 1}\n{"id": [-2.5e400]}\n{"id": 3}\n', 2, "the number -2.5e400 is too large"),
    ('{"id": 1}\n{"id": 2\n{"id": 3}\n', 2, "not JSON"),
    ('{"id": 1}\n{"id": NaN}\n{"id": 3}\n', 2, "NaN is not JSON"),
    ('{"id": 1}\n{"id": -Infinity}\n{"id": 3}\n', 2, "-Infinity"),
    ('{"id": 1}\n[2]\n{"id": 3}\n', 2, "got list"),
    ('{"id": 1}\n"text"\n{"id": 3}\n', 2, "got str"),
    ('{"id": 1}\n{"id": 2, "id": 2}\n{"id": 3}\n', 2, "twice"),
    ('{"id": 1}\n\n{"id": "a\0b"}\n{"id": 3}\n', 3, "not JSON"),
    ('{"id": 1}\n{"id": "\\ud83d"}\n{"id": 3}\n', 2, "surrogate"),
    ('{"id": 1}\n' + '{"id":' * 100_000 + "\n" + '{"id": 3}\n', 2, "nested|not JSON"),
    ('{"id": 1}\n{"id": ' + "9" * 5000 + '}\n{"id": 3}\n', 2, "4300"),
]


@pytest.mark.parametrize(("content", "line", "words"), BAD_JSONL)
def test_bad_jsonl_rows(tmp_path: Path, content: str, line: int, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content.encode())
    with pytest.raises(ValueError, match=rf"bad\.jsonl, line {line}: .*({words})"):
        read_table(path)
    table = read_table(path, skip_bad_rows=True)
    assert rows_of(table) == [[1], [3]]
    assert [bad.position for bad in table.bad] == [line]


def test_number_of_bad_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1\n2\n3,x\n4\n")
    with pytest.raises(ValueError, match=r"line 2: .*\(2 more bad rows follow\).*--skip-bad-rows"):
        read_table(tmp_path / "bad.csv")


BAD_FILES = [
    ("a.csv", b"", "empty file"),
    ("a.csv", b"\n \n", "empty file"),
    ("a.csv", b"\xef\xbb\xbf", "empty file"),
    ("a.csv", b"id,text\n", "at least one row, got only a line with the names"),
    ("a.csv", b"text,text\na,b\n", "'text' 2 times"),
    ("a.csv", b'id,"text\n1,a\n', "line 1: .*never closed"),
    ("a.csv", "text\ncafé\n".encode("cp1252"), r"line 2: byte 0xe9 at offset 8 is not utf-8.*--encoding"),
    ("a.csv", "text\ncafé\n".encode("utf-16-le"), "NUL.*--encoding"),
    ("a.csv.gz", gzip.compress(b"text\n" + os.urandom(500).hex().encode())[:-200], "gzip data is cut short"),
    ("a.jsonl", b"", "empty file"),
    ("a.jsonl", b"\n\n", "empty file"),
    ("a.jsonl", b'[{"text": "a"}]', "JSON array"),
    ("a.jsonl", b'{"text": "caf\xe9"}\n', r"byte 0xe9 at offset 13"),
    ("a.parquet", b"PAR1 is not enough", "parquet"),
    ("a.parquet", b"", "parquet"),
    ("a.xlsx", b"PK", r"ends with \.csv, \.tsv"),
    ("a.txt", b"text\na\n", r"ends with \.csv, \.tsv"),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES)
def test_bad_files(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_options(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(ValueError, match="klingon"):
        read_table(tmp_path / "a.csv", encoding="klingon")
    with pytest.raises(ValueError, match="one character"):
        read_table(tmp_path / "a.csv", delimiter=";;")


# --- rows that a quote swallowed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line"),
    [
        # No gap in the numbers for the inner line to fill, so the text may well hold it.
        ('id,text\n1,a\n2,"a list:\n3, first\nend"\n3,c\n', None),
        ('id,text\n1,a\n2,"it cost\n2,000 pounds"\n3,c\n', None),
        ('id,text\n1,a\n2,"nice,\nreally, nice"\n5,c\n', None),
        ('id,text\n1,a\n2,"open\n3,b"\n4,c\n', 4),
        ('id,text,label\n9,a,pos\n2,"open,neg\n7,b,pos\n4,c",neg\n5,d,pos\n1,e,neg\n0,f,neg\n', 3),
        ('text,label\na,pos\nb,neg\nc,pos\nd,neg\n"open,neg\ne,maybe\nf",pos\n', 6),
        ('text,label\na,pos\nb,neg\nc,pos\nd,neg\n"two\nlines, I liked",pos\n', None),
        ('text,label\na,pos\nb,neg\nc,pos\nd,neg\n"two\nlines",pos\n', None),
        ('text,id\na,1\n"two\nlines",2\nc,3\n', None),
        ('text,id\na,1\n"open,2\nlines",3\nc,4\n', 3),
        ('text\tlabel\na\tpos\nb\tneg\nc\tpos\nd\tneg\n"open\tneg\ne\tpos\nf"\tpos\n', 6),
        ('id,text\n1,"only\n2,row"\n', None),
        ('text\n"one\ncolumn"\n', None),
    ],
)
def test_swallowed_rows(content: str, line: int | None) -> None:
    records = parse_delimited(content, "\t" if "\t" in content else ",")
    if line is None:
        assert not records.bad
    else:
        assert f"line {line} looks like a row of its own" in records.bad[0].reason
    assert len(records.rows) == len(
        list(csv.reader(io.StringIO(content), delimiter="\t" if "\t" in content else ","))
    ) - (1 if line is None else 2)


# --- what is written ---------------------------------------------------------------------------------------------

CELLS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))
FRAMES = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(rows=FRAMES)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_written_tables_come_back(tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple]) -> None:
    path = tmp_path_factory.mktemp("written") / f"a{suffix}"
    frame = pd.DataFrame({name: pd.Series([row[i] for row in rows], dtype=object) for i, name in enumerate("xy")})
    write_table(frame, path)
    table = read_table(path)
    assert table.frame.columns.tolist() == ["x", "y"]
    assert rows_of(table) == [list(row) for row in rows]


@settings(max_examples=60, deadline=None)
@given(rows=FRAMES)
def test_written_csv_is_what_pythons_csv_reads(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple]) -> None:
    path = tmp_path_factory.mktemp("written") / "a.csv"
    write_table(pd.DataFrame(rows, columns=["x", "y"], dtype=object), path)
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    assert read == [["x", "y"], *([cell or "" for cell in row] for row in rows)]


def test_written_values(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [1, 2], "ok": [True, False], "p": [0.1, float("nan")], "tags": [["a"], None]})
    write_table(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'label,ok,p,tags\n1,True,0.1,"[""a""]"\n2,False,,\n'
    write_table(frame, tmp_path / "a.jsonl")
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == [
        {"label": 1, "ok": True, "p": 0.1, "tags": ["a"]},
        {"label": 2, "ok": False, "p": None, "tags": None},
    ]


INF, NAN = float("inf"), float("nan")
# Cells as Arrow gives them and as JSON has them, each as text in csv.
WITHOUT_TYPE = [
    (pa.array([INF, -INF, NAN, 1.5, None]), ["inf", "-inf", None, 1.5, None]),
    (pa.array([INF, 2.0], pa.float32()), ["inf", 2.0]),
    (pa.array([[1.0, NAN, INF, None], []], pa.list_(pa.float64())), [[1.0, None, "inf", None], []]),
    (pa.array([b"\xff\x00", b"", None]), ["/wA=", "", None]),
    (pa.array([{"x": b"a", "y": -INF}]), [{"x": "YQ==", "y": "-inf"}]),
    (pa.array([[("k", NAN)]], pa.map_(pa.string(), pa.float64())), [[["k", None]]]),
    (pa.array([0], pa.timestamp("s")), ["1970-01-01 00:00:00"]),
    (pa.array([[0]], pa.list_(pa.date32())), [["1970-01-01"]]),
]


@pytest.mark.parametrize(("column", "cells"), WITHOUT_TYPE, ids=lambda value: str(getattr(value, "type", "")))
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_cells_without_a_type_become_text(tmp_path: Path, suffix: str, column: pa.Array, cells: list[object]) -> None:
    pq.write_table(pa.table({"id": range(len(cells)), "x": column}), tmp_path / "in.parquet")
    write_table(read_table(tmp_path / "in.parquet").frame, tmp_path / f"out{suffix}")
    read = [row[1] for row in read_table(tmp_path / f"out{suffix}").frame.to_numpy(dtype=object).tolist()]
    if suffix == ".csv":
        read = [json.loads(cell) if cell is not None and cell[:1] in ("[", "{") else cell for cell in read]
        cells = [str(cell) if isinstance(cell, float) else cell for cell in cells]
    assert read == cells


def test_missing_and_infinite_cells_of_numpy(tmp_path: Path) -> None:
    cells = [np.float32("nan"), np.float32("inf"), np.int64(3), np.array([1.0, NAN])]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    write_table(frame, tmp_path / "a.jsonl")
    assert rows_of_lines(tmp_path / "a.jsonl") == [{"x": None}, {"x": "inf"}, {"x": 3}, {"x": [1.0, None]}]
    write_table(frame, tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text() == "x\n\ninf\n3\n[1.0, null]\n"


def rows_of_lines(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lists_and_objects_of_jsonl_are_json_in_parquet(tmp_path: Path) -> None:
    lines = [{"text": "a", "tags": {}}, {"text": "b", "tags": {"x": [1, None, "é"]}}, {"text": "c", "tags": "plain"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"text": "d"}]))
    frame = read_table(tmp_path / "in.jsonl").frame
    check_writable(tmp_path / "out.parquet", frame)
    write_table(frame, tmp_path / "out.parquet")
    tags = pq.read_table(tmp_path / "out.parquet").to_pydict()["tags"]
    assert tags == ["{}", '{"x": [1, null, "é"]}', "plain", None]
    (tmp_path / "bad.jsonl").write_text('{"x": {}}\n{"x": 5}\n')
    with pytest.raises(ValueError, match="the column 'x' holds values of several types"):
        write_table(read_table(tmp_path / "bad.jsonl").frame, tmp_path / "out.parquet")


def test_bytes_and_infinities_stay_in_parquet(tmp_path: Path) -> None:
    table = pa.table({"b": [b"\xff", None], "n": [INF, -1.0], "s": [{"x": b"a"}, None]})
    pq.write_table(table, tmp_path / "in.parquet")
    write_table(read_table(tmp_path / "in.parquet").frame, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == table.to_pydict()


def test_a_device_or_pipe_is_no_place_for_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe\.csv: expected the name of a file, got a device or pipe"):
        check_writable(tmp_path / "pipe.csv")


def test_parquet_goes_through_unchanged(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, None], pa.int8()), "text": ["a", None], "n": pa.array([1, 2], pa.uint32())})
    pq.write_table(table, tmp_path / "in.parquet")
    write_table(read_table(tmp_path / "in.parquet").frame, tmp_path / "out.parquet")
    back = pq.read_table(tmp_path / "out.parquet")
    assert back.to_pydict() == table.to_pydict()
    assert back.schema.field("id").type == pa.int8()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("old")

    def fail(frame: pd.DataFrame, file: io.BytesIO) -> None:
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setitem(tables.WRITERS, ".jsonl", fail)
    with pytest.raises(OSError, match="disk full"):
        write_table(pd.DataFrame({"a": [1]}), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_unwritable_targets_are_refused_first(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)})
    with pytest.raises(ValueError, match=r"out\.xlsx: expected a name that ends with"):
        check_writable(tmp_path / "out.xlsx")
    with pytest.raises(ValueError, match="there is no folder"):
        check_writable(tmp_path / "no" / "out.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ValueError, match="got a folder"):
        check_writable(tmp_path / "d.csv")
    with pytest.raises(ValueError, match="column 'a' holds values of several types"):
        check_writable(tmp_path / "out.parquet", mixed)
    check_writable(tmp_path / "out.jsonl", mixed)
    assert os.listdir(tmp_path) == ["d.csv"]


def test_parsers_agree_on_the_same_rows() -> None:
    delimited = parse_delimited('id,text\n1,"x\ny"\n2,\n')
    jsonl = parse_jsonlines('{"id": "1", "text": "x\\ny"}\n{"id": "2", "text": null}\n')
    assert (delimited.columns, delimited.rows) == (jsonl.columns, jsonl.rows)
