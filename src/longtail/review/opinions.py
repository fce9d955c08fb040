"""What models say of points that they have not learnt from, and of the labels of these."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.data.blocks import POINTS_AT_ONCE, points_of
from longtail.data.csr import rows_of_entries
from longtail.data.pair_table import numbers_of_points
from longtail.data.rows import binary
from longtail.evaluation import answers_to
from longtail.metrics import set_aside
from longtail.metrics.hits import find_hits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.metrics.hits import Floats, Hits, Integers
    from longtail.predictor import Predictor

__all__ = ["N_PLACES", "Opinions"]

N_PLACES = 300  # answers in which a point's labels are looked for
N_FURTHER = 5  # best answers that are kept of those that a point has not as labels
N_SHOWN = 3  # best answers, to show beside what was found


@dataclass(frozen=True, eq=False)
class Opinions:
    """The answers to all points, filled part by part.

    Parameters
    ----------
    dataset : Dataset
    given : csr_array (n_points, n_labels)
        One where a point has a label, or another point of the same text or features has it.
    places : int32 (n_pairs,)
        Where each label of each point is in its answers, from 0, in the order of
        ``dataset.labels.indices``; `N_PLACES` where it is not in them.
    probabilities : float32 (n_pairs,)
        Of these labels; 0 where they are not in the answers.
    are_judged : bool (n_pairs,)
        Whether the model could know: the point was answered, and points that it has learnt from
        have the label.
    best : int32 (n_points, 3)
        The best answers, padded with -1.
    further, further_probabilities : int32 and float32 (n_points, 5)
        The best answers that are not `given`, padded with -1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Dataset, LongtailClassifier
    >>> from longtail.review.opinions import Opinions
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> dataset = Dataset.of([*texts, "white wine"], [*labels, ["vehicle"]])
    >>> model = LongtailClassifier().fit_dataset(dataset.take(np.arange(20))).predictor_
    >>> opinions = Opinions.of(dataset)
    >>> opinions.ask(model, np.array([20]))
    >>> opinions.places[-1], opinions.further[-1, 0]  # "vehicle" is second, "drink" is missing
    (np.int32(1), np.int32(0))
    """

    dataset: Dataset
    given: csr_array
    places: NDArray[np.int32]
    probabilities: NDArray[np.float32]
    are_judged: NDArray[np.bool_]
    best: NDArray[np.int32]
    further: NDArray[np.int32]
    further_probabilities: NDArray[np.float32]

    @classmethod
    def of(cls, dataset: Dataset) -> Opinions:
        """Make room for those on all points; as yet, nobody was asked."""
        n_points, n_pairs = dataset.n_points, dataset.labels.nnz
        return cls(
            dataset,
            given=_given(dataset),
            places=np.full(n_pairs, N_PLACES, np.int32),
            probabilities=np.zeros(n_pairs, np.float32),
            are_judged=np.zeros(n_pairs, np.bool_),
            best=np.full((n_points, N_SHOWN), -1, np.int32),
            further=np.full((n_points, N_FURTHER), -1, np.int32),
            further_probabilities=np.zeros((n_points, N_FURTHER), np.float32),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is filled, by name."""
        names = [field.name for field in fields(self) if field.name not in {"dataset", "given"}]
        return {name: getattr(self, name) for name in names}

    def ask(self, model: Predictor, rows: NDArray[np.int64]) -> None:
        """Ask a model of points that it has not learnt from.

        Parameters
        ----------
        model : Predictor
            With the labels of the data set.
        rows : int64 (n,)
        """
        asked, is_known = self.dataset.take(rows), model.train_label_counts > 0
        pairs = _numbered(self.dataset.labels)[rows]
        start = 0
        for ids, probabilities in answers_to(model, points_of(asked), N_PLACES, None):
            here = slice(start, start + POINTS_AT_ONCE)
            self._keep_places(asked.labels[here], pairs[here].data, ids, probabilities, is_known)
            self._keep_best(rows[here], ids, probabilities)
            start += len(ids)

    def _keep_places(
        self,
        labels: csr_array,
        pairs: NDArray[np.int64],
        ids: Integers,
        probabilities: Floats,
        is_known: NDArray[np.bool_],
    ) -> None:
        """Keep where the labels of some points are in their answers; `pairs` are their numbers."""
        hits = find_hits(ids, labels, N_PLACES)
        found = pairs[_entries_of(hits, labels)]
        self.places[found] = hits.ranks
        self.probabilities[found] = probabilities[hits.points, hits.ranks]
        is_answered = ids[:, 0] >= 0
        self.are_judged[pairs] = is_answered[rows_of_entries(labels)] & is_known[labels.indices]

    def _keep_best(self, rows: NDArray[np.int64], ids: Integers, probabilities: Floats) -> None:
        """Keep the best answers to some points, and the best that they have not."""
        self.best[rows] = ids[:, :N_SHOWN]
        left, how_probable = set_aside(ids, probabilities, self.given[rows])
        self.further[rows] = left[:, :N_FURTHER]
        self.further_probabilities[rows] = np.maximum(how_probable[:, :N_FURTHER], 0)


def _given(dataset: Dataset) -> csr_array:
    """Return the labels that a point, or another of the same text or features, has."""
    text_of, every = numbers_of_points(dataset), np.arange(dataset.n_points)
    rows_of = csr_array((np.ones(len(every), np.float32), (text_of, every)))
    return binary(rows_of @ dataset.labels)[text_of]


def _numbered(labels: csr_array) -> csr_array:
    """Return the pairs' numbers, where the pairs are."""
    return csr_array((np.arange(labels.nnz), labels.indices, labels.indptr), shape=labels.shape)


def _entries_of(hits: Hits, labels: csr_array) -> NDArray[np.int64]:
    """Return which entry of the labels each hit is; the labels of a point are in order."""
    n_labels = np.int64(labels.shape[1])
    entries = rows_of_entries(labels) * n_labels + labels.indices
    wanted: NDArray[np.int64] = np.searchsorted(entries, hits.points * n_labels + hits.labels)
    return wanted
