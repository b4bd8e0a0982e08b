"""Checks of layer parameters: one sentence that says what was expected, what came and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

LARGEST = 1e6  # a standard deviation whose powers and products numbers can hold


def check_std(layer: str, **values: float) -> None:
    """Raise ValueError unless every standard deviation is a finite number >= 0, and not beyond all use."""
    for name, value in values.items():
        if isinstance(value, bool) or not _is_number(value) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{layer}: expected {name} to be a finite number >= 0, got {value!r}")
        if value > LARGEST:
            raise ValueError(f"{layer}: expected {name} to be at most {LARGEST:,.0f}, got {value!r}")


def check_share(layer: str, **values: float) -> None:
    """Raise ValueError unless every share lies in [0, 1]."""
    for name, value in values.items():
        if isinstance(value, bool) or not _is_number(value) or not 0 <= value <= 1:
            raise ValueError(f"{layer}: expected {name} in [0, 1], got {value!r}")


def check_choice(layer: str, name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"{layer}: expected {name} to be one of {', '.join(choices)}; got {value!r}")


def check_integer(layer: str, least: int, **values: int) -> None:
    """Raise ValueError unless every value is an integer >= ``least``."""
    for name, value in values.items():
        whole = _is_number(value) and not isinstance(value, bool) and math.isfinite(value) and int(value) == value
        if not whole or value < least:
            raise ValueError(f"{layer}: expected {name} to be an integer >= {least}, got {value!r}")


def check_flag(layer: str, **values: bool) -> None:
    """Raise ValueError unless every value is True or False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{layer}: expected {name} to be True or False, got {value!r}")


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)
