"""X-Transformer's semantic label indexing: the vectors by which labels are clustered.

Chang et al., "Taming pretrained transformers for extreme multi-label text classification", KDD
2020, section 3.1. `balanced_tree` makes the clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from longtail.errors import InputError
from longtail.surrogates.label_clusters import label_centroids

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail.data.rows import Rows
    from longtail.features.encoder import Encoder
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LabelIndexer", "LabelTexts", "PointEmbeddings", "PointFeatures"]


class LabelIndexer(Protocol):
    """How labels are represented before they are clustered."""

    def represent(
        self, data: TrainingData, encoder: Callable[[], Encoder], run: TrainingRun
    ) -> Rows:
        """Return a row a label, sparse or dense; `encoder` trains one when it is called."""
        ...


@dataclass(frozen=True)
class PointFeatures:
    """PIFA over TF-IDF: the unit sum of the features of a label's points.

    The paper's "positive instance feature aggregation".

    Examples
    --------
    >>> from longtail.surrogates.label_indexing import PointFeatures
    >>> PointFeatures()
    PointFeatures()
    """

    def represent(
        self,
        data: TrainingData,
        encoder: Callable[[], Encoder],  # noqa: ARG002 - others need one
        run: TrainingRun,
    ) -> Rows:
        """See `LabelIndexer.represent`; needs no encoder."""
        return label_centroids(data.features, data.labels, n_threads=run.n_threads)


@dataclass(frozen=True)
class PointEmbeddings:
    """PIFA over the fine-tuned encoder: the unit sum of the embeddings of a label's points.

    Examples
    --------
    A label with a point in either direction lies between them.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.surrogates.label_indexing import PointEmbeddings
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> unit = np.eye(2, dtype=np.float32)
    >>> data = TrainingData(csr_array(unit), csr_array(np.ones((2, 1), np.float32)))
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> embeddings = PointEmbeddings().represent(data, lambda: BagEncoder(unit), run)
    >>> (10 * embeddings).round().tolist()  # of length 10, at 45 degrees
    [[7.0, 7.0]]
    """

    def represent(
        self, data: TrainingData, encoder: Callable[[], Encoder], run: TrainingRun
    ) -> Rows:
        """See `LabelIndexer.represent`."""
        points = encoder().encode(data.bags(), run.n_threads)
        return label_centroids(points, data.labels, n_threads=run.n_threads)


@dataclass(frozen=True)
class LabelTexts:
    """The embedding of the label's text.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.surrogates.label_indexing import LabelTexts
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> one = csr_array(np.ones((1, 1), np.float32))
    >>> texts = csr_array(np.array([[0.6, 0.8]], np.float32))
    >>> data = TrainingData(features=texts, labels=one, label_features=texts)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> encoder = BagEncoder(np.array([[1, 0], [0, 2]], np.float32))
    >>> (10 * LabelTexts().represent(data, lambda: encoder, run)).round().tolist()
    [[6.0, 16.0]]
    """

    def represent(
        self, data: TrainingData, encoder: Callable[[], Encoder], run: TrainingRun
    ) -> Rows:
        """See `LabelIndexer.represent`.

        Raises
        ------
        InputError
            If the labels have no texts.
        """
        labels = data.label_bags()
        if labels is None:
            raise InputError(
                "Labels without texts cannot be clustered by their texts. Pass texts and label "
                "names, or use PointFeatures() or PointEmbeddings()."
            )
        return encoder().encode(labels, run.n_threads)
