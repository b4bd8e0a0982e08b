"""Token work once for all candidates that differ only behind the pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.architecture import Architecture
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures, FeatureState, apply_layers
from textkernels.layers import GlobalAveragePool
from textkernels.preparation import prepare_texts


@dataclass(frozen=True)
class PooledTexts:
    """n texts, of which m have a token with a vector, as pooled explicit features.

    Attributes:
        documents: the m documents.
        rows: their places among the texts, (m,) int64, increasing.
        coverage: share of the kept tokens that have a vector, (n,).
        n_dropped: tokens that truncation cut, (n,) int64.
    """

    documents: DocumentFeatures
    rows: np.ndarray
    coverage: np.ndarray
    n_dropped: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Numeric arrays for a file; ``from_arrays`` reads them back."""
        own = {"rows": self.rows, "coverage": self.coverage, "n_dropped": self.n_dropped}
        return {**self.documents.arrays(), **own}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PooledTexts:
        """The texts that ``arrays`` described."""
        documents = DocumentFeatures(arrays["nngp"], arrays["ntk"])
        return cls(documents, arrays["rows"], arrays["coverage"], arrays["n_dropped"])


def token_stack(architecture: Architecture) -> Architecture:
    """The layers up to and including pooling: what candidates of one stack share."""
    return Architecture([*architecture.token_layers, GlobalAveragePool()], name="tokens")


def pooled_texts(
    stack: Architecture, texts: Sequence[Any], encoder: Any, longest: int, progress: bool, label: str
) -> PooledTexts:
    """Pooled explicit features of texts.

    Args:
        stack: from ``token_stack``; linear.
        texts, encoder, longest, progress, label: see :func:`textkernels.preparation.prepare_texts`.
    """
    prepared = prepare_texts(texts, encoder, FeatureKernel(stack), longest, progress, label)
    return PooledTexts(prepared.documents, prepared.rows, prepared.coverage, prepared.n_dropped)


def continue_features(architecture: Architecture, pooled: DocumentFeatures) -> DocumentFeatures:
    """What the kernel of an architecture needs of documents that were pooled under its token layers.

    The columns of both kernels side by side are one set of columns with weights 1 or 0 for each kernel, to which the
    linear layers between pooling and the first activation apply as they stand.
    """
    width, tangents = pooled.nngp.shape[1], pooled.ntk.shape[1]
    nngp = np.repeat([1.0, 0.0], [width, tangents])
    state = FeatureState(np.hstack([pooled.nngp, pooled.ntk]), nngp, 1.0 - nngp, 1)
    layers = architecture.layers[architecture.pooling + 1 : architecture.linear_layers]
    return DocumentFeatures.from_state(apply_layers(state, layers))
