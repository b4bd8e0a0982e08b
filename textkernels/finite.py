"""Bridge to neural-tangents: an architecture as a stax network of finite width.

neural-tangents is imported only when a function here is called: ``pip install 'textkernels[reference]'``.
What stax cannot express raises NotImplementedError and says what differs:

- relative positions across documents of different length: stax has absolute ones; for documents of one
  length L, relative positions are absolute ones with scale L (``length``);
- positions with ``content_share=0``: stax adds positions to the content, which therefore always counts;
- the kernel of ``scaling="sqrt"`` with scores other than identity (its networks of finite width it can build);
- LayerNorm and Residual directly on the input or on an activation: stax wants Gaussian values there, because
  its LayerNorm also subtracts the mean. ``extra_dense`` puts Dense(1) in between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from textkernels.architecture import Architecture
from textkernels.layers import Activation, Conv, Dense, GlobalAveragePool, LayerNorm, Positions, Residual, SelfAttention


def to_stax(
    architecture: Architecture,
    width: int = 512,
    heads: int = 8,
    outputs: int = 1,
    length: int | None = None,
    extra_dense: int = 0,
) -> tuple[Any, Any, Any]:
    """The network as ``(init_fn, apply_fn, kernel_fn)`` of ``neural_tangents.stax``.

    Inputs are (documents, tokens, d). Padding is told to ``apply_fn`` and ``kernel_fn`` by
    ``mask_constant=nan`` and NaN in the padded places; ``apply_fn`` then returns a masked array of stax. For
    float64, build the network where JAX computes in float64 (constants of a Residual are made here).

    Args:
        architecture: the network.
        width: channels of every layer, and of the keys and queries of every head.
        heads: of every attention layer; each has ``width // heads`` values.
        outputs: channels of the last layer if it is Dense.
        length: tokens of every document, needed by relative positions only.
        extra_dense: how many Dense(1) layers without bias go before a layer that stax will not have otherwise
            (the first one unless it is Dense or Conv; LayerNorm and Residual on values that are not Gaussian).
            They leave the NNGP as it is; each adds the NNGP of its place to the NTK.

    Raises:
        ImportError: neural-tangents is missing.
        NotImplementedError: naming the layer and the difference.
    """
    return build_stax(architecture, width, heads, outputs, length, extra_dense)[0]


def build_stax(
    architecture: Architecture,
    width: int = 1,
    heads: int = 1,
    outputs: int = 1,
    length: int | None = None,
    extra_dense: int = 0,
) -> tuple[tuple[Any, Any, Any], int]:
    """As :func:`to_stax`, and in how many places ``extra_dense`` was needed."""
    builder = _Builder(_stax(), width, heads, length, extra_dense)
    with quietly():
        layers = builder.stack(architecture.layers, first=True)
        if isinstance(architecture.layers[-1], Dense):
            layers[-1] = builder.dense(architecture.layers[-1], outputs)
        return builder.stax.serial(*layers), builder.places


@dataclass
class _Builder:
    """Layers of ours to layers of stax; ``places`` counts where ``extra_dense`` was needed."""

    stax: Any
    width: int
    heads: int
    length: int | None
    extra_dense: int
    places: int = 0

    def stack(self, layers: Sequence[Any], first: bool = False, gaussian: bool = False) -> list[Any]:
        """``gaussian``: whether the values that come in are Gaussian of mean 0, as stax tracks it."""
        result: list[Any] = []
        for layer in layers:
            if (first and not isinstance(layer, Dense | Conv)) or _wants_gaussian(layer, gaussian):
                self._check_extra(layer, gaussian)
                self.places += 1
                result += [self.stax.Dense(self.width)] * self.extra_dense
                gaussian = gaussian or self.extra_dense > 0
            result += self._layer(layer, gaussian)
            gaussian, first = _is_gaussian(layer, gaussian), False
        return result

    def _check_extra(self, layer: Any, gaussian: bool) -> None:
        if not self.extra_dense and _wants_gaussian(layer, gaussian):
            raise NotImplementedError(
                f"{type(layer).__name__}: stax takes it on Gaussian values only, not directly on the input or on an "
                "activation; put Dense() in front of it or give extra_dense=1"
            )

    def _layer(self, layer: Any, gaussian: bool) -> list[Any]:
        if isinstance(layer, Residual):
            return [self._residual(layer, gaussian)]
        if isinstance(layer, Dense):
            return [self.dense(layer, self.width)]
        if isinstance(layer, Conv):
            return [self.stax.Conv(self.width, (layer.width,), (1,), "SAME", layer.w_std, layer.b_std or None)]
        if isinstance(layer, Activation):
            return [{"relu": self.stax.Relu, "erf": self.stax.Erf}[layer.kind]()]
        if isinstance(layer, SelfAttention):
            return [self._attention(layer)]
        if isinstance(layer, LayerNorm):
            return [self.stax.LayerNorm()]
        if isinstance(layer, GlobalAveragePool):
            return [self.stax.GlobalAvgPool()]
        raise NotImplementedError(f"{layer!r}: no finite network known")

    def dense(self, layer: Dense, width: int) -> Any:
        return self.stax.Dense(width, W_std=layer.w_std, b_std=layer.b_std or None)

    def _attention(self, layer: SelfAttention) -> Any:
        place, qk, ov = self._positions(layer.positions)
        return self.stax.GlobalSelfAttention(
            n_chan_out=self.width,
            n_chan_key=self.width,
            n_chan_val=max(1, self.width // self.heads),
            n_heads=self.heads,
            linear_scaling=layer.scaling == "linear",
            W_key_std=layer.w_key_std,
            W_value_std=layer.w_value_std * ov,
            W_query_std=layer.w_query_std * qk,
            W_out_std=layer.w_out_std,
            b_std=layer.b_std or None,
            attention_mechanism=layer.scores.upper(),
            **place,
        )

    def _positions(self, positions: Positions | None) -> tuple[dict[str, Any], float, float]:
        """Arguments of stax, and the factors that queries and values take in.

        stax weighs appended positions by the number of channels, so both ways of combining become its sum:
        alpha K + (1 - alpha) R = alpha (K + (1 - alpha) / alpha R).
        """
        if positions is None:
            return {}, 1.0, 1.0
        scale = positions.scale if positions.kind == "absolute" else self.length
        if scale is None:
            raise NotImplementedError(
                "SelfAttention: stax has no relative positions across documents of different length; use absolute "
                "positions, or give the length that all documents have"
            )
        content, share = positions.shares
        if content == 0:
            raise NotImplementedError("SelfAttention: stax cannot leave the content out (content_share = 0)")

        def decay(squared_distance: Any) -> Any:
            import jax.numpy as jnp

            return jnp.exp(-positions.decay / scale**2 * squared_distance)

        place = {
            "pos_emb_type": "SUM",
            "pos_emb_decay_fn": decay,
            "W_pos_emb_std": math.sqrt(positions.amplitude * share / content),
            "val_pos_emb": positions.in_values,
        }
        return place, content, math.sqrt(content) if positions.in_values else 1.0

    def _residual(self, layer: Residual, gaussian: bool) -> Any:
        stax = self.stax
        branch = [*self.stack(layer.layers, gaussian=gaussian), stax.DotGeneral(rhs=math.sqrt(1 - layer.share))]
        parts = stax.DotGeneral(rhs=math.sqrt(layer.share)), stax.serial(*branch)
        return stax.serial(stax.FanOut(2), stax.parallel(*parts), stax.FanInSum())


def _wants_gaussian(layer: Any, gaussian: bool) -> bool:
    return not gaussian and isinstance(layer, LayerNorm | Residual)


def _is_gaussian(layer: Any, gaussian: bool) -> bool:
    if isinstance(layer, Dense | Conv | SelfAttention):
        return True
    return gaussian and not isinstance(layer, Activation)


def _stax() -> Any:
    try:
        with quietly():
            from neural_tangents import stax
    except (ImportError, AttributeError) as error:  # newer JAX: AttributeError
        raise ImportError(
            f"the reference needs neural-tangents and a JAX older than 0.6 ({error}); "
            "install both with: pip install 'textkernels[reference]'"
        ) from error
    return stax


@contextmanager
def quietly() -> Iterator[None]:
    """stax warns of what it was asked to do (tied keys and queries, independent branches)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
