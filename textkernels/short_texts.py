"""How far the latent mean of a text can be trusted that is far shorter than the training texts.

The mean of a few token vectors lies far outside of where those of whole training texts lie; the latent function there
is an extrapolation, which the posterior, sure of its few hundred weights after thousands of texts, does not call
uncertain. What it is worth can be measured on the training texts themselves: cut pieces out of them, predict each from
all *other* texts, and fit s^2 to the labels, for one length after the other. Complete training texts keep theirs: only
lengths are added that nearly none of them has.

(12,500 IMDb reviews, Word2Vec, struct-fcn: of other reviews cut to 5 words 56 % are right; with one s^2 the model was
87 % sure of them, log loss 2.1. With s^2 by length: docs/results/benchmarks.md.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from textkernels.latent import LatentFit
from textkernels.posterior import LeftOut
from textkernels.preparation import PreparedTexts, prepare_texts
from textkernels.probability import fit_residual_variance
from textkernels.residual_variance import ResidualVariance

# Training texts that may be shorter than the usual length: 1 %, or as many as ten if that is no more than 5 %.
SHORT_SHARE, SHORT_TEXTS, LARGEST_SHARE = 0.01, 10, 0.05
# Characters stand for words where a word has more tokens than this on average, as in writing without spaces.
TOKENS_IN_A_WORD = 4
# Training texts that pieces are cut from; pieces of a length, and how many of them must have a known token.
TEXTS, PIECES, FEWEST_PIECES = 250, 250, 50


def fit_short_texts(
    usual: float,
    fitted: LatentFit,
    texts: Sequence[Any],
    codes: np.ndarray,
    train: PreparedTexts,
    encoder: Any,
    longest: int | None,
    seed: int,
    progress: bool = False,
) -> ResidualVariance:
    """s^2 by length: ``usual`` down to the length that nearly all training texts have, then measured at half of it, a
    quarter, ..., one word.

    Args:
        usual: s^2 of the training texts.
        fitted: to the training texts, with leave-one-out predictions of some.
        texts: all training texts, ``train.rows`` of which were used.
        codes: (m,) classes of the used ones.
        train: the texts as prepared.
        encoder: fitted.
        longest: as for ``prepare_texts``.
        seed: of which pieces are cut.
        progress: show a progress bar.
    """
    random = np.random.default_rng(seed)
    lengths = np.sort(train.n_seen[train.rows])
    shorter = max(int(SHORT_SHARE * len(lengths)), min(SHORT_TEXTS, int(LARGEST_SHARE * len(lengths))))
    shortest = max(int(lengths[shorter]), 1)
    found = ResidualVariance(np.array([float(shortest)]), np.array([usual]))
    sizes = [shortest >> halvings for halvings in range(1, shortest.bit_length())]
    if not sizes:
        return found
    held_out = fitted.leave_one_out[random.permutation(len(fitted.leave_one_out.rows))[:TEXTS]]
    left_out = LeftOut.of(fitted.model.posterior, held_out)
    units = [_Units.of(str(texts[row]), int(train.n_tokens[row])) for row in train.rows[held_out.rows]]
    for size in tqdm(sizes, desc="short texts", unit="length", disable=not progress, delay=1):
        place = np.array([place for place, own in enumerate(units) if own.longer_than(size)], dtype=np.int64)
        place = np.resize(place, PIECES if len(place) else 0)
        cut = [units[one].piece(size, random) for one in place]
        pieces = prepare_texts(cut, encoder, fitted.model.kernel, longest)
        place, n_seen = place[pieces.rows], pieces.n_seen[pieces.rows]
        # Words may be several tokens, or have no vector: the length is that in tokens which the model sees.
        if len(place) < FEWEST_PIECES or n_seen.mean() > found.lengths[0] / np.sqrt(2.0):
            continue
        latent = fitted.model.predict_left_out(pieces.documents, left_out, place)
        own = codes[held_out.rows[place]]
        found = found.extended(n_seen.mean(), fit_residual_variance(latent.mean, latent.variance, own))
    return found


@dataclass(frozen=True)
class _Units:
    """What a text is cut into.

    Attributes: ``parts``: its words, or its characters; ``joint``: what stands between them; ``each``: parts that make
    up a word.
    """

    parts: Sequence[str]
    joint: str
    each: float

    @classmethod
    def of(cls, text: str, n_tokens: int) -> _Units:
        words = text.split()
        if n_tokens <= TOKENS_IN_A_WORD * len(words):
            return cls(words, " ", 1.0)
        return cls(text, "", len(text) / n_tokens)

    def longer_than(self, size: int) -> bool:
        return len(self.parts) > self._count(size)

    def piece(self, size: int, random: np.random.Generator) -> str:
        """So many words in a row from a random place."""
        count = self._count(size)
        start = int(random.integers(len(self.parts) - count + 1))
        return self.joint.join(self.parts[start : start + count])

    def _count(self, size: int) -> int:
        return max(round(size * self.each), 1)
