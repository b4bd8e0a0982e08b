"""The paper's Table 3: GAP-only, GAP-FCN and Struct on sentiment of film reviews, NNGP and NTK.

Protocol ("Infinite attention", Hron et al. 2020, appendix A.2): Keras tokens, the first 1,000 of each text; targets
-0.5 and 0.5; in every class of networks, candidate and regularizer (1e-7, 1e-6, ..., 1 in units of the mean diagonal)
are those most accurate on 2/5 of the training rows, in float32; the winner is refitted to all training rows and tested
in float64.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from textkernels.evaluation import evaluate
from textkernels.experiments.candidates import TABLE3, Candidate, stacks
from textkernels.experiments.labelled import LabelledTexts
from textkernels.experiments.measure import measured
from textkernels.experiments.pooled import PooledTexts, continue_features, pooled_texts, token_stack
from textkernels.experiments.refit import Refit, refit
from textkernels.experiments.validation import GridScore, Split, best_score, to_plain, validate
from textkernels.feature_kernel import FeatureKernel
from textkernels.features import DocumentFeatures
from textkernels.finished import FinishedParts
from textkernels.labels import stratified_sample
from textkernels.probability import neutral_probabilities
from textkernels.selection import DIAG_REG_GRID

KINDS = ("nngp", "ntk")
FITTING_SHARE = 0.6  # 15,000 of 25,000


@dataclass(frozen=True)
class Trial:
    """One candidate and kernel on the validation rows.

    Attributes:
        seconds, peak_bytes: cost; the NNGP and the NTK share the kernel's computation and count half of it each.
    """

    candidate: Candidate
    kind: str
    solver: str
    scores: list[GridScore]
    seconds: float
    peak_bytes: int

    @property
    def best(self) -> GridScore:
        """The regularizer that validation chooses."""
        return best_score(self.scores)


@dataclass(frozen=True)
class Outcome:
    """The winner of a class on the test rows.

    Attributes:
        model: class of networks, a key of TABLE3.
        trial: the winner on the validation rows.
        result: of the refit, plain values: ``correct`` (one character 0 or 1 a test row), ``jitter``, ``solver``,
            ``log_marginal_likelihood``, ``seconds``, ``peak_bytes``; and ``metrics`` of evaluation.evaluate where
            probabilities were asked for.
    """

    model: str
    trial: Trial
    result: dict[str, Any]

    @property
    def correct(self) -> np.ndarray:
        """Whether each test row is predicted right, (n_test,) booleans."""
        return np.frombuffer(self.result["correct"].encode(), dtype=np.uint8) == ord("1")


@dataclass
class Table3:
    """The protocol on given data; ``run`` fills in the results. Finished parts are taken from the folder.

    Attributes:
        train, test: labelled texts with the same classes.
        encoder: fitted on the training texts.
        folder: where finished parts are kept.
        seed: of the split.
        uncertainty: predict variances and probabilities of the test rows, too.
        progress: show progress bars.
        trials: by candidate and kernel.
        outcomes: one a class and kernel, in the order of the paper's table.
    """

    train: LabelledTexts
    test: LabelledTexts
    encoder: Any
    folder: str | os.PathLike[str]
    max_tokens: int = 1000
    seed: int = 0
    uncertainty: bool = False
    progress: bool = False
    grid: tuple[float, ...] = DIAG_REG_GRID
    trials: dict[tuple[Candidate, str], Trial] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self) -> Table3:
        """Validate every candidate, choose in every class, test the winners.

        Raises:
            ValueError: no usable text of some class, or kernels that are no covariances.
        """
        candidates = [candidate for members in stacks(TABLE3).values() for candidate in members]
        with tqdm(candidates, "candidates", unit="candidate", disable=not self.progress) as bar:
            for candidate in bar:
                bar.set_postfix_str(f"{candidate.stack}, {candidate.label}")
                self._validate(candidate)
        winners = [(model, self._winner(model, kind)) for model in TABLE3 for kind in KINDS]
        with tqdm(winners, "test", unit="network", disable=not self.progress) as bar:
            for model, trial in bar:
                bar.set_postfix_str(f"{model}, {trial.kind}")
                self.outcomes.append(Outcome(model, trial, self._test(trial)))
        return self

    @cached_property
    def split(self) -> Split:
        """Which usable training documents are fitted and which are for choosing."""
        codes = self.train.codes[self.pooled("gap-fcn", "train").rows]
        absent = np.setdiff1d(np.arange(len(self.train.classes)), codes)
        if len(absent):
            raise ValueError(
                f"expected a usable text of every class, got none of {self.train.classes.tolist()[absent[0]]!r}; "
                "use vectors that know its words"
            )
        fitting = stratified_sample(codes, round(FITTING_SHARE * len(codes)), self.seed)
        validation = np.setdiff1d(np.arange(len(codes)), fitting)
        return Split(fitting, validation, codes, len(self.train.classes))

    def pooled(self, stack: str, role: str) -> PooledTexts:
        """Token work of the training or test texts under a stack, done once and kept."""
        if (stack, role) not in self._memory:
            architecture = token_stack(Candidate(stack, 0, False).architecture)
            texts = self.train if role == "train" else self.test
            content = {
                "part": "documents",
                "texts": texts.checksum,
                "encoder": self.encoder.config(),
                "longest": self.max_tokens,
                "architecture": architecture.to_toml(),
            }
            arrays = self._finished.arrays(
                content,
                lambda: pooled_texts(
                    architecture, texts.texts, self.encoder, self.max_tokens, self.progress, f"{stack} {role}"
                ).arrays(),
            )
            self._memory[stack, role] = PooledTexts.from_arrays(arrays)
        return self._memory[stack, role]

    @cached_property
    def _memory(self) -> dict[tuple[str, str], PooledTexts]:
        return {}

    @cached_property
    def _finished(self) -> FinishedParts:
        return FinishedParts(Path(self.folder) / "finished")

    def _documents(self, candidate: Candidate, role: str) -> DocumentFeatures:
        return continue_features(candidate.architecture, self.pooled(candidate.stack, role).documents)

    def _content(self, part: str, candidate: Candidate, kind: str, **more: Any) -> dict[str, Any]:
        """Everything that a result depends on."""
        return {
            "part": part,
            "architecture": candidate.architecture.to_toml(),
            "kernel": kind,
            "train": self.train.checksum,
            "encoder": self.encoder.config(),
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            **more,
        }

    def _validate(self, candidate: Candidate) -> None:
        contents = {
            kind: self._content("validation", candidate, kind, grid=self.grid, fitting_share=FITTING_SHARE)
            for kind in KINDS
        }
        missing = [kind for kind in KINDS if self._finished.get(contents[kind]) is None]
        if missing:
            documents, kernel = self._documents(candidate, "train"), FeatureKernel(candidate.architecture)
            with measured() as cost:
                scores = validate(kernel, documents, self.split, missing, self.grid, self.progress)
            for kind, (solver, table) in scores.items():
                shared = {"seconds": cost.seconds / len(missing), "peak_bytes": cost.peak_bytes}
                self._finished.keep(contents[kind], {"solver": solver, "scores": to_plain(table), **shared})
        for kind in KINDS:
            kept = dict(self._finished.get(contents[kind]) or {})
            kept["scores"] = [GridScore(**row) for row in kept["scores"]]
            self.trials[candidate, kind] = Trial(candidate, kind, **kept)

    def _winner(self, model: str, kind: str) -> Trial:
        """The most accurate candidate of a class; of equals the one with less squared error, then the first."""
        trials = [self.trials[candidate, kind] for candidate in TABLE3[model]]
        return min(trials, key=lambda trial: (-(trial.best.accuracy or 0.0), trial.best.mse))

    def _test(self, trial: Trial) -> dict[str, Any]:
        diag_reg = trial.best.diag_reg
        content = self._content(
            "test", trial.candidate, trial.kind, test=self.test.checksum, diag_reg=diag_reg, probable=self.uncertainty
        )
        kept = self._finished.get(content)
        if kept is None:
            kernel = FeatureKernel(trial.candidate.architecture)
            train, test = (self._documents(trial.candidate, role) for role in ("train", "test"))
            codes, n_classes, ntk = self.split.codes, self.split.n_classes, trial.kind == "ntk"
            with measured() as cost:
                fitted = refit(
                    kernel, train, test, codes, n_classes, ntk, diag_reg, self.uncertainty, self.seed, self.progress
                )
            kept = self._scored(fitted, trial) | {"seconds": cost.seconds, "peak_bytes": cost.peak_bytes}
            self._finished.keep(content, kept)
        return kept

    def _scored(self, fitted: Refit, trial: Trial) -> dict[str, Any]:
        """Right or wrong for every test row; one without a known token is predicted as the majority class."""
        rows = self.pooled(trial.candidate.stack, "test").rows
        shares = np.bincount(self.split.codes, minlength=self.split.n_classes)
        predicted = np.full(len(self.test), int(shares.argmax()))
        predicted[rows] = fitted.predicted
        correct = predicted == self.test.codes
        result: dict[str, Any] = {
            "correct": "".join("01"[int(right)] for right in correct),
            "solver": fitted.solver,
            "jitter": fitted.jitter,
            "log_marginal_likelihood": fitted.log_marginal_likelihood,
        }
        if fitted.probabilities is not None:
            probabilities = neutral_probabilities(shares, len(self.test))
            probabilities[rows] = fitted.probabilities
            names = [str(name) for name in self.train.classes.tolist()]
            true, said = ([names[code] for code in codes] for codes in (self.test.codes, predicted))
            result["metrics"] = evaluate(true, said, probabilities, names)
        return result
