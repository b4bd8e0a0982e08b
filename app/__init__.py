"""Streamlit demo: type a review, see label, probability and uncertainty."""
