"""The fused Numba engine: every case against the float64 loop oracle, and nothing that depends on how work is cut."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from cases import FEATURES, MIXED, PAIRS, Case, documents, names

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
from textkernels.pairs import numba_engine, numba_packing
from textkernels.pairs.arc_polynomials import ARCCOS, ARCSIN, SINE
from textkernels.pairs.digests import compared, exact_tokens, placed_digests, window_digests
from textkernels.pairs.kernel import PairKernel
from textkernels.pairs.numba_pass import run
from textkernels.pairs.numba_products import STRIP, multiply, to_strips

TOLERANCE = 2e-5  # of the largest entry, float32 blocks
ROUNDING = 2e-6  # between two ways through the same float32 arithmetic
STACK = Architecture(
    [
        Conv(3, 1.4, 0.1),
        Activation("relu"),
        Residual([SelfAttention(w_query_std=1.2, positions=Positions(in_values=True))], share=0.4),
        Dense(1.1, 0.1),
        Activation("erf"),
        Conv(9, 1.2, 0.2),
        LayerNorm(),
        GlobalAveragePool(),
        Dense(1.3, 0.1),
        Activation("relu"),
        Dense(),
    ]
)


def gram(architecture: Architecture, texts: Sequences, memory: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """NNGP and NTK of documents with themselves."""
    kernel = PairKernel(architecture, memory=memory)
    prepared = kernel.prepare(texts)
    nngp, ntk = kernel.block(prepared, prepared, True, 0)
    assert ntk is not None
    return nngp, ntk


def assert_close(matrix: np.ndarray | None, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Equal to a share of the largest entry."""
    assert matrix is not None
    assert matrix.shape == expected.shape
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# Against the oracle


@pytest.mark.parametrize("case", PAIRS, ids=names(PAIRS))
def test_token_pairs_equal_the_oracle(case: Case) -> None:
    texts = documents()
    nngp, ntk = gram(case.architecture, texts)
    expected_nngp, expected_ntk = oracle.gram(case.architecture, list(texts))
    assert_close(nngp, expected_nngp)
    assert_close(ntk, expected_ntk)
    np.testing.assert_allclose(nngp, nngp.T, rtol=1e-14)
    for matrix in (nngp, ntk):
        assert np.linalg.eigvalsh(matrix)[0] > -TOLERANCE * matrix.max()


@pytest.mark.parametrize("case", FEATURES[::4], ids=names(FEATURES[::4]))
def test_linear_stacks_pass_through_the_engine_too(case: Case) -> None:
    texts = documents()
    for matrix, expected in zip(
        gram(case.architecture, texts), oracle.gram(case.architecture, list(texts)), strict=True
    ):
        assert_close(matrix, expected)


@pytest.mark.parametrize("case", MIXED, ids=names(MIXED))
def test_other_documents_and_nngp_alone(case: Case) -> None:
    texts, kernel = documents(), PairKernel(case.architecture)
    rows, columns = texts[:3], texts[2:]
    reach = int(texts.lengths.max())
    first, second = kernel.prepare(rows, reach), kernel.prepare(columns, reach)
    expected = oracle.gram(case.architecture, list(rows), list(columns))
    for matrix, wanted in zip(kernel.block(first, second, True), expected, strict=True):
        assert_close(matrix, wanted)
    nngp, ntk = kernel.block(first, second, False)
    assert ntk is None
    assert_close(nngp, expected[0])
    assert_close(kernel.diagonal(first), np.diag(oracle.gram(case.architecture, list(rows))[0]))


def test_shapes_at_the_edges() -> None:
    # One token, a filter far wider than the documents, more documents than fit a panel beside each other.
    texts = documents(lengths=(1, 1, 2, 40, 33, 1, 31, 32), seed=3)
    architecture = Architecture([Conv(101, 1.3, 0.2), Activation("relu"), Conv(3), GlobalAveragePool(), Dense()])
    for matrix, expected in zip(gram(architecture, texts), oracle.gram(architecture, list(texts)), strict=True):
        assert_close(matrix, expected)


def test_long_documents_against_whole_matrices() -> None:
    # Float64 without loops; 3,000 x 700 token pairs would blur in float32 sums.
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((3000, 4)) + 0.5, generator.standard_normal((700, 4)) + 0.5
    architecture = Architecture([Dense(1.2, 0.1), Activation("relu"), GlobalAveragePool()])
    kernel = PairKernel(architecture)
    prepared = kernel.prepare(Sequences.from_arrays([x, y], np.float64))
    nngp, ntk = kernel.block(prepared[:1], prepared[1:], True)
    cov = 1.44 * x @ y.T / 4 + 0.01
    scale = np.sqrt(np.outer(1.44 * (x**2).sum(1) / 4 + 0.01, 1.44 * (y**2).sum(1) / 4 + 0.01))
    c = np.clip(cov / scale, -1, 1)
    angle = math.pi - np.arccos(c)
    assert_close(nngp, np.array([[np.mean(scale * (np.sqrt(1 - c**2) + angle * c)) / (2 * math.pi)]]), 2e-7)
    assert_close(ntk, np.array([[np.mean(cov * angle) / (2 * math.pi)]]), 2e-7)


# What must not matter


def test_the_way_work_is_cut_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(lengths=(5, 60, 1, 33, 12, 7, 90, 9, 64), seed=4)
    expected = gram(STACK, texts)
    for name, value in (("PANEL", 40), ("NARROW", 40), ("TASK", 1), ("PRODUCT", 1)):
        monkeypatch.setattr(numba_engine, name, value)
    monkeypatch.setattr(numba_packing, "LARGE_CHUNK", 7)
    monkeypatch.setattr(numba_packing, "SMALL_CHUNK", 3)
    for matrix, wanted in zip(gram(STACK, texts), expected, strict=True):
        assert_close(matrix, wanted, ROUNDING)


def test_attention_weights_that_memory_does_not_hold_are_made_again() -> None:
    texts = documents()
    for matrix, expected in zip(gram(STACK, texts, memory=0), gram(STACK, texts), strict=True):
        assert_close(matrix, expected, ROUNDING)


def test_order_company_and_orientation_change_nothing() -> None:
    texts, kernel = documents(), PairKernel(STACK)
    prepared = kernel.prepare(texts)
    expected = kernel.block(prepared, prepared, True, 0)
    order = np.random.default_rng(0).permutation(len(texts))
    for matrix, wanted in zip(kernel.block(prepared[order], prepared[::-1], True), expected, strict=True):
        assert wanted is not None
        assert_close(matrix, wanted[order][:, ::-1], ROUNDING)
    alone = kernel.prepare(texts[4:5], int(texts.lengths.max()))
    for matrix, wanted in zip(kernel.block(alone, prepared, True), expected, strict=True):
        assert wanted is not None
        assert_close(matrix, wanted[4:5], ROUNDING)


def test_a_document_is_recognized_under_another_index() -> None:
    # Rounding of correlations near 1 would cost 1e-4 in Theta: documents[3] comes again as the last.
    texts = documents(np.float32)
    for architecture in (STACK, named_architecture("cnn-gap", hidden=2), named_architecture("cnn-struct")):
        nngp, ntk = gram(architecture, texts)
        assert nngp[3, -1] == pytest.approx(nngp[3, 3], rel=1e-7)
        assert ntk[3, -1] == pytest.approx(ntk[3, 3], rel=1e-6)


def test_words_that_repeat_correlate_exactly() -> None:
    # Documents of one word each, of many dimensions: every rounding error shows.
    generator = np.random.default_rng(1)
    words = generator.standard_normal((3, 768)).astype(np.float32)
    texts = Sequences.from_arrays([words[[0, 0]], words[[0]], words[[1, 0]], words[[2]]])
    architecture = Architecture([Dense(1.4, 0.1), Activation("relu"), GlobalAveragePool()])
    nngp, ntk = gram(architecture, texts)
    expected = oracle.gram(architecture, list(texts))
    assert_close(nngp, expected[0], 1e-6)
    assert_close(ntk, expected[1], 1e-6)


def test_several_networks_in_one_pass() -> None:
    texts = documents()
    depths = [named_architecture("cnn-gap", depth=depth, hidden=depth % 2, width=3) for depth in (1, 2, 4)]
    several = [*depths, named_architecture("cnn-struct", depth=2, width=3), depths[0]]
    together = PairKernel(several)
    prepared = together.prepare(texts)
    for architecture, blocks in zip(several, together.blocks(prepared, prepared, True, 0), strict=True):
        for matrix, expected in zip(blocks, gram(architecture, texts), strict=True):
            assert_close(matrix, expected, ROUNDING)
    convolutions = [node for node in together.graph.nodes if node.kind == "conv"]
    assert len(convolutions) == 4


def test_networks_that_share_features_only() -> None:
    # Some read the first block, some its products, some change it.
    conv, end = Conv(3, 1.3, 0.1), GlobalAveragePool()
    several = [
        Architecture([conv, Activation("relu"), end]),
        Architecture([conv, end]),
        Architecture([Conv(5, 1.2), Activation("erf"), end]),
        Architecture([Dense(1.3, 0.2), Activation("relu"), Conv(11), Activation("erf"), end]),
        Architecture([Residual([SelfAttention(), Conv(3, 1.1)]), end, Dense()]),
        Architecture([end, Dense(1.5)]),
    ]
    texts, kernel = documents(), PairKernel(several)
    prepared = kernel.prepare(texts)
    for architecture, blocks in zip(several, kernel.blocks(prepared, prepared, True, 0), strict=True):
        for matrix, expected in zip(blocks, oracle.gram(architecture, list(texts)), strict=True):
            assert_close(matrix, expected)


def test_prepared_documents_come_back_from_arrays() -> None:
    texts, kernel = documents(np.float32), PairKernel(STACK)
    prepared = kernel.prepare(texts, 50)[np.array([5, 2])]
    again = kernel.restore(prepared.arrays())
    for matrix, expected in zip(kernel.block(again, again, True), kernel.block(prepared, prepared, True), strict=True):
        assert expected is not None
        assert_close(matrix, expected, ROUNDING)


def test_no_documents() -> None:
    kernel = PairKernel(STACK)
    prepared = kernel.prepare(documents())
    nothing = kernel.prepare(Sequences.from_arrays([], np.float32))
    assert kernel.block(prepared[:0], prepared, True)[0].shape == (0, 8)
    assert kernel.block(prepared, prepared[:0], False)[0].shape == (8, 0)
    assert len(nothing) == 0


def test_new_lengths_and_networks_compile_nothing_new() -> None:
    gram(STACK, documents())
    gram(named_architecture("cnn-gap", depth=2), documents(lengths=range(1, 24), dim=9))
    kernel = PairKernel(STACK)
    one = kernel.prepare(documents(lengths=(17,)))
    kernel.block(one, one, False)
    assert len(run.signatures) == 1


def test_overflow_is_an_error_not_a_number() -> None:
    texts = Sequences.from_arrays([np.full((3, 2), 1e20, np.float32)])
    with pytest.raises(ValueError, match="float32"):
        gram(named_architecture("cnn-gap"), texts)


def test_zero_vectors_are_no_trouble() -> None:
    texts = Sequences.from_arrays([np.zeros((4, 3)), np.eye(3), np.vstack([np.eye(3), np.zeros((5, 3))])], np.float32)
    for architecture in (
        Architecture([Conv(1), Activation("relu"), GlobalAveragePool()]),
        Architecture([Conv(3), LayerNorm(), Activation("relu"), Conv(3), Activation("erf"), GlobalAveragePool()]),
    ):
        for matrix, expected in zip(gram(architecture, texts), oracle.gram(architecture, list(texts)), strict=True):
            assert_close(matrix, expected)


def test_scores_without_closed_form_are_named() -> None:
    architecture = Architecture(
        [Conv(3), Activation("relu"), SelfAttention("softmax", "sqrt"), Activation("relu"), GlobalAveragePool()]
    )
    with pytest.raises(NotImplementedError, match="softmax"):
        PairKernel(architecture)


def test_memory_grows_with_what_is_kept() -> None:
    lengths, longest = np.array([500, 300]), (500, 300)
    conv, attention = PairKernel(named_architecture("cnn-gap")), PairKernel(STACK)
    kept, working = conv.memory_need(lengths, 50, longest, True)
    assert 800 * 4 * 50 < kept < 800 * 4 * 50 * 4
    assert 1e6 < working < 1e8
    assert attention.memory_need(lengths, 50, longest, True)[1] > working
    # Whole blocks of 10,000 x 10,000 token pairs in front of an attention, none for convolutions alone.
    long = np.array([10_000, 10_000]), 50, (10_000, 10_000), True
    assert conv.memory_need(*long)[1] < 3e8
    assert attention.memory_need(*long)[1] > 1e9


# The parts


def test_polynomials() -> None:
    u = np.concatenate([np.geomspace(1e-7, 1, 1000), np.linspace(1e-3, 1, 1000)])
    root = np.sqrt(u)
    assert np.abs(root * np.polyval(ARCCOS[::-1], u) - np.arccos(1 - u)).max() < 3e-7
    assert np.abs(root * np.polyval(SINE[::-1], u) - np.sqrt(u * (2 - u))).max() < 3e-7
    y = np.sqrt(u / 2)
    assert np.abs(y + y**3 * np.polyval(ARCSIN[::-1], y**2) - np.arcsin(y)).max() < 6e-8


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 1, 1), (6, 4, STRIP), (13, 300, 2 * STRIP), (50, 7, 100)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(rows: int, inner: int, columns: int, transposed: bool) -> None:
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((rows + 2, inner)), generator.standard_normal((inner, columns))
    strips = to_strips(columns)
    c = np.ones((rows + 6, strips * STRIP), np.float32)
    if transposed:
        flat, steps = in_strips(a.T), (1, STRIP, inner * STRIP)
    else:
        flat, steps = a.astype(np.float32).reshape(-1), (inner, 1, 0)
    for add in (False, True):
        multiply(
            c.reshape(-1), 0, strips * STRIP, STRIP, flat, 0, *steps, 2, in_strips(b), 0, inner * STRIP,
            rows, inner, strips, add,
        )  # fmt: skip
    np.testing.assert_allclose(c[:rows, :columns], 2 * a[2:] @ b, rtol=0, atol=3e-4)


def in_strips(matrix: np.ndarray) -> np.ndarray:
    """(inner, columns) as strips of STRIP columns, flat."""
    inner, columns = matrix.shape
    wide = np.zeros((inner, to_strips(columns) * STRIP), np.float32)
    wide[:, :columns] = matrix
    return wide.reshape(inner, -1, STRIP).swapaxes(0, 1).reshape(-1)


def test_digests_tell_states_apart() -> None:
    generator = np.random.default_rng(0)
    words = generator.standard_normal((5, 3)).astype(np.float32)
    first, second = exact_tokens(words[[0, 1, 2, 0, 1, 2, 3]]), exact_tokens(words[[4, 0, 1, 2, 4, 4, -1]])
    assert first[0] == first[3] == second[1]
    assert len(set(first)) == 4
    windows, others = window_digests(first, 1), window_digests(second, 1)
    assert windows[1] == windows[4] == others[2]
    assert windows[0] != windows[3]  # the border of a document is not a word
    assert len(set(placed_digests(first, True))) == 7
    assert len(set(placed_digests(first, False))) == 4
    assert not set(placed_digests(first, False)) & set(placed_digests(second, False))
    assert exact_tokens(-np.zeros((1, 3), np.float32))[0] == exact_tokens(np.zeros((1, 3)))[0]
    assert compared(first).dtype == np.int32
