"""What the features of training points are, by which a blend's settings are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from longtail.training.run import TrainingData

__all__ = ["n_pieces_a_word", "n_words_known"]


def n_words_known(data: TrainingData) -> float:
    """Return how many words and pairs of words of a point are features, on average.

    Characters of scripts without spaces are none, and words that are in no other text tell nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.token_traits import n_words_known
    >>> from longtail.training.run import TrainingData
    >>> labels = csr_array(np.ones((2, 1), np.float32))
    >>> points = csr_array(np.array([[0.6, 0.8], [0.0, 1.0]], np.float32))
    >>> n_words_known(TrainingData(points, labels, is_word=np.array([True, False])))
    0.5
    """
    if data.is_unspaced or data.is_unknown:
        return 0.0
    of_points = data.features.indices
    n_words = len(of_points) if data.is_word is None else data.is_word[of_points].sum()
    return float(n_words / max(data.features.shape[0], 1))


def n_pieces_a_word(data: TrainingData) -> float:
    """Return how many pieces of words are features, for each word or pair that is one.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.token_traits import n_pieces_a_word
    >>> from longtail.training.run import TrainingData
    >>> labels = csr_array(np.ones((1, 1), np.float32))
    >>> points = csr_array(np.array([[0.6, 0.6, 0.6]], np.float32))
    >>> n_pieces_a_word(TrainingData(points, labels, is_word=np.array([True, False, False])))
    2.0
    """
    if data.is_word is None:
        return 0.0
    is_word = data.is_word[data.features.indices]
    return float(np.sum(~is_word) / max(is_word.sum(), 1))
