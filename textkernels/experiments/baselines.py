"""What a comparison is measured against: the majority class, and TF-IDF with logistic regression."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.experiments.cells import Cell
from textkernels.processors import single_threaded_blas

# Inverse strength of the penalty; chosen by cross-validated log loss on the training texts.
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
FOLDS = 5
MAJORITY, TFIDF = "majority class", "TF-IDF + logistic regression"


@dataclass(frozen=True)
class LabelledPart:
    """Texts (None where missing) and their classes, and the texts to predict."""

    texts: Sequence[str | None]
    codes: np.ndarray
    test: Sequence[str | None]
    n_classes: int


def majority_class(part: LabelledPart, seed: int) -> Cell:
    """The class shares of the training texts as probabilities, and the most frequent class (the first of equals)."""
    shares = np.bincount(part.codes, minlength=part.n_classes) / len(part.codes)
    predicted = np.full(len(part.test), int(shares.argmax()))
    return Cell(predicted, np.tile(shares, (len(part.test), 1)), {"n_train": len(part.codes)})


def tfidf_regression(part: LabelledPart, seed: int) -> Cell:
    """Words and pairs of words by TF-IDF, fitted to the training texts alone, with L2-penalized logistic regression.

    The penalty is chosen by stratified cross-validation inside the training texts, as diag_reg is for kernels; with
    fewer than two texts of some class it is 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    start = time.perf_counter()
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float64)
    features = vectorizer.fit_transform([text or "" for text in part.texts])
    # The solver's many short products of vectors wait for threads longer than they compute.
    with single_threaded_blas():
        strength = _strength(features, part.codes, seed)
        model = LogisticRegression(C=strength, max_iter=2000).fit(features, part.codes)
    found = model.predict_proba(vectorizer.transform([text or "" for text in part.test]))
    probabilities = np.zeros((len(part.test), part.n_classes))
    probabilities[:, model.classes_] = found
    facts = {"n_train": len(part.codes), "penalty": 1 / strength, "solve_seconds": time.perf_counter() - start}
    return Cell(probabilities.argmax(axis=1), probabilities, facts)


def _strength(features: Any, codes: np.ndarray, seed: int) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = min(FOLDS, int(np.unique(codes, return_counts=True)[1].min()))
    if folds < 2:
        return 1.0
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    losses = []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=2000)
        held_out = cross_val_predict(model, features, codes, cv=split, method="predict_proba")
        losses.append(log_loss(codes, held_out))
    return STRENGTHS[int(np.argmin(losses))]


BASELINES: dict[str, Callable[[LabelledPart, int], Cell]] = {
    MAJORITY: majority_class,
    TFIDF: tfidf_regression,
}
