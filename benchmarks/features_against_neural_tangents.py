"""The same Gram matrices by explicit features and by neural-tangents, in one run, on the same documents.

    python benchmarks/features_against_neural_tangents.py [--documents 60] [--tokens 500] [--dim 50] [--x64]

NNGP and NTK in one pass on both sides. Documents are random vectors; their lengths are drawn like those of film
reviews (mean 231, standard deviation 171, log-normal), cut at --tokens. Both sides get a Dense() in front, which
neural-tangents needs on padded input, and positions are absolute (scale = --tokens), as it has no others.

Ours: the median of several runs. neural-tangents: compiled, the full matrix in batches of --batch documents a
side (as its own ``batch`` goes through it), one timed run after compilation.

In float32, neural-tangents loses up to 1e-4 in the NTK of a document with itself behind a ReLU (a correlation of
not quite 1); with --x64 both agree to 1e-8 there and to 1e-15 elsewhere.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

import textkernels as tk
from embeddings import Sequences
from textkernels.finite import quietly, to_stax
from textkernels.processors import count_processors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=500, help="longest document")
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--batch", type=int, default=6, help="documents a side of one call to neural-tangents")
    parser.add_argument("--repeats", type=int, default=15, help="runs of ours")
    parser.add_argument("--x64", action="store_true", help="float64 on both sides (default: float32)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    documents = review_like(options)
    print(
        f"{len(documents)} documents, {documents.lengths.mean():.0f} tokens on average, at most "
        f"{documents.lengths.max()}, dim {documents.dim}, {documents.dtype}, {count_processors()} processors"
    )
    print(f"{'':10s}{'ours':>11s}{'neural-tangents':>17s}{'ratio':>8s}{'NNGP differs':>14s}{'NTK differs':>13s}")
    for name, architecture in architectures(options.tokens).items():
        seconds, ours = timed_ours(architecture, documents, options.repeats)
        reference_seconds, reference = timed_reference(architecture, documents, options.batch, options.x64)
        differs = [abs(a - b).max() / abs(b).max() for a, b in zip(ours, reference, strict=True)]
        print(
            f"{name:10s}{1000 * seconds:8.1f} ms{reference_seconds:15.1f} s{reference_seconds / seconds:8.0f}"
            f"{differs[0]:14.1e}{differs[1]:13.1e}"
        )


def architectures(tokens: int) -> dict[str, tk.Architecture]:
    """gap, gap-fcn and struct, with what both sides can do."""
    std = math.sqrt(2)
    attention = tk.SelfAttention(w_query_std=std, w_key_std=std, positions=tk.Positions("absolute", scale=tokens))
    stacks = {
        "gap": tk.named_architecture("gap").layers,
        "gap-fcn": tk.named_architecture("gap-fcn").layers,
        "struct": (attention, *tk.named_architecture("gap").layers),
    }
    return {name: tk.Architecture([tk.Dense(), *layers], name) for name, layers in stacks.items()}


def review_like(options: argparse.Namespace) -> Sequences:
    """Documents of random vectors with the lengths of reviews; one of them has the full length."""
    generator = np.random.default_rng(options.seed)
    mean, std = 231.0, 171.0
    sigma = math.sqrt(math.log(1 + (std / mean) ** 2))
    drawn = generator.lognormal(math.log(mean) - sigma**2 / 2, sigma, options.documents)
    lengths = np.clip(drawn.round().astype(int), 1, options.tokens)
    lengths[0] = options.tokens
    dtype = np.float64 if options.x64 else np.float32
    return Sequences.from_arrays([generator.standard_normal((length, options.dim)) for length in lengths], dtype)


def timed_ours(architecture: tk.Architecture, documents: Sequences, repeats: int) -> tuple[float, Any]:
    """Median seconds of a warm run, and (nngp, ntk)."""
    result = tk.gram(architecture, documents, kind="both")
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = tk.gram(architecture, documents, kind="both")
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), result


def timed_reference(architecture: tk.Architecture, documents: Sequences, batch: int, x64: bool) -> tuple[float, Any]:
    """Seconds of one run after compilation, and (nngp, ntk)."""
    import jax
    from jax.experimental import disable_x64, enable_x64

    values, mask = documents.padded()
    values = np.where(mask[..., None], values, np.nan).astype(documents.dtype)
    fill = -len(values) % batch
    batches = np.split(np.concatenate([values, np.repeat(values[:1], fill, axis=0)]), (len(values) + fill) // batch)
    with enable_x64() if x64 else disable_x64(), quietly():
        kernel_fn = to_stax(architecture)[2]
        compiled = jax.jit(lambda x, y: tuple(kernel_fn(x, y, ("nngp", "ntk"), mask_constant=math.nan)))
        jax.block_until_ready(compiled(batches[0], batches[-1]))
        start = time.perf_counter()
        blocks = all_blocks(compiled, batches, architecture.name)
        seconds = time.perf_counter() - start
    n = len(values)
    return seconds, [np.block([[block[part] for block in row] for row in blocks])[:n, :n] for part in (0, 1)]


def all_blocks(compute: Callable[..., Any], batches: list[np.ndarray], name: str) -> list[list[Any]]:
    """Every block of the matrix as NumPy arrays."""
    with tqdm(total=len(batches) ** 2, desc=f"neural-tangents {name}", unit="block", leave=False) as progress:

        def block(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, ...]:
            result = tuple(np.asarray(part) for part in compute(rows, columns))
            progress.update()
            return result

        return [[block(rows, columns) for columns in batches] for rows in batches]


if __name__ == "__main__":
    main()
