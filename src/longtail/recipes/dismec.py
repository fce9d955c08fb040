"""DiSMEC: one sparse linear classifier a label, each trained against all points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.estimators.estimator import LabelEstimator
from longtail.scorers.one_vs_rest import OneVsRestScorer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["DiSMEC"]


@dataclass(kw_only=True, eq=False, repr=False)
class DiSMEC(LabelEstimator):
    """DiSMEC: full one-versus-rest, made small by pruning.

    Babbar and Schoelkopf, "DiSMEC: distributed sparse machines for extreme multi-label
    classification", WSDM 2017.

    Each label gets the linear support vector machine (squared hinge loss) that parts its points
    from all others; small weights are dropped. Batches of labels are trained in parallel, and a
    prediction scores every label. Training takes time in proportion to points times labels: for
    up to some ten thousand labels.

    Parameters
    ----------
    cost : float
        C of the support vector machines: larger fits the training points more closely. 1, as
        published.
    prune : float
        Weights smaller than this are dropped. .01, as published.
    tolerance : float
        A machine is done once the projected gradients of its points are spread no wider. A tenth of
        the solver's usual one, because the negatives, which are nearly all points, weigh little
        each.
    **kwargs
        Those of `LabelEstimator`; words and pairs of words by default, no character n-grams.

    Examples
    --------
    >>> from longtail.recipes.dismec import DiSMEC
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = DiSMEC().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    char_ngrams: tuple[int, int] | str | None = None
    held_out: float = 0.02  # for the calibration alone
    cost: float = 1.0
    prune: float = 0.01
    tolerance: float = 0.01

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        with run.stage("classifiers"):
            classifiers = self.classifiers(data.features, data.labels, run)
        return OneVsRestScorer.of(used, classifiers, n_threads=run.n_threads)

    def classifiers(
        self, features: csr_array, labels: csr_array, run: TrainingRun
    ) -> SparseLabelVectors:
        """Train each label against all points.

        Parameters
        ----------
        features : csr_array of float32 (n_points, n_features)
            Unit rows.
        labels : csr_array (n_points, n_labels)
        run : TrainingRun
            Its seed and its number of threads.
        """
        solver = SparseOneVsRest(
            cost=self.cost, prune=self.prune, tolerance=self.tolerance, max_passes=100
        )
        return solver.learn_among_all(
            features, labels, seed=run.seed_for("classifiers"), n_threads=run.n_threads
        )
