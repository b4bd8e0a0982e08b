"""The bridge to neural-tangents: the oracle against it, live, over the case table; networks of finite width.

Skipped where neural-tangents cannot be imported (it needs a JAX older than 0.6).
"""

from __future__ import annotations

import math
import sys

import numpy as np
import oracle
import pytest
from cases import CASES, REFERENCE, Case, documents, equal_documents, names

import textkernels as tk
from textkernels.finite import quietly, to_stax
from textkernels.reference import reference_gram

DOCUMENTS, EQUAL = documents(), equal_documents()
UNEXPRESSED = tuple(case for case in CASES if case.reference)
RELATIVE = tuple(case for case in UNEXPRESSED if "relative" in case.reference)
EXACT, REPEATED = 1e-9, 1e-7


@pytest.fixture(scope="module", autouse=True)
def _neural_tangents():
    try:
        to_stax(tk.named_architecture("gap"))
    except ImportError as error:
        pytest.skip(str(error))


def assert_equals_the_oracle(case: Case, sequences):
    expected = oracle.gram(case.architecture, list(sequences))
    nngp, ntk = reference_gram(case.architecture, sequences, kind="both")
    # The last document repeats the fourth, and rounding makes their correlation not quite 1.
    repeated = np.zeros(nngp.shape, bool)
    repeated[3, -1] = repeated[-1, 3] = True
    assert np.max(np.abs(nngp - expected[0])) < EXACT * expected[0].max()
    difference = np.abs(ntk - expected[1]) / expected[1].max()
    assert difference[~repeated].max() < EXACT
    assert difference[repeated].max() < REPEATED


@pytest.mark.parametrize("case", REFERENCE, ids=names(REFERENCE))
def test_oracle_equals_neural_tangents(case):
    assert_equals_the_oracle(case, DOCUMENTS)


@pytest.mark.parametrize("case", RELATIVE, ids=names(RELATIVE))
def test_oracle_equals_neural_tangents_at_relative_positions_of_equal_documents(case):
    assert_equals_the_oracle(case, EQUAL)


@pytest.mark.parametrize("case", UNEXPRESSED, ids=names(UNEXPRESSED))
def test_what_neural_tangents_cannot_express_is_refused(case):
    message = {
        "relative positions across documents of different length": "stax has no relative positions across documents",
        "no share of content in the scores": r"stax cannot leave the content out \(content_share = 0\)",
    }[case.reference]
    with pytest.raises(NotImplementedError, match=message):
        reference_gram(case.architecture, DOCUMENTS)


def test_batches_and_other_documents_change_nothing():
    architecture = tk.Architecture([tk.Conv(3, 1.4), tk.Activation("erf"), tk.GlobalAveragePool()])
    whole = reference_gram(architecture, DOCUMENTS, kind="both")
    for part, batched in zip(whole, reference_gram(architecture, DOCUMENTS, kind="both", batch=5), strict=True):
        np.testing.assert_allclose(batched, part, rtol=1e-12)
    cross = reference_gram(architecture, DOCUMENTS[:3], DOCUMENTS[2:], kind="ntk")
    np.testing.assert_allclose(cross, whole[1][:3, 2:], rtol=1e-12)


def test_float32_on_request_and_the_global_setting_stays():
    import jax

    before = jax.config.jax_enable_x64
    architecture = tk.named_architecture("gap-fcn")
    exact = reference_gram(architecture, DOCUMENTS)
    rough = reference_gram(architecture, DOCUMENTS, x64=False)
    assert 1e-9 < np.abs(rough - exact).max() < 1e-5
    assert jax.config.jax_enable_x64 == before


def test_monte_carlo_attention_has_networks_but_no_kernel():
    architecture = tk.Architecture(
        [tk.Dense(), tk.SelfAttention("softmax", "sqrt"), tk.GlobalAveragePool(), tk.Dense()]
    )
    with pytest.raises(NotImplementedError, match="no kernel for sqrt scaling with softmax scores"):
        reference_gram(architecture, DOCUMENTS)
    with pytest.raises(NotImplementedError, match="no kernel for sqrt scaling with softmax scores"):
        reference_gram(
            tk.Architecture([tk.Dense(), tk.Residual(architecture.token_layers), tk.GlobalAveragePool()]), DOCUMENTS
        )
    assert outputs(architecture, width=16, seed=0).shape == (len(DOCUMENTS), 1)


@pytest.mark.parametrize(
    ("layers", "layer"),
    [
        ([tk.LayerNorm(), tk.Dense()], "LayerNorm"),
        ([tk.Dense(), tk.Activation("relu"), tk.LayerNorm()], "LayerNorm"),
        ([tk.Residual([tk.Dense()])], "Residual"),
    ],
)
def test_layers_that_stax_wants_gaussian_values_for(layers, layer):
    architecture = tk.Architecture([*layers, tk.GlobalAveragePool(), tk.Dense()])
    with pytest.raises(NotImplementedError, match=rf"{layer}: stax takes it on Gaussian values only.*extra_dense=1"):
        to_stax(architecture)
    assert len(to_stax(architecture, extra_dense=1)) == 3


def test_missing_neural_tangents_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "neural_tangents", None)
    with pytest.raises(ImportError, match=r"pip install 'textkernels\[reference\]'"):
        to_stax(tk.named_architecture("gap"))


def outputs(architecture: tk.Architecture, width: int, seed: int, channels: int = 1) -> np.ndarray:
    """Of one random network, (n, channels)."""
    import jax

    values, mask = DOCUMENTS.padded()
    padded = np.where(mask[..., None], values, np.nan).astype(np.float32)
    init_fn, apply_fn, _ = to_stax(architecture, width, heads=max(1, width // 8), outputs=channels)
    with quietly():
        _, weights = init_fn(jax.random.PRNGKey(seed), padded.shape)
        return np.asarray(apply_fn(weights, padded, mask_constant=math.nan).masked_value, np.float64)


@pytest.mark.parametrize(
    "layers",
    [
        [tk.Conv(3, 1.4, 0.3), tk.Activation("relu"), tk.Dense(), tk.Residual([tk.Conv(3)], share=0.4)],
        [tk.Dense(), tk.SelfAttention(w_query_std=1.3, positions=tk.Positions("absolute", decay=1.0, scale=1.0))],
    ],
    ids=["convolution", "attention"],
)
def test_wide_networks_approach_the_kernel(layers):
    head = [tk.GlobalAveragePool(), tk.Dense(1.4, 0.2), tk.Activation("erf"), tk.Dense(1.2, 0.1)]
    architecture = tk.Architecture([*layers, *head])
    expected = oracle.gram(architecture, list(DOCUMENTS))[0]
    size, errors = np.linalg.norm(expected), {}
    for width in (4, 128):
        drawn = [outputs(architecture, width, seed, width) for seed in range(8)]
        samples = [output @ output.T / width - expected for output in drawn]
        errors[width] = np.mean([np.linalg.norm(sample) for sample in samples]) / size
    assert np.linalg.norm(np.mean(samples, axis=0)) / size < 0.2
    assert errors[128] < errors[4] / 2
