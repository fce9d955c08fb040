"""DiSMEC: one sparse linear classifier a label, each trained against all points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.classifiers.one_vs_rest_scorer import OneVsRestScorer
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.recipes.estimator import LabelEstimator

if TYPE_CHECKING:
    from longtail.classifiers.scorer import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["DiSMEC"]


@dataclass(kw_only=True, eq=False, repr=False)
class DiSMEC(LabelEstimator):
    """DiSMEC (Babbar and Schoelkopf, WSDM 2017): full one-versus-rest, made small by pruning.

    Each label gets the linear support vector machine (squared hinge loss) that parts its points
    from all others; small weights are dropped. Batches of labels are trained in parallel, and a
    prediction scores every label. Training takes time in proportion to points times labels: for
    up to some ten thousand labels.

    Parameters
    ----------
    cost, prune : float
        See `SparseOneVsRest`; the published values are the defaults.
    tolerance : float
        See `SparseOneVsRest`; a tenth of the solver's usual one, because the negatives, which are
        nearly all points, weigh little each.
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

    char_ngrams: tuple[int, int] | None = None
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
        solver = SparseOneVsRest(
            cost=self.cost, prune=self.prune, tolerance=self.tolerance, max_passes=100
        )
        all_points = csr_array(np.ones((1, data.features.shape[0]), np.bool_))
        with run.stage("classifiers"):
            classifiers = solver.learn_among(
                data.features,
                data.labels,
                all_points,
                np.zeros(len(used), np.int32),
                seed=run.seed_for("classifiers"),
                n_threads=run.n_threads,
            )
        return OneVsRestScorer.of(used, classifiers, n_threads=run.n_threads)
