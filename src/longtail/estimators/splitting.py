"""A training set in two: the points to learn from, and those that are held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.text_column import NO_TEXTS
from longtail.estimators.holding_out import (
    LARGEST_HELD_OUT,
    asked_in_part,
    held_out_rows,
    in_fragments,
    n_in_part,
)
from longtail.estimators.to_come import as_to_come
from longtail.estimators.vocabulary import feature_kinds, label_texts_of
from longtail.metrics.predictions import truth_without
from longtail.training.run import TrainingData

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.estimators.vocabulary import Encoded

__all__ = ["split_data"]


def split_data(
    settings: LabelEstimator,
    dataset: Dataset,
    encoded: Encoded,
    set_aside: csr_array | None,
    n_threads: int,
) -> tuple[TrainingData, TrainingData]:
    """Return the data to learn from, and that of the points held out, which may be none.

    Points without labels are in neither. They tell how probable it is that no label is right, so
    they are the ``unlabelled`` of the data that probabilities are learnt from: those held out, of
    the held-out data; all, of the data to learn from, where no point with a label is held out.

    Parameters
    ----------
    settings : LabelEstimator
    dataset : Dataset
    encoded : Encoded
        Its points and labels.
    set_aside : csr_array (n_points, n_labels) or None
        Pairs that answers are not judged by.
    n_threads : int

    Returns
    -------
    data, held_out : TrainingData

    Examples
    --------
    >>> from longtail import Astec, Dataset
    >>> from longtail.estimators.splitting import split_data
    >>> from longtail.estimators.vocabulary import known_and_encoded
    >>> texts = [f"red wine {i}" if i % 2 else f"old car {i}" for i in range(200)]
    >>> dataset = Dataset.of(texts, [["drink"] if i % 2 else ["vehicle"] for i in range(200)])
    >>> settings = Astec(held_out=0.2)
    >>> encoded = known_and_encoded(settings, dataset)
    >>> parts = split_data(settings, dataset, encoded, None, n_threads=1)
    >>> [data.labels.shape[0] for data in parts]
    [160, 40]
    """
    whole = _data_of(settings, dataset, encoded, set_aside)
    reads_label_texts = whole.label_features is not None
    points = encoded.features if dataset.texts is None else dataset.texts
    train, held = held_out_rows(
        points,
        dataset.labels,
        _n_wanted(settings, dataset, set_aside),
        settings.random_state,
        reads_label_texts=reads_label_texts,
        bags=encoded.features,
    )
    is_labelled = np.diff(dataset.labels.indptr) > 0
    seen, shown = train[is_labelled[train]], held[is_labelled[held]]
    data, held_out = whole.of_points(seen, n_threads), whole.of_points(shown, n_threads)
    if len(shown):
        held_out = _beside(held_out, whole.of_points(held[~is_labelled[held]], n_threads))
        n_asked = n_in_part(dataset.labels, len(shown), reads_label_texts=reads_label_texts)
    else:
        data = _beside(data, whole.of_points(np.flatnonzero(~is_labelled), n_threads))
        n_asked = LARGEST_HELD_OUT
    seed = settings.random_state
    if not n_asked:
        if settings.learns_from_fragments():
            texts = None if dataset.texts is None else dataset.texts.take(shown)
            parts = in_fragments(held_out, texts, encoded.vectorizer, seed)
            held_out = held_out._replace(in_part=parts)
        return data, _as_asked(held_out, data, encoded)
    texts = None if dataset.texts is None else dataset.texts.take(seen)
    reads = settings.reads()
    parts = asked_in_part(data, texts, encoded.vectorizer, reads, seed, n_asked)
    return data._replace(in_part=parts), _as_asked(held_out, data, encoded)


def _as_asked(held_out: TrainingData, data: TrainingData, encoded: Encoded) -> TrainingData:
    """Return the held-out points, of texts as they would be read if they were still to come."""
    return held_out if encoded.vectorizer is None else as_to_come(held_out, data)


def _data_of(
    settings: LabelEstimator,
    dataset: Dataset,
    encoded: Encoded,
    set_aside: csr_array | None,
) -> TrainingData:
    """Return all points as the modules see them."""
    features, vectorizer, label_features, directions = encoded
    texts, reads = dataset.texts or NO_TEXTS, settings.reads()
    of_labels = () if label_features is None else label_texts_of(dataset) or ()
    return TrainingData(
        features=features,
        labels=dataset.labels,
        label_features=label_features,
        **feature_kinds(vectorizer, texts)._asdict(),
        words=reads.training_words(vectorizer, texts),
        texts=reads.texts(texts),
        label_texts=None if label_features is None else reads.texts(of_labels),
        set_aside=set_aside,
        directions=directions,
        rows=np.arange(dataset.n_points, dtype=np.int32) if dataset.rows is None else dataset.rows,
    )


def _n_wanted(settings: LabelEstimator, dataset: Dataset, set_aside: csr_array | None) -> float:
    """Return how many points to hold out."""
    n_wanted = settings.n_held_out(dataset.n_points)
    if set_aside is None:
        return n_wanted
    # The more, the fewer of them can be judged by.
    judged = truth_without(dataset.labels, set_aside)
    n_judged = np.count_nonzero(np.diff(judged.indptr))
    of_all = settings.held_out * dataset.n_points
    return min(n_wanted * dataset.n_points / n_judged, max(n_wanted, of_all))


def _beside(data: TrainingData, unlabelled: TrainingData) -> TrainingData:
    """Return data that knows of points without labels, if there are any."""
    return data._replace(unlabelled=unlabelled) if unlabelled.labels.shape[0] else data
