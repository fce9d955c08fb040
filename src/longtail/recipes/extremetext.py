"""extremeText: a probabilistic label tree over learnt bag embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.sparse import hstack

from longtail.classifiers.classifier_training import ClassifierTraining
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.scorers.probabilistic_tree import ProbabilisticTreeScorer
from longtail.surrogates.label_clusters import label_centroids, meta_labels
from longtail.surrogates.label_tree import LabelTree, balanced_tree
from longtail.training.batches import SharedPool
from longtail.training.schedule import Schedule
from longtail.transfer.plain import Identity

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ExtremeText"]


@dataclass(kw_only=True, eq=False, repr=False)
class ExtremeText(LabelEstimator):
    """extremeText: a probabilistic label tree over learnt embeddings of bags of tokens.

    Wydmuch et al., "A no-regret generalization of hierarchical softmax to extreme multi-label
    classification", NeurIPS 2018.

    Labels are the leaves of a tree made by 2-means. The probability of a label is the product, from
    the root down, of the probabilities that the point goes on to each node, given that it came to
    its parent: one logistic classifier a node over a learnt embedding of the bag of tokens. A point
    trains the nodes on its labels' paths and the siblings of those, some log L in all.

    Parameters
    ----------
    dimension : int
        Length of token and node vectors.
    leaf_size : int
        Most labels below a node of the last level.
    epochs : int
        Over the training points.
    learning_rate : float
        Of token and node vectors, at the first step.
    batch_size : int
        Points of a step.
    beam_size : int
        Nodes of a level that a prediction follows.
    dropout : float
        Of the embeddings, in training.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail.recipes.extremetext import ExtremeText
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = ExtremeText().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    stage: ClassVar[str] = "nodes"  # see `EndToEnd`
    dimension: int = 256
    leaf_size: int = 100
    epochs: int = 60
    learning_rate: float = 0.05
    batch_size: int = 128
    beam_size: int = 10
    dropout: float = 0.5

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        with run.stage("label tree"):
            tree, order = self._tree(data, run)
        nodes, siblings = tree_targets(tree, data.labels[:, order])
        architecture = BagOfTokens(dimension=self.dimension, dropout=self.dropout)
        network = architecture.network(data, nodes, run)
        batches = SharedPool(
            labels=nodes,
            shortlists=siblings,
            batch_size=self.batch_size,
            n_hard=siblings.shape[1],
            n_random=0,
            own_only=True,
        )
        training = ClassifierTraining(
            schedule=Schedule(epochs=self.epochs, learning_rate=self.learning_rate)
        )
        with run.stage(self.stage):
            block = Identity().block(self.dimension, run.torch_device)
            classifier = training.fit(network, block, batches, run, self.stage)
        return ProbabilisticTreeScorer(
            encoder=architecture.frozen(network),
            nodes=classifier,
            child_starts=tree.child_starts(),
            labels=used[order],
            beam_size=self.beam_size,
        )

    def _tree(self, data: TrainingData, run: TrainingRun) -> tuple[LabelTree, NDArray[np.int64]]:
        """Return a tree of labels in the order of its leaves, and that order."""
        centroids = label_centroids(data.features, data.labels, n_threads=run.n_threads)
        tree = balanced_tree(
            centroids,
            leaf_size=self.leaf_size,
            seed=run.seed_for("label tree"),
            n_threads=run.n_threads,
        )
        return tree.in_leaf_order()


def tree_targets(tree: LabelTree, labels: csr_array) -> tuple[csr_array, NDArray[np.int32]]:
    """Return which nodes each point goes through, and which it is asked about.

    Parameters
    ----------
    tree : LabelTree
    labels : csr_array (n_points, n_labels)
        In the order of the tree's leaves.

    Returns
    -------
    nodes : csr_array (n_points, n_nodes - 1)
        The nodes above its labels, the root apart, and the labels.
    asked : int32 (n_points, size)
        The children of the root and of those nodes, ascending, padded with -1.
    """
    levels = [
        meta_labels(labels, tree.nodes[level], tree.n_nodes(level))
        for level in range(1, tree.depth)
    ]
    nodes: csr_array = hstack([*levels, labels], format="csr")
    starts = tree.child_starts()
    n_inner = len(starts) - 1
    rows: list[NDArray[np.int64]] = []
    for own in np.split(nodes.indices, nodes.indptr[1:-1]):
        inner = np.unique(own[own < n_inner - 1]) + 1  # the root is node 0, and has no column
        ranges = [np.arange(starts[node], starts[node + 1]) for node in (0, *inner)]
        rows.append(np.concatenate(ranges) - 1)
    asked = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int32)
    for row, own_nodes in zip(asked, rows, strict=True):
        row[: len(own_nodes)] = own_nodes
    return nodes, asked
