"""Bridge to neural-tangents: an architecture as a stax network of finite width, and its kernel as a reference.

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

import numpy as np

from embeddings import Sequences
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
    ``mask_constant=nan`` and NaN in the padded places.

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
    builder = _Builder(_stax(), width, heads, length, extra_dense)
    with _quietly():
        layers = builder.stack(architecture.layers, first=True)
        if isinstance(architecture.layers[-1], Dense):
            layers[-1] = builder.dense(architecture.layers[-1], outputs)
        return builder.stax.serial(*layers)


def reference_gram(
    architecture: Architecture,
    documents: Sequences,
    other: Sequences | None = None,
    kind: str = "nngp",
    batch: int | None = None,
    x64: bool = True,
) -> Any:
    """The kernel by neural-tangents, on documents padded to the longest: the arguments of ``tk.gram``, slowly.

    Args:
        architecture: the network.
        documents, other: n and m documents; ``other=None``: the symmetric matrix of ``documents``.
        kind: ``"nngp"``, ``"ntk"`` or ``"both"``.
        batch: documents a side of one compiled call, which takes O((batch tokens)^2) memory; None: all at once,
            not compiled.
        x64: whether to compute in float64. The global setting of JAX stays as it is.

    Returns: (n, m) float64, or the pair (nngp, ntk) for ``"both"``.

    Raises: as :func:`to_stax`.
    """
    from jax.experimental import disable_x64, enable_x64

    _check_kernel(architecture.layers)
    arguments = _padded(documents, other)
    length = _common_length(documents, other)
    needed = _needs_dense(architecture.layers)
    with enable_x64() if x64 else disable_x64(), _quietly():
        nngp, ntk = _evaluate(architecture, length, 1 if needed else 0, kind, batch, arguments)
        if kind != "nngp" and needed:
            # Theta is affine in the number of extra layers: from 1 and 2 of them follows 0.
            ntk = 2 * ntk - _evaluate(architecture, length, 2, "ntk", batch, arguments)[1]
    return {"nngp": nngp, "ntk": ntk, "both": (nngp, ntk)}[kind]


def _evaluate(
    architecture: Architecture, length: int | None, extra: int, kind: str, batch: int | None, arguments: Any
) -> tuple[Any, Any]:
    import jax

    kernel = to_stax(architecture, length=length, extra_dense=extra)[2]
    wanted = {"nngp": ("nngp",), "ntk": ("ntk",), "both": ("nngp", "ntk")}[kind]

    def compute(x: Any, y: Any) -> tuple[Any, ...]:
        return tuple(kernel(x, y, wanted, mask_constant=math.nan))

    x, y = arguments
    if batch is None:
        blocks = [[compute(x, y)]]
    else:
        compute = jax.jit(compute)
        columns = _batches(x if y is None else y, batch)
        blocks = [
            [compute(rows, None if y is None and i == j else column) for j, column in enumerate(columns)]
            for i, rows in enumerate(_batches(x, batch))
        ]
    shape = (len(x), len(x if y is None else y))
    parts = [
        np.block([[np.asarray(block[part], np.float64) for block in row] for row in blocks])[: shape[0], : shape[1]]
        for part in range(len(wanted))
    ]
    matrices = dict(zip(wanted, parts, strict=True))
    return matrices.get("nngp"), matrices.get("ntk")


def _batches(x: np.ndarray, batch: int) -> list[np.ndarray]:
    """Equal batches, one compilation for all; the last is filled up with its first document."""
    parts = [x[start : start + batch] for start in range(0, len(x), batch)]
    missing = batch - len(parts[-1])
    return [*parts[:-1], np.concatenate([parts[-1], np.repeat(parts[-1][:1], missing, axis=0)])]


@dataclass(frozen=True)
class _Builder:
    """Layers of ours to layers of stax."""

    stax: Any
    width: int
    heads: int
    length: int | None
    extra_dense: int

    def stack(self, layers: Sequence[Any], first: bool = False, gaussian: bool = False) -> list[Any]:
        """``gaussian``: whether the values that come in are Gaussian of mean 0, as stax tracks it."""
        result: list[Any] = []
        for layer in layers:
            if (first and not isinstance(layer, Dense | Conv)) or _wants_gaussian(layer, gaussian):
                self._check_extra(layer, gaussian)
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
        return [self.stax.GlobalAvgPool() if isinstance(layer, GlobalAveragePool) else self.stax.LayerNorm()]

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
        # Built in float64, or the share itself would be rounded to float32.
        from jax.experimental import enable_x64

        with enable_x64():
            whole = stax.DotGeneral(rhs=math.sqrt(layer.share))
            part = stax.DotGeneral(rhs=math.sqrt(1 - layer.share))
        branch = stax.serial(*self.stack(layer.layers, gaussian=gaussian), part)
        return stax.serial(stax.FanOut(2), stax.parallel(whole, branch), stax.FanInSum())


def _wants_gaussian(layer: Any, gaussian: bool) -> bool:
    return not gaussian and isinstance(layer, LayerNorm | Residual)


def _is_gaussian(layer: Any, gaussian: bool) -> bool:
    if isinstance(layer, Dense | Conv | SelfAttention):
        return True
    return gaussian and not isinstance(layer, Activation)


def _needs_dense(layers: Sequence[Any]) -> bool:
    """Whether any layer needs a Dense in front; a padded batch also before the first layer."""
    gaussian, needed = False, not isinstance(layers[0], Dense | Conv)
    for layer in layers:
        needed = needed or _wants_gaussian(layer, gaussian)
        gaussian = _is_gaussian(layer, gaussian) or _wants_gaussian(layer, gaussian)
        needed = needed or (isinstance(layer, Residual) and _needs_inner(layer.layers))
    return needed


def _needs_inner(layers: Sequence[Any]) -> bool:
    return False


def _check_kernel(layers: Sequence[Any]) -> None:
    for layer in layers:
        if isinstance(layer, Residual):
            _check_kernel(layer.layers)
        if isinstance(layer, SelfAttention) and layer.scaling == "sqrt" and layer.scores != "identity":
            raise NotImplementedError(
                f"SelfAttention: neural-tangents has no kernel for sqrt scaling with {layer.scores} scores"
            )


def _padded(documents: Sequences, other: Sequences | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Values (n, T, d), NaN where there is no token."""
    longest = max(int(part.lengths.max()) for part in (documents, other) if part is not None)

    def pad(part: Sequences) -> np.ndarray:
        values, mask = part.padded(longest)
        return np.where(mask[..., None], values, np.nan)

    return pad(documents), None if other is None else pad(other)


def _common_length(documents: Sequences, other: Sequences | None) -> int | None:
    lengths = {int(length) for part in (documents, other) if part is not None for length in part.lengths}
    return lengths.pop() if len(lengths) == 1 else None


def _stax() -> Any:
    try:
        with _quietly():
            from neural_tangents import stax
    except (ImportError, AttributeError) as error:  # newer JAX: AttributeError
        raise ImportError(
            f"the reference needs neural-tangents and a JAX older than 0.6 ({error}); "
            "install both with: pip install 'textkernels[reference]'"
        ) from error
    return stax


@contextmanager
def _quietly() -> Iterator[None]:
    """stax warns of what it was asked to do (tied keys and queries, independent branches)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
