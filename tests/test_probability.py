"""Probabilities against Monte Carlo, adaptive quadrature and labels drawn from them."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from textkernels.probability import class_probabilities, fit_residual_variance, neutral_probabilities
from textkernels.targets import predicted_class


def largest_by_quadrature(mean: np.ndarray, deviation: float) -> np.ndarray:
    """Integral of phi(z) prod Phi(z + (m_c - m_k) / sd), by an adaptive rule."""
    out = []
    for c, own in enumerate(mean):
        others = np.delete(mean, c)

        def integrand(z: float, own: float = own, others: np.ndarray = others) -> float:
            return float(norm.pdf(z) * norm.cdf(z + (own - others) / deviation).prod())

        out.append(quad(integrand, -12, 12, epsabs=1e-13, limit=200)[0])
    return np.array(out)


def test_two_classes_are_the_probit() -> None:
    mean, variance = np.array([[-0.6], [0.0], [0.2], [3.0]]), np.array([0.1, 0.0, 0.3, 0.2])
    got = class_probabilities(mean, variance, 0.16)
    expected = norm.cdf(mean[:, 0] / np.sqrt(variance + 0.16))
    np.testing.assert_allclose(got[:, 1], expected, atol=1e-15)
    np.testing.assert_allclose(got[:, 0], 1.0 - expected, atol=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 20])
def test_more_classes_are_the_integral(n_classes: int) -> None:
    mean = 0.5 * np.random.default_rng(n_classes).standard_normal((3, n_classes))
    variance = np.array([0.0, 0.04, 1.0])
    got = class_probabilities(mean, variance, 0.01)
    for row in range(3):
        expected = largest_by_quadrature(mean[row], float(np.sqrt(variance[row] + 0.01)))
        np.testing.assert_allclose(got[row], expected, atol=1e-9)


def test_two_columns_are_the_probit_of_the_difference() -> None:
    mean, variance = np.array([[0.1, -0.3], [-0.2, 0.7], [0.0, 0.0]]), np.array([0.3, 0.1, 0.2])
    got = class_probabilities(mean, variance, 0.1)
    expected = norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(2.0 * (variance + 0.1)))
    np.testing.assert_allclose(got[:, 1], expected, atol=1e-12)


def test_more_classes_by_monte_carlo() -> None:
    mean = np.array([0.4, 0.1, -0.2, 0.35])
    draws = mean + 0.5 * np.random.default_rng(0).standard_normal((400_000, 4))
    shares = np.bincount(draws.argmax(axis=1), minlength=4) / len(draws)
    got = class_probabilities(mean[None], np.array([0.2]), 0.05)[0]
    np.testing.assert_allclose(got, shares, atol=4 * 0.5 / np.sqrt(len(draws)))


def hard_means(n_classes: int) -> np.ndarray:
    """Rows that are nearly or exactly tied, saturated, tiny and huge."""
    random = np.random.default_rng(n_classes)
    columns = 1 if n_classes == 2 else n_classes
    base = random.standard_normal((200, columns))
    near = np.round(base[:, :1], 1) + np.array([0.0, 1e-17, 1e-16, 1e-15])[random.integers(0, 4, base.shape)]
    ties = random.integers(0, 2, base.shape) * 0.5
    return np.vstack(
        [base, base * 1e-18, base * 1e6, near, ties, np.zeros((1, columns)), np.full((1, columns), -1e-300)]
    )


@pytest.mark.parametrize("n_classes", [2, 3, 4, 30])
@pytest.mark.parametrize("residual_variance", [1e-6, 0.16, 1e4])
def test_argmax_is_the_prediction_always(n_classes: int, residual_variance: float) -> None:
    mean = hard_means(n_classes)
    variance = np.random.default_rng(0).choice([0.0, 1e-8, 0.3, 1e3], len(mean))
    got = class_probabilities(mean, variance, residual_variance)
    np.testing.assert_array_equal(got.argmax(axis=1), predicted_class(mean))
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert ((got >= 0.0) & (got <= 1.0)).all()


def test_a_tie_is_shared() -> None:
    np.testing.assert_allclose(class_probabilities(np.zeros((1, 4)), np.ones(1), 0.1), 0.25, atol=1e-15)
    np.testing.assert_array_equal(class_probabilities(np.zeros((1, 1)), np.ones(1), 0.1), [[0.5, 0.5]])


def test_rows_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, variance = hard_means(4), np.linspace(0.0, 1.0, len(hard_means(4)))
    whole = class_probabilities(mean, variance, 0.1)
    monkeypatch.setattr("textkernels.probability.ENTRIES_AT_ONCE", 3 * 145 * 4)
    np.testing.assert_array_equal(class_probabilities(mean, variance, 0.1), whole)


@pytest.mark.parametrize("residual_variance", [0.02, 0.16, 0.6])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_fit_recovers_the_variance_the_labels_were_drawn_with(residual_variance: float, n_classes: int) -> None:
    random = np.random.default_rng(1)
    mean = 0.4 * random.standard_normal((3_000, 1 if n_classes == 2 else n_classes))
    variance = random.uniform(0.0, 0.1, len(mean))
    probabilities = class_probabilities(mean, variance, residual_variance)
    labels = (random.random((len(mean), 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    found = fit_residual_variance(mean, variance, np.minimum(labels, n_classes - 1))
    assert found == pytest.approx(residual_variance, rel=0.2)


def test_fit_is_the_best_of_a_fine_grid() -> None:
    random = np.random.default_rng(2)
    mean = 0.3 * random.standard_normal((400, 1))
    labels = (mean[:, 0] + 0.3 * random.standard_normal(400) > 0).astype(int)
    variance = np.full(400, 0.01)
    counts = np.bincount(labels)[labels]
    own = (counts + 1.0) / (counts + 2.0)

    def likelihood(residual_variance: float) -> float:
        score = np.where(labels == 1, 1.0, -1.0) * mean[:, 0] / np.sqrt(variance + residual_variance)
        return float((own * norm.logcdf(score) + (1.0 - own) * norm.logcdf(-score)).sum())

    grid = np.geomspace(1e-3, 1.0, 2_001)
    best = grid[int(np.argmax([likelihood(value) for value in grid]))]
    assert fit_residual_variance(mean, variance, labels) == pytest.approx(best, rel=0.01)


def test_fit_makes_linear_class_shares_calibrated() -> None:
    """Targets of -0.5 and 0.5: a perfect regression has P(class 1) = 0.5 + m. The residuals' variance would not do."""
    random = np.random.default_rng(3)
    mean = random.uniform(-0.25, 0.25, (20_000, 1))
    labels = (random.random(len(mean)) < 0.5 + mean[:, 0]).astype(int)
    nothing = np.zeros(len(mean))
    fitted = fit_residual_variance(mean, nothing, labels)
    residual = np.where(labels == 1, 0.5, -0.5) - mean[:, 0]
    assert fitted == pytest.approx(1.0 / (2.0 * np.pi), rel=0.15)
    worst = np.abs(class_probabilities(mean, nothing, fitted)[:, 1] - 0.5 - mean[:, 0]).max()
    worst_by_residuals = np.abs(class_probabilities(mean, nothing, residual.var())[:, 1] - 0.5 - mean[:, 0]).max()
    assert worst < 0.03 < worst_by_residuals


@pytest.mark.parametrize("n_classes", [2, 3])
def test_twenty_right_answers_do_not_make_certainty(n_classes: int) -> None:
    labels = np.arange(20) % n_classes
    mean = 0.3 * np.where(labels == 1, 1.0, -1.0)[:, None] if n_classes == 2 else 0.5 * np.eye(3)[labels]
    found = fit_residual_variance(mean, np.zeros(20), labels)
    top = class_probabilities(mean, np.zeros(20), found).max(axis=1)
    assert ((top > 0.8) & (top < 0.99)).all()


def test_useless_predictions_give_even_chances() -> None:
    labels = np.arange(40) % 2
    mean = np.where(labels == 1, -0.3, 0.3)[:, None]
    found = fit_residual_variance(mean, np.zeros(40), labels)
    np.testing.assert_allclose(class_probabilities(mean, np.zeros(40), found), 0.5, atol=0.01)


def test_neutral_rows_have_the_class_shares() -> None:
    np.testing.assert_allclose(neutral_probabilities(np.array([3, 1]), 2), [[0.75, 0.25], [0.75, 0.25]])
    assert neutral_probabilities(np.array([0.2, 0.3, 0.5]), 0).shape == (0, 3)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="residual_variance > 0"):
        class_probabilities(np.zeros((1, 1)), np.zeros(1), 0.0)
    with pytest.raises(ValueError, match="finite latent means"):
        class_probabilities(np.array([[np.nan]]), np.zeros(1), 0.1)


def test_no_rows() -> None:
    assert class_probabilities(np.zeros((0, 1)), np.zeros(0), 0.1).shape == (0, 2)
    assert class_probabilities(np.zeros((0, 3)), np.zeros(0), 0.1).shape == (0, 3)
