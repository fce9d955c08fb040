"""What settings reach on training points that are kept from the training, and what is chance."""

from __future__ import annotations

import math
import time
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr

from longtail.data.blocks import points_of
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError
from longtail.estimators.holding_out import LEAST_HELD_OUT, held_out_rows
from longtail.estimators.training_input import check_dataset
from longtail.evaluation import answers_to
from longtail.metrics import by_point
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES, deepest_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.metrics.hits import Floats
    from longtail.training.run import Callback

__all__ = ["Gain", "Trial", "gains", "kept_apart", "trial"]


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


class Gain(NamedTuple):
    """What settings reach more than others do.

    Attributes
    ----------
    value : float
        In percent.
    standard_error : float
        Of it: another draw of points to ask, and other seeds, would change it by about so much.
    chance : float
        How likely it is that the best of as many tries gains so much where none is any better.
    """

    value: float
    standard_error: float
    chance: float


def kept_apart(
    dataset: Dataset, share: float, seed: int, *, labels_are_given: bool = True
) -> tuple[Dataset, Dataset]:
    """Part a training set into the points to learn from, and those to ask.

    Near-identical points stay together, and where somebody has written equally many examples of
    each label, all labels lose as many: see `held_out_rows`.

    Labels that are known by the points alone are not known before there is a point. Those that only
    points to ask have are left out of what is learnt from, and count as missed: else a model would
    find by its name what it cannot know, and there would be few others of that kind.

    Parameters
    ----------
    dataset : Dataset
    share : float
        Of the points, to ask.
    seed : int
    labels_are_given : bool
        Whether all labels are known whatever points there are, as those of a file of labels are.

    Returns
    -------
    train, asked : Dataset
        With the same label ids; labels that only `asked` has are behind those of `train`.

    Raises
    ------
    InputError
        If no point has a label, or fewer than 20 points would be asked, or can be spared.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.trials import kept_apart
    >>> dataset = Dataset.of([f"text {i}" for i in range(100)], [[i % 3] for i in range(100)])
    >>> [part.n_points for part in kept_apart(dataset, 0.2, seed=0)]
    [80, 20]
    """
    check_dataset(dataset)
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
    if len(rows[1]) < LEAST_HELD_OUT:
        raise InputError(
            f"Only {len(rows[1])} points can be kept apart, and fewer than {LEAST_HELD_OUT} tell "
            "nothing: labels have too few examples each, or many points are alike. Keep a larger "
            "share apart, or try settings by a file of other points: longtail evaluate --against."
        )
    train, asked = (dataset.take(part) for part in rows)
    return (train, asked) if labels_are_given else _of_known_labels(train, asked)


def _of_known_labels(train: Dataset, asked: Dataset) -> tuple[Dataset, Dataset]:
    """Return the points with the labels of `train` alone, and with all others behind them."""
    n_points_of = np.bincount(train.labels.indices, minlength=train.n_labels)
    order = np.argsort(n_points_of == 0, kind="stable")
    known = order[: np.count_nonzero(n_points_of)]
    return _of_labels(train, known), _of_labels(asked, order)


def _of_labels(dataset: Dataset, ids: NDArray[np.int64]) -> Dataset:
    """Return a data set with some labels alone, in that order."""
    space = dataset.label_space
    names, texts = (None if of is None else of.take(ids) for of in (space.names, space.texts))
    part = LabelSpace(len(ids), names, texts)
    return replace(dataset, labels=dataset.labels[:, ids], label_space=part)


def trial(
    estimator: LabelEstimator,
    train: Dataset,
    asked: Dataset,
    *,
    callbacks: Sequence[Callback] = (),
) -> Trial:
    """Train, and measure the answers to other points with the same labels.

    The estimator stays as it is: a copy is trained.

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
    model = copy(estimator).fit_dataset(train, callbacks=callbacks).predictor_
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


def gains(choices: Sequence[Sequence[Trial]], metric: str) -> list[Gain]:
    """Return what each of some settings, but the first, gains on the first.

    Two things are chance. Other points would have been asked: that shows in how much the points
    differ. Other seeds would have made other models: that shows where settings were trained by
    several seeds, and is taken to be alike for all of them. With few seeds it is not known well, so
    Student's distribution tells what is likely, by the degrees of freedom of Welch and
    Satterthwaite. The more is tried, the more the luckiest gains: Bonferroni's correction.

    Parameters
    ----------
    choices : sequence of sequence of Trial
        For each of the settings, the same points asked after trainings by one seed or several.
    metric : str

    Returns
    -------
    list of Gain
        One less than there are choices.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.trials import Trial, gains
    >>> always, at_times = np.full(40, 100.0), np.tile([100.0, 0.0], 20)
    >>> of_both = [[Trial({"P@1": values}, 1.0)] * 2 for values in (at_times, always)]
    >>> found, = gains(of_both, "P@1")
    >>> found.value, round(found.standard_error, 2), found.chance < 0.001
    (50.0, 8.01, True)
    """
    values = [np.array([one.metrics[metric] for one in own]) for own in choices]
    spread = _spread_of_seeds(values)
    n_tries = len(values) - 1
    return [_gain(own, values[0], spread, n_tries) for own in values[1:]]


class _Spread(NamedTuple):
    """The variance that seeds give to a mean, and by how many degrees of freedom it is known."""

    variance: float
    freedom: int


def _spread_of_seeds(values: Sequence[Floats]) -> _Spread:
    """Return what seeds change in the mean over all points, of which some are asked.

    Parameters
    ----------
    values : sequence of float64 (n_seeds, n_points)
        One for each of the settings.
    """
    freedom = sum(len(own) - 1 for own in values)
    if not freedom:
        return _Spread(0.0, 1)
    n_points, of_means, of_points = values[0].shape[1], 0.0, 0.0
    for own in values:
        by_seed = own.mean(axis=1, keepdims=True)
        of_means += float(((by_seed - own.mean()) ** 2).sum())
        of_points += float(((own - by_seed - own.mean(axis=0) + own.mean()) ** 2).sum())
    # Means over some points differ, too, where those over all of them would be the same.
    variance = of_means - of_points / (n_points - 1) / n_points
    return _Spread(max(0.0, variance / freedom), freedom)


def _gain(ours: Floats, theirs: Floats, spread: _Spread, n_tries: int) -> Gain:
    """Return what one gains on the other, both float64 (n_seeds, n_points)."""
    differences = ours.mean(axis=0) - theirs.mean(axis=0)
    value = float(differences.mean())
    by_points = float(differences.var(ddof=1)) / len(differences)
    by_seeds = spread.variance * (1 / len(ours) + 1 / len(theirs))
    error = math.sqrt(by_points + by_seeds)
    if not error:  # all points gain alike
        return Gain(value, 0.0, 0.0 if value > 0 else 1.0)
    of_both = by_points**2 / (len(differences) - 1) + by_seeds**2 / spread.freedom
    likely = float(stdtr(error**4 / of_both, -value / error))
    return Gain(value, error, min(1.0, n_tries * likely))
