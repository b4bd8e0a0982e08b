"""Where the time of a fit and its predictions goes, and how far the largest part is from what the processor can do.

    python benchmarks/stages.py [--data bundled:imdb] [--limit 6000] [--test-rows 1000] [--architecture struct-fcn]
                                [--embedding glove-6b-50d] [--kernel nngp]

Stages: tokenize, embed, document features (attention where there is any), Gram matrix, factorize, predict (means and
variances). Beside each: seconds, share, floating-point operations of its matrix products and triangular solves, and
their rate relative to the best product of two large matrices in the same precision, measured before and after in this
run. Exponentials of the attention and arc cosines of the activation are work that this count leaves out: their numbers
are printed as entries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import textkernels as tk
from embeddings import get_encoder
from embeddings.texts import tokenize_texts
from textkernels.datasets import load
from textkernels.engines import choose_kernel
from textkernels.labels import check_labels, stratified_sample
from textkernels.latent import LatentModel
from textkernels.posterior import NNGPPosterior, NTKPosterior
from textkernels.processors import count_processors
from textkernels.solvers import CholeskyFactor
from textkernels.solving import gram_triangles
from textkernels.targets import encode_targets


@dataclass
class Stage:
    """One part of the work: seconds, operations of matrix algebra, their dtype, entries of other functions."""

    name: str
    seconds: float = 0.0
    flops: float = 0.0
    dtype: type = np.float64
    entries: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="bundled:imdb")
    parser.add_argument("--limit", type=int, default=6000, help="training texts")
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--architecture", default="struct-fcn")
    parser.add_argument("--embedding", default="glove-6b-50d")
    parser.add_argument("--kernel", choices=["nngp", "ntk"], default="nngp")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    peaks = {dtype: product_rate(dtype) for dtype in (np.float32, np.float64)}
    stages = run(options)
    for dtype in peaks:
        peaks[dtype] = max(peaks[dtype], product_rate(dtype))
    report(stages, peaks, options)


def product_rate(dtype: type, size: int = 3000, repeats: int = 5) -> float:
    """Operations a second of a product of two square matrices, the best of several."""
    matrix = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    best = min(seconds_of(lambda: matrix @ matrix) for _ in range(repeats))
    return 2 * size**3 / best


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(options: argparse.Namespace) -> list[Stage]:
    """All stages once, after a small run that compiles what is to be compiled."""
    dataset = load(options.data, require_labels=True)
    rows = stratified_sample(dataset.labels or [], options.limit + options.test_rows, options.seed)
    rows = np.random.default_rng(options.seed).permutation(rows)
    texts = [dataset.texts[row] for row in rows]
    classes, codes = check_labels([(dataset.labels or [])[row] for row in rows])
    encoder = get_encoder(options.embedding, seed=options.seed).fit(texts)
    architecture = tk.named_architecture(options.architecture)
    work(options, architecture, encoder, texts[:60], codes[:60], len(classes), 40)
    return work(options, architecture, encoder, texts, codes, len(classes), len(texts) - options.test_rows)


@contextmanager
def timed(stages: list[Stage], name: str, **counts: Any) -> Iterator[Stage]:
    """Append a stage whose seconds are those of the block."""
    stages.append(Stage(name, **counts))
    start = time.perf_counter()
    yield stages[-1]
    stages[-1].seconds = time.perf_counter() - start


def work(
    options: argparse.Namespace,
    architecture: tk.Architecture,
    encoder: Any,
    texts: list[Any],
    codes: np.ndarray,
    n_classes: int,
    n: int,
) -> list[Stage]:
    ntk, stages = options.kernel == "ntk", list[Stage]()
    stage = partial(timed, stages)
    with stage("tokenize") as tokenize:
        tokenize_texts(texts, encoder.tokenizer, lower=not encoder.vectors_.cased)
    with stage("embed") as embed:
        encoding = encoder.encode(texts)
    embed.seconds -= tokenize.seconds  # encoding tokenizes first
    codes = codes[encoding.rows]
    n = int((encoding.rows < n).sum())
    squares = float(np.square(encoding.documents.lengths.astype(float)).sum())
    attends = len(architecture.token_layers)
    kernel = choose_kernel(architecture)
    flops = attends * 2 * squares * encoding.documents.dim
    with stage("document features", flops=flops, dtype=np.float32, entries=attends * squares):
        documents = kernel.prepare(encoding.documents, 1000)
    train, test = documents[:n], documents[n:]
    width = train.nngp.shape[1] + (train.ntk.shape[1] if ntk else 0)
    curved = sum(isinstance(layer, tk.Activation) for layer in architecture.layers)
    with stage("Gram matrix", flops=n * n * width, entries=curved * n * n / 2):
        nngp, tangent = gram_triangles(kernel, train, ntk)
    targets = encode_targets(codes[:n], n_classes)
    with stage("factorize", flops=n**3 / 3):
        factor = CholeskyFactor.factor(nngp if tangent is None else tangent, 1e-2)
    posterior = NNGPPosterior.fit(factor, targets) if tangent is None else NTKPosterior.fit(factor, nngp, targets)
    solving = (4 if ntk else 1) * n**2 * len(test)
    with stage("predict", flops=solving + 2 * n * len(test) * width, entries=curved * n * len(test)):
        LatentModel(kernel, train, posterior, 1.0).predict(test)
    return stages


def report(stages: list[Stage], peaks: dict[type, float], options: argparse.Namespace) -> None:
    total = sum(stage.seconds for stage in stages)
    print(
        f"{options.limit:,} training and {options.test_rows:,} test texts, {options.architecture}, {options.kernel}, "
        f"{options.embedding}, {count_processors()} processors; products of large matrices: "
        f"{peaks[np.float32] / 1e9:.0f} GFLOP/s in float32, {peaks[np.float64] / 1e9:.0f} in float64"
    )
    print(f"{'stage':<20}{'seconds':>9}{'share':>8}{'GFLOP':>10}{'GFLOP/s':>9}{'of peak':>9}{'other entries/s':>17}")
    for stage in stages:
        print(line(stage, total, peaks[stage.dtype]))
    largest = max(stages, key=lambda stage: stage.seconds)
    rate = largest.flops / largest.seconds
    print(
        f"The largest is {largest.name}, {largest.seconds / total:.0%} of {total:.1f} s: its matrix algebra runs at "
        f"{rate / peaks[largest.dtype]:.0%} of the processor's rate for products of large matrices."
    )


def line(stage: Stage, total: float, peak: float) -> str:
    text = f"{stage.name:<20}{stage.seconds:>9.2f}{stage.seconds / total:>8.1%}"
    if stage.flops:
        rate = stage.flops / stage.seconds
        text += f"{stage.flops / 1e9:>10.1f}{rate / 1e9:>9.1f}{rate / peak:>9.1%}"
    elif stage.entries:
        text += " " * 28
    return text + (f"{stage.entries / stage.seconds:>17.2e}" if stage.entries else "")


if __name__ == "__main__":
    main()
