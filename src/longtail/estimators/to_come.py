"""Texts that are held out, as they would be read if they were still to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.csr import rows_of_entries, with_entries
from longtail.data.damping import unit_rows_of_power

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingData

__all__ = ["as_to_come"]


def as_to_come(held_out: TrainingData, seen: TrainingData) -> TrainingData:
    """Return held-out texts without the tokens that neither `seen` points nor labels' texts have.

    The vocabulary is that of all points. So it has each word of a held-out text, of which nothing
    was learnt where no other text has it, while of a text to come new words are left out, and what
    is known of it counts for more. What is learnt from held-out points is to hold for such texts.
    A text without any other token stays as it is.

    Parameters
    ----------
    held_out, seen : TrainingData
        Whose features are tokens.

    Returns
    -------
    TrainingData
        With the points without labels and the fragments beside them read in the same way. It has
        what was left out, too, for those who go on to learn from these points.

    Examples
    --------
    Nobody else has the third token.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.estimators.to_come import as_to_come
    >>> from longtail.training.run import TrainingData
    >>> features, labels = csr_array(np.float32([[1, 0, 0], [0, 1, 0]])), csr_array(np.eye(2))
    >>> held_out = TrainingData(csr_array(np.float32([[0.6, 0, 0.8]])), labels[:1])
    >>> to_come = as_to_come(held_out, TrainingData(features, labels))
    >>> to_come.features.toarray().tolist()
    [[1.0, 0.0, 0.0]]
    >>> to_come.features_to_learn is held_out.features
    True
    """
    is_known = np.zeros(seen.features.shape[1], bool)
    for rows in (seen.features, seen.label_features):
        if rows is not None:
            is_known[rows.indices] = True
    beside, fragments = held_out.unlabelled, held_out.in_part
    return held_out._replace(
        features=_of_known(held_out.features, is_known),
        to_learn=held_out.features,
        unlabelled=beside and beside._replace(features=_of_known(beside.features, is_known)),
        in_part=fragments and fragments._replace(features=_of_known(fragments.features, is_known)),
    )


def _of_known(rows: csr_array, is_known: NDArray[np.bool_]) -> csr_array:
    """Return unit rows of known tokens alone, but rows without any as they are."""
    is_kept, row_of_entry = is_known[rows.indices], rows_of_entries(rows)
    n_kept = np.bincount(row_of_entry, is_kept, minlength=rows.shape[0])
    return unit_rows_of_power(with_entries(rows, is_kept | (n_kept == 0)[row_of_entry]))
