"""What settings reach on training points that are kept from the training."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.blocks import points_of
from longtail.errors import InputError
from longtail.estimators.holding_out import LEAST_HELD_OUT, held_out_rows
from longtail.evaluation import answers_to
from longtail.metrics import by_point
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES, deepest_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.metrics.hits import Floats
    from longtail.training.run import Callback

__all__ = ["Trial", "kept_apart", "trial"]


class Trial(NamedTuple):
    """What a training has come to.

    Attributes
    ----------
    metrics : dict of str to float64 (n_kept,)
        Of each point that was asked, in percent: see `longtail.metrics.by_point`.
    seconds : float
        How long the training took, on the clock.
    """

    metrics: dict[str, Floats]
    seconds: float


def kept_apart(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Part a training set into the points to learn from, and those to ask.

    Near-identical points stay together, and where somebody has written equally many examples of
    each label, all labels lose as many: see `held_out_rows`.

    Parameters
    ----------
    dataset : Dataset
    share : float
        Of the points, to ask.
    seed : int

    Raises
    ------
    InputError
        If fewer than 20 points would be asked, or none can be spared.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.trials import kept_apart
    >>> dataset = Dataset.of([f"text {i}" for i in range(100)], [[i % 3] for i in range(100)])
    >>> [part.n_points for part in kept_apart(dataset, 0.2, seed=0)]
    [80, 20]
    """
    n_wanted = share * dataset.n_points
    if n_wanted < LEAST_HELD_OUT:
        raise InputError(
            f"A share of {share:g} of {dataset.n_points:,} points is {n_wanted:.0f}, and fewer "
            f"than {LEAST_HELD_OUT} tell nothing. Keep a larger share apart, or find more points."
        )
    by_text = dataset.label_space.texts is not None
    rows = held_out_rows(
        points_of(dataset), dataset.labels, n_wanted, seed, reads_label_texts=by_text
    )
    if not len(rows[1]):
        raise InputError(
            "No points can be kept apart: labels have too few examples each, or nearly all points "
            "are alike. Try settings by a file of other points: longtail evaluate --against."
        )
    return dataset.take(rows[0]), dataset.take(rows[1])


def trial(
    estimator: LabelEstimator,
    train: Dataset,
    asked: Dataset,
    *,
    callbacks: Sequence[Callback] = (),
) -> Trial:
    """Train, and measure the answers to other points with the same labels.

    Examples
    --------
    >>> from longtail import Dataset, LongtailClassifier
    >>> from longtail.trials import trial
    >>> texts, labels = ["red wine", "old car"] * 20, [["drink"], ["vehicle"]] * 20
    >>> dataset = Dataset.of(texts, labels)
    >>> found = trial(LongtailClassifier(), dataset.take(range(30)), dataset.take(range(30, 40)))
    >>> float(found.metrics["P@1"].mean())
    100.0
    """
    started = time.perf_counter()
    model = estimator.fit_dataset(train, callbacks=callbacks).predictor_
    seconds = time.perf_counter() - started
    n_places = deepest_place(USUAL_PLACES, USUAL_RECALL_PLACES)
    ids, scores = zip(*answers_to(model, points_of(asked), n_places, None), strict=True)
    metrics = by_point(
        np.concatenate(ids),
        np.concatenate(scores),
        asked.labels,
        train_label_counts=model.train_label_counts,
        n_train_points=train.n_points,
    )
    return Trial(metrics, seconds)
