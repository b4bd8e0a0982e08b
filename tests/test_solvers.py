"""Solvers against dense formulas by numpy.linalg, for every block size and over repeated documents."""

import re

import numpy as np
import pytest

from textkernels.solvers import CholeskyFactor, LowerTriangle, PrimalRidge
from textkernels.solvers.blocks import LARGEST_BLOCK
from textkernels.solvers.cholesky import JITTERS, jitters_for
from textkernels.solvers.diagnosis import DENSE_LIMIT, duplicate_rows, smallest_eigenvalue
from textkernels.solvers.factorization import factorize_in_place

N = 23
BLOCKS = [1, 3, 7, N, 50]
DIAG_REG = 1e-2


def kernel(n: int = N, seed: int = 0) -> np.ndarray:
    """A well-conditioned kernel, exp(-|x - x'|^2 / 2), scaled so that the unit of diag_reg matters."""
    x = np.random.default_rng(seed).standard_normal((n, 4))
    return 3.0 * np.exp(-0.5 * np.square(x[:, None] - x[None]).sum(axis=-1)) + 0.2 * np.eye(n)


def regularized(matrix: np.ndarray, diag_reg: float) -> np.ndarray:
    return matrix + diag_reg * np.trace(matrix) / len(matrix) * np.eye(len(matrix))


def features(n: int = N, m: int = 6, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, m)) * np.linspace(0.3, 2.0, m)


# --- LowerTriangle


@pytest.mark.parametrize("block", BLOCKS)
def test_lower_triangle_is_the_matrix(block: int) -> None:
    dense = kernel()
    triangle = LowerTriangle.from_dense(dense, block)
    right = np.random.default_rng(2).standard_normal((N, 5))
    np.testing.assert_array_equal(triangle.to_dense(), dense)
    np.testing.assert_array_equal(triangle.diagonal(), np.diagonal(dense))
    assert triangle.trace == pytest.approx(np.trace(dense), rel=1e-14)
    assert triangle.mean_diagonal == pytest.approx(np.trace(dense) / N, rel=1e-14)
    np.testing.assert_allclose(triangle.matmul(right), dense @ right, rtol=0, atol=1e-12)
    np.testing.assert_allclose(triangle.matmul(right[:, 0]), dense @ right[:, 0], rtol=0, atol=1e-12)
    indices = np.array([20, 3, 11, 0, 22])
    np.testing.assert_array_equal(triangle.submatrix(indices), dense[np.ix_(indices, indices)])


@pytest.mark.parametrize("block", BLOCKS)
def test_only_blocks_on_and_below_the_diagonal_are_asked_for(block: int) -> None:
    dense = kernel()
    asked = np.zeros((N, N), dtype=int)

    def fill(rows: slice, columns: slice) -> np.ndarray:
        assert rows.start >= columns.start
        assert rows.stop - rows.start <= block
        asked[rows, columns] += 1
        return dense[rows, columns].astype(np.float32)

    triangle = LowerTriangle.from_blocks(N, fill, block)
    assert (asked[np.tril_indices(N)] == 1).all()
    np.testing.assert_array_equal(triangle.to_dense(), dense.astype(np.float32).astype(np.float64))


def test_unsymmetric_rounding_is_read_from_the_lower_triangle() -> None:
    dense = kernel()
    noisy = dense + np.triu(np.full((N, N), 0.5), 1)
    np.testing.assert_array_equal(LowerTriangle.from_dense(noisy, 7).to_dense(), dense)


def test_half_the_memory() -> None:
    n, block = 400, 10
    triangle = LowerTriangle.zeros(n, block)
    assert triangle.nbytes == 8 * n * (n + block) // 2


def test_copy_and_diagonal() -> None:
    dense = kernel()
    triangle = LowerTriangle.from_dense(dense, 7)
    other = triangle.copy()
    other.add_diagonal(np.arange(N))
    np.testing.assert_allclose(other.to_dense(), dense + np.diag(np.arange(N)), rtol=1e-15)
    other.set_diagonal(2.0)
    assert (other.diagonal() == 2.0).all()
    np.testing.assert_array_equal(triangle.to_dense(), dense)


def test_triangle_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"expected a block of shape \(7, 7\), got \(7, 6\)"):
        LowerTriangle.from_blocks(N, lambda rows, columns: np.zeros((7, 6)), 7)
    dense = kernel()
    dense[15, 4] = np.nan
    with pytest.raises(ValueError, match="got nan for documents 15 and 4"):
        LowerTriangle.from_dense(dense, 7)
    with pytest.raises(ValueError, match="square"):
        LowerTriangle.from_dense(dense[:, :5])
    with pytest.raises(ValueError, match="at least one row"):
        LowerTriangle.zeros(0)
    with pytest.raises(ValueError, match="block"):
        LowerTriangle.zeros(5, LARGEST_BLOCK + 1)


def test_triangle_from_arrays() -> None:
    triangle = LowerTriangle.from_dense(kernel(), 7)
    arrays = triangle.arrays()
    np.testing.assert_array_equal(LowerTriangle.from_arrays(arrays).to_dense(), triangle.to_dense())
    del arrays["panel_0001"]
    with pytest.raises(ValueError, match="expected panels of shapes"):
        LowerTriangle.from_arrays(arrays)
    with pytest.raises(ValueError, match="got none"):
        LowerTriangle.from_arrays({})


# --- CholeskyFactor


@pytest.mark.parametrize("block", BLOCKS)
def test_cholesky_matches_numpy(block: int) -> None:
    dense = kernel()
    reference = regularized(dense, DIAG_REG)
    lower, inverse = np.linalg.cholesky(reference), np.linalg.inv(reference)
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(dense, block), DIAG_REG)
    right = np.random.default_rng(3).standard_normal((N, 4))
    assert factor.jitter == 0.0
    assert factor.noise == pytest.approx(DIAG_REG * np.trace(dense) / N, rel=1e-14)
    np.testing.assert_allclose(factor.half_solve(right), np.linalg.solve(lower, right), atol=1e-10)
    np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-10)
    np.testing.assert_allclose(factor.solve(right[:, 1]), inverse @ right[:, 1], atol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diagonal(inverse), rtol=1e-10)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(reference)[1], abs=1e-10)
    smallest = np.linalg.eigvalsh(dense)[0]
    assert factor.smallest_eigenvalue() == pytest.approx(smallest, rel=1e-8)


@pytest.mark.parametrize("block", BLOCKS)
def test_inverse_diagonal_of_some_rows_in_any_order(block: int) -> None:
    inverse = np.linalg.inv(regularized(kernel(), DIAG_REG))
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(kernel(), block), DIAG_REG)
    rows = np.array([19, 2, 7, 22, 0, 8])
    np.testing.assert_allclose(factor.inverse_diagonal(rows), np.diagonal(inverse)[rows], rtol=1e-10)


def test_arguments_are_not_changed_by_solving() -> None:
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(kernel(), 7), DIAG_REG)
    right = np.ones((N, 2))
    factor.solve(right)
    factor.half_solve(right)
    assert (right == 1.0).all()


def test_overwrite() -> None:
    triangle = LowerTriangle.from_dense(kernel(), 7)
    assert CholeskyFactor.factor(triangle, DIAG_REG, overwrite=False).lower is not triangle
    np.testing.assert_array_equal(triangle.to_dense(), kernel())
    factor = CholeskyFactor.factor(triangle, DIAG_REG)
    assert factor.lower is triangle
    assert factor.nbytes == triangle.nbytes


@pytest.mark.parametrize("block", [1, 3, 7, 60])
def test_a_failed_factorization_leaves_the_matrix_as_it_was(block: int) -> None:
    # The bad direction sits in the last rows, so that nearly everything has been overwritten when it is met.
    dense = kernel(60)
    dense[59, 59] = -1.0
    triangle = LowerTriangle.from_dense(dense, block)
    assert not factorize_in_place(triangle, 1e-14)
    np.testing.assert_allclose(triangle.to_dense(), dense, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("diag_reg", [0.0, 1e-10, 1e-6, 1e-4])
@pytest.mark.parametrize("block", [3, 7, 80])
def test_repeated_documents_never_give_nan(dtype: type, diag_reg: float, block: int) -> None:
    """B01: forty documents and the same forty again; float32 engines also round the same entry in different ways."""
    random = np.random.default_rng(4)
    x = random.standard_normal((40, 6))
    dense = np.tile(np.exp(-0.05 * np.square(x[:, None] - x[None]).sum(axis=-1)), (2, 2))
    if dtype == np.float32:
        rounding = np.tril(random.uniform(-6e-8, 6e-8, dense.shape), -1)
        dense += rounding + rounding.T
    y = np.tile(np.where(np.arange(40) % 2, 0.5, -0.5), 2)[:, None]
    triangle = LowerTriangle.from_dense(dense.astype(dtype), block)
    given = triangle.to_dense()
    factor = CholeskyFactor.factor(triangle, diag_reg)
    coef = factor.solve(y)
    assert np.isfinite(coef).all()
    assert np.isfinite(factor.inverse_diagonal()).all()
    assert factor.noise == pytest.approx(diag_reg + factor.jitter, rel=1e-6)
    assert (factor.jitter > 0.0) == (np.linalg.eigvalsh(given)[0] + diag_reg < 1e-11)
    np.testing.assert_allclose((given + factor.noise * np.eye(80)) @ coef, y, rtol=0, atol=1e-5)
    # The two copies of a document carry the same label: so do their predictions.
    prediction = given @ coef
    np.testing.assert_allclose(prediction[:40], prediction[40:], rtol=0, atol=1e-2 if dtype == np.float32 else 1e-6)


def test_jitter_is_the_first_that_works() -> None:
    dense = np.ones((30, 30))
    assert CholeskyFactor.factor(LowerTriangle.from_dense(dense, 7), 0.0).jitter == JITTERS[1]
    assert list(jitters_for(1e-6, 100)) == [0.0, 1e-6, 1e-5, 1e-4]
    assert list(jitters_for(1.0, 100)) == [0.0]
    assert list(jitters_for(0.0, 25_000))[:2] == [0.0, 1e-10]
    with pytest.raises(ValueError, match="diag_reg >= 0"):
        CholeskyFactor.factor(LowerTriangle.from_dense(dense), -1e-3)
    with pytest.raises(ValueError, match="diag_reg >= 0"):
        CholeskyFactor.factor(LowerTriangle.from_dense(dense), float("nan"))


def test_an_indefinite_kernel_is_named_and_left_intact() -> None:
    dense = np.tile(kernel(20), (2, 2))
    values, vectors = np.linalg.eigh(dense)
    broken = dense - (values[-3] + 0.24 * np.trace(dense) / 40) * np.outer(vectors[:, -3], vectors[:, -3])
    smallest = np.linalg.eigvalsh(broken)[0] / (np.trace(broken) / 40)
    triangle = LowerTriangle.from_dense(broken, 7)
    with pytest.raises(ValueError, match="positive semi-definite") as caught:
        CholeskyFactor.factor(triangle, 1e-6)
    found = re.search(r"eigenvalue of (\S+) times", str(caught.value))
    assert found
    assert float(found.group(1)) == pytest.approx(smallest, rel=0.01)
    np.testing.assert_allclose(triangle.to_dense(), broken, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dense", [np.zeros((4, 4)), np.diag([1.0, 1.0, -0.5, 1.0])])
def test_a_kernel_without_variances_is_an_error(dense: np.ndarray) -> None:
    with pytest.raises(ValueError, match="variances on the kernel's diagonal"):
        CholeskyFactor.factor(LowerTriangle.from_dense(dense), 1e-3)


@pytest.mark.parametrize("block", [1, 5, 23])
def test_duplicates_are_counted(block: int) -> None:
    x = features(20, 5)
    x[7] = x[2]
    x[15] = x[2]
    x[19] = 3.0 * x[18]
    assert duplicate_rows(LowerTriangle.from_dense((x @ x.T).astype(np.float32), block)) == 3
    assert duplicate_rows(LowerTriangle.from_dense(kernel(), block)) == 0


def test_smallest_eigenvalue_beyond_the_dense_limit() -> None:
    n = DENSE_LIMIT + 10
    x = np.random.default_rng(5).standard_normal((n, 3))
    direction = np.random.default_rng(6).standard_normal(n)
    direction /= np.linalg.norm(direction)
    dense = x @ x.T - 40.0 * np.outer(direction, direction)
    found = smallest_eigenvalue(LowerTriangle.from_dense(dense, 400))
    assert found == pytest.approx(np.linalg.eigvalsh(dense)[0], rel=1e-6)


def test_factor_from_arrays_is_bit_equal() -> None:
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(kernel(), 7), DIAG_REG)
    loaded = CholeskyFactor.from_arrays(factor.arrays())
    right = np.arange(N, dtype=np.float64)
    np.testing.assert_array_equal(loaded.solve(right), factor.solve(right))
    assert (loaded.noise, loaded.diag_reg, loaded.jitter) == (factor.noise, factor.diag_reg, factor.jitter)
    assert all(array.dtype.kind == "f" for array in factor.arrays().values())


def test_one_document() -> None:
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(np.array([[2.0]])), 0.5)
    np.testing.assert_allclose(factor.solve(np.array([6.0])), [2.0])
    np.testing.assert_allclose(factor.inverse_diagonal(), [1 / 3])
    assert factor.smallest_eigenvalue() == pytest.approx(2.0)


# --- PrimalRidge


@pytest.mark.parametrize("diag_reg", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_primal_is_the_dual(diag_reg: float, dtype: type) -> None:
    phi: np.ndarray = features().astype(dtype)
    exact = phi.astype(np.float64)
    dense = exact @ exact.T
    inverse = np.linalg.inv(regularized(dense, diag_reg))
    y = np.random.default_rng(7).standard_normal((N, 3))
    test = features(5, seed=8)
    ridge = PrimalRidge.factor(phi, diag_reg)
    cross = test @ exact.T
    assert ridge.jitter == 0.0
    assert ridge.noise == pytest.approx(diag_reg * np.trace(dense) / N, rel=1e-12)
    np.testing.assert_allclose(test @ ridge.coefficients(y), cross @ inverse @ y, atol=1e-8)
    np.testing.assert_allclose(ridge.solve(y) * ridge.noise, inverse @ y * ridge.noise, atol=1e-8)
    np.testing.assert_allclose(ridge.solve(y[:, 0]) * ridge.noise, inverse @ y[:, 0] * ridge.noise, atol=1e-8)
    expected = np.square(test).sum(axis=1) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    np.testing.assert_allclose(ridge.variance(test), expected, atol=1e-8)
    np.testing.assert_allclose(ridge.inverse_diagonal(), np.diagonal(inverse), rtol=1e-8)
    np.testing.assert_allclose(ridge.inverse_diagonal(np.array([4, 1])), np.diagonal(inverse)[[4, 1]], rtol=1e-8)
    assert ridge.log_determinant == pytest.approx(np.linalg.slogdet(regularized(dense, diag_reg))[1], abs=1e-8)


def test_primal_without_noise_reports_jitter_and_stays_finite() -> None:
    phi = features()
    phi[:, 3] = phi[:, 2]
    phi[12:] = phi[:11]
    ridge = PrimalRidge.factor(phi, 0.0)
    y = np.where(np.arange(N) % 2, 0.5, -0.5)[:, None]
    assert ridge.jitter == JITTERS[1]
    coef = ridge.coefficients(y)
    # As the noise goes to zero, ridge regression becomes least squares.
    np.testing.assert_allclose(phi @ coef, phi @ np.linalg.pinv(phi) @ y, atol=1e-6)
    assert (ridge.variance(phi) >= 0.0).all()


def test_another_regularizer_reuses_the_decomposition() -> None:
    first = PrimalRidge.factor(features(), 1e-3).with_diag_reg(0.5)
    second = PrimalRidge.factor(features(), 0.5)
    np.testing.assert_array_equal(first.coefficients(np.ones((N, 1))), second.coefficients(np.ones((N, 1))))


def test_primal_from_arrays_predicts_and_says_what_it_cannot_do() -> None:
    ridge = PrimalRidge.factor(features(), 1e-2)
    loaded = PrimalRidge.from_arrays(ridge.arrays())
    np.testing.assert_array_equal(loaded.variance(features(5)), ridge.variance(features(5)))
    assert loaded.nbytes == 8 * (6 + 36)
    with pytest.raises(ValueError, match="training features"):
        loaded.coefficients(np.ones((N, 1)))


def test_primal_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="not all zero"):
        PrimalRidge.factor(np.zeros((5, 2)), 1e-3)
    with pytest.raises(ValueError, match="finite"):
        PrimalRidge.factor(np.full((5, 2), np.nan), 1e-3)
    with pytest.raises(ValueError, match="at most 5,000 features"):
        PrimalRidge.factor(np.zeros((1, 5_001)), 1e-3)
    with pytest.raises(ValueError, match="diag_reg >= 0"):
        PrimalRidge.factor(features(), -1.0)
