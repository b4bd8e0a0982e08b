"""The texts of a comparison under one embedding and one stack of token layers: encoded and prepared once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from textkernels.architecture import Architecture
from textkernels.engines import choose_kernel
from textkernels.experiments.cells import Cell, fit_cell
from textkernels.experiments.measure import measured
from textkernels.experiments.pooled import continue_features, token_stack
from textkernels.experiments.splits import Draw, Splits
from textkernels.experiments.tabulated import TabulatedKernel
from textkernels.feature_kernel import FeatureKernel
from textkernels.preparation import PreparedTexts, prepare_texts


@dataclass(frozen=True)
class Stack:
    """Token layers, and the architectures that have them.

    Attributes:
        tokens: what is done to the tokens; a whole architecture where it does not end in explicit features.
        members: architectures by name.
    """

    tokens: Architecture
    members: dict[str, Architecture]

    @classmethod
    def all_of(cls, architectures: dict[str, Architecture]) -> list[Stack]:
        """Architectures by their token layers, where those give explicit features; every other by itself."""
        found: dict[Any, Stack] = {}
        for name, architecture in architectures.items():
            linear = architecture.linear_tokens
            key = architecture.token_layers if linear else architecture
            stack = found.setdefault(key, cls(token_stack(architecture) if linear else architecture, {}))
            stack.members[name] = architecture
        return list(found.values())


class StackedTexts:
    """Documents of the training and test texts, prepared for a stack.

    With explicit features only a few hundred texts have token vectors at a time, so contextual vectors of any number
    of texts fit in memory.

    Args:
        stack: the token layers.
        splits: the texts.
        encoder: fitted.
        longest: tokens of the longest text.
        ntk: whether any cell is to be of the NTK.
        progress: show progress bars.
        label: of the bar.

    Attributes:
        facts: plain values: coverage, rows without a known token and cut ones, ``encode_seconds``, ``token_seconds``,
            ``peak_bytes``.
    """

    def __init__(
        self,
        stack: Stack,
        splits: Splits,
        encoder: Any,
        longest: int,
        ntk: bool = True,
        progress: bool = False,
        label: str = "texts",
    ) -> None:
        clocked, kernel = _ClockedEncoder(encoder), choose_kernel(stack.tokens)
        with measured() as cost:
            prepared = prepare_texts(splits.texts, clocked, kernel, longest, progress, label)
        self.splits, self.kernel, self.documents = splits, kernel, prepared.documents
        self.ntk, self.progress = ntk, progress
        self._continued: dict[Architecture, Any] = {}
        self._table: tuple[int, np.ndarray, TabulatedKernel] | None = None
        self._place = np.full(len(splits.texts), -1)
        self._place[prepared.rows] = np.arange(len(prepared.rows))
        self._n_train = len(splits.needed)
        self.facts = _facts(prepared, self._n_train) | {
            "encode_seconds": clocked.seconds,
            "token_seconds": cost.seconds - clocked.seconds,
            "peak_bytes": cost.peak_bytes,
        }

    def fit(self, architecture: Architecture, draw: Draw, kind: str, seed: int) -> Cell:
        """Fit a member of the stack to a draw and predict the test rows; see ``cells.fit_cell``.

        Args:
            architecture: of the stack.
            draw: training rows.
            kind: ``nngp`` or ``ntk``.
            seed: of subsets.
        """
        place = self._place[draw.rows]
        known = place >= 0
        test_rows = np.flatnonzero(self._place[self._n_train :] >= 0)
        test_place = self._place[self._n_train :][test_rows]
        kernel, train, test = self._side_by_side(architecture, draw.seed, place[known], test_place)
        n_test, n_classes = len(self.splits.test), self.splits.n_classes
        cell = fit_cell(kernel, train, draw.codes[known], test, test_rows, n_test, n_classes, kind == "ntk", seed)
        if isinstance(kernel, TabulatedKernel):
            cell.facts["kernel_seconds"] += kernel.seconds_for(len(train))
        return cell

    def _side_by_side(
        self, architecture: Architecture, seed: int, train: np.ndarray, test: np.ndarray
    ) -> tuple[Any, Any, Any]:
        """The kernel, and training and test documents for it, given by their places among all documents."""
        if isinstance(self.kernel, FeatureKernel):
            if architecture not in self._continued:
                self._continued[architecture] = continue_features(architecture, self.documents)
            documents = self._continued[architecture]
            return FeatureKernel(architecture), documents[train], documents[test]
        if self._table is None or self._table[0] != seed:
            # Token pairs are dear: once a seed, for its largest draw, which holds the others.
            largest = max((draw for draw in self.splits.draws if draw.seed == seed), key=lambda draw: draw.size)
            columns = self._place[largest.rows]
            columns = columns[columns >= 0]
            table = TabulatedKernel(self.kernel, self.documents[columns], self.documents[test], self.ntk, self.progress)
            self._table = seed, columns, table
        _, columns, table = self._table
        return table, np.searchsorted(columns, train), len(columns) + np.arange(len(test))


class _ClockedEncoder:
    """An encoder that knows how long it took."""

    def __init__(self, encoder: Any) -> None:
        self.encoder, self.seconds = encoder, 0.0

    def encode(self, texts: Iterable[Any], progress: bool = False) -> Any:
        """As the encoder's."""
        start = time.perf_counter()
        encoding = self.encoder.encode(texts, progress)
        self.seconds += time.perf_counter() - start
        return encoding


def _facts(prepared: PreparedTexts, n_train: int) -> dict[str, Any]:
    usable = prepared.status == "ok"
    with_tokens = prepared.n_tokens > 0
    return {
        "texts": len(prepared.status),
        "tokens": int((prepared.n_tokens - prepared.n_dropped).sum()),
        "coverage": float(prepared.coverage[with_tokens].mean()) if with_tokens.any() else 0.0,
        "truncated": int((prepared.n_dropped > 0).sum()),
        "tokens_dropped": int(prepared.n_dropped.sum()),
        "unusable_train": int((~usable[:n_train]).sum()),
        "unusable_test": int((~usable[n_train:]).sum()),
    }
