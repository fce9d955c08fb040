"""MACH: labels hashed to few buckets, several times over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from longtail.features.dense_layer import DenseLayer
from longtail.recipes.architectures import OfMLP
from longtail.recipes.end_to_end import learn_end_to_end
from longtail.scorers.hashed_labels import BucketNetwork, HashedLabelsScorer
from longtail.surrogates.assignments import RandomHashing
from longtail.surrogates.label_clusters import meta_labels
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["MACH"]


@dataclass(kw_only=True, eq=False, repr=False)
class MACH(OfMLP):
    """MACH (Medini et al., "Extreme classification in log memory", NeurIPS 2019).

    R hashes send the labels to B buckets each; a perceptron over hashed tokens learns to predict
    the buckets of one hash; a label's score is the mean of the probabilities of its R buckets. No
    layer is as wide as there are labels, and the networks need nothing of each other.

    Parameters
    ----------
    n_hashes : int
        R, how often the labels are hashed, and how many networks there are. 16 in the authors'
        code, 32 in the DeepXML paper.
    n_buckets : int or None
        B, to how many buckets. None takes a tenth of the labels, at least 500 and at most 10,000,
        which is what the authors have for three million labels.
    epochs : int
        Over the training points, for each network.
    learning_rate : float
        Of the tables, of tokens and of buckets.
    batch_size : int
        Points of a step.
    **kwargs
        Those of `OfMLP`.

    Examples
    --------
    >>> from longtail.recipes.mach import MACH
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> MACH(n_hashes=3).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    stage: ClassVar[str] = "network"  # see `EndToEnd`; of each hash
    n_hashes: int = 8
    n_buckets: int | None = None
    epochs: int = 10
    learning_rate: float = 0.05
    batch_size: int = 256

    def buckets_for(self, n_labels: int) -> int:
        """Return B for a number of labels."""
        return self.n_buckets or min(max(n_labels // 10, 500), 10_000)

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        hashes, networks = [], []
        for i in range(self.n_hashes):
            own = run.within(f"hash {i + 1}: ")
            with own.stage(self.stage):
                assignment = RandomHashing(n_meta_labels=self.buckets_for(len(used))).assign(
                    data.features,
                    data.labels,
                    seed=own.seed_for("label hash"),
                    n_threads=run.n_threads,
                )
                networks.append(self._network(data, assignment, own))
            hashes.append(assignment)
        return HashedLabelsScorer(tuple(networks), np.stack(hashes), used)

    def _network(
        self, data: TrainingData, assignment: NDArray[np.int32], run: TrainingRun
    ) -> BucketNetwork:
        """Train one perceptron to predict the buckets of a point's labels."""
        targets = meta_labels(data.labels, assignment, int(assignment.max()) + 1)
        encoder, buckets = learn_end_to_end(
            self.architecture(),
            data._replace(labels=targets),
            run,
            schedule=Schedule(epochs=self.epochs, learning_rate=self.learning_rate),
            batch_size=self.batch_size,
            stage=self.stage,
        )
        return BucketNetwork(encoder, DenseLayer(buckets.vectors, buckets.bias))
