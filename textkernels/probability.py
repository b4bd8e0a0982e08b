"""From the posterior's mean and variance to class probabilities.

Two classes: p = Phi(m / sqrt(v + s^2)), m being the latent mean of the class with target 0.5. More classes: the latent
outputs are independent Gaussians N(m_c, v + s^2) and p_c is the probability that c's is the largest.

s^2 is the one number that the regression posterior does not bring along. The variance of the leave-one-out residuals
would be a poor choice: for targets of -0.5 and 0.5 the calibrated probability near m = 0 is 0.5 + m, which asks for
s^2 = 1 / (2 pi) = 0.16, whereas the residuals there have variance 0.25. So s^2 is fitted: it maximizes the likelihood
of the training labels under their leave-one-out predictions. That is temperature scaling on held-out predictions,
without holding anything out. (6,000 IMDb reviews, mean GloVe vectors, one hidden layer: expected calibration error on
other reviews 0.8 %, and 5.3 % with the variance of the residuals.)

Limit: a kernel whose posterior variance alone exceeds what the labels show (bag of words, nearly diagonal) leaves s^2
at its smallest value and the probabilities too timid; the predicted classes are unaffected.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr

from textkernels.targets import predicted_class

# s^2 stays within what double precision and targets of size 1 make sense of.
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-6, 1e4

# Trapezoid rule for the largest of several Gaussians: the integrand is smooth on the scale of 1 and falls off as
# exp(-z^2/2), so the rule converges faster than any power; 9 standard deviations leave out 1e-19.
NODES = np.linspace(-9.0, 9.0, 145)
ENTRIES_AT_ONCE = 4_000_000


def class_probabilities(mean: np.ndarray, variance: np.ndarray, residual_variance: float | np.ndarray) -> np.ndarray:
    """Probabilities whose largest entry is always the class that `predicted_class(mean)` names.

    Where rounding would hide the order (equal to all digits, or saturated), the entries are set apart by one unit in
    the last place; classes with equal means share, and the first of them counts as the largest.

    Args: `mean` (b, 1) or (b, C); `variance` (b,), at least 0; `residual_variance`: s^2 > 0, one
    number or (b,).
    Returns: (b, 2) or (b, C), rows sum to 1.
    Raises: ValueError for s^2 that is not positive or means that are not finite.
    """
    mean = np.asarray(mean, dtype=np.float64)
    if not np.all(np.asarray(residual_variance) > 0.0):
        raise ValueError(f"expected residual_variance > 0, got {residual_variance}; use fit_residual_variance")
    if not np.isfinite(mean).all():
        raise ValueError("expected finite latent means, got NaN or infinity; look at the kernel of that row")
    deviation = np.sqrt(np.asarray(variance, dtype=np.float64) + residual_variance)
    if mean.shape[1] == 1:
        score = mean[:, 0] / deviation
        probabilities = np.stack([ndtr(-score), ndtr(score)], axis=1)
    else:
        probabilities = np.exp(_log_largest(mean, deviation))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        probabilities = _in_order_of(mean, probabilities)
    return _set_apart(probabilities, predicted_class(mean))


def fit_residual_variance(mean: np.ndarray, variance: np.ndarray, class_index: np.ndarray) -> float:
    """s^2 that maximizes the likelihood of the labels under leave-one-out predictions.

    As in Platt scaling, the class seen counts as (n_c + 1) / (n_c + 2) and the others share the rest, n_c being the
    documents of that class: twenty documents that are all right do not make s^2 = 0 and the probabilities certain.

    Args: leave-one-out `mean` (r, 1) or (r, C) and `variance` (r,); `class_index` (r,) integers.
    Returns: s^2, between 1e-6 and 1e4.
    """
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    class_index = np.asarray(class_index)
    weights = _smoothed_labels(class_index, max(mean.shape[1], 2))

    def negative_likelihood(log_variance: float) -> float:
        logs = _log_probabilities(mean, np.sqrt(variance + np.exp(log_variance)))
        return float(-np.einsum("ij,ij->", weights, logs) / len(mean))

    points = np.log(np.geomspace(SMALLEST_VARIANCE, LARGEST_VARIANCE, 21))
    best = int(np.argmin([negative_likelihood(point) for point in points]))
    bounds = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
    return float(np.exp(minimize_scalar(negative_likelihood, bounds=bounds, method="bounded").x))


def neutral_probabilities(class_shares: np.ndarray, rows: int) -> np.ndarray:
    """What a document without known tokens gets: the classes' shares of the training documents, (rows, C)."""
    shares = np.asarray(class_shares, dtype=np.float64)
    return np.tile(shares / shares.sum(), (rows, 1))


def _smoothed_labels(class_index: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.bincount(class_index, minlength=n_classes)[class_index]
    weights = np.repeat(1.0 / ((counts + 2.0) * (n_classes - 1.0)), n_classes).reshape(-1, n_classes)
    weights[np.arange(len(class_index)), class_index] = (counts + 1.0) / (counts + 2.0)
    return weights


def _log_probabilities(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    if mean.shape[1] > 1:
        return _log_largest(mean, deviation)
    score = mean[:, 0] / deviation
    return np.stack([log_ndtr(-score), log_ndtr(score)], axis=1)


def _log_largest(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """log P(column c is the largest) = log of the integral of phi(z) prod_{k != c} Phi(z + (m_c - m_k) / sd) dz, (b,
    C).

    All classes share one grid around the largest mean: with d_c = (max m - m_c) / sd, the product is
    exp(sum_k log Phi(u + d_k) - log Phi(u + d_c)) and the density phi(u + d_c). At least -700.
    """
    out = np.empty_like(mean)
    step = max(1, ENTRIES_AT_ONCE // (len(NODES) * mean.shape[1]))
    for first in range(0, len(mean), step):
        part = slice(first, first + step)
        below = (mean[part].max(axis=1, keepdims=True) - mean[part]) / deviation[part, None]
        shifted = NODES[None, :, None] + below[:, None, :]
        log_below = log_ndtr(shifted)
        exponent = log_below.sum(axis=2, keepdims=True) - log_below - 0.5 * np.square(shifted)
        integral = np.exp(exponent).sum(axis=1) * (NODES[1] - NODES[0]) / np.sqrt(2.0 * np.pi)
        out[part] = np.log(np.maximum(integral, 1e-300))
    return out


def _in_order_of(mean: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Hand the same numbers out in the order of the means, where the quadrature's rounding has swapped two of them."""
    out = np.empty_like(probabilities)
    order = np.argsort(mean, axis=1, kind="stable")
    np.put_along_axis(out, order, np.sort(probabilities, axis=1), axis=1)
    return out


def _set_apart(probabilities: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Make the predicted class the first largest entry of its row."""
    rows = np.arange(len(probabilities))
    largest = probabilities.max(axis=1)
    first = probabilities.argmax(axis=1)
    probabilities[rows, predicted] = np.where(first == predicted, largest, np.nextafter(largest, 2.0))
    return probabilities
