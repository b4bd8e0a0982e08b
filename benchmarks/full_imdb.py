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
from textkernels.labels import check_labels, match_labels, stratified_sample
from textkernels.latent import fit_latent
from textkernels.preparation import prepare_texts
from textkernels.probability import class_probabilities, fit_residual_variance
from textkernels.targets import predicted_class

PAIRS = (("gap", "gap-fcn"), ("struct", "struct-fcn"))  # each pair shares its token layers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test")
    parser.add_argument("--embedding", default="glove-6b-50d")
    parser.add_argument("--limit", type=int, default=25_000)
    options = parser.parse_args()
    train, test = load("bundled:imdb"), load(options.test)
    rows = stratified_sample(train.labels or [], options.limit, 0)
    texts = [train.texts[row] for row in rows]
    classes, codes = check_labels([(train.labels or [])[row] for row in rows])
    truth = match_labels(test.labels or [], classes)
    start = time.perf_counter()
    encoder = get_encoder(options.embedding).fit(texts, progress=True)
    print(f"{len(texts):,} training and {len(test):,} test reviews, {options.embedding}")
    print(f"vectors and scale: {time.perf_counter() - start:.0f} s")
    for names in PAIRS:
        # The linear layers that the two share end with pooling; the hidden one has further layers behind it.
        start = time.perf_counter()
        kernel = choose_kernel(tk.named_architecture(names[0]))
        prepared = [prepare_texts(part, encoder, kernel, 1000, True, names[0]) for part in (texts, test.texts)]
        print(f"{names[0]}: encode and token work {time.perf_counter() - start:.0f} s")
        for name in names:
            own = choose_kernel(tk.named_architecture(name))
            documents = [_behind(own, kernel, part.documents) for part in prepared]
            for ntk in (False, True):
                known = codes[prepared[0].rows]
                _report(name, own, documents, known, classes, truth[prepared[1].rows], ntk)


def _behind(own: Any, kernel: Any, documents: Any) -> Any:
    """Prepared documents of the shorter stack as those of the longer one: its Dense readout undone.

    The readout Dense(1, 0) of gap and struct leaves K as it is and adds it to Theta, so K's vectors serve both.
    """
    if own.architecture.linear:
        return documents
    first = own.architecture.document_layers[0]
    return own.from_pooled(documents, first) if hasattr(own, "from_pooled") else None


def _report(
    name: str, kernel: Any, documents: list[Any], codes: np.ndarray, classes: Any, truth: list[Any], ntk: bool
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
        f"{name:10s} {'NTK' if ntk else 'NNGP':4s} accuracy {metrics['accuracy']:.2%} log loss {metrics['log_loss']:.4f} "
        f"ECE {metrics['ece']:.2%} diag_reg {fitted.diag_reg:g} {fitted.solver}: fit {middle - start:.0f} s, "
        f"predict {time.perf_counter() - middle:.0f} s, peak so far {peak:.1f} GiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
