"""The table of architectures that every kernel test goes through, and the documents they are tried on.

One row a case: a name, layers, and in ``reference`` whether neural-tangents can express it for documents of
unequal length (``""``) or why not. A new layer or option adds rows here and is covered everywhere: engines
against the oracle, the oracle against neural-tangents, the properties of kernels, and the way through TOML.

``FEATURES`` are the cases whose kernel is linear in explicit features up to pooling, ``PAIRS`` the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embeddings import Sequences
from textkernels import (
    Activation,
    Architecture,
    Conv,
    Dense,
    GlobalAveragePool,
    LayerNorm,
    Positions,
    Residual,
    SelfAttention,
    named_architecture,
)

DIM = 6
LENGTHS = (1, 2, 5, 9, 12, 7, 3, 9)


@dataclass(frozen=True)
class Case:
    """One architecture; ``reference``: empty, or what neural-tangents cannot do about it."""

    name: str
    architecture: Architecture
    reference: str = ""


def documents(dtype: Any = np.float64, lengths: Sequence[int] = LENGTHS, dim: int = DIM, seed: int = 0) -> Sequences:
    """Ragged documents with words that repeat inside and across documents, and one document twice.

    The mean of |e|^2 / d is about 1. Words of the first half of the vocabulary turn up often.
    """
    generator = np.random.default_rng(seed)
    vocabulary = generator.standard_normal((12, dim))
    arrays = []
    for length in lengths:
        fresh = generator.standard_normal((length, dim))
        known = vocabulary[generator.integers(len(vocabulary), size=length)]
        arrays.append(np.where(generator.random((length, 1)) < 0.5, known, fresh))
    if len(arrays) > 3:
        arrays[3][4:6] = arrays[3][1]
        arrays[-1] = arrays[3].copy()
    return Sequences.from_arrays(arrays, dtype)


def equal_documents(length: int = 7, count: int = 5) -> Sequences:
    """Documents of one length, for which neural-tangents can express relative positions too."""
    return documents(lengths=(length,) * count, seed=1)


ABSOLUTE = Positions("absolute", scale=8.0)
RELATIVE = Positions()
UNEQUAL = "relative positions across documents of different length"
NO_CONTENT = "no share of content in the scores"


def _case(name: str, *layers: Any, reference: str = "") -> Case:
    return Case(name, Architecture(layers, name), reference)


def _named(name: str, reference: str = "", **parameters: Any) -> Case:
    architecture = named_architecture(name, **parameters)
    return Case(architecture.name, architecture, reference)


def _attend(name: str, positions: Positions | None, reference: str = "", **parameters: Any) -> Case:
    """One attention layer, pooling and readout."""
    attention = SelfAttention(positions=positions, **parameters)
    return _case(f"attention {name}", attention, GlobalAveragePool(), Dense(), reference=reference)


POOLED = (
    _case("pool alone with bias", GlobalAveragePool(), Dense(1.3, 0.4)),
    _case("dense tokens", Dense(1.2, 0.3), Dense(0.9, 0.1), GlobalAveragePool()),
    _case(
        "layer norm everywhere", LayerNorm(), Dense(1.1, 0.2), LayerNorm(), GlobalAveragePool(), LayerNorm(), Dense()
    ),
    _case("norm, dense, pool, dense", Dense(), LayerNorm(), GlobalAveragePool(), Dense(1.5, 0.7)),
    _named("gap"),
    _named("gap-fcn"),
    _named("gap-fcn", hidden=0, layer_norm=True),
    _named("gap-fcn", hidden=2, layer_norm=True),
    _named("gap-fcn", hidden=2, activation="erf"),
    _case(
        "both activations after pooling",
        GlobalAveragePool(),
        Dense(1.4, 0.3),
        Activation("erf"),
        LayerNorm(),
        Dense(1.2, 0.1),
        Activation("relu"),
        Dense(0.8, 0.5),
    ),
    _case("hidden layer without bias or readout", GlobalAveragePool(), Dense(1.4), Activation("relu")),
)

ATTENTION = (
    *(_attend(scores, None, scores=scores, w_query_std=1.2, w_key_std=0.8) for scores in ("softmax", "identity")),
    *(
        _attend(f"{scores} with bias", None, scores=scores, b_std=0.3)
        for scores in ("softmax", "identity", "relu", "abs")
    ),
    _attend("absolute", ABSOLUTE, w_query_std=1.3),
    _attend("absolute, sum", Positions("absolute", scale=5.0, combine="sum", amplitude=0.6)),
    _attend("absolute, in values", Positions("absolute", scale=8.0, in_values=True), w_value_std=1.3, b_std=0.2),
    _attend("absolute, sum, in values", Positions("absolute", 1.5, 0.4, 20.0, True, "sum"), w_out_std=0.7, b_std=0.2),
    _attend("absolute, long reach", Positions("absolute", scale=0.5, in_values=True, content_share=0.4)),
    _attend("absolute, no decay", Positions("absolute", decay=0.0, scale=3.0, in_values=True)),
    _attend("absolute, no amplitude", Positions("absolute", amplitude=0.0, scale=3.0, in_values=True)),
    _attend("absolute, content only", Positions("absolute", scale=3.0, in_values=True, content_share=1.0)),
    _attend("absolute, positions only", Positions("absolute", scale=3.0, content_share=0.0), NO_CONTENT),
    *(
        _attend(f"{scores}, positions in values", Positions("absolute", scale=4.0, in_values=True), scores=scores)
        for scores in ("identity", "relu", "abs")
    ),
    _attend("relative", RELATIVE, UNEQUAL, b_std=0.1),
    _attend("relative, sum", Positions(combine="sum", amplitude=2.0, decay=7.0), UNEQUAL),
    _attend("relative, in values", Positions(in_values=True, decay=40.0), UNEQUAL, b_std=0.3),
    _attend("relative, sum, in values", Positions(in_values=True, combine="sum"), UNEQUAL, scores="relu"),
    _named("struct", UNEQUAL),
    _named("struct-fcn", UNEQUAL),
    _named("struct-fcn", UNEQUAL, hidden=2, layer_norm=True, activation="erf"),
    _case(
        "struct-fcn at absolute positions",
        SelfAttention(w_query_std=1.4, w_key_std=1.4, positions=ABSOLUTE),
        GlobalAveragePool(),
        LayerNorm(),
        Dense(1.4, 0.1),
        Activation("relu"),
        Dense(),
    ),
    _case(
        "two attention layers",
        SelfAttention(positions=ABSOLUTE, b_std=0.2),
        LayerNorm(),
        SelfAttention("relu", positions=Positions("absolute", scale=6.0, in_values=True)),
        GlobalAveragePool(),
        Dense(1.2, 0.1),
        Activation("erf"),
        Dense(),
    ),
    _case(
        "two relative attention layers in values",
        SelfAttention(positions=Positions(in_values=True)),
        Dense(1.1, 0.2),
        SelfAttention("abs", positions=Positions(in_values=True, combine="sum")),
        GlobalAveragePool(),
        reference=UNEQUAL,
    ),
    _case(
        "residual attention",
        Dense(1.1, 0.3),
        Residual([SelfAttention(positions=ABSOLUTE)], share=0.3),
        GlobalAveragePool(),
        Dense(),
    ),
    _case(
        "residual around input, residual inside residual",
        Residual([SelfAttention(b_std=0.2), Residual([Dense(0.7)], share=0.6), Dense(1.3, 0.2)], share=0.8),
        LayerNorm(),
        GlobalAveragePool(),
    ),
)

CONVOLUTIONS = (
    _case("convolution alone", Conv(3, 1.2, 0.3), GlobalAveragePool(), Dense()),
    *(
        _case(f"convolution {width}, {kind}", Conv(width, 1.4, 0.2), Activation(kind), GlobalAveragePool(), Dense())
        for width, kind in ((1, "relu"), (3, "relu"), (3, "erf"), (9, "relu"), (15, "erf"))
    ),
    _case("convolution without bias", Conv(5, 1.4), Activation("relu"), GlobalAveragePool()),
    _case("dense tokens, relu", Dense(1.4, 0.1), Activation("relu"), GlobalAveragePool(), Dense(1.2, 0.1)),
    _case("dense tokens, erf, no bias", Dense(1.4), Activation("erf"), GlobalAveragePool()),
    _case("convolutions in a row", Conv(3, 1.1, 0.2), Conv(5, 0.9), GlobalAveragePool(), Dense()),
    _case(
        "layer norm between convolutions",
        Conv(3, 1.3, 0.1),
        LayerNorm(),
        Activation("relu"),
        Conv(3),
        LayerNorm(),
        Activation("erf"),
        Dense(1.1, 0.3),
        GlobalAveragePool(),
        LayerNorm(),
        Dense(),
    ),
    _named("cnn-gap"),
    _named("cnn-gap", depth=3, hidden=1, width=3),
    _named("cnn-gap", depth=2, hidden=2, layer_norm=True, activation="erf"),
    _case(
        "residual convolution",
        Conv(3, 1.2, 0.1),
        Residual([Conv(3, 1.4, 0.2), Activation("relu"), Dense(1.3, 0.1)], share=0.4),
        Activation("relu"),
        Dense(),
        GlobalAveragePool(),
    ),
)

MIXED = (
    _case("attention, relu", SelfAttention(b_std=0.2), Activation("relu"), GlobalAveragePool(), Dense()),
    _case(
        "attention in values, erf",
        SelfAttention(positions=Positions("absolute", scale=6.0, in_values=True)),
        Activation("erf"),
        GlobalAveragePool(),
    ),
    _case(
        "attention, relu, convolution, erf",
        SelfAttention(positions=ABSOLUTE),
        Activation("relu"),
        Conv(3, 1.2, 0.1),
        Activation("erf"),
        GlobalAveragePool(),
        Dense(),
    ),
    _case(
        "convolution, relu, attention, relu",
        Conv(3, 1.4, 0.1),
        Activation("relu"),
        SelfAttention(w_query_std=1.2, positions=ABSOLUTE),
        Activation("relu"),
        GlobalAveragePool(),
        Dense(),
    ),
    _case(
        "convolution, erf, attention with every score",
        Conv(3, 1.3, 0.3),
        Activation("erf"),
        SelfAttention("abs", w_query_std=0.5, b_std=0.1),
        SelfAttention("relu", "linear", 0.3, positions=Positions("absolute", scale=5.0, combine="sum", in_values=True)),
        SelfAttention("identity", w_query_std=0.3),
        GlobalAveragePool(),
        Dense(1.2, 0.2),
        Activation("relu"),
        Dense(),
    ),
    _case(
        "convolution, relu, relative in values, layer norm",
        Conv(5, 1.4, 0.1),
        Activation("relu"),
        SelfAttention(positions=Positions(in_values=True)),
        LayerNorm(),
        GlobalAveragePool(),
        Dense(),
        reference=UNEQUAL,
    ),
    _case(
        "convolution, relu, residual attention",
        Conv(3, 1.4, 0.1),
        Activation("relu"),
        Residual([SelfAttention(positions=ABSOLUTE)], share=0.5),
        GlobalAveragePool(),
        Dense(),
    ),
    _named("cnn-struct", UNEQUAL, width=3),
    _named("cnn-struct", UNEQUAL, depth=2, attention=2, attention_layer_norm=True, hidden=1, width=3),
    _named("cnn-struct", UNEQUAL, depth=4, attention=2, activation="erf", layer_norm=True, width=5),
)


def _sqrt(name: str, positions: Positions | None, reference: str = "", **parameters: Any) -> Case:
    attention = SelfAttention("identity", "sqrt", positions=positions, **parameters)
    return _case(f"sqrt {name}", attention, GlobalAveragePool(), Dense(), reference=reference)


SQRT = (
    _sqrt("no positions", None, w_query_std=0.7, b_std=0.4),
    _sqrt("absolute", ABSOLUTE, w_value_std=0.8),
    _sqrt("absolute, sum", Positions("absolute", scale=5.0, combine="sum", amplitude=0.6)),
    _sqrt("absolute, in values", Positions("absolute", scale=8.0, in_values=True), b_std=0.2),
    _sqrt("absolute, sum, in values", Positions("absolute", scale=4.0, combine="sum", in_values=True)),
    _sqrt("relative", RELATIVE, UNEQUAL),
    _sqrt("relative, in values", Positions(in_values=True), UNEQUAL, w_out_std=0.9),
    _case(
        "convolution, relu, sqrt, layer norm, erf",
        Conv(3, 1.4, 0.1),
        Activation("relu"),
        SelfAttention("identity", "sqrt", positions=ABSOLUTE, b_std=0.1),
        LayerNorm(),
        Activation("erf"),
        GlobalAveragePool(),
        Dense(),
    ),
    _case(
        "sqrt, relu, attention",
        SelfAttention("identity", "sqrt"),
        LayerNorm(),
        Activation("relu"),
        SelfAttention("softmax", positions=ABSOLUTE),
        GlobalAveragePool(),
    ),
    _case(
        "residual sqrt",
        Dense(1.1, 0.1),
        Residual([SelfAttention("identity", "sqrt", b_std=0.2), Dense(0.5)], share=0.9),
        LayerNorm(),
        GlobalAveragePool(),
    ),
)


def random_architecture(seed: int) -> Architecture:
    """A random stack that the checks of Architecture accept, with token layers of every kind."""
    generator = np.random.default_rng(seed)
    tokens = _random_token_layers(generator, int(generator.integers(1, 5)))
    layers: list[Any] = [*tokens, GlobalAveragePool()]
    if generator.random() < 0.3:
        layers.append(LayerNorm())
    for _ in range(int(generator.integers(0, 3))):
        layers += [_random_dense(generator), _random_activation(generator)]
    return Architecture([*layers, _random_dense(generator)], f"random stack {seed}")


def _random_token_layers(generator: np.random.Generator, count: int, nested: bool = False) -> list[Any]:
    layers: list[Any] = []
    for _ in range(count):
        draw = generator.random()
        if draw < 0.35:
            weights: Any = Conv(int(generator.choice([1, 3, 5])), *_random_stds(generator))
        elif draw < 0.5 or nested:
            weights = _random_dense(generator)
        elif draw < 0.85:
            weights = _random_attention(generator)
        else:
            branch = _random_token_layers(generator, 1, nested=True)
            inner = [*branch, _random_attention(generator)]
            weights = Residual(inner, share=float(generator.uniform(0.1, 0.9)))
            # The input's share stays what it was, so weights come first.
            layers.append(_random_dense(generator))
        layers.append(weights)
        if generator.random() < 0.25:
            layers.append(LayerNorm())
        if generator.random() < 0.5:
            layers.append(_random_activation(generator))
    return layers


def _random_stds(generator: np.random.Generator) -> tuple[float, float]:
    return float(generator.uniform(0.7, 1.5)), float(generator.choice([0.0, 0.3]))


def _random_dense(generator: np.random.Generator) -> Dense:
    return Dense(*_random_stds(generator))


def _random_activation(generator: np.random.Generator) -> Activation:
    return Activation(str(generator.choice(["relu", "erf"])))


def _random_attention(generator: np.random.Generator) -> SelfAttention:
    root = generator.random() < 0.15
    positions = Positions(
        "absolute",
        decay=float(generator.uniform(0, 5)),
        amplitude=float(generator.uniform(0.2, 1.5)),
        scale=float(generator.uniform(3, 10)),
        in_values=bool(generator.random() < 0.5),
        combine=str(generator.choice(["append", "sum"])),
        content_share=float(generator.uniform(0.3, 1)),
    )
    return SelfAttention(
        "identity" if root else str(generator.choice(["softmax", "identity", "relu", "abs"])),
        "sqrt" if root else "linear",
        # Small enough that scores without softmax do not blow up over a few layers.
        w_query_std=float(generator.uniform(0.3, 0.8)),
        b_std=float(generator.choice([0.0, 0.2])),
        positions=positions if generator.random() < 0.6 else None,
    )


RANDOM = tuple(Case(f"random stack {seed}", random_architecture(seed)) for seed in range(16))

CASES = (*POOLED, *ATTENTION, *CONVOLUTIONS, *MIXED, *SQRT, *RANDOM)
FEATURES = tuple(case for case in CASES if case.architecture.linear_tokens)
PAIRS = tuple(case for case in CASES if not case.architecture.linear_tokens)
REFERENCE = tuple(case for case in CASES if not case.reference)


def names(cases: Sequence[Case]) -> list[str]:
    """Test ids."""
    return [case.name for case in cases]
