"""What the compiled pass works on, as tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Plan(NamedTuple):
    """A program, and where in scratch its blocks lie.

    Args:
        operations: int64 (count, 12), the integers of ``Operation``; parameters: float32 (count, 2), its numbers.
        stages: first operation of each stage, and their number; reach: largest lag of each stage.
        blocks, attention, zeros: as in ``Layout``.
        shares: float32 (attentions, 2), of K and R under the interpolation.
        in_values, strengths: of each attention: whether values see positions, and (qk ov)^2 in float64.
        margin, lead: half a window; free columns on either side. group: rows that one operation does in a row.
        tangent: where Theta of the features comes from: 0: it is 0; 1: ``ratio`` times K; 2: features of its own.
        ntk: whether Theta is wanted.
    """

    operations: np.ndarray
    parameters: np.ndarray
    stages: np.ndarray
    reach: np.ndarray
    blocks: np.ndarray
    attention: np.ndarray
    zeros: int
    shares: np.ndarray
    in_values: np.ndarray
    strengths: np.ndarray
    margin: int
    lead: int
    group: int
    tangent: int
    ratio: np.float32
    ntk: bool


class Rows(NamedTuple):
    """Row documents, their tokens one after the other.

    Args:
        starts: first token of each document, and their number.
        chunks: first token of each chunk whose products are made at once, and the number of tokens.
        distinct: places of the tokens of a chunk, and of half a window around it, among its distinct ones.
        entries: of each chunk, what to add to a token to get its place in ``distinct``.
        firsts: first distinct token of each chunk among those of ``features``, and their number.
        features, tangents: of distinct tokens, for K and Theta, flat; dims: columns of each.
        scales: float32 (slots, tokens); digests: int32 (digests, tokens); weights: float32 (pools, tokens).
        positions: of each attention, (tokens, columns), flat and one after the other; places: where each starts and
            how many columns it has, int64 (attentions, 2).
        ties: attention weights, G^T of each document in strips, flat; tie_starts: (attentions, documents).
    """

    starts: np.ndarray
    chunks: np.ndarray
    distinct: np.ndarray
    entries: np.ndarray
    firsts: np.ndarray
    features: np.ndarray
    tangents: np.ndarray
    dims: np.ndarray
    scales: np.ndarray
    digests: np.ndarray
    weights: np.ndarray
    positions: np.ndarray
    places: np.ndarray
    ties: np.ndarray
    tie_starts: np.ndarray


class Panel(NamedTuple):
    """Column documents side by side.

    Args:
        starts, lengths: first column and tokens of each; widths: columns needed up to and with each.
        width: of all.
        features, tangents: of columns, (D, width) and (D', width) in strips, 0 where there is no token.
        scales, digests, mask, weights: of columns, (slots, width) and so on; weights float64.
        positions: of each attention, (columns, width) in strips, flat; places: where each starts.
        ties, tie_starts: as in ``Rows``.
    """

    starts: np.ndarray
    lengths: np.ndarray
    widths: np.ndarray
    width: int
    features: np.ndarray
    tangents: np.ndarray
    scales: np.ndarray
    digests: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    positions: np.ndarray
    places: np.ndarray
    ties: np.ndarray
    tie_starts: np.ndarray


class Work(NamedTuple):
    """Scratch of one thread, zero at first.

    Args:
        k, t: blocks of K and Theta, float32, see ``Layout``; t has one entry where Theta is not wanted.
        product, product_ntk: products of the distinct tokens of a chunk with the panel, rows of ``width`` from entry
            ALIGNED on, five more for the sake of ``multiply``, and one of zeros.
        chunk: first token of that chunk and of the next, its entry, and which row is zero, int64 (4,).
        lines: int64 (GROUP, LINES), offsets of windows.
        constants: of activations.
        group: float32 (2, width), sums over a group of rows; sums: float64 (2, pools, width), over all.
        correlation: float64 (attentions, 2, width); factors: float32, the same shape.
    """

    k: np.ndarray
    t: np.ndarray
    product: np.ndarray
    product_ntk: np.ndarray
    chunk: np.ndarray
    lines: np.ndarray
    constants: np.ndarray
    group: np.ndarray
    sums: np.ndarray
    correlation: np.ndarray
    factors: np.ndarray
