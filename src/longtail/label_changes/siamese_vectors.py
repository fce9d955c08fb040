"""The vectors that NGAME, DEXA and SiameseXML give to a label which they were not trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.data.bags import Bags
from longtail.data.rows import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.label_changes.new_labels import ChangeableScorer, NewLabels

    Floats = NDArray[np.float32]

__all__ = ["SiameseVectors"]


class SiameseVectors:
    """E(z), the encoder's vector of the text, and in Module II the direction of that plus points'.

    A label without points has no free vector. DEXA's auxiliary vectors are for the labels that they
    were trained with: those of new labels' clusters would take these further from their points.
    Where a model has learnt from ready-made features, those of a label's points stand for its text.

    Examples
    --------
    A new label without points is what its text says, in every head.

    >>> import numpy as np
    >>> from longtail.label_changes.new_labels import NewLabels
    >>> from longtail.label_changes.siamese_vectors import SiameseVectors
    >>> from longtail.recipes.siamesexml import SiameseXML
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = SiameseXML(dimension=16).fit(texts, labels).predictor_
    >>> new = NewLabels(model.bags(["red car"]), model.bags([]), np.zeros(0, int), 1)
    >>> none = np.zeros((1, 16), np.float32)
    >>> vectors = SiameseVectors().of_new(model.scorer, new, none, 1)
    >>> [np.allclose(of_head, vectors[-1], atol=1e-5) for of_head in vectors]
    [True, True]
    """

    def reads_texts(self, scorer: ChangeableScorer) -> bool:  # noqa: ARG002 - all of them do
        """See `NewLabelVectors.reads_texts`."""
        return True

    def of_new(
        self, scorer: ChangeableScorer, new: NewLabels, means: Floats, n_threads: int
    ) -> list[Floats]:
        """See `NewLabelVectors.of_new`."""
        read = _points_as_texts(new) if new.texts is None else new.texts
        texts = scorer.encoder.encode(read, n_threads)
        return [unit_rows(texts + means), *[texts] * (len(scorer.heads) - 1)]


def _points_as_texts(new: NewLabels) -> Bags:
    """Return the summed features of each label's points, in the place of its text."""
    n_columns = int(new.points.columns.max(initial=-1)) + 1
    return Bags.of(unit_rows(new.summed(new.points.matrix(n_columns))))
