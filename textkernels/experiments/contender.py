"""What competes in a comparison: an embedding under an architecture and a kernel, or a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

KERNEL_NAMES = {"nngp": "NNGP", "ntk": "NTK"}


@dataclass(frozen=True)
class Contender:
    """One row of the report.

    Attributes:
        embedding: name or path as it was asked for; of a baseline its name.
        architecture: name or file as asked for, None for a baseline.
        kernel: ``nngp``, ``ntk``, or None for a baseline.
    """

    embedding: str
    architecture: str | None = None
    kernel: str | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether it has no kernel."""
        return self.kernel is None

    @property
    def parts(self) -> tuple[str, ...]:
        """Embedding, architecture and kernel as shown; a baseline has one part."""
        found = (self.embedding, self.architecture, KERNEL_NAMES.get(self.kernel or ""))
        return tuple(part for part in found if part is not None)


def short_names(contenders: Sequence[Contender]) -> dict[Contender, str]:
    """Names that leave out what all candidates have in common: "minilm, NTK", or "minilm" where there is one kernel."""
    candidates = [contender for contender in contenders if not contender.is_baseline]
    columns = list(zip(*(candidate.parts for candidate in candidates), strict=True))
    # The embedding is what is compared, so it stays even if there is one.
    kept = [place == 0 or len(set(column)) > 1 for place, column in enumerate(columns)]
    return {
        contender: contender.embedding
        if contender.is_baseline
        else ", ".join(part for part, keep in zip(contender.parts, kept, strict=True) if keep)
        for contender in contenders
    }
