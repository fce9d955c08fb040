"""The re-ranker: a second network that learns from what the first one confuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.shortlisted import ShortlistTraining
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.scorers.deepxml import Ranker
from longtail.scorers.fusion import ROWS_AT_ONCE
from longtail.scorers.ranking import best_first
from longtail.training.one_vs_all import check_network
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.features.architecture import FeatureArchitecture
    from longtail.recipes.deepxml import Transfer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Reranker"]


@dataclass(frozen=True, kw_only=True)
class Reranker:
    """Train E~, R~ and W~ on each point's true labels and its best-scored false ones.

    DeepXML paper, section 4, "Re-ranking the labels": the objective of `ShortlistedOneVsAll` with
    other negatives. Nothing is frozen, and nothing is shared with the first network.

    Parameters
    ----------
    architecture : FeatureArchitecture
        Of the same kind and sizes as the first network's, if it starts from that one.
    transfer : Transfer
        Of the same kind as the first network's, if it starts from that one.
    training : ShortlistTraining
    n_confused : int
        Best-scored labels of each training point that it is trained against.
    from_first : bool
        Start E~, R~ and W~ from the first network's; else as that one started, as the published
        code does. The paper does not say. They are its own parameters either way.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.classifiers.reranker import Reranker
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(reranker=Reranker(n_confused=50)).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    architecture: FeatureArchitecture = field(default_factory=BagOfTokens)
    transfer: Transfer = field(default_factory=BoundedResidual)
    training: ShortlistTraining = field(default_factory=ShortlistTraining)
    n_confused: int = 200
    from_first: bool = True

    def learn(
        self,
        data: TrainingData,
        shortlists: NDArray[np.int32],
        features: NDArray[np.float32],
        first: Ranker,
        run: TrainingRun,
    ) -> Ranker:
        """Train the re-ranker; see `Reranking.learn`."""
        confused = _best_scored(first, features, shortlists, self.n_confused, run.n_threads)
        network = self.architecture.network(
            data,
            data.labels,
            run.within("re-ranker "),
            start=first.encoder if self.from_first else None,
        )
        check_network(network)
        block = self.transfer.block(network.dimension, run.torch_device)
        batches = self.training.batches(data.labels, confused, features, run)
        if self.from_first:
            block.start_from(first.transform)
        start = first.classifier if self.from_first else None
        classifier = self.training.fit(network, block, batches, run, "re-ranker", start)
        return Ranker(self.architecture.frozen(network), block.frozen(), classifier)


def _best_scored(
    first: Ranker,
    features: NDArray[np.float32],
    shortlists: NDArray[np.int32],
    n_labels: int,
    n_threads: int,
) -> NDArray[np.int32]:
    """Return the labels of each shortlist that the first network scores highest."""
    best = np.empty((len(features), min(n_labels, shortlists.shape[1])), np.int32)
    for start in range(0, len(features), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        final = first.transform.apply(features[rows], n_threads)
        logits = first.classifier.logits(final, shortlists[rows], n_threads)
        best[rows], _ = best_first(shortlists[rows], logits, best.shape[1], n_threads)
    return best
