"""Networks of finite width on their way to the kernel: the empirical NNGP of wide random networks against ours.

    python benchmarks/finite_networks.py [--widths 32,128,512] [--seeds 16]

A network of width w is drawn --seeds times; the mean of f(x) f(x')^T over its outputs is its empirical NNGP.
Printed is the norm of the difference from ours relative to the norm of ours: of one network (mean over seeds;
falls as 1 / sqrt(w)), and of the mean over all seeds, where what is left beside noise falls as 1 / w.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

import textkernels as tk
from embeddings import Sequences
from textkernels.finite import quietly, to_stax

# Attention over documents of several lengths; positions far apart in content, since stax factorizes their covariance.
ARCHITECTURES = {
    "dense, relu, pool": [tk.Dense(1.4, 0.1), tk.Activation("relu"), tk.GlobalAveragePool(), tk.Dense()],
    "conv, relu, pool, relu": [
        *(tk.Conv(3, 1.4, 0.1), tk.Activation("relu"), tk.GlobalAveragePool()),
        *(tk.Dense(1.4, 0.1), tk.Activation("relu"), tk.Dense()),
    ],
    "softmax attention, pool": [
        tk.SelfAttention(positions=tk.Positions("absolute", decay=1.0, scale=1.0)),
        *(tk.GlobalAveragePool(), tk.Dense()),
    ],
    "sqrt attention, pool": [
        tk.SelfAttention("identity", "sqrt", w_query_std=0.5),
        *(tk.GlobalAveragePool(), tk.Dense()),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", default="32,128,512", help="comma-separated")
    parser.add_argument("--seeds", type=int, default=16, help="networks a width")
    options = parser.parse_args()
    widths = [int(width) for width in options.widths.split(",")]
    documents = ragged_documents()
    print(f"{'relative error of the NNGP, width':40s}" + "".join(f"{width:>9d}" for width in widths))
    for name, layers in ARCHITECTURES.items():
        architecture = tk.Architecture([tk.Dense(), *layers], name)
        kernel = tk.gram(architecture, documents)
        errors = []
        for width in widths:
            samples = list(empirical(architecture, documents, width, options.seeds))
            norms = np.linalg.norm(
                [*(sample - kernel for sample in samples), np.mean(samples, 0) - kernel], axis=(1, 2)
            )
            errors.append((norms[:-1].mean() / np.linalg.norm(kernel), norms[-1] / np.linalg.norm(kernel)))
        print(f"{name:26s}{'one network':14s}" + "".join(f"{error:9.3f}" for error, _ in errors))
        print(f"{'':26s}{f'mean of {options.seeds}':14s}" + "".join(f"{error:9.3f}" for _, error in errors))


def ragged_documents() -> Sequences:
    generator = np.random.default_rng(0)
    return Sequences.from_arrays([generator.standard_normal((length, 8)) for length in (1, 3, 5, 8, 12)])


def empirical(architecture: tk.Architecture, documents: Sequences, width: int, seeds: int) -> Iterator[np.ndarray]:
    """The empirical NNGP (n, n) of one random network after the other."""
    import jax

    values, mask = documents.padded()
    padded = np.where(mask[..., None], values, np.nan).astype(np.float32)
    with quietly():
        # Heads grow with the width: the limit wants infinitely many.
        init_fn, apply_fn, _ = to_stax(architecture, width, heads=max(1, width // 8), outputs=width)

        @jax.jit
        def network(key: Any) -> Any:
            _, weights = init_fn(key, padded.shape)
            return apply_fn(weights, padded, mask_constant=np.nan).masked_value

        for seed in tqdm(range(seeds), f"{architecture.name}, width {width}", leave=False):
            outputs = np.asarray(network(jax.random.key(seed)), np.float64)
            yield outputs @ outputs.T / width


if __name__ == "__main__":
    main()
