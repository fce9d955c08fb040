"""How good a model's answers to a test set are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.blocks import blocks_of, n_points_of, points_of
from longtail.data.input_notes import warn
from longtail.data.label_space import in_ids_of
from longtail.data.pair_table import said_of_pairs
from longtail.errors import InputError
from longtail.metrics import evaluate
from longtail.metrics.hits import as_binary_csr, deepest_place
from longtail.metrics.predictions import places_to_predict
from longtail.metrics.predictions import set_aside as without_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.blocks import Points
    from longtail.data.dataset import Dataset
    from longtail.data.label_space import LabelSpace
    from longtail.predictor import Predictor

__all__ = [
    "LEAST_KNOWN",
    "answers_to",
    "evaluate_model",
    "n_train_points_of",
    "warn_of_unknown_labels",
]

LEAST_KNOWN = 0.5  # of a test set's labels: with fewer, it may belong to another model


def evaluate_model(
    model: Predictor,
    dataset: Dataset,
    ks: Sequence[int],
    *,
    recall_ks: Sequence[int],
    propensity: tuple[float, float],
    set_aside: csr_array | None,
) -> dict[str, float]:
    """Return all metrics of the answers to a test set, asked block by block.

    Parameters
    ----------
    model : Predictor
    dataset, ks, recall_ks, propensity, set_aside
        See `Predictor.evaluate`.

    Examples
    --------
    >>> from longtail import Dataset, LongtailClassifier
    >>> from longtail.evaluation import evaluate_model
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> test, ks = Dataset.of(["rose wine", "new car"], [["drink"], ["drink"]]), (1, 2)
    >>> more = {"recall_ks": (), "propensity": (0.55, 1.5), "set_aside": None}
    >>> found = evaluate_model(model, test, ks, **more)
    >>> found["P@1"], found["P@2"]  # the second point has its label in the second place
    (50.0, 50.0)
    """
    n_train_points = n_train_points_of(model)
    given, dataset = dataset, in_ids_of(model.label_space, dataset)
    if said := said_of_pairs(given, "The test set"):
        warn(said)
    if set_aside is not None:
        set_aside = as_binary_csr(set_aside, "set_aside")
        if dataset is not given:
            set_aside = _in_ids_of(model.label_space, given, set_aside)
    _check_labels(dataset, model.label_space)
    answers = list(answers_to(model, points_of(dataset), deepest_place(ks, recall_ks), set_aside))
    return evaluate(
        np.concatenate([ids for ids, _ in answers]),
        np.concatenate([scores for _, scores in answers]),
        dataset.labels,
        train_label_counts=model.train_label_counts,
        n_train_points=n_train_points,
        ks=ks,
        recall_ks=recall_ks,
        propensity=propensity,
        set_aside=set_aside,
    )


def n_train_points_of(model: Predictor) -> int:
    """Return how many points a model was trained on, by which PSP tells what a label is worth.

    Raises
    ------
    InputError
        If its description does not say so, as that of one made by hand may not.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.evaluation import n_train_points_of
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> n_train_points_of(LongtailClassifier().fit(texts, labels).predictor_)
    20
    """
    n_points: int | None = model.description.get("n_points")
    if n_points is None:
        raise InputError(
            "The description of this model has no `n_points`, how many training points there were, "
            "without which labels cannot be weighed by how rare they are. Save the "
            'model again with it: model.replaced(description={**model.description, "n_points": '
            "1000})."
        )
    return n_points


def answers_to(
    model: Predictor, points: Points, n_places: int, aside: csr_array | None
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float32]]]:
    """Yield ids and scores (n, n_places) of points in blocks, some pairs removed.

    All points of a block are asked for some labels more: as many as pairs are removed of the point
    of the block that has the most of them.

    Parameters
    ----------
    model : Predictor
    points : TextColumn or csr_array
    n_places : int
        Labels of a point that are measured.
    aside : csr_array (n_points, n_labels) or None
        The pairs.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail import LongtailClassifier
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.evaluation import answers_to
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> points, aside = TextColumn.from_strings(["wine", "car"]), csr_array([[1, 0], [0, 0]])
    >>> [ids.tolist() for ids, _ in answers_to(model, points, 1, aside)]
    [[[1], [1]]]
    """
    start = 0
    for block in blocks_of(points):
        stop = start + n_points_of(block)
        own = None if aside is None else aside[start:stop]
        n_asked = places_to_predict(n_places, own, model.most_answers)
        ids, scores = model.predict_topk(block, n_asked)
        if own is None:
            yield ids, scores
        else:
            left, their_scores = without_pairs(ids, scores, own)
            yield left[:, :n_places].astype(np.int32), their_scores[:, :n_places].astype(np.float32)
        start = stop


def _in_ids_of(known: LabelSpace, dataset: Dataset, pairs: csr_array) -> csr_array:
    """Return pairs to set aside, a data set's label ids replaced by a model's."""
    if pairs.shape != dataset.labels.shape:
        raise InputError(
            f"`set_aside` has the shape {pairs.shape}, but the labels of the test set have "
            f"{dataset.labels.shape}. Pass the pairs of these points, in the label ids of the test "
            "set."
        )
    return in_ids_of(known, replace(dataset, labels=pairs)).labels


def _check_labels(dataset: Dataset, known: LabelSpace) -> None:
    """Raise InputError for labels of which the model knows none, and warn where it knows few."""
    ids = dataset.labels.indices
    if not len(ids):
        raise InputError(
            "No point of the test set has a label, so nothing can be measured. Pass points with "
            "labels."
        )
    if ids.min() >= known.n_labels:
        raise InputError(
            f"None of the labels of the test set is one of the model's {known.n_labels:,}. Names "
            "must match exactly, capital letters and spaces included, and ids must be the model's: "
            f"it has {dataset.label_space.name(int(ids[0]))!r}, the model has {known.name(0)!r}."
        )
    if dataset.label_space.names is None and dataset.n_labels < known.n_labels:
        wider = ", by dataset.relabelled(model.label_space)" if known.names is None else ""
        warn(
            f"The test set has {dataset.n_labels:,} labels without names, the model "
            f"{known.n_labels:,}: its ids are taken for the model's. Make it as wide as the model"
            f"{wider}, or read it with label_space=model.label_space.",
        )
    warn_of_unknown_labels(dataset.labels, known.n_labels)


def warn_of_unknown_labels(labels: csr_array, n_known: int) -> None:
    """Warn where most labels of the points are behind those that the model knows.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
        In the model's ids; those that it does not know come behind them.
    n_known : int

    Examples
    --------
    >>> import warnings
    >>> from scipy.sparse import csr_array
    >>> from longtail.evaluation import warn_of_unknown_labels
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_unknown_labels(csr_array([[1, 0, 1, 1]]), n_known=2)
    >>> str(caught[0].message).partition(",")[0]
    'The model does not know 2 of the 3 labels of the points'
    """
    n_pairs, n_unknown = labels.nnz, int(np.count_nonzero(labels.indices >= n_known))
    if n_unknown > (1 - LEAST_KNOWN) * n_pairs:
        warn(
            f"The model does not know {n_unknown:,} of the {n_pairs:,} labels of the points, which "
            "count as misses. Were they named otherwise when it was trained?",
        )
