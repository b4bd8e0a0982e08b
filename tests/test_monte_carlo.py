"""Monte Carlo attention: against plain loops with the same draws, closed forms, and networks of finite width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from cases import DIM, documents

import textkernels as tk
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
    gram_tiles,
    named_architecture,
)
from textkernels.features import FeatureState, apply_layers
from textkernels.layers.attention import SCORES
from textkernels.monte_carlo import score_gradient
from textkernels.monte_carlo.kernel import MonteCarloKernel

POSITIONS = {
    "no positions": None,
    "relative": Positions(),
    "relative in values": Positions(in_values=True),
    "absolute, sum, in values": Positions("absolute", scale=4.0, combine="sum", amplitude=0.5, in_values=True),
    "positions only": Positions(content_share=0.0),
}
PREFIX = (Dense(1.2, 0.3), LayerNorm(), Dense(0.9))


def attention(scores: str, positions: Positions | None = None, **parameters: Any) -> SelfAttention:
    """An attention of sqrt scaling with few draws."""
    chosen = {"w_query_std": 1.3, "w_value_std": 0.9, "b_std": 0.2, "samples": 6, "seed": 3} | parameters
    return SelfAttention(scores, "sqrt", positions=positions, **chosen)


def network(layer: SelfAttention, prefix: Sequence[Any] = ()) -> Architecture:
    """Attention, pooling and layers on documents."""
    return Architecture([*prefix, layer, GlobalAveragePool(), Dense(1.2, 0.1), Activation("relu"), Dense()])


def both(architecture: Architecture, texts: Sequences, memory: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """NNGP and NTK of documents with themselves."""
    kernel = MonteCarloKernel(architecture, memory)
    prepared = kernel.prepare(texts)
    nngp, ntk = kernel.block(prepared, prepared, True, 0)
    assert ntk is not None
    return nngp, ntk


# --- the definition, draw by draw ---------------------------------------------------------------------------


def explicit_root(layer: SelfAttention, prefix: Sequence[Any], tokens: np.ndarray, longest: int) -> np.ndarray:
    """C with C C^T = I(K): token features weighted by sqrt(share), position features beside them."""
    state = FeatureState.from_tokens(tokens, longest)
    state = apply_layers(state, prefix) if prefix else state
    blocks = [state.values * np.sqrt(state.nngp)]
    if layer.positions is not None:
        content, place = layer.positions.shares
        blocks = [np.sqrt(content) * blocks[0], np.sqrt(place) * layer.positions.embeddings(len(tokens), longest)]
    root = np.hstack(blocks)
    return root[:, root.any(axis=0)]


def weights_and_slopes(scores: str, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G = zeta(s) and the Jacobian J[a, i, c] = dG_ai / ds_ac, entry by entry."""
    length = len(matrix)
    slopes = np.zeros((length,) * 3)
    if scores == "softmax":
        weights = np.exp(matrix) / np.exp(matrix).sum(axis=1, keepdims=True)
    else:
        weights = {"identity": matrix, "relu": np.maximum(matrix, 0), "abs": np.abs(matrix)}[scores]
    for a in range(length):
        for i in range(length):
            for c in range(length):
                if scores == "softmax":
                    slopes[a, i, c] = weights[a, i] * ((i == c) - weights[a, c])
                elif i == c:
                    slopes[a, i, c] = {"identity": 1.0, "relu": float(matrix[a, c] > 0), "abs": np.sign(matrix[a, c])}[
                        scores
                    ]
    return weights, slopes


def loop(layer: SelfAttention, prefix: Sequence[Any], x: np.ndarray, y: np.ndarray, longest: int) -> tuple[Any, Any]:
    """Pooled K and Theta of a pair behind the attention: the sums of the definition, term by term."""
    blocks: Any = tuple(oracle._input(a, b, a is b) for a, b in ((x, x), (x, y), (y, y)))
    for inner in prefix:
        blocks = oracle.step(inner, blocks)
    nngp, ntk = blocks[1].nngp, blocks[1].ntk
    keys, keys_ntk = oracle._interpolated(layer, nngp), oracle._interpolated(layer, ntk)
    in_values = layer.positions is not None and layer.positions.in_values
    values, values_ntk = (keys, keys_ntk) if in_values else (nngp, ntk)
    roots = [explicit_root(layer, prefix, part, longest) for part in (x, y)]
    np.testing.assert_allclose(roots[0] @ roots[1].T, keys, atol=1e-12)
    mean = np.zeros(3)
    for draw in range(layer.samples):
        z = np.random.default_rng([layer.seed, draw]).standard_normal((roots[0].shape[1],) * 2)
        (g, j), (h, k) = (weights_and_slopes(layer.scores, layer.qk * c @ z @ c.T) for c in roots)
        mean[0] += (g @ values @ h.T).mean()
        mean[1] += (g @ values_ntk @ h.T).mean()
        pairs = np.einsum("ij,aic,bjd->abcd", values, j, k)
        factor = (
            2 * keys[:, :, None, None] * keys + keys_ntk[:, :, None, None] * keys + keys[:, :, None, None] * keys_ntk
        )
        mean[2] += layer.qk**2 * (pairs * factor).sum() / (len(x) * len(y))
    mean *= layer.ov**2 / layer.samples
    bias = layer.b_std**2
    return bias + mean[0], bias + 2 * mean[0] + mean[1] + mean[2]


@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("scores", SCORES)
def test_kernels_equal_the_loop_over_draws(scores: str, positions: Positions | None) -> None:
    layer, texts = attention(scores, positions), documents(lengths=(3, 1, 4), dim=3)
    for prefix in ((), PREFIX):
        nngp, ntk = both(Architecture([*prefix, layer, GlobalAveragePool()]), texts)
        expected = np.array([[loop(layer, prefix, x, y, 4) for y in texts] for x in texts])
        np.testing.assert_allclose(nngp, expected[..., 0], rtol=1e-10)
        np.testing.assert_allclose(ntk, expected[..., 1], rtol=1e-10)


@pytest.mark.parametrize("scores", SCORES)
def test_both_ways_to_the_gradient_agree(scores: str, monkeypatch: pytest.MonkeyPatch) -> None:
    architecture, texts = network(attention(scores, Positions(in_values=True)), PREFIX), documents()
    results = []
    for way in (score_gradient.products_of_tensors, score_gradient.products_of_terms):
        monkeypatch.setattr("textkernels.monte_carlo.draw_sums.gradient_products", way)
        results.append(both(architecture, texts)[1])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10)


def test_tensors_in_slices_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textkernels.monte_carlo.draw_sums.gradient_products", score_gradient.products_of_tensors)
    architecture, texts = network(attention("softmax", Positions())), documents()
    expected = both(architecture, texts)[1]
    monkeypatch.setattr(score_gradient, "SLICE", 1)
    np.testing.assert_allclose(both(architecture, texts)[1], expected, rtol=1e-12)


# --- closed forms and other ways to the same expectation ------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
def test_identity_scores_meet_the_closed_form(positions: Positions | None) -> None:
    """Nearly every entry within three standard errors (one draw has long tails), and the mean over seeds too."""
    texts = documents(lengths=(4, 2, 5))
    layer = attention("identity", positions, samples=768)
    expected = oracle.gram(network(layer, PREFIX[:1]), list(texts))
    blocks, errors = [], []
    for seed in range(6):
        kernel = MonteCarloKernel(network(replace(layer, seed=seed), PREFIX[:1]))
        prepared = kernel.prepare(texts)
        blocks.append(kernel.block(prepared, prepared, True, 0))
        errors.append(kernel.standard_errors(prepared, prepared, True, 0))
    deviation, error = np.array(blocks) - np.array(expected), np.array(errors)
    assert (np.abs(deviation) < 3 * error).mean() > 0.9
    assert (np.abs(deviation.mean(axis=0)) < 4 * np.sqrt((error**2).mean(axis=0) / len(error))).all()
    assert (error < 0.2 * np.abs(expected)).mean() > 0.9


def test_standard_errors_are_the_spread_over_seeds() -> None:
    texts, layer = documents(lengths=(4, 2, 5)), attention("softmax", samples=64)
    stacks = [network(replace(layer, seed=seed)) for seed in range(40)]
    spread = np.std([tk.gram(stack, texts, kind="both") for stack in stacks], axis=0, ddof=1)
    errors = [tk.gram_standard_errors(stack, texts, kind="both") for stack in stacks]
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.4)


def test_standard_errors_of_tiles_and_of_exact_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, stack = documents(), network(attention("softmax", samples=64))
    nngp, ntk = tk.gram_standard_errors(stack, texts, kind="both")
    monkeypatch.setattr(gram_tiles, "DOCUMENTS", 3)
    np.testing.assert_allclose(tk.gram_standard_errors(stack, texts), nngp, rtol=1e-6)
    np.testing.assert_allclose(tk.gram_standard_errors(stack, texts[:2], texts[1:], "ntk"), ntk[:2, 1:], rtol=1e-6)
    exact = tk.gram_standard_errors(tk.named_architecture("struct"), texts, texts[:2])
    np.testing.assert_array_equal(exact, np.zeros((len(texts), 2)))
    with pytest.raises(ValueError, match="kind"):
        tk.gram_standard_errors(stack, texts, kind="variance")


def test_softmax_agrees_with_scores_drawn_pair_by_pair() -> None:
    """The definition: scores of both documents jointly Gaussian, by a Cholesky factor of their covariance."""
    x = documents(lengths=(3,), dim=3)[0]
    texts = Sequences.from_arrays([x, x[:2] + 0.5 * x[[2, 0]]])
    layer = attention("softmax", samples=4096, w_query_std=1.5)
    kernel = MonteCarloKernel(Architecture([layer, GlobalAveragePool()]))
    prepared = kernel.prepare(texts)
    nngp, _ = kernel.block(prepared[:1], prepared[1:], False)
    error, _ = kernel.standard_errors(prepared[:1], prepared[1:], False)

    tokens = texts.values
    covariance = tokens @ tokens.T / tokens.shape[1]
    cholesky = np.linalg.cholesky(np.kron(covariance, covariance) + 1e-10 * np.eye(25))
    draws = np.random.default_rng(0).standard_normal((20000, 25)) @ cholesky.T
    scores = layer.qk * draws.reshape(-1, 5, 5)
    weights = [np.exp(part) for part in (scores[:, :3, :3], scores[:, 3:, 3:])]
    first, second = ((part / part.sum(axis=2, keepdims=True)).mean(axis=1) for part in weights)
    values = layer.b_std**2 + layer.ov**2 * np.einsum("si,ij,sj->s", first, covariance[:3, 3:], second)
    allowed = 4 * np.hypot(error[0, 0], values.std() / np.sqrt(len(values)))
    assert abs(nngp[0, 0] - values.mean()) < allowed
    assert allowed < 0.05 * abs(values.mean())


def test_ntk_of_softmax_agrees_with_wide_networks() -> None:
    """Gradients of random networks with many heads, by automatic differentiation: nothing of ours in them."""
    heads, width, dim = 48, 48, 3
    texts = [jnp.asarray(text, jnp.float32) for text in documents(lengths=(4, 3), dim=dim)]
    layer = attention("softmax", samples=2048, w_query_std=1.6, b_std=0.0)

    def output(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        query, key, value = (jnp.einsum("ld,hdn->hln", x, weights[name]) / np.sqrt(dim) for name in "qkv")
        scores = layer.qk * jnp.einsum("hln,hmn->hlm", query, key) / np.sqrt(width)
        mixed = jnp.einsum("hlm,hmn->lhn", jax.nn.softmax(scores, axis=-1), layer.w_value_std * value)
        return layer.w_out_std * jnp.einsum("lhn,hn->l", mixed, weights["o"]).mean() / np.sqrt(heads * width)

    @jax.jit
    def tangent(key: jax.Array) -> jax.Array:
        names = jax.random.split(key, 4)
        weights = {name: jax.random.normal(k, (heads, dim, width)) for name, k in zip("qkv", names, strict=False)}
        weights["o"] = jax.random.normal(names[3], (heads, width))
        flat = [jnp.concatenate([g.ravel() for g in jax.tree.leaves(jax.grad(output)(weights, x))]) for x in texts]
        return jnp.array([[a @ b for b in flat] for a in flat])

    samples = np.array([tangent(key) for key in jax.random.split(jax.random.key(0), 40)])
    # Standard deviations of queries, keys, values and outputs belong to the gradients.
    _, ntk = both(Architecture([layer, GlobalAveragePool()]), documents(lengths=(4, 3), dim=dim))
    allowed = 4 * samples.std(axis=0) / np.sqrt(len(samples)) + 0.01 * np.abs(ntk)
    assert (np.abs(samples.mean(axis=0) - ntk) < allowed).all()
    assert (allowed < 0.1 * np.abs(ntk).max()).all()


# --- properties ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", SCORES)
def test_gram_matrices_are_positive_semidefinite(scores: str) -> None:
    """Even with few draws, repeated words and a repeated document."""
    texts = documents(np.float32, lengths=(5, 2, 1, 9, 3, 4, 6, 9))
    for matrix in both(Architecture([attention(scores, samples=2), GlobalAveragePool()]), texts):
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.trace(matrix)
        np.testing.assert_allclose(matrix[3], matrix[7], rtol=1e-6)


def test_blocks_do_not_depend_on_their_company() -> None:
    architecture, texts = network(attention("softmax", Positions(in_values=True), samples=20), PREFIX), documents()
    kernel = MonteCarloKernel(architecture)
    prepared = kernel.prepare(texts)
    whole = kernel.block(prepared, prepared, True, 0)
    order = np.array([5, 0, 3])
    alone = kernel.prepare(texts.take([3]), longest=int(texts.lengths.max()))
    for part, one, matrix in zip(
        kernel.block(prepared[order], prepared[2:6], True), kernel.block(alone, prepared, True), whole, strict=True
    ):
        assert matrix is not None
        np.testing.assert_allclose(part, matrix[order, 2:6], rtol=1e-10)
        np.testing.assert_allclose(one, matrix[3:4], rtol=1e-7)  # the document meets itself; not told so here
    np.testing.assert_allclose(kernel.diagonal(prepared), np.diag(whole[0]), rtol=1e-12)


def test_little_memory_gives_the_same() -> None:
    architecture, texts = network(attention("abs", samples=20)), documents()
    expected = both(architecture, texts)
    assert MonteCarloKernel(architecture, 1).prepare(texts).kept is None
    for matrix, plain in zip(both(architecture, texts, memory=1), expected, strict=True):
        np.testing.assert_allclose(matrix, plain, rtol=1e-12)


def test_memory_of_prepared_documents_is_known_before() -> None:
    kernel, texts = MonteCarloKernel(network(attention("softmax", Positions(in_values=True)))), documents()
    prepared = kernel.prepare(texts)
    kept, working = kernel.memory_need(texts.lengths, texts.dim, (12, 12), True)
    assert prepared.kept is not None
    assert kept == prepared.kept.nbytes + sum(part.keys.nbytes + part.values.nbytes for part in prepared.tokens)
    assert 0 < kernel.memory_need(texts.lengths, texts.dim, (12, 12), False)[1] < working < 2**27  # little for few
    large = kernel.memory_need(np.full(10_000, 1000), texts.dim, (1000, 1000), True)[1]
    assert kernel.memory < large < kernel.memory + 2**32


def test_seed_and_draws_decide() -> None:
    texts, layer = documents(), attention("softmax", samples=20)
    first = both(network(layer), texts)[0]
    np.testing.assert_array_equal(both(network(layer), texts)[0], first)
    assert not np.allclose(both(network(replace(layer, seed=4)), texts)[0], first, rtol=1e-3)
    assert not np.allclose(both(network(replace(layer, samples=21)), texts)[0], first, rtol=1e-6)


def test_float32_documents_are_close() -> None:
    architecture = network(attention("relu", Positions(in_values=True), samples=32), PREFIX)
    for single, double in zip(
        both(architecture, documents(np.float32)), both(architecture, documents(np.float64)), strict=True
    ):
        np.testing.assert_allclose(single, double, rtol=2e-4)


def test_restored_documents_give_the_same() -> None:
    kernel = MonteCarloKernel(network(attention("softmax")))
    prepared = kernel.prepare(documents(), longest=40)[2:5]
    for memory in (None, 1):
        other = MonteCarloKernel(kernel.architecture, memory)
        restored = other.restore(other.prepare(documents(), longest=40)[2:5].arrays())
        assert restored.root.longest == 40
        for block, matrix in zip(
            other.block(restored, restored, True), kernel.block(prepared, prepared, True), strict=True
        ):
            np.testing.assert_allclose(block, matrix, rtol=1e-12)


def test_dense_between_attention_and_pooling_counts() -> None:
    """A Dense on tokens equals the same Dense on documents, there being no activation in between."""
    layer = attention("softmax")
    before = Architecture([layer, Dense(1.3, 0.4), GlobalAveragePool()])
    after = Architecture([layer, GlobalAveragePool(), Dense(1.3, 0.4)])
    for left, right in zip(both(before, documents()), both(after, documents()), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        (named_architecture("struct"), ["layer 1: GlobalAveragePool", "no attention", "Monte Carlo"]),
        (network(attention("softmax"), [Conv(3), Activation("relu")]), ["layer 0: Conv", "before"]),
        (
            Architecture([attention("relu"), Activation("relu"), GlobalAveragePool()]),
            ["layer 1: Activation", "behind"],
        ),
        (
            Architecture([Dense(), Residual([attention("softmax")]), GlobalAveragePool()]),
            ["layer 1: Residual", "around"],
        ),
        (
            Architecture([attention("softmax"), attention("softmax"), GlobalAveragePool()]),
            ["layer 1: SelfAttention", "behind"],
        ),
    ],
)
def test_what_is_not_supported_says_so(architecture: Architecture, words: list[str]) -> None:
    with pytest.raises(NotImplementedError) as caught:
        MonteCarloKernel(architecture)
    assert all(word in str(caught.value) for word in words)


def test_no_documents_give_empty_blocks() -> None:
    kernel = MonteCarloKernel(network(attention("softmax")))
    prepared = kernel.prepare(documents())
    nngp, ntk = kernel.block(prepared[:0], prepared, True)
    assert nngp.shape == ntk.shape == (0, len(prepared))  # type: ignore[union-attr]
    assert len(kernel.prepare(Sequences.from_arrays([np.zeros((1, DIM))])[:0])) == 0
