"""Architecture: a checked stack of layers, to and from TOML."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textkernels.features import linear_prefix
from textkernels.layers import (
    LAYERS,
    Activation,
    Conv,
    Dense,
    GlobalAveragePool,
    Layer,
    Positions,
    Residual,
    SelfAttention,
)

if TYPE_CHECKING:
    from textkernels.layers.interfaces import DocumentLayer

TOML_FORMAT = 1


class Architecture:
    """A stack of layers from token vectors to one output a document.

    Token layers come first, then one GlobalAveragePool, then layers on pooled documents. The stack is checked
    when it is built.

    Args:
        layers: instances of the classes in :mod:`textkernels.layers`.
        name: shown in reports and kept in TOML.

    Raises:
        ValueError: a stack that no network corresponds to, or that this package does not compute; the
            message names the layer by its place (0-based) and says what to change.
    """

    def __init__(self, layers: Sequence[Layer], name: str = "custom") -> None:
        self.layers: tuple[Layer, ...] = tuple(layers)
        self.name = name
        _check_stack(self.layers)

    @property
    def pooling(self) -> int:
        """Place of the pooling layer."""
        return next(i for i, layer in enumerate(self.layers) if isinstance(layer, GlobalAveragePool))

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        """Every layer, those in branches of Residual included."""
        return tuple(_walk(self.layers))

    @property
    def token_layers(self) -> tuple[Layer, ...]:
        """Layers before pooling."""
        return self.layers[: self.pooling]

    @property
    def document_layers(self) -> tuple[DocumentLayer, ...]:
        """Layers after pooling."""
        return cast("tuple[DocumentLayer, ...]", self.layers[self.pooling + 1 :])

    @property
    def curved_layers(self) -> tuple[DocumentLayer, ...]:
        """Layers after pooling from the first on that explicit features do not pass."""
        return self.document_layers[max(self.linear_layers - self.pooling - 1, 0) :]

    @property
    def linear_layers(self) -> int:
        """How many of the first layers keep the kernel linear in explicit features."""
        return linear_prefix(self.layers)

    @property
    def linear_tokens(self) -> bool:
        """Whether explicit features reach through pooling, so that no token pair is ever formed."""
        return self.linear_layers > self.pooling

    @property
    def linear(self) -> bool:
        """Whether the whole kernel is linear in explicit features."""
        return self.linear_layers == len(self.layers)

    @property
    def trained(self) -> bool:
        """Whether any layer has weights: without, the NTK is zero."""
        return any(isinstance(layer, Dense | Conv | SelfAttention) for layer in self.all_layers)

    def check_trained(self) -> None:
        """Raise ValueError for an NTK of no layer with weights."""
        if not self.trained:
            raise ValueError("the NTK of an architecture without weights is zero; add a layer such as Dense()")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Architecture) and self.layers == other.layers

    def __hash__(self) -> int:
        return hash(self.layers)

    def __repr__(self) -> str:
        return f"Architecture([{', '.join(map(repr, self.layers))}], name={self.name!r})"

    def to_toml(self) -> str:
        """The stack as TOML text; :meth:`from_toml` gives an equal one back."""
        import tomli_w

        return tomli_w.dumps(
            {"format": TOML_FORMAT, "name": self.name, "layers": [_to_table(layer) for layer in self.layers]}
        )

    @classmethod
    def from_toml(cls, text: str) -> Architecture:
        """Read what :meth:`to_toml` wrote, or a file written by hand in that form.

        Raises:
            ValueError: not TOML, another format number, an unknown layer or parameter; the message names it.
        """
        import tomllib

        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"architecture: not valid TOML ({error})") from None
        if table.get("format", TOML_FORMAT) != TOML_FORMAT:
            raise ValueError(
                f"architecture: expected format = {TOML_FORMAT}, got {table['format']!r}; "
                "it was written by another version of textkernels"
            )
        unknown = set(table) - {"format", "name", "layers"}
        if unknown or not isinstance(table.get("layers"), list):
            raise ValueError(
                "architecture: expected the keys format, name and [[layers]] tables"
                + (f", got {', '.join(sorted(unknown))}" if unknown else "")
            )
        layers = [_from_table(layer, f"layer {i}") for i, layer in enumerate(table["layers"])]
        return cls(layers, str(table.get("name", "custom")))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the TOML form to a file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Architecture:
        """Read a TOML file; errors as in :meth:`from_toml`, with the name of the file."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


def _walk(layers: Sequence[Any]) -> Iterator[Any]:
    for layer in layers:
        yield layer
        if isinstance(layer, Residual):
            yield from _walk(layer.layers)


def _check_stack(layers: tuple[Any, ...]) -> None:
    if not layers:
        raise ValueError("architecture: expected at least GlobalAveragePool(), got no layers")
    for place, layer in enumerate(layers):
        if not isinstance(layer, tuple(LAYERS.values())):
            known = ", ".join(LAYERS)
            raise ValueError(f"layer {place}: expected one of {known}; got {layer!r}")
    pools = [place for place, layer in enumerate(layers) if isinstance(layer, GlobalAveragePool)]
    if len(pools) != 1:
        advice = "add one after the token layers" if not pools else "keep one"
        raise ValueError(f"architecture: expected exactly one GlobalAveragePool, got {len(pools)}; {advice}")
    for place, layer in enumerate(layers[pools[0] + 1 :], pools[0] + 1):
        if isinstance(layer, Conv | SelfAttention | Residual):
            raise ValueError(
                f"layer {place}: {type(layer).__name__} acts on tokens, of which none are left after "
                f"GlobalAveragePool (layer {pools[0]}); move it before the pooling"
            )
    _check_activations(layers, "layer", weighted=False)


def _check_activations(layers: Sequence[Any], where: str, weighted: bool) -> bool:
    """Activations act on Gaussian outputs only: a layer with weights must come before each one."""
    for place, layer in enumerate(layers):
        if isinstance(layer, Dense | Conv | SelfAttention):
            weighted = True
        elif isinstance(layer, Activation):
            if not weighted:
                raise ValueError(
                    f"{where} {place}: an Activation needs a Dense, Conv or SelfAttention between it and the "
                    "input or the activation before it; its formula holds for Gaussian outputs only"
                )
            weighted = False
        elif isinstance(layer, Residual):
            _check_branch(layer, f"{where} {place}")
            # The input's share keeps whatever law the input has.
            weighted = _check_activations(layer.layers, f"{where} {place}, branch layer", weighted) and weighted
    return weighted


def _check_branch(layer: Residual, where: str) -> None:
    for inner, part in enumerate(layer.layers):
        if not isinstance(part, tuple(LAYERS.values())) or isinstance(part, GlobalAveragePool):
            raise ValueError(f"{where}, branch layer {inner}: expected a token layer, got {part!r}")
    last = layer.layers[-1]
    if not isinstance(last, Dense | Conv | SelfAttention):
        raise ValueError(
            f"{where}: expected the branch of a Residual to end in Dense, Conv or SelfAttention, so that it is "
            f"independent of its input; got {type(last).__name__}"
        )


def _to_table(layer: Any) -> dict[str, Any]:
    table: dict[str, Any] = {"type": type(layer).__name__}
    for field in fields(layer):
        value = getattr(layer, field.name)
        if isinstance(value, Positions):
            value = {f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) is not None}
        elif field.name == "layers":
            value = [_to_table(inner) for inner in value]
        if value is not None:
            table[field.name] = _plain(value)
    return table


def _plain(value: Any) -> Any:
    """NumPy scalars as Python ones, nested tables included."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value.item() if hasattr(value, "item") else value


def _from_table(table: Any, where: str) -> Any:
    if not isinstance(table, dict) or not isinstance(table.get("type"), str) or table["type"] not in LAYERS:
        got = table.get("type") if isinstance(table, dict) else table
        raise ValueError(f"{where}: expected type to be one of {', '.join(LAYERS)}; got {got!r}")
    cls = LAYERS[table["type"]]
    arguments = {key: value for key, value in table.items() if key != "type"}
    _check_keys(cls, arguments, f"{where}: {table['type']}")
    missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in arguments]
    if missing:
        raise ValueError(f"{where}: {table['type']}: expected a value for {', '.join(missing)}, got none")
    if "layers" in arguments:
        tables = arguments["layers"]
        if not isinstance(tables, list):
            raise ValueError(f"{where}: {table['type']}: expected layers to be a list of tables, got {tables!r}")
        arguments["layers"] = [_from_table(inner, f"{where}, branch layer {i}") for i, inner in enumerate(tables)]
    if isinstance(arguments.get("positions"), dict):
        _check_keys(Positions, arguments["positions"], f"{where}: positions")
    try:
        if isinstance(arguments.get("positions"), dict):
            arguments["positions"] = Positions(**arguments["positions"])
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _check_keys(cls: type, arguments: dict[str, Any], where: str) -> None:
    known = [field.name for field in fields(cls)]
    unknown = [key for key in arguments if key not in known]
    if unknown:
        raise ValueError(f"{where}: expected parameters among {', '.join(known) or 'none'}; got {', '.join(unknown)}")
