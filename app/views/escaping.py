"""Foreign text on a page: what Markdown would read as anything else."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|$~:<>=^&@/])")


def plain(text: str) -> str:
    """Text for places that read Markdown, shown there as it stands.

    A word joiner, which has no width, keeps signs apart that Streamlit replaces after Markdown: ``:smile:``, ``->``.
    """
    return _MARKUP.sub("\\\\\\1\u2060", text)
