"""Which embedding is better: the same rows, draws, seeds and kernels for every candidate.

Every candidate (embedding, architecture, kernel) is fitted to several training draws of several sizes, diag_reg by
leave-one-out inside each draw, and predicts the same test rows. Texts are encoded once for all draws; a finished cell
(candidate, draw) is kept in the folder and not computed again. What goes wrong with one candidate is written down and
leaves the others alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from textkernels.architecture import Architecture
from textkernels.experiments.baselines import BASELINES, LabelledPart
from textkernels.experiments.cells import Cell
from textkernels.experiments.contender import Contender
from textkernels.experiments.measure import measured
from textkernels.experiments.provenance import encoder_origin
from textkernels.experiments.splits import Draw, Splits
from textkernels.experiments.stacked import Stack, StackedTexts
from textkernels.finished import FinishedParts

# Their messages are sentences for users; any other error is named by its type, too.
PLAIN_ERRORS = (ValueError, OSError, ImportError, NotImplementedError)


@dataclass
class Comparison:
    """A comparison on given rows; ``run`` fills in the results.

    Attributes:
        splits: training draws and test rows.
        embeddings: names or paths.
        architectures: by name.
        kernels: ``nngp``, ``ntk`` or both.
        encoder: name -> fitted encoder; called once for each embedding.
        folder: for finished parts.
        max_tokens: tokens of the longest text.
        seed: of everything random besides the draws.
        progress: show progress bars.
        cells: by contender and draw; failed ones are missing.
        failures: by contender, the first reason why something of it failed.
        origins: by embedding: how texts became vectors (``provenance.encoder_origin``).
        facts: by contender, plain values: ``dim``, ``load_seconds``, those of ``StackedTexts``, ``peak_bytes``.
    """

    splits: Splits
    embeddings: Sequence[str]
    architectures: dict[str, Architecture]
    kernels: Sequence[str]
    encoder: Callable[[str], Any]
    folder: str | os.PathLike[str]
    max_tokens: int = 1000
    seed: int = 0
    progress: bool = False
    cells: dict[tuple[Contender, Draw], Cell] = field(default_factory=dict)
    failures: dict[Contender, str] = field(default_factory=dict)
    origins: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[Contender, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def contenders(self) -> list[Contender]:
        """All rows of the report: baselines, then candidates."""
        return [Contender(name) for name in BASELINES] + self._candidates(self.embeddings, self.architectures)

    def run(self) -> Comparison:
        """Compute what is not finished yet."""
        for name in BASELINES:
            self._baseline(name)
        for name in self.embeddings:
            self._embedding(name)
        self._bar.close()
        return self

    @cached_property
    def _bar(self) -> tqdm[Any]:
        total = len(self.contenders) * len(self.splits.draws)
        return tqdm(total=total, desc="cells", unit="cell", disable=not self.progress)

    @cached_property
    def _finished(self) -> FinishedParts:
        return FinishedParts(Path(self.folder) / "finished")

    def _candidates(self, embeddings: Iterable[str], architectures: Iterable[str]) -> list[Contender]:
        return [Contender(e, a, kind) for e in embeddings for a in architectures for kind in self.kernels]

    def _baseline(self, name: str) -> None:
        splits, contender = self.splits, Contender(name)
        for draw in splits.draws:
            texts = [splits.needed.texts[row] for row in draw.rows]
            part = LabelledPart(texts, draw.codes, splits.test.texts, splits.n_classes)
            content = self._content("baseline", draw, name=name)
            self._cell(contender, draw, content, partial(BASELINES[name], part, self.seed))

    def _embedding(self, name: str) -> None:
        self._bar.set_postfix_str(name)
        try:
            with measured() as cost:
                encoder = self.encoder(name)
        except Exception as error:
            self._fail(self._candidates([name], self.architectures), error)
            return
        self.origins[name] = encoder_origin(encoder)
        content = {"part": "vectors", "encoder": encoder.config(), "texts": self.splits.needed.checksum}
        facts = {"dim": encoder.dim, "load_seconds": cost.seconds, "load_peak_bytes": cost.peak_bytes}
        # Vectors in the user's cache load faster: what the first run for this report took is kept.
        facts = self._finished.get(content) or facts
        self._finished.keep(content, facts)
        for stack in Stack.all_of(self.architectures):
            self._stack(name, encoder, stack, facts)

    def _stack(self, name: str, encoder: Any, stack: Stack, load: dict[str, Any]) -> None:
        about = {"encoder": encoder.config(), "longest": self.max_tokens}
        cells = {
            (contender, draw): self._content(
                "cell",
                draw,
                architecture=stack.members[contender.architecture or ""].to_toml(),
                kernel=contender.kernel,
            )
            | about
            for draw in self.splits.draws
            for contender in self._candidates([name], stack.members)
        }
        documents = {"part": "documents", "texts": self.splits.checksum, "tokens": stack.tokens.to_toml()} | about
        facts, texts = self._finished.get(documents), None
        if facts is None or any(self._finished.get(content) is None for content in cells.values()):
            try:
                ntk = "ntk" in self.kernels
                texts = StackedTexts(stack, self.splits, encoder, self.max_tokens, ntk, self.progress, name)
            except Exception as error:
                self._fail(self._candidates([name], stack.members), error)
                return
            facts = facts or texts.facts
            self._finished.keep(documents, facts)
        for contender in self._candidates([name], stack.members):
            self.facts[contender] = load | facts
        for (contender, draw), content in cells.items():
            architecture = stack.members[contender.architecture or ""]
            self._cell(contender, draw, content, partial(self._fit, texts, architecture, draw, contender.kernel))

    def _fit(self, texts: StackedTexts | None, architecture: Architecture, draw: Draw, kernel: str | None) -> Cell:
        # Texts are prepared whenever a cell is missing, and each candidate has a kernel.
        assert texts is not None
        assert kernel is not None
        return texts.fit(architecture, draw, kernel, self.seed)

    def _content(self, part: str, draw: Draw, **more: Any) -> dict[str, Any]:
        """Everything that the result of a cell depends on."""
        return {"part": part, "train": draw.checksum, "test": self.splits.test.checksum, "seed": self.seed, **more}

    def _cell(self, contender: Contender, draw: Draw, content: dict[str, Any], compute: Callable[[], Cell]) -> None:
        kept = self._finished.get(content)
        if kept is None:
            try:
                with measured() as cost:
                    cell = compute()
            except Exception as error:
                self._fail([contender], error, f"{draw.size:,} labels, seed {draw.seed}: ", draws=1)
                return
            kept = cell.to_plain()
            kept["facts"]["peak_bytes"] = cost.peak_bytes
            self._finished.keep(content, kept)
        self.cells[contender, draw] = Cell.from_plain(kept)
        self._bar.update()

    def _fail(self, contenders: list[Contender], error: Exception, where: str = "", draws: int | None = None) -> None:
        reason = str(error) if isinstance(error, PLAIN_ERRORS) and str(error) else f"{type(error).__name__}: {error}"
        reason = where + " ".join(reason.split())
        for contender in contenders:
            self.failures.setdefault(contender, reason)
        if self.progress:
            self._bar.write(f"{', '.join(contenders[0].parts)} failed: {reason}", file=sys.stderr)
        self._bar.update(len(contenders) * (draws or len(self.splits.draws)))
