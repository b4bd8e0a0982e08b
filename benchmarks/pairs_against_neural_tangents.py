"""Token-level kernels by fused Numba and by neural-tangents, in one run, on the same documents.

    python benchmarks/pairs_against_neural_tangents.py [--documents 96] [--tokens 500] [--batch 4] [--random]
                                                       [--networks NAME ...] [--skip-reference] [--growth]

NNGP and NTK in one pass on both sides, float32. Documents are packaged IMDb reviews with GloVe 50d, cut at --tokens,
one of them full; with --random, random vectors of such lengths (no word repeats). Positions are absolute in both, as
neural-tangents has no others across documents of different length.

Ours: the whole Gram matrix, the median of --repeats runs, per document alone included. neural-tangents: compiled,
--blocks blocks of --batch documents a side, padded to the longest. The rates count the document pairs that each side
computed; of a symmetric matrix we compute the lower triangle and neural-tangents both, which the line "Gram matrix"
counts: seconds of the whole matrix on each side, neural-tangents' extrapolated from its blocks. ``cpu`` is processor
time: on a machine that others use, its ratio says more than that of the clocks. Agreement is over the
pairs that both computed.

--growth instead shows how our cost grows with the number of documents, with their length and with depth.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tqdm import tqdm

import textkernels as tk
from embeddings import Sequences
from textkernels.pairs.kernel import PairKernel
from textkernels.processors import count_processors

LAYERS_OF = {"conv + relu": 1, "2 conv + erf": 2, "conv, relu, attention, relu": 2, "8 conv + 2 attention": 10}


@dataclass(frozen=True)
class Timing:
    """Seconds by the clock and of all processors."""

    wall: float
    cpu: float

    @classmethod
    def of(cls, work: Callable[[], Any]) -> tuple[Timing, Any]:
        """Time of one call, and what it returned."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        return cls(time.perf_counter() - wall, time.process_time() - cpu), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=96)
    parser.add_argument("--tokens", type=int, default=500, help="longest document")
    parser.add_argument("--batch", type=int, default=4, help="documents a side of one call to neural-tangents")
    parser.add_argument("--blocks", type=int, default=6, help="calls to neural-tangents that are timed")
    parser.add_argument("--repeats", type=int, default=7, help="runs of ours")
    parser.add_argument("--networks", nargs="+", default=list(LAYERS_OF), choices=list(LAYERS_OF), metavar="NAME")
    parser.add_argument("--random", action="store_true", help="random vectors instead of reviews")
    parser.add_argument("--skip-reference", action="store_true", help="time ours alone")
    parser.add_argument("--growth", action="store_true", help="how our cost grows")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    make = random_documents if options.random else reviews
    if options.growth:
        show_growth(lambda count, tokens: make(count, tokens, options.seed))
        return
    documents = make(options.documents, options.tokens, options.seed)
    pairs, token_pairs = count_pairs(documents)
    print(
        f"{len(documents)} documents, {documents.lengths.mean():.0f} tokens on average, at most "
        f"{documents.lengths.max()}, dim {documents.dim}, {token_pairs / pairs:,.0f} token pairs a document pair, "
        f"{count_processors()} processors"
    )
    for name in options.networks:
        show_network(name, networks(options.tokens)[name], documents, options)


def show_network(name: str, architecture: tk.Architecture, documents: Sequences, options: argparse.Namespace) -> None:
    """One network on both sides."""
    pairs, token_pairs = count_pairs(documents)
    timing, ours = timed_ours(architecture, documents, options.repeats)
    print(
        f"\n{name}\n  ours             {pairs / timing.wall:12,.0f} document pairs/s   "
        f"{token_pairs * LAYERS_OF[name] / timing.wall:9.2e} token pairs/s per layer   "
        f"cpu {timing.cpu / pairs * 1e6:12,.1f} us a document pair"
    )
    if options.skip_reference:
        return
    reference, done, blocks = timed_reference(architecture, documents, options)
    padded = int(documents.lengths.max()) ** 2
    print(
        f"  neural-tangents  {done / reference.wall:12,.1f} document pairs/s   "
        f"{done * padded * LAYERS_OF[name] / reference.wall:9.2e} padded pairs/s per layer  "
        f"cpu {reference.cpu / done * 1e6:12,.1f} us a document pair"
    )
    differs = [
        max(abs(mine[place] - theirs).max() for place, theirs in zip(blocks[0], matrix, strict=True)) / abs(mine).max()
        for mine, matrix in zip(ours, blocks[1:], strict=True)
    ]
    rate = reference.wall / done * pairs / timing.wall
    work = reference.cpu / done * pairs / timing.cpu
    gram = reference.wall / done * len(documents) ** 2
    print(f"  ratio            {rate:12,.0f} by the clock, {work:,.0f} by processor time, for each pair computed")
    print(
        f"  Gram matrix      {gram / timing.wall:12,.0f} by the clock: {timing.wall:,.3g} s against {gram:,.0f} s, as "
        f"neural-tangents computes both triangles"
    )
    print(f"  agreement        NNGP differs by {differs[0]:.1e}, NTK by {differs[1]:.1e} of the largest entry")


def networks(tokens: int) -> dict[str, tk.Architecture]:
    """The four networks of the comparison."""
    relu, erf = tk.Activation("relu"), tk.Activation("erf")
    end = [tk.GlobalAveragePool(), tk.Dense()]
    conv, smooth = tk.Conv(9, math.sqrt(2), 0.1), tk.Conv(9, math.sqrt(1.7562), math.sqrt(0.1841))
    positions = tk.Positions("absolute", scale=tokens)
    deep = tk.named_architecture("cnn-struct", depth=8, attention=2).layers
    placed = [replace(layer, positions=positions) if isinstance(layer, tk.SelfAttention) else layer for layer in deep]
    stacks: list[list[Any]] = [
        [conv, relu, *end],
        [smooth, erf, smooth, erf, *end],
        [conv, relu, tk.SelfAttention(positions=positions), relu, *end],
        placed,
    ]
    return {name: tk.Architecture(layers, name) for name, layers in zip(LAYERS_OF, stacks, strict=True)}


def reviews(count: int, tokens: int, seed: int) -> Sequences:
    """Packaged IMDb reviews as GloVe vectors, cut at ``tokens``; the first is a long one."""
    from embeddings.catalogue import get_encoder
    from textkernels.datasets import load

    texts = np.array(load("bundled:imdb").texts, dtype=object)
    chosen = np.random.default_rng(seed).permutation(len(texts))[: count + 200]
    encoder = get_encoder("glove-6b-50d", max_tokens=tokens).fit(list(texts[chosen]))
    documents = encoder.encode(list(texts[chosen])).documents
    longest = int(np.argmax(documents.lengths))
    return documents.take([longest, *(i for i in range(len(documents)) if i != longest)][:count])


def random_documents(count: int, tokens: int, seed: int) -> Sequences:
    """Random vectors in documents as long as reviews; the first is a long one."""
    generator = np.random.default_rng(seed)
    sigma = math.sqrt(math.log(1 + (171 / 231) ** 2))
    drawn = generator.lognormal(math.log(231) - sigma**2 / 2, sigma, count)
    lengths = np.clip(drawn.round().astype(int), 1, tokens)
    lengths[0] = tokens
    return Sequences.from_arrays([generator.standard_normal((length, 50)) for length in lengths], np.float32)


def count_pairs(documents: Sequences) -> tuple[int, float]:
    """Document pairs of a symmetric matrix, and their token pairs."""
    lengths = documents.lengths.astype(np.float64)
    return len(documents) * (len(documents) + 1) // 2, (lengths.sum() ** 2 + (lengths**2).sum()) / 2


def timed_ours(architecture: tk.Architecture, documents: Sequences, repeats: int) -> tuple[Timing, Any]:
    """Median of warm runs, and (nngp, ntk)."""
    kernel = PairKernel(architecture)

    def compute() -> Any:
        prepared = kernel.prepare(documents)
        return kernel.block(prepared, prepared, True, 0)

    result = compute()
    runs = [Timing.of(compute)[0] for _ in range(repeats)]
    return Timing(*(float(np.median([getattr(run, part) for run in runs])) for part in ("wall", "cpu"))), result


def timed_reference(
    architecture: tk.Architecture, documents: Sequences, options: argparse.Namespace
) -> tuple[Timing, int, tuple[list[Any], list[Any], list[Any]]]:
    """Time of some blocks after compilation, how many document pairs they have, and their places and values."""
    import jax

    from textkernels.finite import quietly, to_stax

    values, mask = documents.padded()
    values = np.where(mask[..., None], values, np.nan).astype(np.float32)
    batch = options.batch
    sides = [np.arange(start, start + batch) for start in range(0, len(values) - batch + 1, batch)]
    corners = [(a, b) for a in range(len(sides)) for b in range(a + 1)]
    chosen = np.random.default_rng(0).permutation(len(corners))[: options.blocks]
    with quietly():
        kernel_fn = to_stax(architecture)[2]
        compiled = jax.jit(lambda x, y: tuple(kernel_fn(x, y, ("nngp", "ntk"), mask_constant=math.nan)))
        jax.block_until_ready(compiled(values[sides[0]], values[sides[-1]]))

        def compute() -> list[Any]:
            results = []
            for corner in tqdm(chosen, f"neural-tangents {architecture.name}", unit="block", leave=False):
                a, b = corners[corner]
                blocks = compiled(values[sides[a]], values[sides[b]])
                results.append((np.ix_(sides[a], sides[b]), *(np.asarray(block) for block in blocks)))
            return results

        timing, results = Timing.of(compute)
    places, nngp, ntk = (list(column) for column in zip(*results, strict=True))
    return timing, len(results) * batch**2, (places, nngp, ntk)


def show_growth(make: Callable[[int, int], Sequences]) -> None:
    """Seconds against the number of documents, their length, and depth."""
    for title, cases in growth(make):
        print(f"\n{title}")
        for label, architecture, documents in cases:
            timing, _ = timed_ours(architecture, documents, 3)
            pairs, token_pairs = count_pairs(documents)
            print(
                f"  {label:24s}{timing.wall:9.3f} s   cpu {timing.cpu:9.3f} s   {pairs:9,d} document pairs   "
                f"{timing.cpu / token_pairs * 1e9:7.2f} ns of a processor a token pair"
            )


def growth(
    make: Callable[[int, int], Sequences],
) -> Iterator[tuple[str, list[tuple[str, tk.Architecture, Sequences]]]]:
    """Series of cases."""
    shallow = networks(500)["conv + relu"]
    counts = (25, 50, 100, 200, 400)
    yield "documents", [(f"{count} documents", shallow, make(count, 500)) for count in counts]
    lengths = (50, 100, 200, 500, 1000)
    full = [(f"{length} tokens", shallow, _of_length(make(400, 2000), length, 24)) for length in lengths]
    yield "length (24 documents, all of it)", full
    documents = make(60, 500)
    depths = (1, 2, 4, 8, 16)
    deep = [(f"{depth} convolutions", tk.named_architecture("cnn-gap", depth=depth), documents) for depth in depths]
    yield "depth (60 documents)", deep
    attentions = (1, 2, 3)
    several = [
        (f"4 conv, {count} attention", tk.named_architecture("cnn-struct", depth=4, attention=count), documents)
        for count in attentions
    ]
    yield "attention (60 documents)", several


def _of_length(documents: Sequences, length: int, count: int) -> Sequences:
    """Documents of exactly ``length`` tokens, cut from one long stream."""
    stream = documents.values
    starts = np.arange(count) * (len(stream) - length) // count
    return Sequences.from_arrays([stream[start : start + length] for start in starts], np.float32)


if __name__ == "__main__":
    main()
