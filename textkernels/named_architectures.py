"""The paper's network families by name, with the weight and bias variances of its Table 3."""

from __future__ import annotations

import ast
import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

from textkernels.architecture import Architecture
from textkernels.layers import (
    Activation,
    Conv,
    Dense,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Positions,
    SelfAttention,
)
from textkernels.layers.parameters import check_flag

# Weight and bias standard deviations before each activation (variances 2, 0.01 and 1.7562, 0.1841).
ACTIVATION_STDS = {"relu": (math.sqrt(2.0), 0.1), "erf": (math.sqrt(1.7562), math.sqrt(0.1841))}


def _head(hidden: int, layer_norm: bool, activation: str) -> list[Layer]:
    """Layers after pooling: (LayerNorm), ``hidden`` times Dense and activation, readout."""
    _check_count("hidden", hidden)
    check_flag("named_architecture", layer_norm=layer_norm)
    w_std, b_std = _stds(activation)
    layers: list[Layer] = [LayerNorm()] if layer_norm else []
    for _ in range(int(hidden)):
        layers += [Dense(w_std, b_std), Activation(activation)]
    return [*layers, Dense(1.0, 0.0)]


def _stds(activation: str) -> tuple[float, float]:
    if activation not in ACTIVATION_STDS:
        raise ValueError(f"expected activation to be one of {', '.join(ACTIVATION_STDS)}; got {activation!r}")
    return ACTIVATION_STDS[activation]


def _check_count(name: str, value: int, least: int = 0, hint: str = "") -> None:
    whole = isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value // 1
    if not whole or value < least:
        raise ValueError(f"expected {name} to be an integer >= {least}, got {value!r}{hint}")


def _attention(activation: str) -> SelfAttention:
    std = _stds(activation)[0]
    return SelfAttention("softmax", "linear", w_query_std=std, w_key_std=std, positions=Positions())


def _gap() -> list[Layer]:
    return [GlobalAveragePool(), Dense(1.0, 0.0)]


def _gap_fcn(hidden: int = 1, layer_norm: bool = False, activation: str = "relu") -> list[Layer]:
    return [GlobalAveragePool(), *_head(hidden, layer_norm, activation)]


def _struct() -> list[Layer]:
    return [_attention("relu"), *_gap()]


def _struct_fcn(hidden: int = 1, layer_norm: bool = False, activation: str = "relu") -> list[Layer]:
    return [_attention(activation), *_gap_fcn(hidden, layer_norm, activation)]


def _cnn_gap(
    depth: int = 1, hidden: int = 0, layer_norm: bool = False, activation: str = "relu", width: int = 9
) -> list[Layer]:
    return [*_convolutions(depth, activation, width), *_gap_fcn(hidden, layer_norm, activation)]


def _cnn_struct(
    depth: int = 1,
    attention: int = 1,
    attention_layer_norm: bool = False,
    hidden: int = 0,
    layer_norm: bool = False,
    activation: str = "relu",
    width: int = 9,
) -> list[Layer]:
    """Attention layers stand next to pooling, one convolution between two of them as far as there are any.

    8 convolutions and 2 attention layers: 7 convolutions, attention, convolution, attention, pooling.
    """
    _check_count("depth", depth)
    _check_count("attention", attention, 1, "; without attention it is cnn-gap")
    check_flag("named_architecture", attention_layer_norm=attention_layer_norm)
    attend: list[Layer] = [_attention(activation), *([LayerNorm()] if attention_layer_norm else [])]
    between = min(int(depth), int(attention) - 1)
    layers = _convolutions(depth - between, activation, width)
    for place in range(int(attention)):
        layers += attend
        if int(attention) - 1 - between <= place < int(attention) - 1:
            layers += _convolutions(1, activation, width)
    return [*layers, *_gap_fcn(hidden, layer_norm, activation)]


def _convolutions(depth: int, activation: str, width: int) -> list[Layer]:
    _check_count("depth", depth)
    w_std, b_std = _stds(activation)
    return [layer for _ in range(int(depth)) for layer in (Conv(width, w_std, b_std), Activation(activation))]


NAMED: dict[str, Callable[..., list[Layer]]] = {
    "gap": _gap,
    "gap-fcn": _gap_fcn,
    "struct": _struct,
    "struct-fcn": _struct_fcn,
    "cnn-gap": _cnn_gap,
    "cnn-struct": _cnn_struct,
}


def named_architecture(name: str, **parameters: Any) -> Architecture:
    """An architecture of the paper by name.

    - ``gap``: pooling, readout. ``gap-fcn(hidden=1, layer_norm=False)``: pooling, optional LayerNorm, hidden
      layers, readout.
    - ``struct``, ``struct-fcn``: the same behind softmax self-attention with relative positions.
    - ``cnn-gap(depth=1, hidden=0)``: ``depth`` times convolution of width 9 and activation, then as gap-fcn.
    - ``cnn-struct(depth=1, attention=1, attention_layer_norm=False)``: interleaved with attention, which
      stays next to pooling.

    All take ``activation="relu"`` or ``"erf"`` where they have one. Weight and bias variances before an
    activation are (2, 0.01) for relu and (1.7562, 0.1841) for erf; keys and queries have the weight variance,
    values, outputs and readout 1 and no bias.

    The name may carry the parameters, as architectures print it: ``"cnn-struct(depth=8, attention=2)"``.

    Raises:
        ValueError: an unknown name or parameter; the message lists those there are.

    Source: "Infinite attention" (Hron et al. 2020), appendix A.2.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of an architecture, got {name!r}")
    name, parameters = _parse(name, parameters)
    if name not in NAMED:
        raise ValueError(f"expected an architecture among {', '.join(NAMED)} (or a .toml file); got {name!r}")
    known = list(inspect.signature(NAMED[name]).parameters)
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ValueError(f"{name}: expected parameters among {', '.join(known) or 'none'}; got {', '.join(unknown)}")
    text = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return Architecture(NAMED[name](**parameters), name=f"{name}({text})" if text else name)


def _parse(text: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and parameters of ``name(key=value, ...)``."""
    name, bracket, _ = text.partition("(")
    if not bracket:
        return text, parameters
    try:
        call = ast.parse(f"f({text[len(name) + 1 :]}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError(text)
        given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError(text)
    except (SyntaxError, ValueError):
        raise ValueError(
            f"expected an architecture as name or name(parameter=value, ...), such as cnn-gap(depth=4); got {text!r}"
        ) from None
    return name.strip(), {**given, **parameters}
