"""The part of the tangent kernel of attention that comes from training keys and queries, for one draw of scores.

With B the value columns, C the key columns and G = zeta(s) row by row,

    sum_{ab} sum_{ij, cd} K_ij (dG_ai / ds_ac) (dG'_bj / ds_bd) (2 IK_ab IK_cd + IT_ab IK_cd + IK_ab IT_cd)

is an inner product of two tensors, one a document,

    T = sum_{a, c, i} (dG_ai / ds_ac)  C_a (x) C_c (x) B_i,

with weights (2 k_p + t_p) k_q v_r + k_p t_q v_r on its entries: k, t of the key columns in I(K), I(Theta), v of the
value columns in K. Both kinds of scores leave few terms:

- pointwise zeta: dG_ai / ds_ac = [i = c] zeta'(s_ac), so T = sum_c N_c (x) C_c (x) B_c, N = zeta'(s)^T C: L terms;
- softmax: dG_ai / ds_ac = G_ai ([i = c] - G_ac), so T is the same with N = G^T C, less
  sum_a C_a (x) (G C)_a (x) (G B)_a: 2 L terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textkernels.attention_weights import SCORE_CODES, apply_scores
from textkernels.monte_carlo.attention_root import AttentionRoot, RootedTokens

SLICE = 1 << 28  # bytes of tensors that exist at a time


class Terms(NamedTuple):
    """T = sum_m first_m (x) second_m (x) third_m: (terms, p), (terms, p), (terms, r)."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


def gradient_terms(tokens: RootedTokens, draw: np.ndarray, scores: str, factor: float) -> Terms:
    """T of one document and one draw, divided by the number of tokens: the mean over rows a.

    Args:
        tokens: key and value columns.
        draw: Z, (p, p).
        scores: zeta.
        factor: multiplies T.
    """
    keys, values = tokens
    matrix = keys @ draw @ keys.T
    scaled = keys * keys.dtype.type(factor / len(keys))
    if scores == "softmax":
        apply_scores(matrix, np.zeros(0, matrix.dtype), 0, SCORE_CODES[scores])
        return Terms(
            np.concatenate([matrix.T @ scaled, scaled]),
            np.concatenate([keys, matrix @ keys]),
            np.concatenate([values, -(matrix @ values)]),
        )
    # Derivatives of identity, relu and abs; the last two have none at 0, where no score lies almost surely.
    slope = {"identity": np.ones_like(matrix), "relu": matrix > 0, "abs": np.sign(matrix)}[scores]
    return Terms(slope.astype(matrix.dtype).T @ scaled, keys, values)


def gradient_products(root: AttentionRoot, rows: Sequence[Terms], columns: Sequence[Terms]) -> np.ndarray:
    """Weighted inner products of the tensors of documents, float64 (n, m).

    Of two ways the cheaper one is taken. With M terms a document, tensors cost 2 M p^2 r operations a document
    and 2 p^2 r a pair; terms against terms cost 2 M M' (4 p + r) a pair. Tensors win for many or long documents,
    terms for few short ones with many columns.

    Args:
        root: the weights of the columns.
        rows, columns: terms of n and m documents; the same list for documents with themselves.
    """
    p, r = len(root.keys_nngp), len(root.values_nngp)
    terms1, terms2 = (sum(len(part.first) for part in parts) for parts in (rows, columns))
    by_tensors = (terms1 + terms2 + len(rows) * len(columns)) * p * p * r
    by_terms = terms1 * terms2 * (4 * p + r)
    return products_of_terms(root, rows, columns) if by_terms < by_tensors else products_of_tensors(root, rows, columns)


def products_of_tensors(root: AttentionRoot, rows: Sequence[Terms], columns: Sequence[Terms]) -> np.ndarray:
    """As :func:`gradient_products`, by tensors, which are made in slices of their second axis."""
    k, t, v = root.keys_nngp, root.keys_ntk, root.values_nngp
    weights = np.sqrt(((2 * k + t)[:, None] * k + k[:, None] * t)[:, :, None] * v)
    p, _, r = weights.shape

    def slices(parts: Sequence[Terms], chosen: slice) -> np.ndarray:
        tensors = np.empty((len(parts), p, weights[:, chosen].shape[1] * r))
        for tensor, part in zip(tensors, parts, strict=True):
            tensor[:] = part.first.T @ (part.second[:, chosen, None] * part.third[:, None]).reshape(len(part.first), -1)
        tensors *= weights[:, chosen].reshape(p, -1)
        return tensors.reshape(len(parts), -1)

    results = np.zeros((len(rows), len(columns)))
    step = max(1, SLICE // (8 * p * r * (len(rows) + len(columns))))
    for start in range(0, p, step):
        chosen = slice(start, start + step)
        first = slices(rows, chosen)
        results += first @ (first if rows is columns else slices(columns, chosen)).T
    return results


def products_of_terms(root: AttentionRoot, rows: Sequence[Terms], columns: Sequence[Terms]) -> np.ndarray:
    """As :func:`gradient_products`, by products of all terms of a pair of documents."""
    k, t, v = root.keys_nngp, root.keys_ntk, root.values_nngp
    results = np.zeros((len(rows), len(columns)))
    for row, part in enumerate(rows):
        for column, other in enumerate(columns):
            products = (part.first * (2 * k + t)) @ other.first.T
            products *= (part.second * k) @ other.second.T
            if t.any():
                products += ((part.first * k) @ other.first.T) * ((part.second * t) @ other.second.T)
            products *= (part.third * v) @ other.third.T
            results[row, column] = products.sum()
    return results
