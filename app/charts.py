"""Charts of one scored review, without Streamlit."""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.services import Review, normal_density

ACCENT, MUTED = "#2a6f97", "#b8c4cc"


def probability_chart(review: Review) -> alt.Chart:
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
        height=44 * len(frame) + 30
    )


def latent_chart(review: Review) -> alt.LayerChart:
    """Density of the latent function after reading the review, against the one before."""
    spread = 3.2 * max(review.prior_std, review.std)
    low, high = min(-spread, review.mean - spread), max(spread, review.mean + spread)
    grid = [low + (high - low) * step / 200 for step in range(201)]
    curves = {"before reading": (0.0, review.prior_std), "after reading": (review.mean, review.std)}
    frame = pd.DataFrame(
        [
            {"latent value": x, "density": normal_density(x, mean, std), "belief": name}
            for name, (mean, std) in curves.items()
            for x in grid
        ]
    )
    area = (
        alt.Chart(frame)
        .mark_area(opacity=0.45, line=True)
        .encode(
            x=alt.X("latent value:Q", title=f"latent value of “{review.prediction}”"),
            y=alt.Y("density:Q", title=None, axis=None, stack=None),
            color=alt.Color(
                "belief:N",
                title=None,
                scale=alt.Scale(domain=list(curves), range=[MUTED, ACCENT]),
                legend=alt.Legend(orient="top"),
            ),
        )
    )
    rule = alt.Chart(pd.DataFrame({"x": [0.0]})).mark_rule(strokeDash=[4, 4], color="#666").encode(x="x:Q")
    return (area + rule).properties(height=190)
