"""Metrics of extreme classification, on top-k predictions against a sparse truth.

`evaluate` is what most need. Under it: one function a metric, the propensities, and the readers of
published predictions.

Conventions, which are those of every published table:

- A point without true labels counts in every mean, as a zero (pyxclib, napkinXC).
- A prediction row with fewer than k labels counts its missing ones as wrong.
- Logarithms are to base 2, and nDCG at k is measured against the best min(k, n_true) places,
  n_true being how many labels the point has.
- Propensity-scored metrics are divided by the best attainable value: the mean over the points of
  what was reached, over the mean of what could be reached (a ratio of means, one for each k).
- Propensities come from the training labels; a label never seen in training counts, as the rarest.
- Equal scores are ordered by the smaller label id.
"""

from __future__ import annotations

from longtail.metrics.at_k import (
    coverage_at_k,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    recall_at_k,
)
from longtail.metrics.comparison import Difference, compare
from longtail.metrics.predictions import in_rank_order, score_matrix, set_aside, top_k
from longtail.metrics.propensity import inverse_propensities
from longtail.metrics.reliability import ProbabilityBin, by_probability
from longtail.metrics.report import FrequencyBin, by_frequency_quantile, by_point, evaluate
from longtail.metrics.score_files import read_scores
from longtail.metrics.thresholds import AtThreshold, at_thresholds

__all__ = [
    "AtThreshold",
    "Difference",
    "FrequencyBin",
    "ProbabilityBin",
    "at_thresholds",
    "by_frequency_quantile",
    "by_point",
    "by_probability",
    "compare",
    "coverage_at_k",
    "evaluate",
    "in_rank_order",
    "inverse_propensities",
    "ndcg_at_k",
    "precision_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "read_scores",
    "recall_at_k",
    "score_matrix",
    "set_aside",
    "top_k",
]
