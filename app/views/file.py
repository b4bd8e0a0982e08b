"""The page for a file of texts."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.charts import certainty_chart
from app.uploads import ScoredFile, Upload, read_upload, score_upload, to_bytes
from app.views.escaping import plain
from textkernels.tables.files import FORMS, suffix_of

NONE, BY_ITSELF = "(none)", "automatic"
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "gb18030", "shift-jis")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
ROWS_SHOWN = 1_000
# Classes whose predictions are counted in figures of their own.
LARGEST_COUNT = 3


def draw(model: Any) -> None:
    """Ask for a file and show what the model makes of its rows."""
    st.title("Score a file")
    st.caption(
        "Every row that can be read comes back with all its columns, in order, with label, probability, uncertainty "
        "and a status."
    )
    file = st.file_uploader("File", type=["csv", "tsv", "jsonl", "parquet", "gz"], help=f"A {FORMS} file.")
    if file is None:
        st.info(
            "Choose a table with one text a row; its first line names the columns. From a spreadsheet, save it as CSV."
        )
        return
    encoding, delimiter = _ask_form()
    try:
        upload = _read(file.name, file.getvalue(), encoding, delimiter)
        text_column, label_column = _ask_columns(upload)
        scored = _score(model, upload, text_column, label_column)
    except ValueError as error:
        st.error(plain(str(error)))
        st.info("Encoding and delimiter can be chosen above.")
        return
    if scored is not None:
        _draw_result(model, upload, scored)


# One object for all visits, not a copy of the bytes for each: it never changes.
_read = st.cache_resource(max_entries=2, show_spinner="Reading …")(read_upload)


def _ask_form() -> tuple[str | None, str | None]:
    with st.expander("Encoding and delimiter"):
        left, right = st.columns(2)
        encoding = left.selectbox("Encoding", [BY_ITSELF, *ENCODINGS])
        delimiter = right.selectbox("Delimiter of .csv and .tsv files", [BY_ITSELF, *DELIMITERS])
    return (None if encoding == BY_ITSELF else encoding), DELIMITERS.get(delimiter)


def _ask_columns(upload: Upload) -> tuple[str, str | None]:
    left, right = st.columns(2)
    text = left.selectbox("Column of the texts", upload.columns, index=upload.columns.index(upload.text_column))
    others = [NONE, *(column for column in upload.columns if column != text)]
    likeliest = others.index(upload.label_column) if upload.label_column in others else 0
    label = right.selectbox("Column of the labels, if there is one", others, index=likeliest)
    if upload.delimiter is not None:
        names = {sign: name for name, sign in DELIMITERS.items()}
        st.caption(f"Fields are taken to be separated by the {names.get(upload.delimiter, upload.delimiter)}.")
    return text, None if label == NONE else label


def _score(model: Any, upload: Upload, text: str, label: str | None) -> ScoredFile | None:
    """The scored file, kept for as long as file and columns stay; None until the visitor asks for it."""
    asked = (upload, text, label)
    kept = st.session_state.get("scored")
    if kept is not None and kept[0] is model and kept[1] == asked:
        return kept[2]
    if not st.button("Score", type="primary"):
        return None
    bar = st.progress(0.0, "Scoring …")
    scored = score_upload(model, upload, text, label, lambda share: bar.progress(share, f"Scoring … {share:.0%}"))
    bar.empty()
    st.session_state["scored"] = model, asked, scored
    return scored


def _draw_result(model: Any, upload: Upload, scored: ScoredFile) -> None:
    table = scored.table
    names = [f"{name}" for name in model.classes_]
    predicted = table["prediction"].map("{}".format)
    shown = st.columns((len(names) if len(names) <= LARGEST_COUNT else 0) + 1)
    shown[0].metric("Rows", f"{len(table):,}")
    for column, name in zip(shown[1:], names, strict=False):
        column.metric(f"Predicted {plain(name)}", f"{int((predicted == name).sum()):,}")
    if len(names) > LARGEST_COUNT:
        st.dataframe(predicted.value_counts().rename_axis("label").rename("rows").reset_index(), hide_index=True)
    if scored.metrics is not None:
        accuracy, loss, ece = st.columns(3)
        accuracy.metric(
            "Accuracy", f"{scored.metrics['accuracy']:.1%}", help=f"Of {scored.n_labelled:,} labelled rows."
        )
        loss.metric("Log loss", f"{scored.metrics['log_loss']:.3f}")
        ece.metric("Calibration error", f"{scored.metrics['ece']:.1%}", help="Expected calibration error, 15 bins.")
        if scored.n_seen:
            st.warning(
                f"{scored.n_seen:,} of {len(table):,} rows have the text of a training row: these figures are too good."
            )
    elif scored.label_column is not None:
        known = ", ".join(plain(name) for name in names[:10])
        st.info(f"No label in that column is one that the model knows ({known}), so there is nothing to judge it by.")
    not_ok = {status: count for status, count in scored.statuses.items() if status != "ok"}
    if not_ok:
        counts = ", ".join(f"{count:,} {status}" for status, count in not_ok.items())
        st.warning(f"Rows without a usable text got the shares of the classes: {counts}.")
    if len(scored.bad):
        lines = "line" if len(scored.bad) == 1 else "lines"
        st.warning(f"{len(scored.bad):,} {lines} could not be read, not scored and not in the download:")
        st.dataframe(scored.bad, hide_index=True)
    st.altair_chart(certainty_chart(table, names), width="stretch")
    if len(table) > ROWS_SHOWN:
        st.caption(f"The first {ROWS_SHOWN:,} of {len(table):,} rows; the download has all.")
    st.dataframe(scored.in_view().head(ROWS_SHOWN), hide_index=True)
    suffix = suffix_of(upload.name)
    stem = upload.name.removesuffix(".gz").rsplit(".", 1)[0]
    st.download_button("Download", to_bytes(table, suffix), f"{stem}-scored{suffix}", on_click="ignore")
