"""All 25,000 packaged IMDb reviews: accuracy, time and peak memory of the explicit-feature architectures.

    python benchmarks/full_imdb.py TEST [--embedding glove-6b-50d] [--limit N]

TEST: labelled reviews, such as a .parquet file with text and label. Texts are encoded once and the token work is done
once for pooling and once for attention; the rest is what ``textkernels fit`` and ``evaluate`` do for each network.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import textkernels as tk
from embeddings import get_encoder
from textkernels.datasets import load
from textkernels.engines import choose_kernel
from textkernels.evaluation import evaluate
from textkernels.experiments.pooled import continue_features
from textkernels.labels import check_labels, match_labels, stratified_sample
from textkernels.latent import fit_latent
from textkernels.preparation import prepare_texts
from textkernels.probability import class_probabilities, fit_residual_variance
from textkernels.targets import predicted_class

STACKS = (("gap", "gap-fcn"), ("struct", "struct-fcn"))  # each row shares its token layers


def main() -> None:
    """Encode once, do the token work once a stack, then fit and test every network, NNGP and NTK."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test")
    parser.add_argument("--embedding", default="glove-6b-50d")
    parser.add_argument("--limit", type=int, default=25_000)
    options = parser.parse_args()
    train, test = load("bundled:imdb"), load(options.test)
    train = train.select(stratified_sample(train.labels or [], options.limit, 0))
    classes, codes = check_labels(train.labels or [])
    truth = np.array(match_labels(test.labels or [], classes))
    start = time.perf_counter()
    encoder = get_encoder(options.embedding).fit(train.texts, progress=True)
    print(f"{len(train):,} training and {len(test):,} test reviews, {options.embedding}")
    print(f"vectors and scale: {time.perf_counter() - start:.0f} s")
    for names in STACKS:
        start = time.perf_counter()
        stack = tk.Architecture([*tk.named_architecture(names[0]).token_layers, tk.GlobalAveragePool()])
        kernel = choose_kernel(stack)
        parts = [prepare_texts(part.texts, encoder, kernel, 1000, True, names[0]) for part in (train, test)]
        print(f"{names[0]}: encode and token work {time.perf_counter() - start:.0f} s")
        for name in names:
            own = choose_kernel(tk.named_architecture(name))
            documents = [continue_features(own.architecture, part.documents) for part in parts]
            for ntk in (False, True):
                _report(name, own, documents, codes[parts[0].rows], classes, truth[parts[1].rows], ntk)


def _report(
    name: str, kernel: Any, documents: list[Any], codes: np.ndarray, classes: Any, truth: np.ndarray, ntk: bool
) -> None:
    start = time.perf_counter()
    fitted = fit_latent(kernel, documents[0], codes, len(classes), ntk, "auto", progress=True)
    middle = time.perf_counter()
    latent = fitted.model.predict(documents[1])
    held_out = fitted.leave_one_out
    spread = fit_residual_variance(held_out.mean, held_out.variance, codes[held_out.rows])
    probabilities = class_probabilities(latent.mean, latent.variance, spread)
    metrics = evaluate(truth, classes[predicted_class(latent.mean)], probabilities, classes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:10s} {'NTK' if ntk else 'NNGP':4s} accuracy {metrics['accuracy']:.2%} "
        f"log loss {metrics['log_loss']:.4f} ECE {metrics['ece']:.2%} diag_reg {fitted.diag_reg:g} "
        f"{fitted.solver}: fit {middle - start:.0f} s, "
        f"predict {time.perf_counter() - middle:.0f} s, peak so far {peak:.1f} GiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
