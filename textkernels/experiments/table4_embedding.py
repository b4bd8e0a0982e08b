"""Table 4 under one embedding: validate every candidate, choose in every class, test the winners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from tqdm import tqdm

from textkernels.architecture import Architecture
from textkernels.experiments.candidates import Candidate
from textkernels.experiments.encoded import EncodedTexts
from textkernels.experiments.labelled import LabelledTexts
from textkernels.experiments.measure import measured
from textkernels.experiments.pair_tiles import PairTiles
from textkernels.experiments.pooled import token_stack
from textkernels.experiments.refit import refit
from textkernels.experiments.table3 import KINDS, Outcome, Trial
from textkernels.experiments.table4_candidates import TokenCandidate, by_tokens, describe_pass, passes
from textkernels.experiments.token_stacks import FeatureStack, PairStack
from textkernels.experiments.validation import GridScore, Split, to_plain, validate
from textkernels.finished import FinishedParts
from textkernels.selection import DIAG_REG_GRID

ROLES = ("train", "validation", "test")


@dataclass
class Table4Embedding:
    """The candidates under one embedding; ``run`` fills in the results. Finished parts are taken from the folder.

    Attributes:
        name: of the embedding.
        encoder: fitted.
        texts: those of each of ``ROLES``, with the same classes.
        classes: candidates by class.
        finished: where finished parts are kept.
        max_tokens: of the longest text.
        progress: show progress bars.
        trials: by candidate and kernel.
        outcomes: one a class and kernel, classes in order.
    """

    name: str
    encoder: Any
    texts: Mapping[str, LabelledTexts]
    classes: Mapping[str, Sequence[TokenCandidate]]
    finished: FinishedParts
    max_tokens: int = 1000
    progress: bool = False
    grid: tuple[float, ...] = DIAG_REG_GRID
    trials: dict[tuple[TokenCandidate, str], Trial] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self) -> Table4Embedding:
        """Compute what is not finished yet.

        Raises:
            ValueError: no usable text of some class, or kernels that are no covariances.
        """
        self._check()
        self._choose()
        self._test()
        for part in self.encoded.values():
            part.release()
        return self

    @cached_property
    def stacks(self) -> dict[Architecture, list[TokenCandidate]]:
        """The distinct candidates of all classes by their token layers."""
        return by_tokens(dict.fromkeys(candidate for members in self.classes.values() for candidate in members))

    @cached_property
    def encoded(self) -> dict[str, EncodedTexts]:
        """Encoded texts by role."""
        return {role: EncodedTexts(self.texts[role], self.encoder, self.finished, self.progress) for role in ROLES}

    @cached_property
    def passes(self) -> list[tuple[PairTiles, PairTiles]]:
        """For stacks that share token pairs: tiles of training documents, and of validation with training ones."""
        groups = passes(self.stacks)
        return [(self._tiles(group, "train"), self._tiles(group, "validation")) for group in groups]

    @cached_property
    def test_passes(self) -> list[PairTiles]:
        """Tiles of test with training documents, for the winners' token layers; once there are winners."""
        stacks = by_tokens(trial.candidate for _, trial in self.winners())
        return [self._tiles(group, "test") for group in passes(stacks)]

    def winners(self) -> list[tuple[str, Trial]]:
        """By class and kernel the most accurate candidate on the validation texts.

        Of equals it is the one with less squared error, then the first.
        """
        found = []
        for model, candidates in self.classes.items():
            for kind in KINDS:
                trials = [self.trials[candidate, kind] for candidate in candidates]
                best = min(trials, key=lambda trial: (-(trial.best.accuracy or 0.0), trial.best.mse))
                found.append((model, best))
        return found

    def _tiles(self, group: Sequence[Architecture], role: str) -> PairTiles:
        label = f"{self.name}, {role} texts, {describe_pass(group)}"
        rows, columns = self.encoded[role], self.encoded["train"]
        return PairTiles(group, rows, columns, self.max_tokens, self.finished, self.progress, label)

    def _check(self) -> None:
        names = self.texts["train"].classes.tolist()
        absent = np.setdiff1d(np.arange(len(names)), self.encoded["train"].codes)
        if len(absent):
            raise ValueError(
                f"{self.name}: expected a usable training text of every class, got none of {names[absent[0]]!r}; use "
                "vectors that know its words"
            )
        for role in ROLES[1:]:
            if not len(self.encoded[role]):
                raise ValueError(f"{self.name}: expected a {role} text with a known token, got none; use more texts")

    def _choose(self) -> None:
        for inner, outer in self.passes:
            waiting = [c for stack in inner.stacks for c in self.stacks[stack] if self.kept_trials(c) is None]
            for tiles in (inner, outer) if waiting else ():
                tiles.fill()
        total = sum(map(len, self.stacks.values()))
        with tqdm(total=total, desc=f"{self.name}, candidates", unit="network", disable=not self.progress) as bar:
            for stack, members in self.stacks.items():
                shared = self._token_work(stack, "validation")
                for candidate in members:
                    self._validate(candidate, shared)
                    bar.update()

    def _token_work(self, stack: Architecture, role: str) -> FeatureStack | PairStack:
        """Token layers of training texts and those of a role."""
        train, other = self.encoded["train"], self.encoded[role]
        if stack.linear_tokens:
            return FeatureStack(stack, train, other, self.max_tokens, self.finished)
        inner, outer = next(pair for pair in self.passes if stack in pair[0].stacks)
        if role == "test":
            outer = next(tiles for tiles in self.test_passes if stack in tiles.stacks)
        return PairStack(stack, inner, outer)

    def _validate(self, candidate: TokenCandidate, shared: FeatureStack | PairStack) -> None:
        kept = self.kept_trials(candidate)
        if kept is None:
            codes = [self.encoded[role].codes for role in ROLES[:2]]
            n_train, n = len(codes[0]), sum(map(len, codes))
            split = Split(np.arange(n_train), np.arange(n_train, n), np.concatenate(codes), self._n_classes)
            kernel, documents = shared.network(candidate.architecture)
            with measured() as cost:
                scores = validate(kernel, documents, split, KINDS, self.grid)
            # The NNGP and the NTK share the computation and count half of it each.
            costs = {"seconds": cost.seconds / len(KINDS), "peak_bytes": cost.peak_bytes}
            for kind, (solver, table) in scores.items():
                result = {"solver": solver, "scores": to_plain(table), **costs}
                self.finished.keep(self._content("validation", candidate, kind), result)
            kept = self.kept_trials(candidate) or {}
        self.trials |= {(candidate, kind): trial for kind, trial in kept.items()}

    def kept_trials(self, candidate: TokenCandidate) -> dict[str, Trial] | None:
        """Finished trials of a candidate by kernel, None unless there are all."""
        found = {}
        for kind in KINDS:
            kept = self.finished.get(self._content("validation", candidate, kind))
            if kept is None:
                return None
            scores = [GridScore(**row) for row in kept.pop("scores")]
            found[kind] = Trial(candidate, kind, scores=scores, **kept)
        return found

    def _test(self) -> None:
        winners = self.winners()
        if any(self._kept_test(trial) is None for _, trial in winners):
            for tiles in self.test_passes:
                tiles.fill()
        with tqdm(winners, f"{self.name}, test", unit="network", disable=not self.progress) as bar:
            for model, trial in bar:
                result = self._kept_test(trial)
                if result is None:
                    result = self._tested(trial)
                    self.finished.keep(self._test_content(trial), result)
                self.outcomes.append(Outcome(model, trial, result))

    def _tested(self, trial: Trial) -> dict[str, Any]:
        """The winner, fitted to the training texts in float64, on the test texts."""
        architecture = trial.candidate.architecture
        kernel, documents = self._token_work(token_stack(architecture), "test").network(architecture)
        codes = self.encoded["train"].codes
        train, test = documents[: len(codes)], documents[len(codes) :]
        with measured() as cost:
            fitted = refit(kernel, train, test, codes, self._n_classes, trial.kind == "ntk", trial.best.diag_reg)
        # A text without a known token is predicted to be of the majority class.
        majority = int(np.bincount(codes, minlength=self._n_classes).argmax())
        predicted = np.full(len(self.texts["test"]), majority)
        predicted[self.encoded["test"].rows] = fitted.predicted
        return {
            "correct": "".join("01"[int(right)] for right in predicted == self.texts["test"].codes),
            "solver": fitted.solver,
            "jitter": fitted.jitter,
            "log_marginal_likelihood": fitted.log_marginal_likelihood,
            "seconds": cost.seconds,
            "peak_bytes": cost.peak_bytes,
        }

    def _kept_test(self, trial: Trial) -> dict[str, Any] | None:
        return self.finished.get(self._test_content(trial))

    def _test_content(self, trial: Trial) -> dict[str, Any]:
        more = {"test": self.texts["test"].checksum, "diag_reg": trial.best.diag_reg}
        return self._content("test", trial.candidate, trial.kind, **more)

    @property
    def _n_classes(self) -> int:
        return len(self.texts["train"].classes)

    def _content(self, part: str, candidate: Candidate, kind: str, **more: Any) -> dict[str, Any]:
        """Everything that a result depends on."""
        return {
            "part": f"table4 {part}",
            "architecture": candidate.architecture.to_toml(),
            "kernel": kind,
            "train": self.encoded["train"].content,
            "validation": self.texts["validation"].checksum,
            "longest": self.max_tokens,
            "grid": self.grid,
            **more,
        }
