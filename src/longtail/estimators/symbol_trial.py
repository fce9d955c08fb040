"""Whether symbols, such as punctuation, tell labels apart, as a trial on some points says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.candidates import popular_labels
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.rows import evenly_spaced
from longtail.data.symbol_words import has_symbols
from longtail.data.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset

__all__ = ["symbols_tell"]

N_TRIED = 2_000  # points, half of which are learnt from and half asked, and the reverse
N_LOOKED_AT = 10 * N_TRIED  # texts among which such with symbols are looked for
LEAST_TRIED = 100
MOST_LABELS, LEAST_POINTS_A_LABEL = 1_000, 10  # more or rarer labels are told by words
N_LABELS_TRIED = 300  # the most frequent ones: more take longer, and change the trial little
LEAST_WITH_SYMBOLS = 0.05  # of the texts
N_STANDARD_ERRORS = 3.0


def symbols_tell(dataset: Dataset, n_threads: int) -> bool:
    """Return whether linear classifiers name more first labels rightly where they read symbols.

    By three standard errors of the difference: of titles and other prose, symbols tell nothing.
    Where few texts have symbols, half of those tried do: others are answered as before.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.estimators.symbol_trial import symbols_tell
    >>> texts = [f"{i % 7}{':-'[i % 2]}{i % 9}" for i in range(200)]
    >>> symbols_tell(Dataset.of(texts, [["time", "range"][i % 2] for i in range(200)]), 1)
    True
    >>> symbols_tell(Dataset.of(texts, [["odd", "even"][i % 7 % 2] for i in range(200)]), 1)
    False
    """
    texts, labels, n_points = dataset.texts, dataset.labels, dataset.n_points
    is_told = labels.nnz >= LEAST_POINTS_A_LABEL * labels.shape[1]
    if texts is None or labels.shape[1] > MOST_LABELS or n_points < LEAST_TRIED or not is_told:
        return False
    looked_at = evenly_spaced(min(N_LOOKED_AT, n_points), n_points)
    have_symbols = np.array([has_symbols(text) for text in texts.take(looked_at)])
    if have_symbols.mean() < LEAST_WITH_SYMBOLS:
        return False
    tried = np.random.default_rng(0).permutation(_tried(looked_at, have_symbols))
    some, own = texts.take(tried), labels[tried][:, popular_labels(labels, N_LABELS_TRIED)]
    without, with_symbols = (
        _right(
            TextVectorizer(min_df=1, symbols=symbols).fit_transform(some), own, n_threads=n_threads
        )
        for symbols in (False, True)
    )
    n_gained = int(with_symbols.sum()) - int(without.sum())
    n_changed = max(int(np.count_nonzero(with_symbols != without)), 1)
    return bool(n_gained >= N_STANDARD_ERRORS * math.sqrt(n_changed))


def _tried(rows: NDArray[np.int64], have_symbols: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return some rows from all over; half of them with symbols where that is more than chance."""
    n_tried = min(N_TRIED, len(rows))
    having, others = rows[have_symbols], rows[~have_symbols]
    n_by_chance = round(n_tried * len(having) / len(rows))
    n_having = max(n_by_chance, min(n_tried // 2, len(having)))
    parts = ((having, n_having), (others, n_tried - n_having))
    return np.concatenate([some[evenly_spaced(n, len(some))] for some, n in parts])


def _right(features: csr_array, labels: csr_array, *, n_threads: int) -> NDArray[np.bool_]:
    """Return of which points the first label is right, learnt from the other half of them."""
    is_right, half = np.zeros(features.shape[0], bool), features.shape[0] // 2
    first, second = slice(0, half), slice(half, None)
    for seen, asked in ((first, second), (second, first)):
        learnt = SparseOneVsRest().learn_among_all(
            features[seen], labels[seen], seed=0, n_threads=n_threads
        )
        scores = (features[asked] @ learnt.matrix(features.shape[1]).T).toarray() + learnt.bias
        best = scores.argmax(axis=1)
        is_right[asked] = labels[asked].toarray()[np.arange(len(best)), best] > 0
    return is_right
