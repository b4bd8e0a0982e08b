"""The layers of an infinitely wide network, one small file each.

Every layer is a frozen dataclass that holds its parameters and its formulas, for the representations it can act on:

- ``features(state)``: on explicit features (:class:`textkernels.features.FeatureState`), for layers that keep
  a kernel linear in explicit vectors;
- ``tile(tile)``: entry by entry on a block of a Gram matrix after pooling (:class:`textkernels.tile.Tile`).

How a token-pair block passes through a layer is the business of the engines in :mod:`textkernels.pairs`; a layer
that is linear and stands among linear layers never gets there. docs/extending.md lists what a new layer needs.
"""

from textkernels.layers.activation import Activation
from textkernels.layers.attention import SelfAttention
from textkernels.layers.conv import Conv
from textkernels.layers.dense import Dense
from textkernels.layers.layer_norm import LayerNorm
from textkernels.layers.pooling import GlobalAveragePool
from textkernels.layers.positions import Positions
from textkernels.layers.residual import Residual

Layer = Dense | Conv | Activation | SelfAttention | Residual | LayerNorm | GlobalAveragePool

LAYERS: dict[str, type] = {
    layer.__name__: layer for layer in (Dense, Conv, Activation, SelfAttention, Residual, LayerNorm, GlobalAveragePool)
}

__all__ = [
    "LAYERS",
    "Activation",
    "Conv",
    "Dense",
    "GlobalAveragePool",
    "Layer",
    "LayerNorm",
    "Positions",
    "Residual",
    "SelfAttention",
]
