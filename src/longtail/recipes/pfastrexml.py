"""PfastreXML: a forest of trees that rank rare labels well, then tail classifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.classifiers.listed_points import for_solvers
from longtail.data.rows import binary, offsets_and_indices, unit_product
from longtail.data.split import held_out_split
from longtail.errors import InputError
from longtail.estimators.estimator import LabelEstimator
from longtail.kernels.forest import Forest
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.ranking_tree import Gains, grow_tree
from longtail.kernels.sparse_logistic import Regression
from longtail.metrics.head_and_tail import head_and_tail_precision
from longtail.metrics.propensity import inverse_propensities_in
from longtail.scorers.forest import ForestScorer, TailClassifiers, joined_forest
from longtail.scorers.ranking import best_first
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.training.run import TrainingData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingRun

__all__ = ["PfastreXML", "n_trees_for"]

MOST_POINTS_IN_TREES = 10_000_000  # of all trees together: beyond, there are fewer trees
LEAST_TREES = 10
PUBLISHED_ALPHA = 0.8
ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975)  # tried, where none is given
LEAST_TO_CHOOSE, MOST_TO_CHOOSE = 100, 10_000  # points on which alpha is chosen


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
        Weight of the trees against the tail classifiers. None to choose what gives a few trees,
        grown on a part of the points, the largest sum of P@k and PSP@k over k = 1, 3, 5 on the
        rest; of fewer than 100 points .8, as published.
    trial_trees : int
        How many trees choose `alpha`, where it is None.
    trial_share : float
        Share of the points on which they choose it.
    tail : float
        This times the logarithm of a label's inverse propensity is added to its score: more gains
        PSP@k and costs P@k. With ``tail=alpha``, leaves count propensities as in the paper.
    gamma : float
        How fast the tail classifiers fall with distance.
    max_mean_entries : int or None
        Most entries of the mean of a label's points, the largest; None for all.
    cost : float
        C of the separators, for features whose entries are 1 (root mean square); it is scaled to
        those that come, which are smaller the more of them a point has.
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

    char_ngrams: tuple[int, int] | str | None = None
    held_out: float = 0.02  # for the calibration alone
    n_learners: int | None = None
    leaf_size: int = 10
    n_candidates: int = 200
    alpha: float | None = None
    trial_trees: int = 10
    trial_share: float = 0.2
    tail: float = 0.2  # as `cost`, chosen on parts of the training points of three sets
    gamma: float = 30.0
    max_mean_entries: int | None = 2048
    cost: float = 0.5
    tolerance: float = 0.01
    max_passes: int = 20

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - alpha has its own
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        alpha = self.alpha
        if alpha is None:
            with run.stage("weight of the trees"):
                alpha = self._chosen_alpha(data, run)
        with run.stage("trees"):
            n_trees = self.n_learners or n_trees_for(data.features.shape[0])
            trees = self._trees(n_trees, data, run)
        with run.stage("tail classifiers"):
            return replace(self._scorer(trees, data, run), alpha=alpha)

    def _chosen_alpha(self, data: TrainingData, run: TrainingRun) -> float:
        """Return the weight that is best for a few trees on points that they have not seen."""
        if data.features.shape[0] < LEAST_TO_CHOOSE:
            return PUBLISHED_ALPHA
        try:
            seed = run.seed_for("points to choose on")
            known, unseen = held_out_split(data.features, self.trial_share, seed)
        except InputError:  # nearly all points alike
            return PUBLISHED_ALPHA
        part = TrainingData(data.features[known], data.labels[known])
        trial = self._scorer(self._trees(self.trial_trees, part, run), part, run)
        unseen = unseen[:: -(-len(unseen) // MOST_TO_CHOOSE)]
        points = TrainingData(data.features[unseen], data.labels[unseen])
        return best_alpha(trial, points, inverse_propensities_in(part.labels), run.n_threads)

    def _trees(self, n_trees: int, data: TrainingData, run: TrainingRun) -> list[Forest]:
        """Grow trees, several at a time."""
        features = data.features
        points = for_solvers(features)
        gains = ranking_gains(data.labels)
        seed = run.seed_for("trees")
        entries = features.nnz / max(features.shape[0], 1)  # each about 1 / entries^.5 in size
        regression = Regression(self.cost * entries**0.5, self.tolerance, self.max_passes)
        trees: dict[int, Forest] = {}

        def grow(tree: int, _: int) -> None:
            trees[tree] = Forest(*grow_tree(points, gains, regression, self.leaf_size, seed, tree))

        over_row_chunks(grow, n_trees, n_threads=run.n_threads, chunk=1)
        return [trees[tree] for tree in range(n_trees)]

    def _scorer(
        self, trees: Sequence[Forest], data: TrainingData, run: TrainingRun
    ) -> ForestScorer:
        """Put trees and the tail classifiers of some points together."""
        weights = self.tail * np.log(inverse_propensities_in(data.labels))
        means = label_means(data, self.max_mean_entries, run.n_threads)
        return ForestScorer(
            forest=joined_forest(trees),
            tail_classifiers=TailClassifiers(means, self.gamma),
            alpha=PUBLISHED_ALPHA,
            n_candidates=min(self.n_candidates, data.labels.shape[1]),
            tail_weights=weights.astype(np.float32),
        )


def n_trees_for(n_points: int) -> int:
    """Return how many trees so many points are worth.

    Examples
    --------
    >>> from longtail.recipes.pfastrexml import n_trees_for
    >>> n_trees_for(15_000), n_trees_for(400_000), n_trees_for(5_000_000)
    (50, 25, 10)
    """
    return min(50, max(LEAST_TREES, MOST_POINTS_IN_TREES // max(n_points, 1)))


def label_means(data: TrainingData, max_entries: int | None, n_threads: int) -> SparseLabelVectors:
    """Return what gives ``1 - |x - mu_l|^2 / 2``, mu the mean of a label's points at unit length.

    That is the inner product with mu. Only large entries of mu are kept.

    Parameters
    ----------
    data : TrainingData
    max_entries : int or None
        Most entries of a mean; None for all.
    n_threads : int
    """
    members = binary(data.labels.T.tocsr())
    means: Any = unit_product(members, data.features, max_entries, n_threads)
    empty = np.diff(means.indptr) == 0
    return SparseLabelVectors(
        means.indptr, means.indices, means.data, np.where(empty, 0.5, 0.0).astype(np.float32)
    )


def best_alpha(
    scorer: ForestScorer, unseen: TrainingData, worth: NDArray[np.float64], n_threads: int
) -> float:
    """Return the weight of the trees that is best on points which they have not seen.

    How much it says of a label that a point is near the mean of the label's points differs from one
    data set to the next, and no published weight serves all: trees have to weigh .4 on bibtex and
    .95 on delicious.

    Parameters
    ----------
    scorer : ForestScorer
    unseen : TrainingData
    worth : float64 (n_labels,)
        Inverse propensities; see `head_and_tail_precision`, which decides.
    n_threads : int

    Returns
    -------
    float
        Of equally good ones the nearest to the published .8.
    """
    bags = unseen.bags()
    labels, leaves = scorer.tree_scores(bags, max(5, scorer.n_candidates), n_threads)
    logarithms = scorer.logarithms(bags, labels, leaves, n_threads)

    def precision(alpha: float) -> float:
        scores = replace(scorer, alpha=alpha).combined(labels, *logarithms)
        best, _ = best_first(labels, scores, 5, n_threads)
        return head_and_tail_precision(best, unseen.labels, worth)

    return max(sorted(ALPHAS, key=lambda alpha: abs(alpha - PUBLISHED_ALPHA)), key=precision)


def ranking_gains(labels: csr_array) -> Gains:
    """Return what each label of each point is worth, by propensity.

    The gain of a label is its inverse propensity over the discounted sum of as many right labels
    as the point has (Jain, Prabhu and Varma, 2016, section 4, with all ranks counted).

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    """
    ones = binary(labels)
    weights = inverse_propensities_in(ones)[ones.indices]
    starts, ids = offsets_and_indices(ones)
    lengths = np.diff(starts)
    ideal = np.concatenate([[1], np.cumsum(1 / np.log2(2 + np.arange(lengths.max(initial=0))))])
    return Gains(
        starts,
        ids,
        (weights / np.repeat(ideal[lengths], lengths)).astype(np.float32),
        ones.shape[1],
    )
