"""What is compared with what: embeddings under the same network, and networks on the same embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textkernels.experiments.baselines import TFIDF
from textkernels.experiments.compare import Comparison
from textkernels.experiments.contender import KERNEL_NAMES, Contender
from textkernels.experiments.ranking import Ranking, verdict
from textkernels.experiments.scores import Score


@dataclass(frozen=True)
class Contest:
    """Contenders that have all but one thing in common, at one size.

    Attributes:
        common: what they have in common.
        size: number of labels.
        names: what tells them apart; first in the order asked for.
        ranking: of those with scores, and of TF-IDF beside embeddings; None where there are none.
    """

    common: str
    size: int
    names: Mapping[Contender, str]
    ranking: Ranking | None

    @property
    def verdict(self) -> str:
        """One sentence on the contenders; of a single one, against the baseline."""
        if self.ranking is None:
            return "There are no scores."
        about = dict(self.names)
        if len(about) == 1:
            about |= {contender: contender.embedding for contender in self.ranking.order if contender.is_baseline}
        return verdict(self.ranking, about)


def embedding_contests(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Contest]:
    """One a network (architecture and kernel) and size, sizes of one network together; TF-IDF takes part."""
    return [
        _contest(
            comparison,
            scores,
            f"{architecture}, {KERNEL_NAMES[kernel]}",
            size,
            {Contender(name, architecture, kernel): name for name in comparison.embeddings},
            [Contender(TFIDF)],
        )
        for architecture in comparison.architectures
        for kernel in comparison.kernels
        for size in comparison.splits.sizes
    ]


def network_contests(comparison: Comparison, scores: Mapping[int, Sequence[Score]]) -> list[Contest]:
    """One an embedding and size; none where there is one network."""
    networks = [(a, k) for a in comparison.architectures for k in comparison.kernels]
    if len(networks) < 2:
        return []
    alone = {0: len(comparison.architectures) == 1, 1: len(comparison.kernels) == 1}
    return [
        _contest(
            comparison,
            scores,
            embedding,
            size,
            {
                Contender(embedding, a, k): " ".join(
                    part for place, part in enumerate((a, KERNEL_NAMES[k])) if not alone[place]
                )
                for a, k in networks
            },
            [],
        )
        for embedding in comparison.embeddings
        for size in comparison.splits.sizes
    ]


def _contest(
    comparison: Comparison,
    scores: Mapping[int, Sequence[Score]],
    common: str,
    size: int,
    names: Mapping[Contender, str],
    beside: Sequence[Contender],
) -> Contest:
    found = [score for score in scores[size] if score.contender in names]
    if found:
        found += [score for score in scores[size] if score.contender in beside]
    return Contest(common, size, names, Ranking.of(found, comparison.splits.share(size)) if found else None)
