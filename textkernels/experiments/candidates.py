"""The networks of Table 3: three classes, and in each the candidates among which validation chooses."""

from __future__ import annotations

from dataclasses import dataclass

from textkernels.architecture import Architecture
from textkernels.named_architectures import named_architecture


@dataclass(frozen=True)
class Candidate:
    """One network that competes inside its class.

    Attributes:
        stack: named architecture whose token layers it has, ``gap-fcn`` or ``struct-fcn``: candidates of one stack
            share their token work.
        hidden: hidden layers after pooling.
        layer_norm: whether LayerNorm follows pooling.
    """

    stack: str
    hidden: int
    layer_norm: bool

    @property
    def architecture(self) -> Architecture:
        """The network, with the paper's variances."""
        return named_architecture(self.stack, hidden=self.hidden, layer_norm=self.layer_norm)

    @property
    def label(self) -> str:
        """What tells it apart from the others of its class."""
        layers = {0: "no hidden layer", 1: "1 hidden layer"}.get(self.hidden, f"{self.hidden} hidden layers")
        return f"{layers}, LayerNorm" if self.layer_norm else layers


def _after_pooling(stack: str, depths: tuple[int, ...]) -> tuple[Candidate, ...]:
    return tuple(Candidate(stack, hidden, norm) for hidden in depths for norm in (False, True))


# Source: "Infinite attention" (Hron et al. 2020), appendix A.2. GAP-only is GAP-FCN without hidden layers, and its
# results are shared.
TABLE3: dict[str, tuple[Candidate, ...]] = {
    "GAP-only": _after_pooling("gap-fcn", (0,)),
    "GAP-FCN": _after_pooling("gap-fcn", (0, 1, 2)),
    "Struct": _after_pooling("struct-fcn", (0, 1, 2)),
}


def stacks(table: dict[str, tuple[Candidate, ...]]) -> dict[str, list[Candidate]]:
    """The distinct candidates by stack, in order."""
    found: dict[str, list[Candidate]] = {}
    for candidates in table.values():
        for candidate in candidates:
            members = found.setdefault(candidate.stack, [])
            if candidate not in members:
                members.append(candidate)
    return found
