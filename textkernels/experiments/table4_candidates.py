"""The networks of Table 4: four classes, with convolutions and attention on tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from textkernels.architecture import Architecture
from textkernels.experiments.candidates import Candidate
from textkernels.experiments.pooled import token_stack
from textkernels.layers import Activation, Conv
from textkernels.named_architectures import ACTIVATION_STDS, named_architecture

ACTIVATIONS = tuple(ACTIVATION_STDS)
HIDDEN = (0, 1, 2)
AnyCandidate = TypeVar("AnyCandidate", bound=Candidate)


@dataclass(frozen=True)
class TokenCandidate(Candidate):
    """One network that competes inside its class; ``stack``, ``hidden`` and ``layer_norm`` as in Table 3.

    Attributes:
        activation: of all layers.
        depth: convolutions of width 9.
        attention: attention layers, next to pooling.
        attention_layer_norm: whether LayerNorm follows each of them.
    """

    activation: str = "relu"
    depth: int = 0
    attention: int = 0
    attention_layer_norm: bool = False

    @property
    def architecture(self) -> Architecture:
        """The network, with the paper's variances."""
        parameters: dict[str, Any] = {"hidden": self.hidden, "layer_norm": self.layer_norm}
        if self.stack != "gap-fcn":
            parameters["depth"] = self.depth
        if self.stack == "cnn-struct":
            parameters |= {"attention": self.attention, "attention_layer_norm": self.attention_layer_norm}
        return named_architecture(self.stack, activation=self.activation, **parameters)

    @property
    def label(self) -> str:
        """What tells it apart from the others of its class."""
        norm = " with LayerNorm" if self.attention_layer_norm else ""
        parts = [_count(self.depth, "convolution")] if self.depth else []
        parts += [_count(self.attention, "attention layer") + norm] if self.attention else []
        parts += [super().label]
        # Nothing of a network without activations, keys or queries depends on the kind.
        return ", ".join([*parts, self.activation] if self.depth or self.attention or self.hidden else parts)


@dataclass(frozen=True)
class Table4Grid:
    """Which candidates compete.

    Attributes:
        depths: numbers of convolutions.
        norm_behind_attention, two_attentions: whether candidates with convolutions may have LayerNorm behind
            attention, and a second attention layer: each costs several times a convolution. Without convolutions
            they cost next to nothing and always compete.
    """

    depths: tuple[int, ...] = (0, 1, 2, 4, 8)
    norm_behind_attention: bool = True
    two_attentions: bool = True

    def classes(self) -> dict[str, tuple[TokenCandidate, ...]]:
        """The distinct candidates of each class, in order; a class contains the simpler ones before it, but for Struct.

        Source: "Infinite attention" (Hron et al. 2020), appendix A.2.
        """
        fcn = _with_heads(TokenCandidate("gap-fcn", 0, False, activation) for activation in ACTIVATIONS)
        return {
            "GAP-only": tuple(candidate for candidate in fcn if not candidate.hidden),
            "GAP-FCN": fcn,
            "CNN-GAP": fcn + _with_heads(self._convolved()),
            "Struct": _with_heads(self._attended()),
        }

    def _convolved(self) -> Iterator[TokenCandidate]:
        for depth in self.depths:
            for activation in ACTIVATIONS if depth else ():
                yield TokenCandidate("cnn-gap", 0, False, activation, depth)

    def _attended(self) -> Iterator[TokenCandidate]:
        for depth in self.depths:
            for attention in (1, 2) if self.two_attentions or not depth else (1,):
                for norm in (False, True) if self.norm_behind_attention or not depth else (False,):
                    for activation in ACTIVATIONS:
                        yield TokenCandidate("cnn-struct", 0, False, activation, depth, attention, norm)


FULL = Table4Grid()
QUICK = Table4Grid((0, 1, 2, 4), norm_behind_attention=False, two_attentions=False)


def by_tokens(candidates: Iterable[AnyCandidate]) -> dict[Architecture, list[AnyCandidate]]:
    """Candidates by their layers up to pooling: those of one stack differ only behind it and share its kernel."""
    found: dict[Architecture, list[AnyCandidate]] = {}
    for candidate in candidates:
        found.setdefault(token_stack(candidate.architecture), []).append(candidate)
    return found


def passes(stacks: Iterable[Architecture]) -> list[tuple[Architecture, ...]]:
    """Stacks that need token pairs, those that begin with the same layer together: they share work on every pair."""
    found: dict[object, list[Architecture]] = {}
    for stack in stacks:
        if not stack.linear_tokens:
            found.setdefault(stack.token_layers[0], []).append(stack)
    return [tuple(group) for group in found.values()]


def describe_pass(stacks: Sequence[Architecture]) -> str:
    """What the stacks of one of ``passes`` have in common: their first layer, and the kind of activation."""
    layers = stacks[0].token_layers
    first = "convolution" if isinstance(layers[0], Conv) else "attention"
    return f"{first} first, {next(layer.kind for layer in layers if isinstance(layer, Activation))}"


def _with_heads(tokens: Iterable[TokenCandidate]) -> tuple[TokenCandidate, ...]:
    """Each with every head behind the pooling; of equal networks the first."""
    found: dict[Architecture, TokenCandidate] = {}
    for one in tokens:
        for hidden in HIDDEN:
            for norm in (False, True):
                candidate = replace(one, hidden=hidden, layer_norm=norm)
                found.setdefault(candidate.architecture, candidate)
    return tuple(found.values())


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
