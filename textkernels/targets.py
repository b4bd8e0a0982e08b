"""Classes as regression targets, and back."""

import numpy as np


def encode_targets(class_index: np.ndarray, n_classes: int) -> np.ndarray:
    """Regression targets of the kernel machine.

    Two classes: one column, -0.5 for class 0 and 0.5 for class 1. C > 2 classes: C columns, 1 - 1/C for the class and
    -1/C for the others, so that every row sums to 0. (Hron et al., "Infinite attention", appendix A.)

    Args: `class_index` (n,): integers 0 .. n_classes - 1; `n_classes`: at least 2.
    Returns: float64 (n, 1) or (n, C).
    Raises: ValueError for fewer than two classes, or an index outside them.
    """
    class_index = np.asarray(class_index)
    if n_classes < 2:
        raise ValueError(f"expected two or more classes, got {n_classes}; give labelled examples of another class")
    if class_index.size and not (class_index.min() >= 0 and class_index.max() < n_classes):
        raise ValueError(f"expected classes 0 to {n_classes - 1}, got {class_index.min()} to {class_index.max()}")
    if n_classes == 2:
        return np.where(class_index == 1, 0.5, -0.5)[:, None]
    targets = np.full((len(class_index), n_classes), -1.0 / n_classes)
    targets[np.arange(len(class_index)), class_index] += 1.0
    return targets


def predicted_class(mean: np.ndarray) -> np.ndarray:
    """The class of each latent mean: 1 where a single column is positive, else the first largest column.

    A tie goes to the class that comes first. Works on targets too. Args: (b, 1) or (b, C). Returns: (b,) integers.
    """
    mean = np.asarray(mean)
    return (mean[:, 0] > 0.0).astype(np.int64) if mean.shape[1] == 1 else mean.argmax(axis=1)
