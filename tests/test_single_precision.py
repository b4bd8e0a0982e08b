"""Cholesky in float32 against float64 linear algebra, one block and many."""

import numpy as np
import pytest

from textkernels.solvers import single_precision
from textkernels.solvers.single_precision import SingleCholesky

N = 101


@pytest.fixture(params=[16, 101, 1024], ids=lambda block: f"block {block}")
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(single_precision, "BLOCK", request.param)
    return int(request.param)


def kernel(rank: int = N) -> np.ndarray:
    phi = np.random.default_rng(0).standard_normal((N, rank))
    return (phi @ phi.T / rank).astype(np.float32)


def test_solutions_and_determinant(block: int) -> None:
    k, y = kernel(), np.random.default_rng(1).standard_normal((N, 3))
    factor = SingleCholesky.factor(k, 0.5, np.empty_like(k))
    assert factor is not None
    dense = k.astype(np.float64) + 0.5 * np.eye(N)
    np.testing.assert_allclose(factor.solve(y), np.linalg.solve(dense, y), rtol=0, atol=2e-5)
    assert factor.solve(y).dtype == np.float32
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-3)


def test_the_kernel_and_what_lies_above_its_diagonal_do_not_matter(block: int) -> None:
    """One kernel serves a whole grid: it must stay what it was, and its upper half is never filled."""
    k = kernel()
    lower = np.tril(k)
    lower[np.triu_indices(N, 1)] = np.nan
    kept, out = lower.copy(), np.full_like(k, np.nan)
    first = SingleCholesky.factor(lower, 0.5, out)
    assert first is not None
    solved = first.solve(np.ones((N, 1)))
    np.testing.assert_array_equal(lower, kept)
    second = SingleCholesky.factor(k, 0.5, np.empty_like(k))
    assert second is not None
    np.testing.assert_array_equal(second.solve(np.ones((N, 1))), solved)


def test_not_positive_definite_is_none(block: int) -> None:
    k = kernel(rank=20)
    out = np.empty_like(k)
    k[80, 80] -= 3.0  # an eigenvalue of about -3 in the second half
    assert SingleCholesky.factor(k, 1e-3, out) is None
    assert SingleCholesky.factor(k, 4.0, out) is not None


def test_repeated_documents_fail_without_noise_in_float32() -> None:
    """KERNELS.md, traps: that is the outcome that Table 3's validation records."""
    phi = np.random.default_rng(0).standard_normal((60, 8))
    phi = np.vstack([phi, phi]).astype(np.float32)
    k = phi @ phi.T
    assert SingleCholesky.factor(k, 0.0, np.empty_like(k)) is None
