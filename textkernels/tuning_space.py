"""The few numbers of an architecture that can be tuned, as coordinates without bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from textkernels.architecture import Architecture
from textkernels.layers import Activation, Conv, Dense, SelfAttention


@dataclass(frozen=True)
class Knob:
    """One number.

    Attributes:
        name: for people and reports.
        start: its value in the architecture at hand.
        share: it lies between 0 and 1 (coordinate: log odds); otherwise above 0 (coordinate: logarithm).
        turned: layers with another value of this number.
    """

    name: str
    start: float
    share: bool
    turned: Callable[[tuple[Any, ...], float], tuple[Any, ...]]

    def coordinate(self, value: float) -> float:
        """The value on the whole real line."""
        if self.share:
            inside = min(max(value, 1e-3), 1 - 1e-3)
            return math.log(inside / (1 - inside))
        return math.log(value)

    def value(self, coordinate: float) -> float:
        """The inverse of ``coordinate``."""
        return 1 / (1 + math.exp(-coordinate)) if self.share else math.exp(coordinate)


def knobs_of(architecture: Architecture) -> list[Knob]:
    """What there is to tune in a stack, without what has no influence on predictions.

    - Every attention layer with 1/d scaling: the scale of its scores (w_query_std w_key_std).
    - Its positions: decay; content share (``append``). The amplitude only where positions reach the values or are
      added (``sum``): otherwise scores depend on qk alpha and qk (1 - alpha) rho, which scale and share already span.
    - Layers before an activation, all together: the bias' standard deviation; that of the weights for erf only. A ReLU
      layer's w^2 K + b^2 depends on b / w up to a constant factor, which diag_reg, a share of the diagonal, absorbs.

    Numbers that are 0 stay 0: they switch a part off.
    """
    knobs: list[Knob] = []
    for place, layer in enumerate(architecture.layers):
        if isinstance(layer, SelfAttention) and layer.scaling == "linear":
            knobs += _attention_knobs(place, layer)
    return knobs + _activation_knobs(architecture.layers)


def turned(architecture: Architecture, knobs: Sequence[Knob], coordinates: np.ndarray, name: str) -> Architecture:
    """The architecture with every knob at its coordinate."""
    layers = tuple(architecture.layers)
    for knob, coordinate in zip(knobs, coordinates, strict=True):
        layers = knob.turned(layers, knob.value(float(coordinate)))
    return Architecture(layers, name)


def _attention_knobs(place: int, layer: SelfAttention) -> list[Knob]:
    def scale(layers: tuple[Any, ...], value: float) -> tuple[Any, ...]:
        return _with(layers, place, w_query_std=math.sqrt(value), w_key_std=math.sqrt(value))

    def position(field: str) -> Callable[[tuple[Any, ...], float], tuple[Any, ...]]:
        return lambda layers, value: _with(layers, place, positions=replace(layers[place].positions, **{field: value}))

    prefix = f"layer {place}: "
    knobs = [Knob(prefix + "score scale", layer.qk, False, scale)] if layer.qk else []
    positions = layer.positions
    if positions is None:
        return knobs
    if positions.decay:
        knobs.append(Knob(prefix + "decay", positions.decay, False, position("decay")))
    if positions.combine == "append":
        knobs.append(Knob(prefix + "content share", positions.content_share, True, position("content_share")))
    if positions.amplitude and (positions.in_values or positions.combine == "sum"):
        knobs.append(Knob(prefix + "amplitude", positions.amplitude, False, position("amplitude")))
    return knobs


def _activation_knobs(layers: Sequence[Any]) -> list[Knob]:
    pairs = list(enumerate(pairwise(layers)))
    before = [(i, a, b.kind) for i, (a, b) in pairs if isinstance(a, Dense | Conv) and isinstance(b, Activation)]
    knobs = []
    for name, field, wanted in (("bias", "b_std", None), ("weight", "w_std", "erf")):
        chosen = [(i, layer) for i, layer, kind in before if wanted in (None, kind) and getattr(layer, field)]
        if chosen:
            places = [i for i, _ in chosen]
            start = getattr(chosen[0][1], field)
            knobs.append(Knob(f"{name} std before activations", start, False, _everywhere(places, field)))
    return knobs


def _everywhere(places: list[int], field: str) -> Callable[[tuple[Any, ...], float], tuple[Any, ...]]:
    def change(layers: tuple[Any, ...], value: float) -> tuple[Any, ...]:
        for place in places:
            layers = _with(layers, place, **{field: value})
        return layers

    return change


def _with(layers: tuple[Any, ...], place: int, **changes: Any) -> tuple[Any, ...]:
    return (*layers[:place], replace(layers[place], **changes), *layers[place + 1 :])
