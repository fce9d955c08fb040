"""PfastreXML: a forest of trees that rank rare labels well, then tail classifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.forest_scorer import ForestScorer, TailClassifiers, joined_forest
from longtail.classifiers.fusion import best_first
from longtail.classifiers.sparse_label_vectors import SparseLabelVectors
from longtail.kernels.dual_coordinate import Points
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.ranking_tree import Gains, grow_tree
from longtail.kernels.sparse_logistic import Regression
from longtail.metrics import inverse_propensities, precision_at_k
from longtail.recipes.estimator import LabelEstimator
from longtail.surrogates.rows import binary, offsets_and_indices, row_norms, truncated_product

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.classifiers.scorer import Scorer
    from longtail.kernels.ranking_tree import Forest
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["PfastreXML"]

MOST_POINTS_IN_TREES = 10_000_000  # of all trees together: beyond, there are fewer trees
LEAST_TREES = 10
MOST_ENTRIES_OF_MEAN = 2048
PUBLISHED_ALPHA = 0.8
ALPHAS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # tried on held-out points


@dataclass(kw_only=True, eq=False, repr=False)
class PfastreXML(LabelEstimator):
    """PfastreXML (Jain, Prabhu and Varma, "Extreme multi-label loss functions", KDD 2016).

    FastXML's trees: a node parts its points so that the labels of each half can be ranked well, by
    nDCG in which a rare label counts for more, and a logistic regression with few weights learns
    the parting. The labels of the leaves are then ranked again with how near a point is to each
    label's points. For rare labels: precision at the very top is below that of one classifier a
    label.

    Parameters
    ----------
    n_learners : int or None
        Trees. None for 50, as published; fewer beyond 200,000 points, down to 10.
    leaf_size : int
        A node with no more points is a leaf.
    n_candidates : int
        Best labels of the trees that are ranked again.
    alpha : float or None
        Weight of the trees against the tail classifiers. None to choose it on the held-out points
        by P@1, 3 and 5, `tail` left out; without such points it is .8, as published.
    tail : float
        That times the logarithm of a label's inverse propensity is added to its score: more gains
        PSP@k and costs P@k. With ``tail=alpha``, leaves count propensities as in the paper.
    gamma : float
        How fast the tail classifiers fall with distance.
    cost : float
        C of the separators.
    tolerance, max_passes : float, int
        When a separator is good enough; see `Regression`. .1 and 10 halve the time; that lost P@1
        on parts of bibtex and delicious, and gained it on eurlex-4k.
    **kwargs
        Those of `LabelEstimator`; words and pairs of words by default, no character n-grams.

    Examples
    --------
    >>> from longtail.recipes.pfastrexml import PfastreXML
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = PfastreXML().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    char_ngrams: tuple[int, int] | None = None
    n_learners: int | None = None
    leaf_size: int = 10
    n_candidates: int = 200
    alpha: float | None = None
    tail: float = 0.4  # as `cost`, chosen on parts of the training points of three sets
    gamma: float = 30.0
    cost: float = 8.0
    tolerance: float = 0.01
    max_passes: int = 20

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        with run.stage("trees"):
            forest = joined_forest(self._trees(data, run))
        with run.stage("tail classifiers"):
            tail = TailClassifiers(label_means(data, run.n_threads), self.gamma)
        n_points, n_labels = data.labels.shape
        counts = np.bincount(data.labels.indices, minlength=n_labels)
        weights = self.tail * np.log(inverse_propensities(counts, n_points))
        scorer = ForestScorer(
            forest=forest,
            tail=tail,
            alpha=PUBLISHED_ALPHA if self.alpha is None else self.alpha,
            n_candidates=self.n_candidates,
            tail_weights=weights.astype(np.float32),
        )
        if self.alpha is not None or not held_out.features.shape[0]:
            return scorer
        with run.stage("weight of the trees"):
            return replace(scorer, alpha=best_alpha(scorer, held_out, run.n_threads))

    def _trees(self, data: TrainingData, run: TrainingRun) -> list[Forest]:
        """Grow all trees, several at a time."""
        features = data.features
        row_starts, columns = offsets_and_indices(features)
        squared_norms = row_norms(features) ** 2
        points = Points(
            row_starts, columns.view(np.uint32), features.data, squared_norms, features.shape[1]
        )
        gains = ranking_gains(data.labels)
        seed = run.seed_for("trees")
        regression = Regression(self.cost, self.tolerance, self.max_passes)
        trees: dict[int, Forest] = {}

        def grow(tree: int, _: int) -> None:
            trees[tree] = grow_tree(points, gains, regression, self.leaf_size, seed, tree)

        n_trees = self.n_learners or n_trees_for(features.shape[0])
        over_row_chunks(grow, n_trees, n_threads=run.n_threads, chunk=1)
        return [trees[tree] for tree in range(n_trees)]


def n_trees_for(n_points: int) -> int:
    """Return how many trees so many points are worth.

    Examples
    --------
    >>> from longtail.recipes.pfastrexml import n_trees_for
    >>> n_trees_for(15_000), n_trees_for(400_000), n_trees_for(5_000_000)
    (50, 25, 10)
    """
    return min(50, max(LEAST_TREES, MOST_POINTS_IN_TREES // max(n_points, 1)))


def label_means(data: TrainingData, n_threads: int) -> SparseLabelVectors:
    """Return what gives ``1 - |x - mu_l|^2 / 2``, mu the mean of a label's points, of unit length.

    That is the inner product with mu and ``(1 - |mu|^2) / 2``. Only large entries of mu are kept.
    """
    members = binary(data.labels.T.tocsr()).astype(np.float32)
    members.data /= np.repeat(np.diff(members.indptr), np.diff(members.indptr))
    means = truncated_product(members, data.features, MOST_ENTRIES_OF_MEAN, n_threads)
    return SparseLabelVectors(
        means.indptr, means.indices, means.data, 0.5 - 0.5 * row_norms(means) ** 2
    )


def best_alpha(scorer: ForestScorer, held_out: TrainingData, n_threads: int) -> float:
    """Return the weight of the trees with which P@1, 3 and 5 of held-out points are the highest.

    How near the mean of a label's points says much of the label differs between data sets more
    than one published weight can serve: on parts of the training points, trees had to weigh .4 to
    .5 on bibtex and .9 on delicious.

    Parameters
    ----------
    scorer : ForestScorer
    held_out : TrainingData
    n_threads : int
    """
    bags = held_out.bags()
    labels, leaves = scorer.tree_scores(bags, max(5, scorer.n_candidates), n_threads)
    as_likely = replace(scorer, tail_weights=np.zeros_like(scorer.tail_weights))

    def precision(alpha: float) -> float:
        scores = replace(as_likely, alpha=alpha).ranked(bags, labels, leaves, n_threads)
        best, _ = best_first(labels, scores, 5, n_threads)
        return sum(precision_at_k(best, held_out.labels, k) for k in (1, 3, 5))

    return max(ALPHAS, key=precision)


def ranking_gains(labels: csr_array) -> Gains:
    """Return what each label of each point is worth, by propensity.

    The gain of a label is its inverse propensity over the discounted sum of as many right labels
    as the point has (Jain, Prabhu and Varma, 2016, section 4, with all ranks counted).

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)

    Returns
    -------
    Gains
    """
    ones = binary(labels)
    n_points, n_labels = ones.shape
    counts = np.bincount(ones.indices, minlength=n_labels)
    weights = inverse_propensities(counts, n_points)[ones.indices]
    starts, ids = offsets_and_indices(ones)
    lengths = np.diff(starts)
    ideal = np.concatenate([[1], np.cumsum(1 / np.log2(2 + np.arange(lengths.max(initial=0))))])
    return Gains(
        starts,
        ids,
        (weights / np.repeat(ideal[lengths], lengths)).astype(np.float32),
        n_labels,
    )
