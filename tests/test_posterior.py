"""Posteriors against dense formulas, explicit refits and live neural-tangents; dense and primal routes alike."""

import warnings

import numpy as np
import pytest

from textkernels.posterior import LeaveOneOut, LeftOut, NNGPPosterior, NTKPosterior
from textkernels.solvers import CholeskyFactor, LowerTriangle, PrimalRidge
from textkernels.targets import encode_targets, predicted_class

N, B = 19, 6
DIAG_REGS = [1e-6, 1e-2, 1.0]
BLOCKS = [1, 3, 7, N]


class Problem:
    """Random features of both kernels; the NTK has the NNGP's and more, as a trained network has."""

    def __init__(self, columns: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.phi, self.phi_test = random.standard_normal((N, columns)), random.standard_normal((B, columns))
        extra = random.standard_normal((columns, columns))
        self.psi = np.hstack([self.phi, self.phi @ extra])
        self.psi_test = np.hstack([self.phi_test, self.phi_test @ extra])
        self.k, self.k_test, self.diag = self.phi @ self.phi.T, self.phi_test @ self.phi.T, self.diagonal()
        self.theta, self.theta_test = self.psi @ self.psi.T, self.psi_test @ self.psi.T
        self.classes = random.integers(0, 3, N)

    def diagonal(self) -> np.ndarray:
        return np.square(self.phi_test).sum(axis=1)


# Six features are fewer than the documents, as the primal solver wants; forty make the kernels invertible.
NARROW, WIDE = Problem(6), Problem(40)


def targets_of(problem: Problem, n_classes: int) -> np.ndarray:
    return encode_targets(problem.classes % n_classes, n_classes)


def noise_of(matrix: np.ndarray, diag_reg: float) -> float:
    return diag_reg * float(np.trace(matrix)) / len(matrix)


def nngp_by_formula(
    k: np.ndarray, cross: np.ndarray, diag: np.ndarray, y: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    inverse = np.linalg.inv(k + noise * np.eye(len(k)))
    return cross @ inverse @ y, diag - np.einsum("ij,jk,ik->i", cross, inverse, cross)


def ntk_by_formula(
    k: np.ndarray,
    theta: np.ndarray,
    k_test: np.ndarray,
    theta_test: np.ndarray,
    diag: np.ndarray,
    y: np.ndarray,
    noise: float,
) -> tuple[np.ndarray, np.ndarray]:
    p = theta_test @ np.linalg.inv(theta + noise * np.eye(len(k)))
    return p @ y, diag + np.diagonal(p @ k @ p.T) - 2.0 * np.diagonal(p @ k_test.T)


def nngp_posterior(problem: Problem, y: np.ndarray, diag_reg: float, block: int = 7) -> NNGPPosterior:
    return NNGPPosterior.fit(CholeskyFactor.factor(LowerTriangle.from_dense(problem.k, block), diag_reg), y)


def ntk_posterior(problem: Problem, y: np.ndarray, diag_reg: float, block: int = 7) -> NTKPosterior:
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(problem.theta, block), diag_reg)
    return NTKPosterior.fit(factor, LowerTriangle.from_dense(problem.k, block), y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("diag_reg", DIAG_REGS)
@pytest.mark.parametrize("block", BLOCKS)
def test_nngp_by_the_formula(n_classes: int, diag_reg: float, block: int) -> None:
    y = targets_of(WIDE, n_classes)
    mean, variance = nngp_by_formula(WIDE.k, WIDE.k_test, WIDE.diag, y, noise_of(WIDE.k, diag_reg))
    posterior = nngp_posterior(WIDE, y, diag_reg, block)
    got = posterior.predict(WIDE.k_test, WIDE.diag)
    np.testing.assert_allclose(got.mean, mean, atol=1e-8)
    np.testing.assert_allclose(got.variance, variance, atol=1e-8)
    np.testing.assert_array_equal(posterior.mean(WIDE.k_test), got.mean)


@pytest.mark.parametrize("diag_reg", DIAG_REGS)
@pytest.mark.parametrize("block", BLOCKS)
def test_ntk_by_the_formula(diag_reg: float, block: int) -> None:
    y = targets_of(WIDE, 3)
    noise = noise_of(WIDE.theta, diag_reg)
    mean, variance = ntk_by_formula(WIDE.k, WIDE.theta, WIDE.k_test, WIDE.theta_test, WIDE.diag, y, noise)
    got = ntk_posterior(WIDE, y, diag_reg, block).predict(WIDE.theta_test, WIDE.k_test, WIDE.diag)
    np.testing.assert_allclose(got.mean, mean, atol=1e-8)
    np.testing.assert_allclose(got.variance, variance, atol=1e-8)


@pytest.mark.parametrize("diag_reg", [1e-4, 1e-2, 1.0])
def test_primal_and_dense_routes_agree(diag_reg: float) -> None:
    y = targets_of(NARROW, 3)
    dense = nngp_posterior(NARROW, y, diag_reg)
    primal = NNGPPosterior.fit(PrimalRidge.factor(NARROW.phi, diag_reg), y)
    _close(primal.predict(NARROW.phi_test, NARROW.diag), dense.predict(NARROW.k_test, NARROW.diag))
    assert primal.log_marginal_likelihood(y) == pytest.approx(dense.log_marginal_likelihood(y), rel=1e-8)
    _close(_numbers(primal.leave_one_out(y)), _numbers(dense.leave_one_out(y)))

    ensemble = ntk_posterior(NARROW, y, diag_reg)
    linear = NTKPosterior.fit(PrimalRidge.factor(NARROW.psi, diag_reg), NARROW.phi, y)
    got = linear.predict(NARROW.psi_test, NARROW.phi_test, NARROW.diag)
    _close(got, ensemble.predict(NARROW.theta_test, NARROW.k_test, NARROW.diag))
    _close(_numbers(linear.leave_one_out(y)), _numbers(ensemble.leave_one_out(y)))


@pytest.mark.parametrize("diag_reg", DIAG_REGS)
def test_leave_one_out_is_refitting_without_one(diag_reg: float) -> None:
    y = targets_of(WIDE, 3)
    noise, ntk_noise = noise_of(WIDE.k, diag_reg), noise_of(WIDE.theta, diag_reg)
    nngp = nngp_posterior(WIDE, y, diag_reg).leave_one_out(y)
    ntk = ntk_posterior(WIDE, y, diag_reg).leave_one_out(y)
    for row in range(N):
        rest = np.delete(np.arange(N), row)
        inner = np.ix_(rest, rest)
        cross, diag = WIDE.k[[row]][:, rest], WIDE.k[[row], [row]]
        mean, variance = nngp_by_formula(WIDE.k[inner], cross, diag, y[rest], noise)
        np.testing.assert_allclose(nngp.mean[row], mean[0], atol=1e-8)
        np.testing.assert_allclose(nngp.variance[row], variance[0], atol=1e-8)
        np.testing.assert_allclose(nngp.residual[row], y[row] - mean[0], atol=1e-8)
        theta_cross = WIDE.theta[[row]][:, rest]
        mean, variance = ntk_by_formula(WIDE.k[inner], WIDE.theta[inner], cross, theta_cross, diag, y[rest], ntk_noise)
        np.testing.assert_allclose(ntk.mean[row], mean[0], atol=1e-8)
        np.testing.assert_allclose(ntk.variance[row], variance[0], atol=1e-8)


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
@pytest.mark.parametrize("diag_reg", [1e-4, 1.0])
def test_left_out_mean_is_refitting_without_one(kind: str, diag_reg: float) -> None:
    y = targets_of(WIDE, 3)
    matrix, test, features = (
        (WIDE.k, WIDE.k_test, (WIDE.phi, WIDE.phi_test))
        if kind == "nngp"
        else (WIDE.theta, WIDE.theta_test, (WIDE.psi, WIDE.psi_test))
    )
    dense = nngp_posterior(WIDE, y, diag_reg) if kind == "nngp" else ntk_posterior(WIDE, y, diag_reg)
    solver = PrimalRidge.factor(features[0], diag_reg)
    primal = NNGPPosterior.fit(solver, y) if kind == "nngp" else NTKPosterior.fit(solver, WIDE.phi, y)
    rows = np.array([4, 0, 17])
    place = np.array([2, 0, 1, 1, 2, 0])
    expected = []
    for row, one in zip(rows[place], test, strict=True):
        rest = np.delete(np.arange(N), row)
        inner = matrix[np.ix_(rest, rest)] + noise_of(matrix, diag_reg) * np.eye(N - 1)
        expected.append(one[rest] @ np.linalg.solve(inner, y[rest]))
    for posterior, given in ((dense, test), (primal, features[1])):
        got = LeftOut.of(posterior, posterior.leave_one_out(y, rows)).mean(given, place)
        np.testing.assert_allclose(got, expected, atol=1e-8)


@pytest.mark.parametrize("block", BLOCKS)
def test_leave_one_out_of_some_rows(block: int) -> None:
    y, rows = targets_of(WIDE, 2), np.array([14, 3, 0, 18, 7])
    for posterior in (nngp_posterior(WIDE, y, 1e-2, block), ntk_posterior(WIDE, y, 1e-2, block)):
        whole, part = posterior.leave_one_out(y), posterior.leave_one_out(y, rows)
        np.testing.assert_allclose(part.mean, whole.mean[rows], atol=1e-10)
        np.testing.assert_allclose(part.variance, whole.variance[rows], atol=1e-10)
        np.testing.assert_array_equal(part.rows, rows)


@pytest.mark.parametrize("diag_reg", DIAG_REGS)
def test_log_marginal_likelihood_is_the_gaussian_density(diag_reg: float) -> None:
    from scipy.stats import multivariate_normal

    y = targets_of(WIDE, 3)
    covariance = WIDE.k + noise_of(WIDE.k, diag_reg) * np.eye(N)
    expected = sum(multivariate_normal(np.zeros(N), covariance).logpdf(column) for column in y.T)
    assert nngp_posterior(WIDE, y, diag_reg).log_marginal_likelihood(y) == pytest.approx(expected, rel=1e-8)


def test_ntk_ensemble_is_neural_tangents() -> None:
    """Oracle: `predict.gradient_descent_mse_ensemble` at infinite time, on a network with a hidden layer."""
    random = np.random.default_rng(3)
    x, x_test = random.standard_normal((12, 5)), random.standard_normal((4, 5))
    y, diag_reg = encode_targets(random.integers(0, 3, 12), 3), 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax.experimental import enable_x64
        from neural_tangents import predict, stax

        with enable_x64():
            layers = (stax.Dense(1, 1.4, 0.1), stax.Relu(), stax.Dense(1, 1.0, 0.0))
            kernel_fn = stax.serial(*layers)[2]
            train, cross = kernel_fn(x, x, ("nngp", "ntk")), kernel_fn(x_test, x, ("nngp", "ntk"))
            diag = np.diagonal(np.asarray(kernel_fn(x_test, x_test, "nngp")))
            predictor = predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=diag_reg)
            reference = predictor(x_test=x_test, get=("nngp", "ntk"), compute_cov=True)
    k, theta = np.asarray(train.nngp), np.asarray(train.ntk)
    assert k.dtype == np.float64
    nngp = NNGPPosterior.fit(CholeskyFactor.factor(LowerTriangle.from_dense(k, 5), diag_reg), y)
    got = nngp.predict(np.asarray(cross.nngp), diag)
    np.testing.assert_allclose(got.mean, reference.nngp.mean, atol=1e-8)
    np.testing.assert_allclose(got.variance, np.diagonal(np.asarray(reference.nngp.covariance)), atol=1e-8)
    factor = CholeskyFactor.factor(LowerTriangle.from_dense(theta, 5), diag_reg)
    ntk = NTKPosterior.fit(factor, LowerTriangle.from_dense(k, 5), y)
    got = ntk.predict(np.asarray(cross.ntk), np.asarray(cross.nngp), diag)
    np.testing.assert_allclose(got.mean, reference.ntk.mean, atol=1e-8)
    np.testing.assert_allclose(got.variance, np.diagonal(np.asarray(reference.ntk.covariance)), atol=1e-8)


def test_one_test_document_is_the_same_in_any_batch() -> None:
    y = targets_of(WIDE, 3)
    posterior = ntk_posterior(WIDE, y, 1e-3)
    whole = posterior.predict(WIDE.theta_test, WIDE.k_test, WIDE.diag)
    for row in range(B):
        part = slice(row, row + 1)
        alone = posterior.predict(WIDE.theta_test[part], WIDE.k_test[part], WIDE.diag[part])
        np.testing.assert_allclose(alone.mean, whole.mean[part], rtol=0, atol=1e-12)
        np.testing.assert_allclose(alone.variance, whole.variance[part], rtol=0, atol=1e-12)


def test_a_training_document_without_noise_has_no_variance_and_a_far_one_the_priors() -> None:
    y = targets_of(WIDE, 2)
    posterior = nngp_posterior(WIDE, y, 0.0)
    mean, variance = posterior.predict(
        np.vstack([WIDE.k[:3], np.zeros((1, N))]), np.append(np.diagonal(WIDE.k)[:3], 7.0)
    )
    np.testing.assert_allclose(mean[:3], y[:3], atol=1e-8)
    np.testing.assert_allclose(variance, [0.0, 0.0, 0.0, 7.0], atol=1e-8)
    assert (variance >= 0.0).all()
    assert mean[3] == 0.0


def test_a_clearly_negative_variance_is_an_error() -> None:
    posterior = nngp_posterior(WIDE, targets_of(WIDE, 2), 1e-3)
    with pytest.raises(ValueError, match=r"variance of at least 0, got -.* in row 1"):
        posterior.predict(WIDE.k[:2], np.diagonal(WIDE.k)[:2] * [1.0, 0.5])


def test_wrong_shapes_are_named() -> None:
    y = targets_of(WIDE, 2)
    with pytest.raises(ValueError, match=r"expected 19 columns, got shape \(6, 18\)"):
        nngp_posterior(WIDE, y, 1e-3).mean(WIDE.k_test[:, 1:])
    with pytest.raises(ValueError, match=r"targets of shape \(19, classes\)"):
        nngp_posterior(WIDE, y[1:], 1e-3)


def test_posteriors_from_arrays_predict_bit_equal() -> None:
    y = targets_of(NARROW, 3)
    dense, primal = nngp_posterior(NARROW, y, 1e-2), NNGPPosterior.fit(PrimalRidge.factor(NARROW.phi, 1e-2), y)
    _equal(NNGPPosterior.from_arrays(dense.arrays()), dense, NARROW.k_test, NARROW.diag)
    _equal(NNGPPosterior.from_arrays(primal.arrays()), primal, NARROW.phi_test, NARROW.diag)
    ensemble = ntk_posterior(NARROW, y, 1e-2)
    linear = NTKPosterior.fit(PrimalRidge.factor(NARROW.psi, 1e-2), NARROW.phi, y)
    _equal(NTKPosterior.from_arrays(ensemble.arrays()), ensemble, NARROW.theta_test, NARROW.k_test, NARROW.diag)
    loaded = NTKPosterior.from_arrays(linear.arrays())
    _equal(loaded, linear, NARROW.psi_test, NARROW.phi_test, NARROW.diag)
    with pytest.raises(ValueError, match="training features"):
        loaded.leave_one_out(y)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_targets(n_classes: int) -> None:
    index = np.arange(20) % n_classes
    targets = encode_targets(index, n_classes)
    assert targets.shape == (20, 1 if n_classes == 2 else n_classes)
    np.testing.assert_array_equal(predicted_class(targets), index)
    assert set(np.unique(targets)) == ({-0.5, 0.5} if n_classes == 2 else {-1 / n_classes, 1 - 1 / n_classes})
    if n_classes > 2:
        np.testing.assert_allclose(targets.sum(axis=1), 0.0, atol=1e-15)


def test_target_errors_and_ties() -> None:
    with pytest.raises(ValueError, match="two or more classes"):
        encode_targets(np.zeros(3, dtype=int), 1)
    with pytest.raises(ValueError, match="classes 0 to 1, got 0 to 2"):
        encode_targets(np.arange(3), 2)
    np.testing.assert_array_equal(predicted_class(np.array([[0.0], [1e-300], [-1.0]])), [0, 1, 0])
    np.testing.assert_array_equal(predicted_class(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])), [0, 1])


def _numbers(result: LeaveOneOut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return result.mean, result.variance, result.residual


def _close(got: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> None:
    for left, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8)


def _equal(loaded: NNGPPosterior | NTKPosterior, original: NNGPPosterior | NTKPosterior, *test: np.ndarray) -> None:
    for left, right in zip(loaded.predict(*test), original.predict(*test), strict=True):
        np.testing.assert_array_equal(left, right)
