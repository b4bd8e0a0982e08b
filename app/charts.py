"""Charts of one scored review, without Streamlit."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from app.services import Review

ACCENT, MUTED, AGAINST = "#2a6f97", "#b8c4cc", "#c8683c"


def probability_chart(review: Review) -> alt.LayerChart:
    """One bar a class, the predicted one in color."""
    frame = pd.DataFrame({"class": list(review.probabilities), "probability": list(review.probabilities.values())})
    base = alt.Chart(frame).encode(
        y=alt.Y("class:N", title=None, sort=None),
        x=alt.X("probability:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
    )
    bars = base.mark_bar(height=22, cornerRadius=3).encode(
        color=alt.condition(alt.datum["class"] == review.prediction, alt.value(ACCENT), alt.value(MUTED)),
        tooltip=["class", alt.Tooltip("probability:Q", format=".1%")],
    )
    return (bars + base.mark_text(align="left", dx=5).encode(text=alt.Text("probability:Q", format=".1%"))).properties(
        height=alt.Step(36)
    )


def certainty_chart(table: pd.DataFrame, classes: list[str]) -> alt.Chart:
    """How many rows of a scored table got which probability of their label, in twenty bins, by label."""
    two = alt.Scale(domain=classes, range=[MUTED, ACCENT])
    columns = {name: table[f"probability_{name}"] for name in classes}
    frame = pd.DataFrame(
        {"label": table["prediction"].map("{}".format), "probability": pd.DataFrame(columns).max(axis=1)}
    )
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("probability:Q", title="probability of the label", bin=alt.Bin(extent=[0, 1], step=0.05)),
            y=alt.Y("count()", title="rows"),
            color=alt.Color(
                "label:N",
                title=None,
                scale=two if len(classes) == 2 else alt.Scale(domain=classes),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=["label", alt.Tooltip("count()", title="rows")],
        )
        .properties(height=220)
    )


def effect_chart(review: Review, effects: pd.DataFrame, most: int = 10) -> alt.Chart:
    """The words that move the latent value most, strongest first; a word that stands twice has the sum."""
    words = effects.groupby(effects["text"].str.strip().str.slice(0, 40).str.lower(), sort=False)["effect"].sum()
    words = words[words != 0.0].sort_values(key=np.abs, ascending=False).head(most)
    sides = f"speaks for {review.prediction}", "speaks against it"
    frame = pd.DataFrame({"words": words.index, "effect": words.to_numpy(), "side": np.where(words > 0, *sides)})
    return (
        alt.Chart(frame)
        .mark_bar(cornerRadius=2)
        .encode(
            x=alt.X("effect:Q", title="latent value with the word, less that without it"),
            y=alt.Y("words:N", title=None, sort=None),
            color=alt.Color(
                "side:N",
                title=None,
                scale=alt.Scale(domain=list(sides), range=[ACCENT, AGAINST]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=["words", alt.Tooltip("effect:Q", format="+.3f")],
        )
        .properties(height=alt.Step(20))
    )


def evidence_chart(review: Review) -> alt.Chart:
    """Where the label may lie around the latent mean: the area right of 0 is the probability of the predicted class.

    For two classes, where probability = Phi(mean / spread).
    """
    low, high = min(review.mean - 3.2 * review.spread, -0.6), max(review.mean + 3.2 * review.spread, 0.6)
    grid = np.union1d(np.linspace(low, high, 241), [0.0])
    density = np.exp(-0.5 * ((grid - review.mean) / review.spread) ** 2)
    other = next(name for name in review.probabilities if name != review.prediction)
    sides = [(grid <= 0, other, MUTED), (grid >= 0, review.prediction, ACCENT)]
    frame = pd.concat(
        pd.DataFrame({"latent value": grid[side], "density": density[side], "side": f"speaks for {name}"})
        for side, name, _ in sides
    )
    return (
        alt.Chart(frame)
        .mark_area(opacity=0.8)
        .encode(
            x=alt.X("latent value:Q", title="latent value, with the spread of labels around it"),
            y=alt.Y("density:Q", title=None, axis=None, stack=None),
            color=alt.Color(
                "side:N",
                title=None,
                scale=alt.Scale(domain=list(frame["side"].unique()), range=[color for *_, color in sides]),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(height=190)
    )
