"""Points with labels, by which a model is measured: read, and held against what the model knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.cli.notices import notice, warning
from longtail.cli.own_columns import (
    add_column_arguments,
    columns_as_in_training,
    columns_beside_pairs,
)
from longtail.cli.points import n_features_of
from longtail.data.csr import n_labels_of
from longtail.data.dataset import Dataset
from longtail.data.formats import FORMATS
from longtail.data.label_names import written_id
from longtail.data.pair_table import said_of_pairs
from longtail.data.unlabelled import check_kind
from longtail.errors import InputError, source_name
from longtail.evaluation import LEAST_KNOWN

if TYPE_CHECKING:
    import argparse

    from longtail.data.label_space import LabelSpace
    from longtail.predictor import Predictor

__all__ = [
    "add_test_arguments",
    "in_model_ids",
    "labelled_points",
    "points_as_given",
    "say_whose_ids",
]


def add_test_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `labelled_points` reads beside the file itself, ``test``."""
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="names that the ids in TEST stand for; without it they are the model's own ids",
    )
    parser.add_argument(
        "--label-pairs",
        metavar="FILE",
        help="labels of TEST in a file of their own, row by row: a matrix of points by labels "
        "(.npz, .npy), or the tst_X_Y half of a pair of sparse files",
    )
    parser.add_argument("--format", choices=FORMATS, help="of TEST; guessed without it")
    add_column_arguments(parser, "TEST")


def labelled_points(model: Predictor, arguments: argparse.Namespace) -> Dataset:
    """Read a test set in the model's label ids, and say how many of its labels the model has.

    Raises
    ------
    InputError
        If nothing could be measured: no point has a label, or none that the model has, or points
        are of another kind than the model reads.
    """
    return in_model_ids(model, points_as_given(model, arguments), arguments)


def points_as_given(model: Predictor, arguments: argparse.Namespace) -> Dataset:
    """Read a test set in label ids of its own; see `labelled_points`."""
    if arguments.label_pairs is None:
        columns = columns_as_in_training(model, arguments, arguments.test, arguments.format)
    else:
        columns = columns_beside_pairs(model, arguments, arguments.test)
    dataset = Dataset.read(
        arguments.test,
        labels_file=arguments.labels,
        labels_path=arguments.label_pairs,
        format=arguments.format,
        unknown_labels="extend",
        n_features=n_features_of(model),
        text_column=columns.text,
        labels_column=columns.labels,
        label_separator=columns.separator,
    )
    name = source_name(arguments.test)
    check_kind(name, is_text=dataset.texts is not None, n_features=n_features_of(model))
    if not dataset.labels.nnz:
        raise InputError(
            f"No point of {name} has a label, so nothing can be measured. Name a file of points "
            "with labels, or theirs by --label-pairs."
        )
    if said := said_of_pairs(dataset, name):
        notice(said)
    return dataset


def in_model_ids(model: Predictor, dataset: Dataset, arguments: argparse.Namespace) -> Dataset:
    """Return what `points_as_given` has read in the model's label ids; see `labelled_points`."""
    name = source_name(arguments.test)
    by_name = dataset.label_space.names is not None
    if by_name:
        dataset = _matched(model, dataset, name, from_lines=arguments.labels is not None)
    else:
        dataset = _in_own_ids(model, dataset, name)
    _say_what_matches(model, dataset, name, by_name=by_name)
    return dataset


def _in_own_ids(model: Predictor, dataset: Dataset, name: str) -> Dataset:
    """Take ids for the model's own; those behind its last one are labels that it has not."""
    known = model.label_space
    n_labels = max(known.n_labels, n_labels_of(dataset.labels.indices))
    space = known.extended(map(str, range(known.n_labels, n_labels)))
    label = int(dataset.labels.indices.min())
    if known.names is not None and label < known.n_labels:
        say_whose_ids(name, label, space)
    parts = (dataset.labels.data, dataset.labels.indices, dataset.labels.indptr)
    labels = csr_array(parts, shape=(dataset.n_points, n_labels))
    return Dataset(dataset.texts, dataset.features, labels, space)


def say_whose_ids(name: str, label: int, space: LabelSpace) -> None:
    """Say that a file's label ids are taken for the model's own, by the example of one."""
    notice(
        f"{name} has label ids, which are taken for the model's own: {label} is "
        f"{space.name(label)!r}. If they are lines of a labels file, pass it as --labels."
    )


def _matched(model: Predictor, dataset: Dataset, name: str, *, from_lines: bool) -> Dataset:
    """Match names; to a model that knows ids alone, only numbers in the file mean something."""
    known, names = model.label_space, dataset.label_space.names
    if known.names is None and names is not None:
        others = (other for other in names if written_id(other, known.n_labels) < 0)
        wrong = names[0] if from_lines else next(others, None)
        if wrong is not None:
            raise InputError(
                f"{name} has labels by name, such as {wrong!r}, but the model knows ids only, from "
                f"0 to {known.n_labels - 1}. Use ids, without --labels, or train with a labels "
                "file."
            )
        notice(f"{name} has names of labels that are numbers, which are taken for the model's ids.")
    return dataset.relabelled(known)


def _say_what_matches(model: Predictor, dataset: Dataset, name: str, *, by_name: bool) -> None:
    """Raise InputError if the model has none of the labels, and say how many it has not."""
    own = dataset.labels.indices
    used, is_new = np.unique(own), own >= model.n_labels
    n_new = int((used >= model.n_labels).sum())
    if not n_new:
        return
    first = dataset.label_space.name(int(used[used >= model.n_labels][0]))
    if is_new.all():
        of_them = f"none of its {len(used):,} labels is" if n_new > 1 else "its label is not"
        advice = "Ids must be those used in training."
        if by_name:
            advice = "Names must match exactly, capital letters and spaces included."
        elif model.label_space.names is not None:
            raise InputError(
                f"{name} has ids of labels, such as {first}, and none of them is one of the "
                f"model's {model.n_labels:,}, which have names, such as "
                f"{model.label_space.name(0)!r}, so nothing can be measured. If they are lines of "
                "a labels file, pass it as --labels. If the numbers are names, write them as "
                f'strings: "{first}".'
            )
        raise InputError(
            f"{name}: {of_them} one of the model's {model.n_labels:,}, so nothing can be measured. "
            f"{advice} It has {first!r}, the model has "
            f"{model.label_space.name(0)!r}."
        )
    share = float(is_new.mean())
    say = warning if share > 1 - LEAST_KNOWN else notice
    are_missed = "are not in the model and count" if n_new > 1 else "is not in the model and counts"
    say(
        f"{name}: {n_new:,} of its {len(used):,} labels, such as {first!r}, {are_missed} "
        f"as missed: {100 * share:.1f} % of the labels of its points."
    )
