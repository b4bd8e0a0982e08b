"""Text to tokens, by two named rules that are deterministic and take time linear in the text.

``keras``     The default rule of the Keras Tokenizer, which the paper uses: lower-case, every filter
              character becomes a space, split on spaces. Apostrophes stay ("don't" is one token), HTML
              tags leave their names behind ("<br />" gives "br").
``treebank``  Words as the GloVe vectors spell them: contractions in two ("do", "n't"; "it", "'s"),
              punctuation kept as tokens, HTML tags removed and entities decoded.

Both rules lower-case by default. ``lower=False`` keeps the case, for vectors that distinguish it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from functools import cache

KERAS_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'

_KERAS_SPACES = str.maketrans(dict.fromkeys(KERAS_FILTERS, " "))

# A tag starts with a letter, "/" or "!", so "a < b" and "<3" are text. No "<" inside: each scan for the
# closing bracket ends at the next opening one, which keeps the whole search linear.
_TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]*>")
# Only with a semicolon ("AT&T" is text) and only a few digits: html.unescape raises on very long numbers.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NEGATION = re.compile(r"(?<=\w)(n't)\b", re.IGNORECASE)
_DOTS = re.compile(r"\.{2,}")
_DASHES = re.compile(r"-{2,}")

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇`´′", "'"),
        **dict.fromkeys("“”„«»″", '"'),
        "–": " -- ",
        "—": " -- ",
        "…": " ... ",
        "_": " ",
        "\u00ad": None,  # soft hyphen
        **dict.fromkeys("\u200c\u200d\u2060\ufeff\ufe0e\ufe0f", None),  # joiners, variation selectors, byte order mark
        "\u200b": " ",
        **{chr(code): " " for code in (*range(32), *range(127, 160))},
        # Windows-1252 read as Latin-1, common in scraped reviews.
        "\x85": " ... ",
        **dict.fromkeys("\x91\x92", "'"),
        **dict.fromkeys("\x93\x94", '"'),
        **dict.fromkeys("\x96\x97", " -- "),
    }
)


def _keras(text: str, lower: bool) -> list[str]:
    if lower:
        text = text.lower()
    return [token for token in text.translate(_KERAS_SPACES).split(" ") if token]


@cache
def _treebank_pattern() -> re.Pattern[str]:
    """The token pattern; compiled at first use since finding Unicode's marks takes some milliseconds."""
    # Python's \w leaves out combining vowel signs and accents, without which Hindi or Thai words fall apart.
    marks = "".join(re.escape(chr(c)) for c in range(0x300, 0x10000) if unicodedata.category(chr(c))[0] == "M")
    word = rf"[\w{marks}]"
    suffix = r"'(?:s|m|re|ve|ll|d)\b"
    return re.compile(
        rf"""{suffix} | n't\b
        | '(?:\d0s|em|til|cause|n)\b                      # '90s, 'em
        | \b(?:(?:[^\W\d]\.){{2,}} | (?:mrs?|ms|dr|jr|sr|st|vs|etc|prof)\.)   # u.s., mr.
        | \d+(?:[.,]\d+)+ | \d+[:/]\d+                    # 1,000 7.5 3:30 10/10
        | {word}+(?:'(?!(?:s|m|re|ve|ll|d)\b){word}+)*    # o'brien
        | \.\.\. | --
        | \S""",
        re.VERBOSE | re.IGNORECASE,
    )


def _treebank(text: str, lower: bool) -> list[str]:
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if lower:
        text = text.lower()
    text = text.translate(_TYPOGRAPHY)
    if "'" in text:
        text = _NEGATION.sub(r" \1", text).replace("''", ' " ')
    if ".." in text:
        text = _DOTS.sub(" ... ", text)
    if "--" in text:
        text = _DASHES.sub(" -- ", text)
    return _treebank_pattern().findall(text)


TOKENIZERS: dict[str, Callable[[str, bool], list[str]]] = {"keras": _keras, "treebank": _treebank}


def tokenize(text: str, rule: str = "treebank", lower: bool = True) -> list[str]:
    """Split one text into tokens by the named rule.

    Args:
        text: any string; an empty one gives an empty list.
        rule: a key of ``TOKENIZERS``.
        lower: lower-case the text, as both rules do unless the vectors are cased.

    Returns:
        The tokens in the order of the text, none of them empty, none with a line feed or a space inside.

    Raises:
        ValueError: an unknown rule.
    """
    return check_rule(rule)(text, lower)


def check_rule(rule: str) -> Callable[[str, bool], list[str]]:
    """The function behind a rule's name; ValueError with the names there are if there is none."""
    try:
        return TOKENIZERS[rule]
    except (KeyError, TypeError):
        raise ValueError(f"expected a tokenizer named {' or '.join(map(repr, TOKENIZERS))}, got {rule!r}") from None
