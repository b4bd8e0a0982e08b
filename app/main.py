"""Entry point of the demo: `textkernels app --model DIR`, or `streamlit run app/main.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app.services import load_model, model_folder
from app.views import file, review


@st.cache_resource(show_spinner="Reading the model and warming up …")
def cached_model(folder: str, modified: float) -> Any:
    """One read-only model for all visitors, read again when the folder changes."""
    return load_model(Path(folder))


def main() -> None:
    """Set up the page, load the model, draw."""
    st.set_page_config(page_title="textkernels", page_icon="∞", layout="centered")
    folder = model_folder()
    try:
        model = cached_model(str(folder), folder.stat().st_mtime)
    except (OSError, ValueError) as error:
        st.error(f"No model could be read from {folder}: {error}")
        st.info("Fit one first: `textkernels fit bundled:imdb --model DIR`, then `textkernels app --model DIR`.")
        return
    pages = [
        st.Page(partial(review.draw, model), title="A review", url_path="review", default=True),
        st.Page(partial(file.draw, model), title="A file", url_path="file"),
    ]
    st.navigation(pages, position="top").run()


main()
