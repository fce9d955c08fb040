"""The vectors that NGAME, DEXA and SiameseXML give to a label which they were not trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.blend.auxiliary_vectors import TrainedLabels, auxiliary_vectors
from longtail.blend.blended import BlendedScorer
from longtail.data.bags import Bags
from longtail.data.rows import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.new_labels import ChangeableScorer, NewLabels
    from longtail.data.rows import Rows

    Floats = NDArray[np.float32]

__all__ = ["SiameseVectors"]

N_HEADS_WITH_AUXILIARY = 3  # Module II, Module I, and the text alone; NGAME lacks the third


class SiameseVectors:
    """``unit(E(z) + a_k)`` in Module I, and in Module II the direction of that plus the points'.

    E(z) is the encoder's vector of the label's text, a_k DEXA's auxiliary vector of the cluster
    that it falls into. A label without points has no free vector, and so the same vector in both.
    Where a model has learnt from ready-made features, those of a label's points stand for its text.
    """

    def reads_texts(self, scorer: ChangeableScorer) -> bool:  # noqa: ARG002 - all of them do
        """See `LabelVectors.reads_texts`."""
        return True

    def of_new(
        self, scorer: ChangeableScorer, new: NewLabels, means: Floats, n_threads: int
    ) -> list[Floats]:
        """See `LabelVectors.of_new`."""
        read = _points_as_texts(new) if new.texts is None else new.texts
        texts = scorer.encoder.encode(read, n_threads)
        if len(scorer.heads) < N_HEADS_WITH_AUXILIARY:
            return [unit_rows(texts + means), texts]
        corrected = unit_rows(texts + _auxiliary_vectors(scorer, read, texts))
        return [unit_rows(corrected + means), corrected, texts]


def _auxiliary_vectors(scorer: ChangeableScorer, read: Bags, texts: Floats) -> Floats:
    """Return the auxiliary vectors of new labels, given their texts as they are and encoded.

    Around a bag of token vectors labels are clustered by the words of their texts, where the model
    has kept these. What a transformer made of texts before it was trained, it has not kept: what it
    makes of them now takes its place.
    """
    _, corrected, trained = (head.vectors_of_labels() for head in scorer.heads)
    alike: Rows = trained
    new_alike: Rows = texts
    if isinstance(scorer, BlendedScorer) and scorer.relations is not None:
        kept, n_tokens = scorer.relations.texts, len(scorer.encoder.token_vectors)
        columns: Any = (kept.weights, kept.features, kept.starts)
        alike = csr_array(columns, (kept.n_labels, n_tokens))
        new_alike = read.matrix(n_tokens)
    return auxiliary_vectors(TrainedLabels(trained, corrected, alike), texts, new_alike)


def _points_as_texts(new: NewLabels) -> Bags:
    """Return the summed features of each label's points, in the place of its text."""
    n_columns = int(new.points.columns.max(initial=-1)) + 1
    ones = np.ones(new.points.n_rows, np.float32)
    where = (new.label_of_point, np.arange(new.points.n_rows))
    of_label = csr_array((ones, where), (new.n, new.points.n_rows))
    return Bags.of(unit_rows(of_label @ new.points.matrix(n_columns)))
