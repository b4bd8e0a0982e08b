"""The kernels by explicit features, against plain NumPy pair by pair; what holds for every kernel."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from cases import CASES, DIM, FEATURES, PAIRS, Case, documents, names

import textkernels as tk
from embeddings import Sequences
from textkernels import attention_weights
from textkernels.features import document_features

DOCUMENTS = documents()
# A repeated document meets itself under another index, where the correlation is 1 only up to rounding.
EXACT, REPEATED = 1e-9, 1e-7

every_feature_case = pytest.mark.parametrize("case", FEATURES, ids=names(FEATURES))


def assert_close(result, expected, tolerance, repeated=None):
    """Difference relative to the largest entry; at pairs of ``repeated`` documents, REPEATED will do."""
    difference = np.abs(result - expected) / np.abs(expected).max()
    if repeated is not None:
        difference = np.where(repeated, difference * tolerance / REPEATED, difference)
    assert difference.max() < tolerance


def repeated_pairs(sequences):
    """Pairs of documents of equal content and different index, (n, n)."""
    arrays = list(sequences)
    return np.array([[i != j and np.array_equal(x, y) for j, y in enumerate(arrays)] for i, x in enumerate(arrays)])


def trained(case: Case):
    return "both" if case.architecture.trained else "nngp"


# The oracle itself, by hand


def test_one_hidden_relu_layer_by_hand():
    # Two documents of one word each, |e|^2 / d = 1 and orthogonal: c = 0 between them.
    words = np.sqrt(2) * np.eye(2)
    architecture = tk.Architecture([tk.GlobalAveragePool(), tk.Dense(math.sqrt(2)), tk.Activation("relu"), tk.Dense()])
    nngp = [[1, 1 / math.pi], [1 / math.pi, 1]]
    ntk = [[2, 1 / math.pi], [1 / math.pi, 2]]
    for result in (
        oracle.gram(architecture, [words[:1], words[1:]]),
        tk.gram(architecture, Sequences.from_arrays([words[:1], words[1:]]), kind="both"),
    ):
        np.testing.assert_allclose(result[0], nngp, rtol=1e-14)
        np.testing.assert_allclose(result[1], ntk, rtol=1e-14)


def test_one_hidden_erf_layer_with_bias_by_hand():
    # K = 1 + 1 / 2 of a word with itself, 1 / 2 with the other; Theta = K before the activation.
    words = np.sqrt(2) * np.eye(2)
    architecture = tk.Architecture([tk.GlobalAveragePool(), tk.Dense(1.0, math.sqrt(0.5)), tk.Activation("erf")])
    nngp = 2 / math.pi * np.arcsin([[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
    same, other = 1.5 * 4 / math.pi / math.sqrt(16 - 9), 0.5 * 4 / math.pi / math.sqrt(16 - 1)
    for result in (
        oracle.gram(architecture, [words[:1], words[1:]]),
        tk.gram(architecture, Sequences.from_arrays([words[:1], words[1:]]), kind="both"),
    ):
        np.testing.assert_allclose(result[0], nngp, rtol=1e-14)
        np.testing.assert_allclose(result[1], [[same, other], [other, same]], rtol=1e-14)


def test_softmax_attention_by_hand():
    # d = 1, words 0 and 2: scores 0, 0 in the first row, 0, 4 in the second.
    architecture = tk.Architecture([tk.SelfAttention(), tk.GlobalAveragePool(), tk.Dense()])
    document = np.array([[0.0], [2.0]])
    mean = (2 * 0.5 + 2 * math.exp(4) / (1 + math.exp(4))) / 2
    for result in (
        oracle.gram(architecture, [document]),
        tk.gram(architecture, Sequences.from_arrays([document]), kind="both"),
    ):
        assert result[0][0, 0] == pytest.approx(mean**2, rel=1e-14)
        assert result[1][0, 0] == pytest.approx(2 * mean**2 + mean**2, rel=1e-14)


def test_relative_positions_of_unequal_lengths_by_hand():
    # No content at all, values that see positions: one token at u = 1 against two at 1/2 and 1.
    positions = tk.Positions(decay=3.0, amplitude=2.0, in_values=True, content_share=0.5)
    architecture = tk.Architecture([tk.SelfAttention("identity", positions=positions), tk.GlobalAveragePool()])
    one, two = np.zeros((1, 3)), np.zeros((2, 3))
    near = math.exp(-3 / 4)
    # Scores are R / 2 with R = 2 exp(..): [1] and [[1, near], [near, 1]]; I(K) between the documents is [near, 1].
    expected = np.mean(np.array([[1, near], [near, 1]]) @ [near, 1])
    assert oracle.gram(architecture, [one], [two])[0][0, 0] == pytest.approx(expected, rel=1e-14)
    documents = [Sequences.from_arrays([part]) for part in (one, two)]
    assert tk.gram(architecture, *documents)[0, 0] == pytest.approx(expected, rel=1e-13)


def test_convolution_and_relu_by_hand():
    # Two orthogonal words; width 3 sees both from either place: K = 2/3 on the diagonal, 0 beside it.
    architecture = tk.Architecture([tk.Conv(3), tk.Activation("relu"), tk.GlobalAveragePool()])
    nngp, ntk = oracle.gram(architecture, [np.sqrt(2) * np.eye(2)])
    assert nngp[0, 0] == pytest.approx((1 / 3 + 1 / (3 * math.pi)) / 2, rel=1e-14)
    assert ntk[0, 0] == pytest.approx((2 / 3 / 2 + 0) / 2, rel=1e-14)


# Explicit features against the oracle


@every_feature_case
def test_features_equal_the_oracle(case):
    expected = oracle.gram(case.architecture, list(DOCUMENTS))
    nngp, ntk = tk.gram(case.architecture, DOCUMENTS, kind="both")
    assert nngp.dtype == ntk.dtype == np.float64
    assert_close(nngp, expected[0], EXACT)
    assert_close(ntk, expected[1], EXACT, repeated_pairs(DOCUMENTS))


@every_feature_case
def test_features_of_float32_documents(case):
    expected = oracle.gram(case.architecture, list(DOCUMENTS))
    for result, wanted in zip(
        tk.gram(case.architecture, DOCUMENTS.astype(np.float32), kind="both"), expected, strict=True
    ):
        assert result.dtype == np.float64
        assert_close(result, wanted, 2e-5)


@every_feature_case
def test_features_against_other_documents(case):
    rows, columns = DOCUMENTS[:3], DOCUMENTS[2:]
    expected = oracle.gram(case.architecture, list(rows), list(columns))
    nngp, ntk = tk.gram(case.architecture, rows, columns, kind="both")
    assert_close(nngp, expected[0], EXACT)
    assert_close(ntk, expected[1], REPEATED)


@every_feature_case
def test_gram_is_symmetric_and_positive_semidefinite(case):
    for matrix in tk.gram(case.architecture, DOCUMENTS, kind="both"):
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > -REPEATED * matrix.max()


@every_feature_case
def test_order_and_company_change_nothing(case):
    nngp, ntk = tk.gram(case.architecture, DOCUMENTS, kind="both")
    order = np.random.default_rng(0).permutation(len(DOCUMENTS))
    for matrix, again in zip((nngp, ntk), tk.gram(case.architecture, DOCUMENTS.take(order), kind="both"), strict=True):
        assert_close(again, matrix[np.ix_(order, order)], REPEATED)
    for i, j in ((0, 0), (3, 3), (4, 1)):
        alone = tk.gram(case.architecture, DOCUMENTS[i : i + 1], None if i == j else DOCUMENTS[j : j + 1])
        # Position features are sized by the longest document present: equal to rounding, not bit for bit.
        assert alone[0, 0] == pytest.approx(nngp[i, j], rel=1e-12)


@every_feature_case
def test_padding_changes_nothing(case):
    values, mask = DOCUMENTS.padded(40)
    noise = np.random.default_rng(0).standard_normal(values.shape)
    junk = np.where(mask[..., None], values, np.where(noise > 1, np.nan, 100 * noise))
    # Padding in front and between, too.
    shift = np.argsort(np.random.default_rng(1).random(mask.shape) + 10 * np.arange(40) * mask, axis=1)
    moved = np.take_along_axis(junk, shift[..., None], axis=1), np.take_along_axis(mask, shift, axis=1)
    expected = tk.gram(case.architecture, DOCUMENTS)
    np.testing.assert_array_equal(tk.gram(case.architecture, Sequences.from_padded(junk, mask)), expected)
    np.testing.assert_array_equal(tk.gram(case.architecture, Sequences.from_padded(*moved)), expected)


@pytest.mark.parametrize("name", ["struct-fcn", "gap-fcn"])
def test_kind_and_dtype(name):
    architecture = tk.named_architecture(name)
    nngp, ntk = tk.gram(architecture, DOCUMENTS, kind="both")
    np.testing.assert_array_equal(tk.gram(architecture, DOCUMENTS, kind="nngp"), nngp)
    np.testing.assert_array_equal(tk.gram(architecture, DOCUMENTS, kind="ntk"), ntk)
    np.testing.assert_array_equal(tk.gram(architecture, DOCUMENTS, engine="features"), nngp)
    small = tk.gram(architecture, DOCUMENTS, kind="both", dtype=np.float32)
    assert [part.dtype for part in small] == [np.float32] * 2
    np.testing.assert_array_equal(small[1], ntk.astype(np.float32))


def test_tiles_change_nothing(monkeypatch):
    architecture = tk.named_architecture("struct-fcn", layer_norm=True)
    whole = tk.gram(architecture, DOCUMENTS, kind="both")
    cross = tk.gram(architecture, DOCUMENTS[:5], DOCUMENTS[1:], kind="both")
    monkeypatch.setattr("textkernels.gram_tiles.DOCUMENTS", 3)
    for part, tiled in zip(whole, tk.gram(architecture, DOCUMENTS, kind="both"), strict=True):
        assert_close(tiled, part, EXACT, repeated_pairs(DOCUMENTS))
        np.testing.assert_array_equal(tiled, tiled.T)
    for part, tiled in zip(cross, tk.gram(architecture, DOCUMENTS[:5], DOCUMENTS[1:], kind="both"), strict=True):
        assert_close(tiled, part, EXACT, np.ones(part.shape, bool))


TWO_LAYERS = tk.Architecture(
    [
        tk.SelfAttention(positions=tk.Positions(), w_query_std=1.5),
        tk.SelfAttention("relu", positions=tk.Positions("absolute", scale=90.0, in_values=True), w_key_std=0.1),
        tk.GlobalAveragePool(),
        tk.Dense(1.2, 0.1),
    ]
)


def test_long_documents_cross_the_chunks_of_attention():
    long = documents(lengths=(700, 300, 1), dim=4, seed=3)
    assert attention_weights.CHUNK_ENTRIES < 700 * 700
    expected = oracle.gram(TWO_LAYERS, list(long))
    for result, wanted in zip(tk.gram(TWO_LAYERS, long, kind="both"), expected, strict=True):
        assert_close(result, wanted, EXACT)
    for result, wanted in zip(tk.gram(TWO_LAYERS, long.astype(np.float32), kind="both"), expected, strict=True):
        assert_close(result, wanted, 2e-5)


@pytest.mark.parametrize("entries", [1, 7, 24, 1 << 30])
def test_chunks_of_attention_change_nothing(monkeypatch, entries):
    expected = tk.gram(TWO_LAYERS, DOCUMENTS)
    monkeypatch.setattr(attention_weights, "CHUNK_ENTRIES", entries)
    assert_close(tk.gram(TWO_LAYERS, DOCUMENTS), expected, 1e-14)


@pytest.mark.parametrize("scores", ["softmax", "identity", "relu", "abs"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
@pytest.mark.parametrize("pool", [False, True])
def test_attend_is_the_matrix_product(scores, dtype, tolerance, pool):
    generator = np.random.default_rng(0)
    queries, keys, values = (generator.standard_normal((11, columns)).astype(dtype) for columns in (4, 4, 3))
    toeplitz = generator.random(11)
    matrix = queries.astype(np.float64) @ keys.T.astype(np.float64)
    matrix += toeplitz[abs(np.arange(11)[:, None] - np.arange(11))]
    weights = {
        "softmax": np.exp(matrix) / np.exp(matrix).sum(1, keepdims=True),
        "identity": matrix,
        "relu": np.maximum(matrix, 0),
        "abs": np.abs(matrix),
    }[scores]
    expected = weights @ values
    result = attention_weights.attend(queries, keys, values, toeplitz, scores, pool)
    assert result.dtype == (np.float64 if pool else dtype)
    assert_close(result, expected.mean(0, keepdims=True) if pool else expected, tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_scores_far_apart(dtype):
    # Differences beyond what exp can represent, huge equal scores, and one token alone.
    queries = np.array([[1.0], [-1.0], [0.0], [2e4]], dtype)
    keys = np.array([[200.0], [-2e4], [0.5], [200.0]], dtype)
    expected = [[0.5, 0, 0, 0.5], [0, 1, 0, 0], [0.25] * 4, [0.5, 0, 0, 0.5]]
    result = attention_weights.attend(queries, keys, np.eye(4, dtype=dtype), None, "softmax", False)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-30)
    one = np.full((1, 1), 3e4, dtype)
    assert attention_weights.attend(one, one, one, None, "softmax", False) == one


@every_feature_case
def test_words_without_a_vector_count_as_zeros_never_as_nan(case):
    words = np.random.default_rng(0).standard_normal((3, DIM))
    zeros = Sequences.from_arrays([np.zeros((2, DIM)), np.vstack([words, np.zeros((1, DIM))]), words])
    expected = oracle.gram(case.architecture, list(zeros))
    for result, wanted in zip(tk.gram(case.architecture, zeros, kind="both"), expected, strict=True):
        assert np.isfinite(result).all()
        assert_close(result, wanted, EXACT)


def test_no_documents():
    architecture = tk.named_architecture("struct-fcn")
    assert tk.gram(architecture, DOCUMENTS[:0]).shape == (0, 0)
    assert tk.gram(architecture, DOCUMENTS, DOCUMENTS[:0]).shape == (len(DOCUMENTS), 0)
    assert tk.gram(architecture, Sequences.from_arrays([])).shape == (0, 0)


def test_a_document_does_not_depend_on_the_others():
    architecture = tk.named_architecture("struct-fcn")
    together = document_features(architecture, DOCUMENTS, longest=50)
    for row, document in enumerate(DOCUMENTS):
        alone = document_features(architecture, Sequences.from_arrays([document]), longest=50)
        np.testing.assert_array_equal(alone.nngp[0], together.nngp[row])
        np.testing.assert_array_equal(alone.ntk[0], together.ntk[row])


# What is refused


@pytest.mark.parametrize("case", PAIRS, ids=names(PAIRS))
def test_features_engine_names_the_layer_it_cannot_do(case):
    place = case.architecture.linear_layers
    layer = type(case.architecture.layers[place]).__name__
    with pytest.raises(NotImplementedError, match=rf"layer {place}: {layer}\(.* acts on tokens"):
        tk.gram(case.architecture, DOCUMENTS, engine="features")


@pytest.mark.parametrize("kind", ["ntk", "both"])
def test_ntk_without_weights_is_an_error(kind):
    architecture = tk.Architecture([tk.LayerNorm(), tk.GlobalAveragePool()])
    assert_close(tk.gram(architecture, DOCUMENTS), oracle.gram(architecture, list(DOCUMENTS))[0], EXACT)
    with pytest.raises(ValueError, match=r"NTK of an architecture without weights is zero; add .* Dense\(\)"):
        tk.gram(architecture, DOCUMENTS, kind=kind)


def test_unknown_kind_engine_and_unequal_dimensions():
    architecture = tk.named_architecture("gap")
    with pytest.raises(ValueError, match="expected kind to be one of nngp, ntk, both; got 'mean'"):
        tk.gram(architecture, DOCUMENTS, kind="mean")
    with pytest.raises(ValueError, match=r"expected engine to be one of auto, features, .*; got 'torch'"):
        tk.gram(architecture, DOCUMENTS, engine="torch")
    with pytest.raises(ValueError, match="expected documents of equal dimension, got 6 and 4"):
        tk.gram(architecture, DOCUMENTS, documents(dim=4))


def test_table_covers_every_layer_and_option():
    assert len(set(names(CASES))) == len(CASES)
    text = "".join(repr(case.architecture) for case in CASES)
    wanted = ["Dense(", "Conv(", "LayerNorm(", "Residual(", "'relu'", "'erf'", "'linear'", "'sqrt'", "'softmax'"]
    wanted += ["'identity'", "'abs'", "'relative'", "'absolute'", "'append'", "'sum'", "in_values=True"]
    assert [part for part in wanted if part not in text] == []
    assert len(FEATURES) > 30
    assert len(PAIRS) > 30
