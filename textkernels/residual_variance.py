"""The spread of labels around the latent mean, by the length of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ResidualVariance:
    """s^2 of a text by how many of its tokens the model sees; see :mod:`textkernels.probability` for what s^2 is.

    log s^2 is linear in the logarithm of the length between the given ones and constant beyond them.

    Attributes:
        lengths: tokens, (k,) increasing. From the last on a text is as long as the training texts are.
        values: s^2 > 0, (k,), the longer the text the smaller.
    """

    lengths: np.ndarray
    values: np.ndarray

    @classmethod
    def constant(cls, value: float) -> ResidualVariance:
        """The same for every length."""
        return cls(np.ones(1), np.array([float(value)]))

    @property
    def usual(self) -> float:
        """s^2 of a text as long as the training texts are."""
        return float(self.values[-1])

    @property
    def usual_length(self) -> float:
        """Tokens from which on it is that; 1 if it always is."""
        return float(self.lengths[-1])

    def at(self, n_tokens: np.ndarray | int) -> np.ndarray:
        """s^2 of texts of which so many tokens, at least 1, have a vector. Of any shape."""
        return np.exp(np.interp(np.log(n_tokens), np.log(self.lengths), np.log(self.values)))

    def extended(self, length: float, value: float) -> ResidualVariance:
        """With s^2 for a shorter length, at least that of the next longer one."""
        value = max(float(value), float(self.values[0]))
        return ResidualVariance(np.r_[length, self.lengths], np.r_[value, self.values])

    def to_dict(self) -> dict[str, list[float]]:
        """Plain values; ``from_dict`` reads them back."""
        return {"lengths": self.lengths.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ResidualVariance:
        """Raises: TypeError for values that no ResidualVariance has."""
        found = cls(*(np.array(values[name], dtype=np.float64) for name in ("lengths", "values")))
        if found.lengths.shape != found.values.shape or found.lengths.ndim != 1 or not len(found.lengths):
            raise TypeError("expected residual variances by length, two lists of equal length")
        return found
