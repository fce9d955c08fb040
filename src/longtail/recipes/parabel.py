"""Parabel and Bonsai: ensembles of probabilistic label trees over sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.recipes.learners import averaged
from longtail.recipes.reranked import RerankedEstimator
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.surrogates.label_clusters import label_centroids, meta_labels
from longtail.surrogates.label_tree import LabelTree, balanced_tree, k_means_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Bonsai", "Parabel"]


@dataclass(kw_only=True, eq=False, repr=False)
class Parabel(RerankedEstimator):
    """Parabel (Prabhu et al., "Parabel: Partitioned label trees", WWW 2018).

    Labels are halved by balanced 2-means down to small leaves; each node and each label gets a
    linear support vector machine, trained on the points of its parent alone. A prediction follows
    the best branches; the scores of a few trees are averaged.

    Parameters
    ----------
    n_learners : int
        Trees, each from its own random numbers.
    leaf_size : int
        Most labels of a leaf.
    beam_size : int
        Nodes of a level that a prediction follows.
    cost : float
        C of the support vector machines: larger fits the training points more closely.
    prune : float
        Weights of the machines that are smaller than this are dropped.
    **kwargs
        Those of `RerankedEstimator`; words and pairs of words by default, no character n-grams.

    Examples
    --------
    >>> from longtail.recipes.parabel import Parabel
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = Parabel().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    char_ngrams: tuple[int, int] | str | None = None
    held_out: float = 0.02  # for the calibration alone
    n_learners: int = 3
    leaf_size: int = 100
    beam_size: int = 10
    cost: float = 1.0
    prune: float = 0.1

    def grow(self, centroids: csr_array, run: TrainingRun) -> LabelTree:
        """Return a tree over labels, given their centroids."""
        return balanced_tree(
            centroids,
            leaf_size=self.leaf_size,
            seed=run.seed_for("label tree"),
            n_threads=run.n_threads,
        )

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        with run.stage("label centroids"):
            centroids = label_centroids(data.features, data.labels, n_threads=run.n_threads)
        runs = (run.within(f"tree {i + 1}: ") for i in range(self.n_learners))
        return averaged([self._train_tree(data, centroids, used, own) for own in runs])

    def _train_tree(
        self, data: TrainingData, centroids: csr_array, used: NDArray[np.int32], run: TrainingRun
    ) -> LabelTreeScorer:
        """Grow one tree and train its nodes, level by level."""
        with run.stage("label tree"):
            tree, order = self.grow(centroids, run).in_leaf_order()
        data = data._replace(labels=data.labels[:, order])
        solver = SparseOneVsRest(cost=self.cost, prune=self.prune)
        with run.stage("nodes"):
            levels = [
                _train_level(solver, tree, level, data, run) for level in range(1, tree.depth + 1)
            ]
        return LabelTreeScorer.of(
            tree.child_starts(),
            used[order],
            SparseLabelVectors.joined(levels),
            beam_size=self.beam_size,
            n_threads=run.n_threads,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Bonsai(Parabel):
    """Bonsai (Khandagale et al., "Bonsai: diverse and shallow trees", Machine Learning 2020).

    Parabel with shallow trees: k-means without balance parts a node into many children at once.

    Parameters
    ----------
    n_children : int
        Most children of a node.
    max_depth : int
        Most levels of nodes below the root.
    **kwargs
        Those of `Parabel`; a leaf may have more than `leaf_size` labels at the greatest depth.

    Examples
    --------
    >>> from longtail.recipes.parabel import Bonsai
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = Bonsai().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    n_children: int = 100
    max_depth: int = 3

    def grow(self, centroids: csr_array, run: TrainingRun) -> LabelTree:
        """Return a tree over labels, given their centroids."""
        return k_means_tree(
            centroids,
            n_children=self.n_children,
            leaf_size=self.leaf_size,
            depth=self.max_depth,
            seed=run.seed_for("label tree"),
            n_threads=run.n_threads,
        )


def _train_level(
    solver: SparseOneVsRest, tree: LabelTree, level: int, data: TrainingData, run: TrainingRun
) -> SparseLabelVectors:
    """Train the nodes of one level, each on the points that have a label below its parent."""
    parents = tree.parents(level)
    targets = data.labels
    if level < tree.depth:
        targets = meta_labels(data.labels, tree.nodes[level], tree.n_nodes(level))
    points_of_parents = meta_labels(data.labels, tree.nodes[level - 1], tree.n_nodes(level - 1)).T
    is_only_child = np.bincount(parents)[parents] == 1
    targets = targets * ~is_only_child  # without positives nothing is trained
    trained = solver.learn_among(
        data.features,
        targets.tocsr(),
        points_of_parents.tocsr(),
        parents,
        seed=run.seed_for("nodes", level),
        n_threads=run.n_threads,
    )
    # A margin of 1 is certainty.
    bias = np.where(is_only_child, np.float32(1), trained.bias)
    return SparseLabelVectors(trained.starts, trained.features, trained.weights, bias)
