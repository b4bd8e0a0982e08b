"""Vectors from the gensim-data collection, where a network exists or they were loaded before."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path

PREFIX = "gensim:"


def find_gensim_data(name: str) -> Path:
    """The file of that name, downloaded by gensim into its own folder if it is not there yet.

    Only the file is taken: the code that gensim downloads along with it is not run.

    Args:
        name: such as ``glove-wiki-gigaword-100``, without the prefix.

    Raises:
        ValueError: no such name, or a collection of texts.
        OSError: no network, or a download that failed.
    """
    import gensim.downloader

    # gensim asks the network even for what it has.
    present = Path(gensim.downloader.BASE_DIR) / name / f"{name}.gz"
    if present.is_file():
        return present
    logger = logging.getLogger(gensim.downloader.__name__)
    was_disabled, logger.disabled = logger.disabled, True  # it would print a traceback
    try:
        with contextlib.redirect_stdout(sys.stderr):  # its progress, which is no output of ours
            models = gensim.downloader.info()["models"]
            if name not in models:
                raise LookupError
            return Path(gensim.downloader.load(name, return_path=True))
    except LookupError:
        raise ValueError(f"gensim-data has no vectors named {name!r}; it has {', '.join(sorted(models))}") from None
    except Exception as error:  # network errors of many kinds; without any, a ValueError about its own cache
        raise OSError(
            f"{PREFIX}{name} is downloaded once, and the download failed ({type(error).__name__}: {error}); connect "
            f"to the Internet, or put the file at {present}"
        ) from None
    finally:
        logger.disabled = was_disabled
