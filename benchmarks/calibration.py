"""What fitting s^2 to leave-one-out predictions does for the probabilities of a two-class model.

    python benchmarks/calibration.py DATA --model DIR

The same latent means m and variances v of DATA's texts become probabilities Phi(m / sqrt(v + s^2)) with

- s^2 = 0: the spread of the latent function alone;
- s^2 = the label noise that the regression assumes, diag_reg trace(K) / n;
- s^2 as fitted: what the model uses.

Log loss, Brier score and expected calibration error of each; texts without known tokens are left out. Then the same
texts cut to their first words, under the s^2 of complete texts and under that of the length.
"""

from __future__ import annotations

import argparse

import numpy as np

import textkernels as tk
from textkernels.datasets import load
from textkernels.evaluation import evaluate
from textkernels.labels import match_labels
from textkernels.probability import class_probabilities

LENGTHS = (2, 5, 10, 20, 40)
HEADER = f"{'accuracy':>10}{'log loss':>10}{'Brier':>9}{'ECE':>8}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    model, dataset = tk.load(options.model), load(options.data, require_labels=True)
    classes = model.classes_.tolist()
    if len(classes) != 2:
        parser.error(f"expected a model of two classes, got {len(classes)}")
    labels = match_labels(dataset.labels or [], classes)
    usual = model.residual_variance_.usual
    scored = _Scored(model, dataset.texts, labels)
    print(f"{'s^2':<16}{'value':>9}{HEADER}   ({len(scored.labels):,} texts)")
    for name, scale in {"none": 1e-12, "assumed noise": model.latent_.posterior.solver.noise}.items():
        print(f"{name:<16}{scale:>9.2g}{scored.metrics(scale)}")
    print(f"{'fitted':<16}{usual:>9.2g}{scored.metrics(scored.fitted)}")
    print(f"\n{'first words':<13}{'s^2 of':<15}{'median':>9}{HEADER}")
    for words in LENGTHS:
        cut = [" ".join(str(text or "").split()[:words]) for text in dataset.texts]
        scored = _Scored(model, cut, labels)
        print(f"{words:<13}{'complete texts':<15}{usual:>9.2g}{scored.metrics(usual)}")
        print(f"{'':<13}{'the length':<15}{np.median(scored.fitted):>9.2g}{scored.metrics(scored.fitted)}")


class _Scored:
    """Latent predictions of the texts that have a known token, and s^2 as fitted, of each."""

    def __init__(self, model: tk.KernelClassifier, texts: list, labels: list) -> None:
        table = model.predict_table(texts, progress=True)
        table, self.classes = table[table["status"] == "ok"], model.classes_.tolist()
        self.labels = np.array(labels, dtype=object)[table.index].tolist()
        self.said = table["prediction"].tolist()
        self.mean = table["mean"].to_numpy() * np.where(table["prediction"] == self.classes[1], 1.0, -1.0)
        self.variance = np.square(table["std"].to_numpy())
        seen = np.rint(table["coverage"] * (table["n_tokens"] - table["n_dropped"]))
        self.fitted = model.residual_variance_.at(seen.to_numpy())

    def metrics(self, scale: float | np.ndarray) -> str:
        """Columns of a row."""
        found = evaluate(
            self.labels, self.said, class_probabilities(self.mean[:, None], self.variance, scale), self.classes
        )
        return f"{found['accuracy']:>10.1%}{found['log_loss']:>10.4f}{found['brier']:>9.4f}{found['ece']:>8.2%}"


if __name__ == "__main__":
    main()
