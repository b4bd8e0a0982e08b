"""What counts as a text, checked once where texts enter, and texts as token numbers."""

from __future__ import annotations

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from embeddings.tokenizer import check_rule


def list_texts(texts: Any, what: str = "texts") -> list[Any]:
    """The cells of a list, an array, a column of a table or any other iterable of texts.

    Raises:
        TypeError: what goes through something else than texts: letters of a string, names of a table's
            columns, keys of a dict, rows of a matrix.
    """
    kind, shape = type(texts).__name__, getattr(texts, "shape", None)
    if isinstance(texts, str):
        raise TypeError(f"expected a list of {what}, got one string; put it in a list: [text]")
    if isinstance(texts, bytes | bytearray | memoryview):
        raise TypeError(f"expected a list of {what}, got {kind}; decode them and put the text in a list: [text]")
    if isinstance(texts, Mapping):
        raise TypeError(f"expected a list of {what}, got a {kind}; pass its values: list(... .values())")
    if isinstance(texts, Set):
        raise TypeError(f"expected a list of {what}, got a {kind}, which has no order; pass a list")
    if hasattr(texts, "columns") or (isinstance(shape, tuple) and len(shape) != 1):
        names = [str(name) for name in getattr(texts, "columns", ())][:5]
        named = f"one of its columns ({', '.join(names)})" if names else "one column, such as texts[:, 0]"
        of_shape = f" of shape {shape}" if isinstance(shape, tuple) else ""
        raise TypeError(f"expected a list or one column of {what}, got {kind}{of_shape}; pass {named}")
    if not isinstance(texts, Iterable):
        raise TypeError(f"expected a list of {what}, got {kind}")
    return list(texts)


def read_texts(texts: Iterable[Any]) -> list[str | None]:
    """The texts as a list, with None for a missing one (None, NaN, pandas.NA, pandas.NaT).

    Raises:
        TypeError: no list of texts (see ``list_texts``); a cell that is neither a text nor missing, naming the row.
    """
    return [_read_text(row, cell) for row, cell in enumerate(list_texts(texts))]


def _read_text(row: int, cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell
    if cell is None or _is_missing(cell):
        return None
    raise TypeError(
        f"row {row}: expected a text, got {cell!r:.60} of type {type(cell).__name__}; "
        "read the column as text (numbers too), and leave a missing text empty"
    )


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    # A cell can only be pandas' missing value if somebody imported pandas, so there is no need to do it here.
    pandas = sys.modules.get("pandas")
    return pandas is not None and (cell is pandas.NA or cell is pandas.NaT)


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """n texts as numbers of distinct tokens: small in memory, and a table needs one look-up a distinct token.

    Attributes:
        types: the distinct tokens in order of first appearance.
        ids: positions in ``types``, all texts end to end, shape (total tokens,), int32.
        lengths: tokens of each text, shape (n,), int64; 0 for a missing or blank one.
    """

    types: list[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]


def tokenize_texts(
    texts: Iterable[str | None], rule: str, lower: bool = True, progress: bool = False
) -> TokenizedTexts:
    """Tokenize all texts (see ``tokenizer.tokenize``); a missing text has no tokens."""
    split = check_rule(rule)
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    ids, lengths = array("i"), array("q")
    for text in tqdm(texts, desc="Tokenizing", unit=" texts", disable=not progress):
        tokens = split(text, lower) if text else []
        ids.extend(map(number.__getitem__, tokens))
        lengths.append(len(tokens))
    # Copies, because NumPy refuses to make an array of an empty buffer.
    return TokenizedTexts(list(number), np.array(ids, np.int32), np.array(lengths, np.int64))
