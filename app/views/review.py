"""The page for one review."""

from __future__ import annotations

import html
from typing import Any

import streamlit as st

from app.charts import effect_chart, evidence_chart, probability_chart
from app.services import EXAMPLES, Review, Token, explain_review, length_message, score_review, status_message
from app.views.escaping import plain

OWN = "Your own words"


def draw(model: Any) -> None:
    """Ask for a review and show what the model makes of it."""
    st.title("What does an infinitely wide network think of this review?")
    st.caption(
        f"{plain(model.architecture_.name)} · {model.kernel.upper()} · {plain(model.encoder_.name)} · "
        f"{model.n_train_:,} labelled reviews · no training, exact Gaussian-process inference"
    )
    text = _ask()
    if not text.strip():
        st.info(status_message("empty"))
        return
    review = score_review(model, text)
    message = status_message(review.status)
    if message:
        st.warning(message)
    _draw_verdict(review)
    short = length_message(review)
    if short:
        st.info(short)
    if review.cut:
        st.info(f"{review.cut:,} tokens beyond the length limit were not read.")
    if review.status == "ok":
        _draw_reasons(model, text, review)
    _draw_tokens(review)


def _ask() -> str:
    choice = st.selectbox("Start from", [OWN, *EXAMPLES], index=1, help="Examples can be edited below.")
    return st.text_area(
        "Review", value=EXAMPLES.get(choice, ""), height=170, key=f"text-{choice}", placeholder="Type a film review …"
    )


def _draw_verdict(review: Review) -> None:
    label, probability, latent = st.columns(3)
    label.metric("Label", plain(review.verdict), plain(review.certainty), delta_color="off", delta_arrow="off")
    probability.metric(
        "Probability", f"{review.probability:.1%}", help="Calibrated on training reviews whose own label was left out."
    )
    latent.metric(
        "Latent value",
        f"{review.mean:+.2f} ± {review.std:.3f}",
        review.rarity if review.status == "ok" else None,
        delta_color="off",
        delta_arrow="off",
        help="Mean and standard deviation of the Gaussian process, positive for the predicted class. Training reviews "
        "have the targets +0.5 and -0.5. The standard deviation grows with the distance from what the model has seen; "
        "it is compared with those of the training reviews.",
    )
    left, right = st.columns(2)
    left.altair_chart(probability_chart(review), width="stretch")
    if len(review.probabilities) == 2 and review.status == "ok":
        right.altair_chart(evidence_chart(review), width="stretch")


def _draw_reasons(model: Any, text: str, review: Review) -> None:
    st.subheader("Why?")
    with st.spinner("Leaving out one word after the other …"):
        effects = explain_review(model, text)
    strongest = float(effects["effect"].abs().max())
    if not strongest > 0:
        return
    st.html("".join(_shade(part, effect / strongest) for part, effect in effects.itertuples(index=False)))
    st.caption(
        f"Blue speaks for {plain(review.prediction)}, orange against it: how far the latent value falls or rises when "
        "the word is left out and everything else stays. The effects of single words need not add up; a bar "
        "is the sum over all places where its word stands."
    )
    st.altair_chart(effect_chart(review, effects), width="stretch")


def _shade(part: str, strength: float) -> str:
    """A part of the text on blue or orange, the deeper the stronger; strength from -1 to 1."""
    color = "42,111,151" if strength > 0 else "200,104,60"
    text = html.escape(part.rstrip())
    shaded = f'<span style="background:rgba({color},{0.75 * abs(strength):.2f});border-radius:3px">{text}</span>'
    return shaded + ("<br>" if "\n" in part[len(part.rstrip()) :] else " ")


def _draw_tokens(review: Review) -> None:
    st.subheader("What the model read")
    used, unknown, cut = st.columns(3)
    used.metric("Tokens used", f"{review.used:,}")
    unknown.metric("Unknown, left out", f"{review.unknown:,}")
    cut.metric("Cut by the length limit", f"{review.cut:,}")
    st.html(" ".join(_mark(token) for token in review.tokens))
    st.caption("Plain: used. Struck through: unknown to the word vectors. Gray: beyond the length limit.")


def _mark(token: Token) -> str:
    text = html.escape(token.text)
    if not token.kept:
        return f'<span style="color:#aaa">{text}</span>'
    return f"<span>{text}</span>" if token.known else f'<s style="color:#b04a3a">{text}</s>'
