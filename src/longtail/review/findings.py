"""Which labels of a training set should be looked at, the surest findings first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.csr import rows_of_entries
from longtail.data.pair_table import numbers_of_points
from longtail.errors import InputError
from longtail.log import LOG
from longtail.metrics.hits import is_whole
from longtail.review.doubts import doubts, surprises
from longtail.review.kept_opinions import KeptOpinions
from longtail.review.opinions import Opinions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.training.run import Callback

__all__ = ["N_PARTS", "Findings", "LabelReview", "review_labels"]

N_PARTS, MOST_FOUND = 4, 1_000
LEAST_PROBABLE = 0.5  # for a label to be missing
LESS_OFTEN = 0.4  # odds are divided by this power of how often the label seems to be missing
LEAST_DOUBT = math.log(10)  # for a label to be doubtful: ten times as far back as expected


class Findings(NamedTuple):
    """Pairs of a point and a label, the surest first.

    Attributes
    ----------
    points : int64 (n,)
        Row numbers, from 0.
    labels : int32 (n,)
    probabilities : float32 (n,)
        That the label is right, as a model has it that has not learnt from the point; 0 for a label
        that is not in its answers.
    """

    points: NDArray[np.int64]
    labels: NDArray[np.int32]
    probabilities: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabelReview:
    """What was found.

    Parameters
    ----------
    missing : Findings
        Labels that points have not, though a model says that more likely than not they should;
        five of a point at most.
    doubtful : Findings
        Labels that points have, though a model makes much less of them than it usually does.
    best : int32 (n_points, 3)
        The best answers to each point, padded with -1, to show beside.
    """

    missing: Findings
    doubtful: Findings
    best: NDArray[np.int32]


def review_labels(
    estimator: LabelEstimator,
    dataset: Dataset,
    *,
    n_parts: int = N_PARTS,
    most: int = MOST_FOUND,
    callbacks: Sequence[Callback] = (),
    checkpoint_folder: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> LabelReview:
    """Find labels of a training set that may be missing or wrong.

    The points are parted at random, those of the same text together. Each part is asked of a model
    that was trained on the others, so it takes as many trainings as there are parts. What was found
    is for a person to judge: rare right labels are among the doubtful, and labels that are right
    but not wanted among the missing.

    Parameters
    ----------
    estimator : LabelEstimator
        Any recipe; a copy of it is trained. Its `random_state` also parts the points.
    dataset : Dataset
        A label that another point of the same text has is not called missing.
    n_parts : int
        2 or more. With more, models learn from more of the data.
    most : int
        At most so many missing labels, and as many doubtful ones.
    callbacks : sequence of Callback
        Of each training: see `LabelEstimator.fit_dataset`.
    checkpoint_folder : str or Path, optional
        Where is kept what has been found so far, and the state of a training. A review that was cut
        off goes on from there, if settings and data are the same; in the end both are removed.
    checkpoint_seconds : float
        Least time between two times that something is kept.

    Returns
    -------
    LabelReview

    Raises
    ------
    InputError
        If there are fewer different points than parts, or the data cannot be learnt from.

    Examples
    --------
    One car is labelled as a drink.

    >>> from longtail import Dataset, LongtailClassifier
    >>> from longtail.review import review_labels
    >>> texts = [f"{what} {year}" for year in range(1980, 2020) for what in ("wine of", "car of")]
    >>> labels = [["drink"], ["vehicle"]] * 40
    >>> labels[5] = ["drink"]
    >>> dataset = Dataset.of(texts, labels)
    >>> review = review_labels(LongtailClassifier(), dataset)
    >>> [dataset.label_space.name(label) for label in review.missing.labels]
    ['vehicle']
    >>> [dataset.texts[point] for point in review.missing.points]
    ['car of 1982']
    """
    _check_most(most)
    part_of = _parts(dataset, n_parts, estimator.random_state)
    opinions = Opinions.of(dataset)
    settings = {**estimator.identity(), "n_parts": n_parts}
    kept = KeptOpinions(checkpoint_folder, opinions, settings, checkpoint_seconds)
    for part in range(kept.taken_up(), n_parts):
        LOG.info("part %d of %d", part + 1, n_parts)
        learner = replace(estimator)
        learner.fit_dataset(
            dataset.take(part_of != part),
            callbacks=callbacks,
            checkpoint_folder=kept.of_training,
            checkpoint_seconds=checkpoint_seconds,
        )
        opinions.ask(learner.predictor_, np.flatnonzero(part_of == part))
        kept.keep(part + 1)
    kept.remove()
    return LabelReview(_missing(opinions, most), _doubtful(opinions, most), opinions.best)


def _check_most(most: int) -> None:
    """Refuse numbers of findings that there cannot be."""
    if not is_whole(most) or most < 1:
        raise InputError(f"most must be a whole number, 1 or more, got {most!r}.")


def _parts(dataset: Dataset, n_parts: int, random_state: int) -> NDArray[np.int64]:
    """Return the part of each point, drawn; the same for all of the same text or features.

    Else a model that has learnt from one of these would know the other by heart, errors included.
    """
    text_of = numbers_of_points(dataset)
    _, first_points = np.unique(text_of, return_index=True)
    n_texts = len(first_points)
    if not is_whole(n_parts) or not 2 <= n_parts <= n_texts:
        raise InputError(
            f"n_parts must be a whole number from 2 to the number of different points, "
            f"{n_texts:,}, got {n_parts!r}: each part is asked of a model that was trained on the "
            "others."
        )
    drawn: NDArray[np.int64] = np.random.default_rng(random_state).permutation(n_texts) % n_parts
    parts = np.empty_like(drawn)
    parts[np.argsort(first_points)] = drawn  # in an order that is every run's, as numbers are not
    return parts[text_of]


def _missing(opinions: Opinions, most: int) -> Findings:
    """Return the labels that are more probable than not, and not there.

    If a label seems to be missing at more points than have it, there is probably a reason: those
    who gave labels have left it out where they gave a narrower one, say.
    """
    points, places = np.nonzero(opinions.further_probabilities >= LEAST_PROBABLE)
    labels = opinions.further[points, places]
    probabilities = opinions.further_probabilities[points, places]
    n_labels = opinions.dataset.n_labels
    n_given = np.bincount(opinions.dataset.labels.indices, minlength=n_labels)
    how_often = (1 + np.bincount(labels, minlength=n_labels)) / (1 + n_given)
    odds = probabilities / np.maximum(1 - probabilities, np.finfo(np.float32).eps)
    surest = np.argsort(-odds / how_often[labels] ** LESS_OFTEN, kind="stable")[:most]
    return Findings(points[surest], labels[surest], probabilities[surest])


def _doubtful(opinions: Opinions, most: int) -> Findings:
    """Return labels ten times as far back as was to be expected, or a tenth as probable."""
    judged = np.flatnonzero(opinions.are_judged)
    points = rows_of_entries(opinions.dataset.labels)[judged]
    labels = opinions.dataset.labels.indices[judged]
    probabilities = opinions.probabilities[judged]
    surprising = surprises(opinions.places[judged], probabilities, opinions.dataset.n_labels)
    how_much = doubts(surprising, points, labels)
    surest = np.argsort(-how_much, kind="stable")[:most]
    surest = surest[how_much[surest] >= LEAST_DOUBT]
    return Findings(points[surest], labels[surest], probabilities[surest])
