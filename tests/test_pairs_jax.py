"""The JAX engine: every case against the float64 loop oracle, and nothing that depends on padding or batches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np
import oracle
import pytest
from cases import CONVOLUTIONS, FEATURES, MIXED, PAIRS, RANDOM, SQRT, Case, documents, names

from embeddings import Sequences
from textkernels import (
    Activation,
    Architecture,
    Conv,
    Dense,
    GlobalAveragePool,
    Positions,
    SelfAttention,
    named_architecture,
)
from textkernels import gram as compute_gram
from textkernels.feature_kernel import FeatureKernel
from textkernels.pairs import jax_batches, jax_engine, jax_graph
from textkernels.pairs.graph import TokenGraph
from textkernels.pairs.jax_activations import relu
from textkernels.pairs.jax_batches import LIVE_BLOCKS, batch_count, batch_shapes, batches, padded_length
from textkernels.pairs.jax_blocks import Block
from textkernels.pairs.jax_features import JaxFeatureKernel
from textkernels.pairs.kernel import PairKernel

TOLERANCE = 2e-5  # of the largest entry, float32 blocks

# Compiling takes a second a stack: of the random ones every fifth.
COMPILED = tuple(case for case in PAIRS if case not in RANDOM) + tuple(case for case in RANDOM[::5] if case in PAIRS)
STACK = Architecture(
    [
        Conv(3, 1.4, 0.1),
        Activation("relu"),
        SelfAttention(w_query_std=1.2, positions=Positions(in_values=True)),
        Activation("erf"),
        GlobalAveragePool(),
        Dense(1.3, 0.1),
        Activation("relu"),
        Dense(),
    ]
)


def gram(kernel: PairKernel | JaxFeatureKernel, texts: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """NNGP and NTK of documents with themselves."""
    prepared = kernel.prepare(texts)
    nngp, ntk = kernel.block(prepared, prepared, True, 0)
    assert ntk is not None
    return nngp, ntk


def assert_close(matrix: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Equal to a share of the largest entry."""
    assert matrix.shape == expected.shape
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@contextmanager
def compilations() -> Iterator[list[str]]:
    """What XLA compiles inside the block, functions and single operations alike."""
    seen: list[str] = []

    def listen(event: str, duration: float, **_: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.clear_event_listeners()


@pytest.mark.parametrize("case", COMPILED, ids=names(COMPILED))
def test_token_pairs_equal_the_oracle(case: Case) -> None:
    texts = documents()
    nngp, ntk = gram(PairKernel(case.architecture, "jax"), texts)
    expected_nngp, expected_ntk = oracle.gram(case.architecture, list(texts))
    assert_close(nngp, expected_nngp)
    assert_close(ntk, expected_ntk)


@pytest.mark.parametrize("case", FEATURES, ids=names(FEATURES))
def test_explicit_features_equal_the_oracle(case: Case) -> None:
    texts = documents(np.float32)
    nngp, ntk = gram(JaxFeatureKernel(case.architecture), texts)
    expected_nngp, expected_ntk = oracle.gram(case.architecture, list(texts))
    assert_close(nngp, expected_nngp)
    assert_close(ntk, expected_ntk)


def test_explicit_features_have_the_columns_of_numpy() -> None:
    architecture = Architecture([SelfAttention(positions=Positions(in_values=True), b_std=0.2), GlobalAveragePool()])
    texts = documents(lengths=(32, 3, 70))
    ours = JaxFeatureKernel(architecture).prepare(texts, longest=128)
    theirs = FeatureKernel(architecture).prepare(texts, longest=128)
    assert_close(ours.nngp, theirs.nngp)
    assert_close(ours.ntk, theirs.ntk)


def test_long_documents_keep_the_precision() -> None:
    architecture = named_architecture("cnn-gap")
    texts = documents(lengths=(200, 90), seed=3)
    nngp, ntk = gram(PairKernel(architecture, "jax"), texts)
    expected_nngp, expected_ntk = oracle.gram(architecture, list(texts))
    assert_close(nngp, expected_nngp, 2e-6)
    assert_close(ntk, expected_ntk, 2e-6)


def test_gram_takes_the_engine() -> None:
    texts = documents()
    for matrix, expected in zip(
        compute_gram(STACK, texts, kind="both", engine="jax"), oracle.gram(STACK, list(texts)), strict=True
    ):
        assert_close(matrix, expected)
    rows = compute_gram(STACK, texts[:3], texts[3:], engine="jax", dtype=np.float32)
    assert rows.dtype == np.float32
    assert_close(rows, oracle.gram(STACK, list(texts[:3]), list(texts[3:]))[0])


def test_ntk_is_optional_and_changes_nothing() -> None:
    kernel = PairKernel(STACK, "jax")
    prepared = kernel.prepare(documents())
    nngp, ntk = kernel.block(prepared, prepared, False, 0)
    assert ntk is None
    assert_close(nngp, kernel.block(prepared, prepared, True, 0)[0], 1e-6)


def test_rows_against_columns_equal_the_part_of_the_whole() -> None:
    """Also: a document alone, in another order and without symmetry gives the same entries."""
    kernel, texts = PairKernel(STACK, "jax"), documents(lengths=(3, 40, 9, 64, 2, 33, 5))
    prepared = kernel.prepare(texts)
    whole = kernel.block(prepared, prepared, True, 0)
    order = np.array([6, 2, 3, 0])
    alone = kernel.prepare(texts.take([3]))
    for block, one, matrix in zip(
        kernel.block(prepared[order], prepared[2:], True),
        kernel.block(alone, prepared, True),
        whole,
        strict=True,
    ):
        assert block is not None
        assert one is not None
        assert matrix is not None
        assert_close(block, matrix[order][:, 2:], 1e-6)
        assert_close(one, matrix[3:4], 1e-6)
        np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(kernel.diagonal(prepared), np.diag(whole[0]), rtol=1e-6)


def test_more_padding_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, architecture = documents(lengths=(1, 2, 30, 9)), Architecture([*STACK.token_layers, GlobalAveragePool()])
    expected = gram(PairKernel(architecture, "jax"), texts)
    linear = Architecture([SelfAttention("relu", b_std=0.3, positions=Positions(in_values=True)), GlobalAveragePool()])
    expected_linear = gram(JaxFeatureKernel(linear), texts)
    for length in (47, 128):
        for module in (jax_engine, jax_batches):
            monkeypatch.setattr(module, "padded_length", lambda _, length=length: length)
        monkeypatch.setattr("textkernels.pairs.jax_features.padded_length", lambda _, length=length: length)
        for padded, plain in zip(gram(PairKernel(architecture, "jax"), texts), expected, strict=True):
            assert_close(padded, plain, 1e-6)
        for padded, plain in zip(gram(JaxFeatureKernel(linear), texts), expected_linear, strict=True):
            assert_close(padded, plain, 1e-6)


def test_several_depths_in_one_pass_equal_each_alone() -> None:
    depths = [named_architecture("cnn-struct", depth=depth, hidden=1, width=3) for depth in (1, 2, 3)]
    together = PairKernel(depths, "jax")
    prepared = together.prepare(documents())
    for blocks, architecture in zip(together.blocks(prepared, prepared, True, 0), depths, strict=True):
        expected = oracle.gram(architecture, list(documents()))
        for block, matrix in zip(blocks, expected, strict=True):
            assert block is not None
            assert_close(block, matrix)


def test_weights_past_the_memory_are_made_again() -> None:
    texts = documents(lengths=(3, 40, 9, 33))
    expected = gram(PairKernel(STACK, "jax"), texts)
    frugal = PairKernel(STACK, "jax", memory=4096)
    prepared = frugal.prepare(texts)
    assert not prepared.complete
    assert sum(leaf.size for bucket in prepared.buckets.values() for leaf in jax.tree.leaves(bucket.parts)) == 0
    for block, matrix in zip(frugal.block(prepared, prepared, True, 0), expected, strict=True):
        assert block is not None
        assert_close(block, matrix, 1e-6)


def test_restored_documents_give_the_same() -> None:
    kernel = PairKernel(STACK, "jax")
    prepared = kernel.prepare(documents(), longest=60)[1:5]
    restored = kernel.restore(prepared.arrays())
    assert restored.longest == 60
    expected = kernel.block(prepared, prepared, True, 0)
    for block, matrix in zip(kernel.block(restored, restored, True, 0), expected, strict=True):
        np.testing.assert_array_equal(block, matrix)


def test_no_documents_give_empty_blocks() -> None:
    kernel = PairKernel(STACK, "jax")
    prepared = kernel.prepare(documents())
    nngp, ntk = kernel.block(prepared[:0], prepared, True)
    assert nngp.shape == ntk.shape == (0, len(prepared))  # type: ignore[union-attr]


def test_other_lengths_and_counts_compile_nothing_new() -> None:
    """B07: twenty documents of twenty lengths, then other lengths and a ragged last batch."""
    kernel, generator = PairKernel(named_architecture("cnn-gap", width=5), "jax"), np.random.default_rng(0)

    def block(rows: int, columns: int) -> None:
        lengths = generator.permutation(np.arange(1, 65))
        first, second = lengths[:rows], lengths[-columns:]
        kernel.block(*(kernel.prepare(documents(lengths=part)) for part in (first, second)), True)

    block(40, 24)
    block(1, 1)
    block(1, 40)
    with compilations() as seen:
        block(20, 20)
        block(37, 23)
        block(1, 20)
    assert seen == []


def test_compilations_are_bounded() -> None:
    architecture = Architecture([Dense(1.234), Activation("relu"), GlobalAveragePool()])
    kernel = PairKernel(architecture, "jax")
    with compilations() as seen:
        prepared = kernel.prepare(documents(lengths=range(1, 65)))
        for rows, columns in ((slice(0, 64), slice(0, 64)), (slice(5, 6), slice(0, 60)), (slice(0, 60), slice(60, 61))):
            kernel.block(prepared[rows], prepared[columns], True)
    buckets = len({padded_length(length) for length in range(1, 65)})
    # Documents with themselves in at most two batch sizes, pairs of buckets in at most three batch shapes.
    assert buckets == 2
    assert 0 < len(seen) <= 2 * buckets + 3 * buckets * (buckets + 1) // 2


def test_padded_lengths_are_few_and_close() -> None:
    ladder = {padded_length(length) for length in range(1, 2001)}
    assert ladder == {32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048}
    assert all(length <= padded_length(length) < max(2 * length, 33) for length in range(1, 2001))


@pytest.mark.parametrize("pairs", [0, 1, 2, 7, 64, 1000])
def test_batch_shapes_keep_the_size(pairs: int) -> None:
    shapes = batch_shapes(pairs)
    assert len(shapes) <= 3
    assert all(rows * columns <= max(pairs, 1) for rows, columns in shapes)


@pytest.mark.parametrize("pairs", [0, 1, 64, 1000])
@pytest.mark.parametrize("documents", [1, 16, 17, 5000])
def test_batch_counts_are_two(documents: int, pairs: int) -> None:
    most = batch_shapes(pairs)[-1][0]
    assert batch_count(documents, pairs) in {min(16, most), most}
    assert batch_count(1, 1000) == 16
    assert batch_count(5000, 1000) == 512


def test_two_buckets_meet_in_at_most_three_shapes() -> None:
    prepared = jax_engine.JaxEngine([], [[Conv(3)]]).prepare(documents(lengths=[20] * 40 + [50] * 40 + [20]))
    shapes = set()
    short, long = range(40), range(40, 80)
    for rows, columns in ((short, long), (long, short), ([3], long), (long, [3]), ([50], short), ([50], [3])):
        for batch in batches(prepared[np.array(rows)], prepared[np.array(columns)], 1 << 14, False):
            shapes.add((batch.columns, batch.rows) if batch.swapped else (batch.rows, batch.columns))
    assert shapes == set(batch_shapes(8))


@pytest.mark.parametrize("symmetric", [False, True])
def test_batches_cover_every_pair_once(symmetric: bool) -> None:
    lengths = np.random.default_rng(1).integers(1, 150, size=23)
    prepared = jax_engine.JaxEngine([], [[Conv(3)]]).prepare(documents(lengths=lengths))
    rows, columns = (prepared, prepared) if symmetric else (prepared[:9], prepared[9:])
    seen = np.zeros((len(rows), len(columns)), int)
    for batch in batches(rows, columns, 1 << 13, symmetric):
        assert len(batch.places1) <= batch.rows
        assert len(batch.places2) <= batch.columns
        longest = [padded_length(int(part.documents.lengths[part.index].max())) for part in (rows, columns)]
        assert batch.rows * batch.columns * 32 * 32 <= max(1 << 13, longest[0] * longest[1])
        seen[np.ix_(batch.places1, batch.places2)] += 1
    assert seen.max() == 1
    assert ((seen + seen.T if symmetric else seen) > 0).all()
    assert not symmetric or seen.mean() < 0.6


@pytest.mark.parametrize("case", [CONVOLUTIONS[4], MIXED[5], SQRT[3]], ids=lambda case: case.name)
def test_batches_stay_within_their_memory(case: Case) -> None:
    graph = TokenGraph([case.architecture.token_layers])
    nodes = tuple(graph.nodes), graph.pools
    states = np.zeros((4, sum(node.kind == "relu" for node in graph.nodes), 128), np.int32)
    plain = jax_graph.Documents(np.zeros((4, 128, 6), np.float32), None, np.full(4, 100, np.int32), states)
    batch = plain._replace(parts=jax_graph.own_blocks(*nodes, plain)[0])
    compiled = jax_graph.cross_blocks.lower(*nodes, True, batch, batch).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < LIVE_BLOCKS * 4 * (4 * 128) ** 2


def test_a_zero_variance_gives_zero() -> None:
    block = Block(np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32))
    digests = np.arange(2, dtype=np.int32)
    for part in relu(block, (np.zeros(2, np.float32), digests), (np.array([0, 1], np.float32), digests)):
        np.testing.assert_array_equal(part, 0)


def test_a_digest_by_coincidence_changes_nothing() -> None:
    block = Block(np.full((1, 1), 0.3, np.float32), np.ones((1, 1), np.float32))
    one = np.ones(1, np.float32)
    for part, other in zip(
        relu(block, (one, np.int32([7])), (one, np.int32([7]))),
        relu(block, (one, np.int32([7])), (one, np.int32([8]))),
        strict=True,
    ):
        np.testing.assert_array_equal(part, other)


def test_nearly_equal_tokens_keep_their_correlation() -> None:
    """Attention brings all tokens of a document within 5e-7 of each other; to take that for 1 would cost 6e-6."""
    attention = SelfAttention(w_query_std=0.02, b_std=0.2)
    architecture = Architecture(
        [Dense(1.4, 0.1), Activation("relu"), attention, Activation("relu"), GlobalAveragePool()]
    )
    texts = documents(lengths=(12, 9, 7), seed=5)
    for matrix, expected in zip(
        gram(PairKernel(architecture, "jax"), texts), oracle.gram(architecture, list(texts)), strict=True
    ):
        assert_close(matrix, expected, 4e-6)


def test_memory_of_prepared_documents_is_known_before() -> None:
    """Attention weights apart, which :meth:`PairKernel.keep` limits."""
    texts, kernel = documents(lengths=(3, 40, 9, 33, 20)), PairKernel(STACK, "jax")
    kept, working = kernel.memory_need(texts.lengths, texts.dim, (40, 40), True)
    buckets = kernel.prepare(texts).buckets.values()
    total = sum(leaf.nbytes for bucket in buckets for leaf in jax.tree.leaves(bucket))
    weights = sum(leaf.nbytes for bucket in buckets for leaf in jax.tree.leaves(bucket.parts) if leaf.ndim == 3)
    assert weights == 4 * sum(padded_length(length) ** 2 for length in texts.lengths.tolist())
    assert total - weights <= kept <= 1.3 * (total - weights)
    assert working > 4 * LIVE_BLOCKS * 64**2
    kernel.keep(weights - 1)
    assert not kernel.prepare(texts).complete
    kernel.keep(weights)
    assert kernel.prepare(texts).complete


SCRIPT = """
import sys, jax, numpy as np
sys.path.insert(0, {tests!r})
from cases import documents
from textkernels import *
from textkernels.pairs.kernel import PairKernel
from textkernels.pairs.jax_blocks import Block
from textkernels.pairs.jax_features import JaxFeatureKernel
before = jax.config.jax_enable_x64
attention = SelfAttention(positions=Positions(in_values=True), b_std=0.1)
kernels = [
    PairKernel(Architecture([Conv(3), Activation("erf"), attention, Activation("relu"), GlobalAveragePool()]), "jax"),
    JaxFeatureKernel(Architecture([attention, GlobalAveragePool()])),
]
for kernel in kernels:
    prepared = kernel.prepare(documents(np.float64))
    for block in kernel.block(prepared, prepared, True, 0):
        print(block.tobytes().hex())
assert jax.config.jax_enable_x64 == before == bool(int({flag!r}))
"""


def test_results_do_not_depend_on_jax_x64() -> None:
    """B08: the same bits with JAX_ENABLE_X64 on and off, and the setting is left alone."""
    outputs = []
    for flag in ("0", "1"):
        script = SCRIPT.format(tests=os.path.dirname(__file__), flag=flag)
        environment = os.environ | {"JAX_ENABLE_X64": flag}
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    assert outputs[0]
    assert outputs[0] == outputs[1]
