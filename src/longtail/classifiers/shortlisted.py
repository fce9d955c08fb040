"""Module IV: 1-vs-All classifiers and the final features, trained together on shortlists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from longtail.classifiers.classifier_training import ClassifierTraining
from longtail.training.batches import AllLabels, SharedPool
from longtail.training.neighbourhoods import neighbourhoods
from longtail.training.one_vs_all import FrozenFeatures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.label_vectors import LabelVectors
    from longtail.training.batches import LabelledBatches
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.run import TrainingRun
    from longtail.transfer.block import TransferBlock

__all__ = ["FullOneVsAll", "ShortlistTraining", "ShortlistedOneVsAll"]


@dataclass(frozen=True, kw_only=True)
class ShortlistTraining(ClassifierTraining):
    """How a classifier is trained on shortlists; shared by Module IV and the re-ranker.

    Parameters
    ----------
    batch_size : int
    n_hard, n_random, own_only
        See `SharedPool`.
    neighbourhood_size : int
        Points that stay together in batches; 0 for batches in random order.
    **kwargs
        Those of `ClassifierTraining`.

    Examples
    --------
    Points 0 and 2 are similar, and so are 1 and 3: they stay together.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.shortlisted import ShortlistTraining
    >>> from longtail.training.run import TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> schedule = Schedule(epochs=1, learning_rate=0.1)
    >>> training = ShortlistTraining(schedule=schedule, batch_size=2, neighbourhood_size=2)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> features = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    >>> labels, shortlists = csr_array(np.eye(4)), np.zeros((4, 1), np.int32)
    >>> pool = training.batches(labels, shortlists, features, run)
    >>> sorted(sorted(batch.points.tolist()) for batch in pool.epoch(np.random.default_rng(0)))
    [[0, 2], [1, 3]]
    """

    batch_size: int = 1024
    n_hard: int = 20
    n_random: int = 500
    own_only: bool = False
    neighbourhood_size: int = 200

    def batches(
        self,
        labels: csr_array,
        shortlists: NDArray[np.int32],
        features: NDArray[np.float32],
        run: TrainingRun,
    ) -> LabelledBatches:
        """Return batches of the training points, similar ones by `features` together."""
        groups = None
        if self.neighbourhood_size:
            seed = run.seed_for("neighbourhoods")
            groups = neighbourhoods(
                features, self.neighbourhood_size, seed=seed, n_threads=run.n_threads
            )
        return SharedPool(
            labels=labels,
            shortlists=shortlists,
            batch_size=self.batch_size,
            groups=groups,
            n_hard=self.n_hard,
            n_random=self.n_random,
            own_only=self.own_only,
        )


@dataclass(frozen=True, kw_only=True)
class ShortlistedOneVsAll:
    """Astec's classifier: one vector a label, trained with R on positives and hard negatives.

    The objective of Module IV (DeepXML paper, section 4), with biases: ``sum_i sum_l log(1 +
    exp(-y_il (w_l . x_i + b_l)))`` over the labels l in S_i, those of point i and its negatives, y
    being 1 or -1 and ``x_i = v_i + ReLU(R v_i + b)``. Which negatives S_i has, `SharedPool` says.

    Parameters
    ----------
    training : ShortlistTraining
    dropout : float
        Of the frozen features; the published code has none there.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> few = ShortlistedOneVsAll(training=ShortlistTraining(n_hard=5))
    >>> model = DeepXML(classifier=few).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    training: ShortlistTraining = field(default_factory=ShortlistTraining)
    dropout: float = 0.0

    def learn(
        self,
        features: NDArray[np.float32],
        block: TransferBlock,
        shortlists: NDArray[np.int32],
        labels: csr_array,
        run: TrainingRun,
        network: FeatureNetwork | None = None,
    ) -> LabelVectors:
        """Train the classifiers and the block; see `FineTuningClassifier.learn`."""
        if network is None:
            network = FrozenFeatures(features, dropout=self.dropout, device=run.torch_device)
        batches = self.training.batches(labels, shortlists, features, run)
        return self.training.fit(network, block, batches, run, "module IV")


@dataclass(frozen=True, kw_only=True)
class FullOneVsAll:
    """Every point against every label, without shortlists: for small label sets, or on a GPU.

    Jain et al., "Renee", MLSys 2023: the gradient is formed in place, chunk of labels by chunk, and
    products are in bfloat16 where the device has it (see `LabelTable`).

    Parameters
    ----------
    training : ClassifierTraining
    batch_size : int
    dropout : float
        Of the frozen features.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.classifiers.shortlisted import FullOneVsAll
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(classifier=FullOneVsAll()).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    training: ClassifierTraining = field(default_factory=ClassifierTraining)
    batch_size: int = 1024
    dropout: float = 0.0

    def learn(
        self,
        features: NDArray[np.float32],
        block: TransferBlock,
        shortlists: NDArray[np.int32],  # noqa: ARG002 - all labels are looked at
        labels: csr_array,
        run: TrainingRun,
        network: FeatureNetwork | None = None,
    ) -> LabelVectors:
        """Train the classifiers and the block; see `FineTuningClassifier.learn`."""
        if network is None:
            network = FrozenFeatures(features, dropout=self.dropout, device=run.torch_device)
        batches = AllLabels(labels, self.batch_size)
        return self.training.fit(network, block, batches, run, "module IV")
