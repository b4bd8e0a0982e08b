"""The paper's Table 4: four classes of networks under a low- and a high-quality embedding, NNGP and NTK.

Protocol ("Infinite attention", Hron et al. 2020, appendix A.2): Keras tokens, targets -0.5 and 0.5; 3,200 texts for
training, 1,600 for validation and 1,600 for testing. In every class of networks, candidate and regularizer (1e-7, 1e-6,
..., 1 in units of the mean diagonal) are those most accurate on the validation texts after fitting the training texts,
in float32; the winner is fitted to the training texts in float64 and tested. Both embeddings see the same texts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from textkernels.experiments.table4_candidates import FULL, Table4Grid
from textkernels.experiments.table4_embedding import Table4Embedding
from textkernels.experiments.table4_rows import Table4Rows
from textkernels.finished import FinishedParts


@dataclass
class Table4:
    """The protocol on given texts; ``run`` fills in the results. Finished parts are taken from the folder.

    Attributes:
        rows: texts to train on, to choose with and to test on.
        encoders: by name, the low-quality one first; fitted.
        folder: where finished parts are kept.
        grid: which candidates compete.
        max_tokens: of the longest text.
        progress: show progress bars.
    """

    rows: Table4Rows
    encoders: Mapping[str, Any]
    folder: str | os.PathLike[str]
    grid: Table4Grid = FULL
    max_tokens: int = 1000
    progress: bool = False

    @cached_property
    def classes(self) -> dict[str, Any]:
        """Candidates by class."""
        return dict(self.grid.classes())

    @cached_property
    def embeddings(self) -> dict[str, Table4Embedding]:
        """The protocol under each embedding, by name."""
        finished = FinishedParts(self._finished)
        return {
            name: Table4Embedding(
                name, encoder, self.rows.parts, self.classes, finished, self.max_tokens, self.progress
            )
            for name, encoder in self.encoders.items()
        }

    @property
    def _finished(self) -> Path:
        return Path(self.folder) / "finished"

    @property
    def bytes_to_keep(self) -> int:
        """What the tiles that are not finished yet will take on disk."""
        passes = [tiles for embedding in self.embeddings.values() for pair in embedding.passes for tiles in pair]
        return sum(4 * tiles.entries(tiles.missing()) for tiles in passes)

    def check_room(self) -> None:
        """Fail before the computing if the disk cannot hold the tiles.

        Raises:
            OSError: too little is free.
        """
        folder, needed = self._finished.absolute(), self.bytes_to_keep
        free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
        if free < needed:
            wanted, found = (f"{size / 2**30:.1f} GiB" for size in (needed, free))
            raise OSError(
                f"{self.folder}: expected room for {wanted} of finished parts, got {found} of free disk; choose "
                "another folder, --limit or --quick"
            )

    def run(self) -> Table4:
        """Compute what is not finished yet, one embedding after the other."""
        for embedding in self.embeddings.values():
            embedding.run()
        return self
