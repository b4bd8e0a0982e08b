"""What fitting s^2 to leave-one-out predictions does for the probabilities of a two-class model.

    python benchmarks/calibration.py DATA --model DIR

The same latent means m and variances v of DATA's texts become probabilities Phi(m / sqrt(v + s^2)) with

- s^2 = 0: the spread of the latent function alone;
- s^2 = the label noise that the regression assumes, diag_reg trace(K) / n;
- s^2 as fitted: what the model uses.

Log loss, Brier score and expected calibration error of each; texts without known tokens are left out.
"""

from __future__ import annotations

import argparse

import numpy as np

import textkernels as tk
from textkernels.datasets import load
from textkernels.evaluation import evaluate
from textkernels.labels import match_labels
from textkernels.probability import class_probabilities


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    model, dataset = tk.load(options.model), load(options.data, require_labels=True)
    classes = model.classes_.tolist()
    if len(classes) != 2:
        parser.error(f"expected a model of two classes, got {len(classes)}")
    table = model.predict_table(dataset.texts, progress=True)
    ok = (table["status"] == "ok").to_numpy()
    labels = np.array(match_labels(dataset.labels or [], classes), dtype=object)[ok].tolist()
    said = table["prediction"][ok].tolist()
    mean = table["mean"].to_numpy()[ok] * np.where(np.array(said, dtype=object) == classes[1], 1.0, -1.0)
    variance = np.square(table["std"].to_numpy()[ok])
    scales = {
        "none": 1e-12,
        "assumed noise": model.latent_.posterior.solver.noise,
        "fitted": model.residual_variance_,
    }
    print(f"{'s^2':<16}{'value':>9}{'log loss':>10}{'Brier':>9}{'ECE':>8}   ({len(labels):,} texts)")
    for name, scale in scales.items():
        metrics = evaluate(labels, said, class_probabilities(mean[:, None], variance, scale), classes)
        print(f"{name:<16}{scale:>9.2g}{metrics['log_loss']:>10.4f}{metrics['brier']:>9.4f}{metrics['ece']:>8.2%}")


if __name__ == "__main__":
    main()
