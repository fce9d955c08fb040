"""DEXA: NGAME with auxiliary vectors for what label texts cannot say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.candidates import popular_labels
from longtail.clustering.balanced import balanced_clusters
from longtail.data.input_notes import warn
from longtail.recipes.ngame import NGAME
from longtail.surrogates.label_clusters import n_meta_labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.rows import Rows
    from longtail.siamese.modules import EncoderModule
    from longtail.training.run import TrainingRun

__all__ = ["DEXA"]

LABELS_OF_A_CLUSTER = 64
CLUSTERING_TOLERANCE = 1e-3  # a quarter of the time less than 1e-4, and vectors gain no less


@dataclass(kw_only=True, eq=False, repr=False)
class DEXA(NGAME):
    """DEXA (Dahiya et al., "Deep encoders with auxiliary parameters", KDD 2023).

    Labels are clustered by their texts, or by what a pretrained transformer makes of them, and the
    labels of a cluster share an auxiliary vector a_k, so that ``unit(E(z_l) + a_k)`` stands for the
    label while the encoder E is trained; the most frequent labels have one of their own. Module II
    starts from there. Without auxiliary vectors this is `NGAME`.

    Parameters
    ----------
    n_clusters : int or None
        K, lowered to a power of two that is at most half the labels, since clusters are halved
        again and again. None takes the one that puts 64 to 128 labels together: rare labels then
        learn from each other. The authors have about two labels in a cluster, a stronger encoder
        and some hundreds of epochs; with that many clusters, little of a few epochs reaches each.
    n_private : int
        Labels with an auxiliary vector of their own.
    auxiliary_speed : float
        The auxiliary vectors learn at so many times the rate of the encoder: they must go far from
        0 in few steps.
    **kwargs
        Those of `NGAME`.

    Examples
    --------
    >>> from longtail.recipes.dexa import DEXA
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> DEXA(dimension=16).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    n_clusters: int | None = None
    n_private: int = 1000
    auxiliary_speed: float = 3.0

    def encoder_module(self, n_points: int) -> EncoderModule:
        """Return Module I."""
        return replace(super().encoder_module(n_points), auxiliary_speed=self.auxiliary_speed)

    def auxiliary_clusters(
        self, labels: csr_array, texts: Callable[[], Rows], run: TrainingRun
    ) -> NDArray[np.int64]:
        """Return which auxiliary vector each label has, given what its text is like."""
        n_labels = labels.shape[1]
        wanted = self.n_clusters or max(n_labels // LABELS_OF_A_CLUSTER, 1)
        n_clusters = n_meta_labels(n_labels, wanted)
        if self.n_clusters is not None and n_clusters != wanted:
            warn(
                f"n_clusters={wanted:,} becomes {n_clusters:,}: a power of two that leaves two of "
                f"the {n_labels:,} labels or more to a cluster.",
            )
        clusters = balanced_clusters(
            texts(),
            n_clusters,
            seed=run.seed_for("label clusters"),
            tolerance=CLUSTERING_TOLERANCE,
            n_threads=run.n_threads,
        ).astype(np.int64)
        head = popular_labels(labels, self.n_private)
        clusters[head] = clusters.max() + 1 + np.arange(len(head))
        return clusters
