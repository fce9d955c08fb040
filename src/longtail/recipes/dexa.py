"""DEXA: NGAME with auxiliary vectors for what label texts cannot say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.recipes.ngame import Ngame
from longtail.surrogates.label_clusters import balanced_clusters, n_meta_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingRun

__all__ = ["Dexa"]


@dataclass(kw_only=True, eq=False, repr=False)
class Dexa(Ngame):
    """DEXA (Dahiya et al., "Deep encoders with auxiliary parameters", KDD 2023).

    Labels are clustered by their texts, and the labels of a cluster share an auxiliary vector a_k,
    so that ``unit(E(z_l) + a_k)`` stands for the label while the encoder E is trained; the most
    frequent labels have one of their own. Module II starts from there. Without auxiliary vectors
    this is `Ngame`.

    Parameters
    ----------
    n_clusters : int
        K, at most; fewer where labels are few, see `n_meta_labels`.
    n_private : int
        Labels with an auxiliary vector of their own.
    **kwargs
        Those of `Ngame`.

    Examples
    --------
    >>> from longtail.recipes.dexa import Dexa
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> Dexa(dimension=16).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    n_clusters: int = 2**16
    n_private: int = 1000

    def auxiliary_clusters(
        self, labels: csr_array, label_features: csr_array, run: TrainingRun
    ) -> NDArray[np.int64]:
        """Return which auxiliary vector each label has."""
        clusters = balanced_clusters(
            label_features,
            n_meta_labels(labels.shape[1], self.n_clusters),
            seed=run.seed_for("label clusters"),
            n_threads=run.n_threads,
        ).astype(np.int64)
        counts = np.bincount(labels.indices, minlength=labels.shape[1])
        head = np.argsort(-counts, kind="stable")[: self.n_private]
        head = head[counts[head] > 0]
        clusters[head] = clusters.max() + 1 + np.arange(len(head))
        return clusters
