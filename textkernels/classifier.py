"""KernelClassifier: texts and labels in, labels with probability and uncertainty out."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from embeddings import Encoder, get_encoder
from embeddings.texts import list_texts, read_texts
from embeddings.whole_numbers import whole_number
from textkernels.architecture import Architecture
from textkernels.classifier_parameters import check_architecture, check_parameters
from textkernels.engines import choose_kernel
from textkernels.explanation import ROUNDING, in_runs, without_each, words_of, words_read
from textkernels.labels import check_labels
from textkernels.latent import LatentFit, fit_latent
from textkernels.overlap import distinct_hashes
from textkernels.preparation import PreparedTexts, prepare_texts
from textkernels.probability import class_probabilities, fit_residual_variance, neutral_probabilities
from textkernels.short_texts import fit_short_texts
from textkernels.targets import predicted_class

if TYPE_CHECKING:
    import os

    import pandas as pd

ENCODER_OPTIONS = ("tokenizer", "max_tokens", "keep", "unknown", "scale", "workers")
STATUSES = ("missing_text", "empty", "no_known_tokens")


class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts with an infinitely wide network: exact Gaussian-process inference, no training.

    Two classes have the targets -0.5 and 0.5 and the probability Phi(mean / sqrt(variance + s^2)); for C classes
    the targets are 1 - 1/C and -1/C, and a class's probability is that of its latent output being the largest.
    s^2 is fitted to leave-one-out predictions of the training texts, and for texts shorter than those to predictions
    of pieces of them.

    Args:
        embedding: name of an encoder (``glove-6b-50d``, ``word2vec``, ...), path of a word-vector file, or an
            encoder, of which ``fit`` fits a copy; see :func:`embeddings.get_encoder`.
        architecture: name (see :func:`textkernels.named_architecture`) or an Architecture.
        kernel: ``"nngp"`` (random networks, Bayesian) or ``"ntk"`` (an ensemble of trained networks).
        diag_reg: regularizer in units of the mean of the Gram diagonal; ``"auto"``: least leave-one-out
            squared error among 1e-7, 1e-6, ..., 1 on at most 3,000 of the texts; ``"auto-full"``: on all of them.
        random_state: seed of everything random.
        tokenizer, max_tokens, keep, unknown, scale, workers: see :func:`embeddings.get_encoder`.
        engine: of the kernel, see :func:`textkernels.gram`.
        unusable: training texts without a known token are left out and counted (``"drop"``), or a ValueError
            (``"error"``).
        progress: show progress bars on standard error.

    Attributes (a ``fit`` that fails leaves those of an earlier one as they are, and so does ``set_params``):
        classes_: labels in the order of probability columns, as they went in.
        encoder_, architecture_: what was used.
        parameters_: the values of the other parameters that were used, and that ``save`` writes.
        n_train_: training texts that were used.
        residual_variance_: s^2 by the length of the text, see ``textkernels.residual_variance``.
        text_hashes_: of their distinct texts, uint64, increasing (see ``textkernels.overlap``); None in a model of an
            older version.
        fit_report_: counts, choices and times of the fit, plain values.

    Example:
        >>> clf = KernelClassifier().fit(["good film", "bad film"] * 5, ["pos", "neg"] * 5)
        >>> clf.predict(["a good one"]).tolist()
        ['pos']
    """

    def __init__(
        self,
        embedding: Any = "glove-6b-50d",
        architecture: str | Architecture = "struct-fcn",
        kernel: str = "nngp",
        diag_reg: float | str = "auto",
        random_state: int = 0,
        tokenizer: str | None = None,
        max_tokens: int | None = 1000,
        keep: str = "head",
        unknown: str = "mask",
        scale: str = "unit",
        workers: int | None = None,
        engine: str = "auto",
        unusable: str = "drop",
        progress: bool = False,
    ) -> None:
        self.embedding = embedding
        self.architecture = architecture
        self.kernel = kernel
        self.diag_reg = diag_reg
        self.random_state = random_state
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.keep = keep
        self.unknown = unknown
        self.scale = scale
        self.workers = workers
        self.engine = engine
        self.unusable = unusable
        self.progress = progress

    def fit(self, texts: Sequence[Any], labels: Sequence[Any], corpus: Sequence[Any] | None = None) -> KernelClassifier:
        """Fit on labelled texts.

        Args:
            texts: n texts, a list or one column of a table; None and NaN are missing.
            labels: n labels: texts, numbers or booleans.
            corpus: texts on which word vectors are trained, where they are trained (``word2vec``); default: texts.

        Returns: itself.

        Raises:
            ValueError: lengths that differ, fewer than two classes, a missing label, no usable text of some class,
                an unknown option; the message says what to change.
            TypeError: a cell that is neither a text nor missing, texts or labels that are no list or column, an
                architecture that is none.
        """
        texts = list_texts(texts)
        corpus = None if corpus is None else list_texts(corpus)
        classes, codes = check_labels(labels)
        if len(texts) != len(codes):
            raise ValueError(f"expected one label a text, got {len(texts):,} texts and {len(codes):,} labels")
        parameters = check_parameters(self.get_params(deep=False))
        architecture = check_architecture(self.architecture, self.kernel)
        kernel = choose_kernel(architecture, self.engine)
        clock = _Clock()
        encoder = self._encoder(parameters).fit(texts, corpus, progress=self.progress)
        clock.lap("vectors")
        longest = parameters["max_tokens"] or int(4 * max(encoder.encode(texts).n_tokens, default=1))
        train = prepare_texts(texts, encoder, kernel, longest, self.progress, "training texts")
        clock.lap("documents")
        self._check_usable(train, classes, codes)
        ntk, codes = self.kernel == "ntk", codes[train.rows]
        diag_reg, seed = parameters["diag_reg"], parameters["random_state"]
        fitted = fit_latent(kernel, train.documents, codes, len(classes), ntk, diag_reg, seed, self.progress)
        clock.lap("inference")
        held_out = fitted.leave_one_out
        usual = fit_residual_variance(held_out.mean, held_out.variance, codes[held_out.rows])
        residual_variance = fit_short_texts(usual, fitted, texts, codes, train, encoder, longest, seed, self.progress)
        clock.lap("probabilities")
        hashes, report = distinct_hashes(texts[row] for row in train.rows), _report(train, fitted, clock.seconds)
        # Together, and last: a fit that fails leaves an earlier one as it was.
        self.parameters_, self.architecture_, self.encoder_ = parameters, architecture, encoder
        self.classes_, self.latent_, self.residual_variance_ = classes, fitted.model, residual_variance
        self.class_shares_ = np.bincount(codes, minlength=len(classes)) / len(codes)
        self.longest_, self.n_train_ = longest, len(codes)
        self.text_hashes_: np.ndarray | None = hashes
        self.fit_report_ = report
        return self

    def predict(self, texts: Sequence[Any]) -> np.ndarray:
        """Labels (n,), as they went in. A text without known tokens gets the majority class of the training texts."""
        codes = self._predict(texts)[1]
        return self.classes_[codes]

    def predict_proba(self, texts: Sequence[Any]) -> np.ndarray:
        """Probabilities (n, C) in the order of ``classes_``; a row's largest is the predicted class."""
        return self._predict(texts)[2]

    def decision_function(self, texts: Sequence[Any]) -> np.ndarray:
        """Latent means: (n,) of the second class for two classes, (n, C) for more; 0 without known tokens."""
        mean = self._predict(texts)[3]
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict_table(self, texts: Sequence[Any], progress: bool = False) -> pd.DataFrame:
        """One row a text, in order.

        Columns: prediction; probability_<class> for every class; mean and std of the latent function of the
        predicted class; status (ok, missing_text, empty, no_known_tokens); n_tokens of the whole text; coverage:
        share of the kept tokens that have a vector; truncated; n_dropped: tokens cut. A row that is not ok has mean
        0, the prior's std, the class shares of the training texts as probabilities and their majority class.
        """
        import pandas as pd

        prepared, codes, probabilities, mean, std = self._predict(texts, progress)
        chosen = _of_class(mean, codes)
        columns: dict[str, Any] = {"prediction": self.classes_[codes]}
        columns |= {f"probability_{name}": probabilities[:, place] for place, name in enumerate(self.classes_)}
        columns |= {"mean": chosen + 0.0, "std": std, "status": prepared.status, "n_tokens": prepared.n_tokens}
        columns |= {
            "coverage": prepared.coverage,
            "truncated": prepared.n_dropped > 0,
            "n_dropped": prepared.n_dropped,
        }
        return pd.DataFrame(columns)

    def explain(self, text: Any, most: int = 200) -> pd.DataFrame:
        """How every word of a text moves its latent mean, by leaving the word out.

        Args:
            text: one text.
            most: a text of more words is cut into so many equally long runs of words; each costs one prediction.

        Returns: one row a part, in order. Columns: text, the part as it stands; effect, the latent mean of the
            predicted class minus that of the text without the part, positive where the part speaks for the prediction.
            Words behind the length limit are left out; a text without known tokens has effects of 0, a missing one no
            rows.

        Raises:
            TypeError: what is neither a text nor missing.
            ValueError: ``most`` that is no integer of at least 1.

        Example:
            >>> clf = KernelClassifier().fit(["good film", "bad film"] * 5, ["pos", "neg"] * 5)
            >>> clf.explain("a good one")["effect"].idxmax()
            1
        """
        import pandas as pd

        check_is_fitted(self, "latent_")
        most = whole_number("most", most, 1)
        words = words_of(read_texts([text])[0] or "")
        parts = in_runs(words_read(words, self.encoder_), most)
        texts = ["".join(parts), *without_each(parts)]
        prepared = prepare_texts(texts, self.encoder_, self.latent_.kernel, self.longest_)
        mean = np.zeros((len(texts), self.latent_.posterior.coef.shape[1]))
        if len(prepared.rows) and prepared.rows[0] == 0:
            mean[prepared.rows] = self.latent_.mean(prepared.documents)
        chosen = _of_class(mean, np.repeat(predicted_class(mean[:1]), len(texts)))
        effect = chosen[0] - chosen[1:]
        effect[np.abs(effect) < ROUNDING * max(abs(chosen[0]), 0.5)] = 0.0
        return pd.DataFrame({"text": pd.Series(parts, dtype=object), "effect": effect})

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as it was fitted to a folder; :func:`textkernels.load` reads it back."""
        from textkernels.persistence import save

        check_is_fitted(self, "latent_", msg="expected a fitted %(name)s; call fit before save")
        save(self, folder)

    def _encoder(self, parameters: dict[str, Any]) -> Any:
        """An encoder of its own to fit: one that was given may be in use elsewhere."""
        if isinstance(self.embedding, Encoder):
            return copy.deepcopy(self.embedding)
        options = {name: parameters[name] for name in ENCODER_OPTIONS}
        return get_encoder(self.embedding, seed=parameters["random_state"], progress=self.progress, **options)

    def _check_usable(self, train: PreparedTexts, classes: np.ndarray, codes: np.ndarray) -> None:
        bad = np.flatnonzero(train.status != "ok")
        if len(bad) and self.unusable == "error":
            raise ValueError(
                f"expected a known token in every training text, got {len(bad):,} without (first: row {bad[0] + 1}, "
                f"{train.status[bad[0]]}); leave them out, or use unusable='drop'"
            )
        absent = np.setdiff1d(np.arange(len(classes)), codes[train.rows])
        if len(absent):
            raise ValueError(
                f"expected a usable text of every class, got none of {classes.tolist()[absent[0]]!r}: all its texts "
                "are missing, empty or without known tokens; use vectors that know its words"
            )

    def _predict(
        self, texts: Sequence[Any], progress: bool = False
    ) -> tuple[PreparedTexts, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Prepared texts, class codes (n,), probabilities (n, C), latent means (n, C or 1) and std (n,)."""
        check_is_fitted(self, "latent_")
        texts = list_texts(texts)
        prepared = prepare_texts(texts, self.encoder_, self.latent_.kernel, self.longest_, progress, "texts")
        latent = self.latent_.predict(prepared.documents)
        n, rows = len(texts), prepared.rows
        mean, std = np.zeros((n, latent.mean.shape[1])), np.full(n, self.latent_.prior_std)
        mean[rows], std[rows] = latent.mean, np.sqrt(latent.variance)
        probabilities = neutral_probabilities(self.class_shares_, n)
        codes = np.full(n, int(np.argmax(self.class_shares_)))
        if len(rows):
            codes[rows] = predicted_class(latent.mean)
            spread = self.residual_variance_.at(prepared.n_seen[rows])
            probabilities[rows] = class_probabilities(latent.mean, latent.variance, spread)
        return prepared, codes, probabilities, mean, std


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._last, 3)
        self._last = now


def _of_class(mean: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Latent mean (n,) of a class in each row, of (n, C), or of (n, 1) for two classes."""
    if mean.shape[1] == 1:
        return mean[:, 0] * np.where(codes == 1, 1.0, -1.0)
    return mean[np.arange(len(mean)), codes]


def _report(train: PreparedTexts, fitted: LatentFit, seconds: dict[str, float]) -> dict[str, Any]:
    """What the command prints and the model keeps: plain numbers and texts."""
    dropped = {status: int((train.status == status).sum()) for status in STATUSES}
    return {
        "n": len(train.status),
        "n_used": len(train.rows),
        "dropped": {status: count for status, count in dropped.items() if count},
        "coverage": float(train.coverage[train.n_tokens > 0].mean()),
        "truncated_rows": int((train.n_dropped > 0).sum()),
        "tokens_dropped": int(train.n_dropped.sum()),
        "solver": fitted.solver,
        "diag_reg": fitted.diag_reg,
        "jitter": fitted.jitter,
        "selection": fitted.selection.to_dict() if fitted.selection else None,
        "log_marginal_likelihood": fitted.log_marginal_likelihood,
        # Every 5 %: how sure the latent value of a training text is when the text itself is left out.
        "std_quantiles": np.quantile(np.sqrt(fitted.leave_one_out.variance), np.linspace(0, 1, 21)).tolist(),
        "seconds": seconds,
    }
