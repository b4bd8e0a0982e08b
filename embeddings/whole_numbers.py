"""Options that are integers: Python's or NumPy's, never True or False."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

LARGEST_SEED = 2**32 - 1  # of gensim's and of NumPy's older generators


def whole_number(option: str, value: Any, least: int, most: int | None = None, otherwise: str = "") -> int:
    """The value as an int, which files in JSON can hold; 10.0 counts as 10.

    Args:
        option: its name.
        value: what was given.
        least, most: the bounds, both allowed.
        otherwise: what else may be given, for the message.

    Raises:
        ValueError: anything else; the message names the option.
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float | np.floating) and float(value).is_integer())
    if not whole or value < least or (most is not None and value > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise ValueError(f"expected {option} to be an integer {bounds}{otherwise}, got {value!r}")
    return int(value)


def whole_number_or_none(option: str, value: Any, least: int, none: str) -> int | None:
    """The same where None is allowed, too; ``none`` says what it stands for."""
    return None if value is None else whole_number(option, value, least, otherwise=f", or None for {none}")
