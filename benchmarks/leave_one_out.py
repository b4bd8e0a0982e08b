"""Leave-one-out for a grid of eight regularizers: one eigendecomposition against a factorization a value.

    python benchmarks/leave_one_out.py [--sizes 1000,2000,3000,4000] [--full 25000]

Kernels of random documents. Both ways score all documents and all values, and must agree. What --full documents would
cost is carried on from the largest size by the cube, without the memory that an eigendecomposition needs there (three
n x n matrices, 15 GB at 25,000; library calls of that size are not safe either, so it is not run).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.full_selection import select_diag_reg_full
from textkernels.named_architectures import named_architecture
from textkernels.selection import select_diag_reg
from textkernels.solving import gram_triangles
from textkernels.targets import encode_targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,2000,3000,4000")
    parser.add_argument("--full", type=int, default=25_000)
    options = parser.parse_args()
    print(
        f"{'documents':>9}{'eigendecomposition':>20}{'8 factorizations':>18}{'walk from the best':>20}{'agree to':>10}"
    )
    for n in map(int, options.sizes.split(",")):
        seconds, differs = compare(n)
        print(
            f"{n:>9,}" + "".join(f"{s:>{w}.2f}" for s, w in zip(seconds, (20, 18, 20), strict=True)), f"{differs:>9.0e}"
        )
    grown = [s * (options.full / n) ** 3 / 60 for s in seconds]
    print(f"{options.full:>9,}" + "".join(f"{s:>{w - 4}.0f} min" for s, w in zip(grown, (20, 18, 20), strict=True)))


def compare(n: int) -> tuple[list[float], float]:
    """Seconds of the three ways, and the largest relative difference of the squared errors."""
    random = np.random.default_rng(0)
    signal = random.standard_normal((n, 50)) * 0.3 + random.standard_normal(50)
    codes = (signal[:, 0] + 0.3 * random.standard_normal(n) > np.median(signal[:, 0])).astype(int)
    features = np.hstack([signal / 5, np.full((n, 1), 0.1)])
    kernel = FeatureKernel(named_architecture("gap-fcn"))
    triangle = gram_triangles(kernel, DocumentFeatures(features, features), False)[0]
    targets = encode_targets(codes, 2)
    start = time.perf_counter()
    by_eigen = select_diag_reg(triangle, targets, max_documents=n)
    middle = time.perf_counter()
    by_factors = select_diag_reg_full(triangle, targets)
    late = time.perf_counter()
    walked = select_diag_reg_full(triangle, targets, start=by_eigen.diag_reg)
    end = time.perf_counter()
    assert walked.diag_reg == by_factors.diag_reg == by_eigen.diag_reg
    pairs = zip(by_eigen.table, by_factors.table, strict=True)
    differs = max(abs(a.mse - b.mse) / a.mse for a, b in pairs if np.isfinite(b.mse))
    return [middle - start, late - middle, end - late], differs


if __name__ == "__main__":
    main()
