"""What every encoder can do, whatever its vectors come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from embeddings.encoding import Encoding

SCALES = ("unit", "none")


@runtime_checkable
class Encoder(Protocol):
    """Texts to token vectors.

    Attributes:
        name: the name or file name it was asked for by.
        dim: dimension of a token vector.
        fitted: whether ``encode`` may be called.
        trains_on_texts: whether ``fit`` learns the vectors from texts.
    """

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def fitted(self) -> bool: ...
    @property
    def trains_on_texts(self) -> bool: ...

    def fit(self, texts: Iterable[Any], corpus: Iterable[Any] | None = None, progress: bool = False) -> Encoder:
        """Learn the vectors if they are to be learned, then the scale; returns the encoder.

        Args:
            texts: set the scale: one constant so that the mean of |e|^2 / d over the tokens of these texts
                is 1 (``scale="unit"``), or 1 (``scale="none"``).
            corpus: train the vectors, where they are trained on texts; ``texts`` by default.
            progress: show progress on standard error.

        Raises:
            ValueError: no text has a known token.
            TypeError: a cell that is neither a text nor missing.
        """
        ...

    def encode(self, texts: Iterable[Any], progress: bool = False) -> Encoding:
        """Token vectors of the texts. The same text gives the same vectors alone, in a batch, in any order."""
        ...

    def explain(self, text: str) -> list[tuple[str, bool, bool]]:
        """(token, kept by truncation, has a vector) for every token of one text."""
        ...

    def config(self) -> dict[str, Any]:
        """Everything ``restore_encoder`` needs besides ``arrays``, in types that JSON has."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Numeric arrays that cannot be found again by name; empty for packaged vectors."""
        ...
