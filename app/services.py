"""What the pages show, computed without Streamlit."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Words of a review, each of which is left out once; runs of words where a network needs all pairs of tokens.
MOST_PARTS, MOST_RUNS = 250, 20
# Probability up to which the larger of two classes is not worth calling a label; 2 / C times that for C classes.
LEANING = 0.6
# A spread of labels that is hardly wider than that of other reviews is not worth a message.
WORTH_TELLING = 2.0

EXAMPLES = {
    "A warm one": (
        "What a wonderful film. The two leads are superb together, the story is beautiful and touching without being "
        "sweet, and the music stays with you for days. I went in expecting very little, since I had never heard of the "
        "director, and came out with a smile that lasted the whole way home. There is a scene on a ferry, early in the "
        "morning, where hardly a word is said, and it tells you more about these people than most films manage in two "
        "hours. One of the best I have seen in years; highly recommended."
    ),
    "A cold one": (
        "Two hours of my life that I will not get back. The plot makes no sense, the acting is wooden, and the jokes "
        "are so stale that nobody in the room laughed once. Every character does whatever the script needs at that "
        "moment, and then forgets it in the next scene. The effects look cheap, the dialogue is embarrassing, and the "
        "ending is an insult to anyone who stayed awake that long. I kept hoping it would at least be bad enough to be "
        "funny, but it is just dull. Avoid it."
    ),
    "In two minds": (
        "The photography is beautiful and the music is haunting, but the story never finds its feet and the ending "
        "feels like it belongs to another film. For the first half hour I thought I was watching something special: "
        "the little town, the rain, the old man who repairs radios. Then the daughter comes back from the city and it "
        "turns into a thriller that nobody asked for. The actors do what they can. Worth one look, perhaps, on a slow "
        "evening."
    ),
    "A few words": "I loved it, great film!",
    "Words nobody knows": "Qwzx vrrp blorf, snarfle grbx!",
}


@dataclass(frozen=True)
class Token:
    """One token of a review: ``kept`` unless cut by the length limit, ``known`` if it has a vector."""

    text: str
    kept: bool
    known: bool

    @property
    def used(self) -> bool:
        """Whether the kernel sees it."""
        return self.kept and self.known


@dataclass(frozen=True)
class Review:
    """A scored review.

    ``probabilities`` by class name; ``mean`` and ``std`` of the latent function of the predicted class; ``spread``
    is the standard deviation of a label around that mean, uncertainty of the mean included; ``unusual`` is the share
    of training reviews whose latent value would be surer, were their own label unknown; ``usual_length`` is the number
    of tokens that nearly all training reviews have, and ``widened`` how many times the spread of labels, squared, is
    that of a review of that length.
    """

    prediction: str
    probabilities: dict[str, float]
    mean: float
    std: float
    spread: float
    unusual: float
    usual_length: float
    widened: float
    status: str
    tokens: tuple[Token, ...]

    @property
    def probability(self) -> float:
        """Probability of the predicted class."""
        return self.probabilities[self.prediction]

    @property
    def used(self) -> int:
        """Tokens that the kernel saw."""
        return sum(token.used for token in self.tokens)

    @property
    def unknown(self) -> int:
        """Tokens without a vector."""
        return sum(token.kept and not token.known for token in self.tokens)

    @property
    def cut(self) -> int:
        """Tokens beyond the length limit."""
        return sum(not token.kept for token in self.tokens)

    @property
    def verdict(self) -> str:
        """The label, unless the model hardly knows."""
        return self.prediction if self.status == "ok" and self.probability > self._leaning else "undecided"

    @property
    def _leaning(self) -> float:
        return 2.0 * LEANING / len(self.probabilities)

    @property
    def certainty(self) -> str:
        """The probability in words."""
        if self.status != "ok":
            return "no evidence"
        if self.probability <= self._leaning:
            return f"rather {self.prediction} than not"
        return "near certain" if self.probability > 0.95 else "confident" if self.probability > 0.8 else "leaning"

    @property
    def rarity(self) -> str:
        """How unusual the text is, in words."""
        if self.unusual >= 0.995:
            return "more unusual than nearly all reviews"
        return f"more unusual than {self.unusual:.0%} of reviews"


def model_folder() -> Path:
    """The model to show: the folder that ``textkernels app --model`` was given."""
    return Path(os.environ.get("TEXTKERNELS_MODEL", ".demo/model"))


def load_model(folder: Path) -> Any:
    """Read a fitted model and score one review, so that the first visitor does not wait for compilation.

    Raises:
        ValueError: no model there, or one that cannot be read; the message says what to do.
    """
    import textkernels as tk

    model = tk.load(folder)
    model.predict_table(["A short review to warm up."])
    return model


def score_review(model: Any, text: str) -> Review:
    """Label, probability and uncertainty of one review, with what became of its tokens."""
    row = model.predict_table([text]).iloc[0]
    names = [f"{name}" for name in model.classes_]
    tokens = tuple(Token(word, kept, known) for word, kept, known in model.encoder_.explain(text))
    labels = float(model.residual_variance_.at(max(sum(token.used for token in tokens), 1)))
    return Review(
        prediction=f"{row['prediction']}",
        probabilities={name: float(row[f"probability_{name}"]) for name in names},
        mean=float(row["mean"]),
        std=float(row["std"]),
        spread=math.hypot(float(row["std"]), math.sqrt(labels)),
        unusual=float(np.interp(row["std"], model.fit_report_["std_quantiles"], np.linspace(0, 1, 21))),
        usual_length=model.residual_variance_.usual_length,
        widened=labels / model.residual_variance_.usual,
        status=str(row["status"]),
        tokens=tokens,
    )


def explain_review(model: Any, text: str) -> pd.DataFrame:
    """Columns text, effect: how each word moves the latent value of the predicted class, by leaving it out.

    Networks with convolutions are asked about runs of words, since each answer takes them long.
    """
    return model.explain(text, MOST_PARTS if model.architecture_.linear_tokens else MOST_RUNS)


def length_message(review: Review) -> str | None:
    """What to tell a visitor whose text is far shorter than the training reviews; None if it is not."""
    if review.status != "ok" or review.widened < WORTH_TELLING:
        return None
    tokens = "token" if review.used == 1 else "tokens"
    return (
        f"Only {review.used} {tokens} to go on, where nearly all training reviews have at least "
        f"{review.usual_length:.0f}. The probability is as sure as the model was right about pieces of reviews of this "
        "length."
    )


def status_message(status: str) -> str | None:
    """What to tell a visitor whose text could not be scored as it is; None if it could."""
    return {
        "ok": None,
        "missing_text": "There is no text yet. Type a review or choose an example.",
        "empty": "There is no text yet. Type a review or choose an example.",
        "no_known_tokens": (
            "None of these words has a vector, so the model has nothing to go on: it falls back to the share of each "
            "class among the training reviews, with the widest uncertainty it knows."
        ),
    }[status]
