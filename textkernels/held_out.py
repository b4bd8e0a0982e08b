"""Two architectures side by side on texts that neither was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel
from textkernels.evaluation import evaluate
from textkernels.experiments.intervals import paired_difference
from textkernels.experiments.labelled import LabelledTexts
from textkernels.latent import fit_latent
from textkernels.preparation import prepare_texts
from textkernels.probability import class_probabilities, fit_residual_variance, neutral_probabilities
from textkernels.targets import predicted_class


@dataclass(frozen=True)
class HeldOutScore:
    """What a fitted architecture says about the held-out texts.

    Attributes: `correct` (n,) booleans; `brier` (n,): each text's sum_c (p_c - y_c)^2, halved for two classes;
    `metrics` of evaluation.evaluate; `diag_reg` as chosen by leave-one-out.
    """

    correct: np.ndarray
    brier: np.ndarray
    metrics: dict[str, Any]
    diag_reg: float


@dataclass(frozen=True)
class HeldOut:
    """Texts to fit and texts to judge by.

    Attributes:
        encoder: fitted.
        train, held: labelled texts with the same classes.
        kind: ``nngp`` or ``ntk``.
        longest: tokens of the longest text.
        seed: of subsets.
    """

    encoder: Any
    train: LabelledTexts
    held: LabelledTexts
    kind: str
    longest: int
    seed: int = 0

    def score(self, architecture: Architecture, progress: bool = False) -> HeldOutScore:
        """Fit the training texts, diag_reg by leave-one-out, and predict the held-out ones."""
        kernel = choose_kernel(architecture)
        train = prepare_texts(self.train.texts, self.encoder, kernel, self.longest, progress, "training texts")
        test = prepare_texts(self.held.texts, self.encoder, kernel, self.longest, progress, "held-out texts")
        codes, n_classes = self.train.codes[train.rows], len(self.train.classes)
        fitted = fit_latent(kernel, train.documents, codes, n_classes, self.kind == "ntk", "auto", self.seed, progress)
        loo = fitted.leave_one_out
        scale = fit_residual_variance(loo.mean, loo.variance, codes[loo.rows])
        latent = fitted.model.predict(test.documents)
        shares = np.bincount(codes, minlength=n_classes)
        probabilities, said = neutral_probabilities(shares, len(self.held)), np.full(len(self.held), shares.argmax())
        probabilities[test.rows] = class_probabilities(latent.mean, latent.variance, scale)
        said[test.rows] = predicted_class(latent.mean)
        names = [str(name) for name in self.train.classes.tolist()]
        true = [names[code] for code in self.held.codes]
        metrics = evaluate(true, [names[code] for code in said], probabilities, names)
        errors = np.square(probabilities - np.eye(n_classes)[self.held.codes]).sum(axis=1)
        errors *= 0.5 if n_classes == 2 else 1.0
        return HeldOutScore(said == self.held.codes, errors, metrics, fitted.diag_reg)

    def compare(self, start: Architecture, tuned: Architecture) -> list[str]:
        """Sentences: both scores, their difference, and whether it can be told from none."""
        before, after = self.score(start), self.score(tuned)
        lines = [f"{len(self.held):,} texts that the search never saw, after fitting {len(self.train):,}:"]
        for name, score in (("start", before), ("tuned", after)):
            m = score.metrics
            lines.append(
                f"  {name}: accuracy {m['accuracy']:.2%}, log loss {m['log_loss']:.4f}, Brier {m['brier']:.4f}, "
                f"diag_reg {score.diag_reg:g}"
            )
        accuracy = paired_difference(after.correct, before.correct)
        brier = paired_difference(before.brier, after.brier)
        points, first, second = [100 * number for number in accuracy], _verdict(accuracy), _verdict(brier)
        return [
            *lines,
            f"  accuracy: {points[0]:+.2f} points, 95 % interval {points[1]:+.2f} to {points[2]:+.2f}: {first}",
            f"  Brier score: {-brier[0]:+.4f}, 95 % interval {-brier[2]:+.4f} to {-brier[1]:+.4f}: {second}",
        ]


def _verdict(gain: tuple[float, float, float]) -> str:
    """In words, from a gain and its interval."""
    _, low, high = gain
    return "better" if low > 0 else "worse" if high < 0 else "no difference can be told"
