"""A tenth of the training points, kept from the training to be asked: no test data is read."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.command import parser_of, positive
from longtail import Dataset
from longtail.cli.settings import parse_settings
from longtail.data import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError
from longtail.recipes.names import recipe

if TYPE_CHECKING:
    import argparse

    from longtail.estimators.estimator import LabelEstimator

__all__ = ["recipe_of", "recipe_parser", "split_as_asked", "split_of", "training_parser"]

N_PARTS = 10  # one of which is asked


def split_as_asked(description: str | None) -> tuple[Dataset, Dataset, int]:
    """Read what the command line names; return nine tenths to train on, one to ask, the seed."""
    arguments = training_parser(description).parse_args()
    return *split_of(arguments), arguments.seed


def training_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what names a training set, a tenth of which will be asked."""
    parser = parser_of(description)
    parser.add_argument(
        "train", metavar="TRAIN", help="points and their labels, in any format of `longtail train`"
    )
    parser.add_argument(
        "--labels", metavar="FILE", help="names of labels that are ids: line number = id"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the cut and of the training (0)")
    parser.add_argument(
        "--points",
        type=positive(int),
        metavar="N",
        help="learn from so many of the other nine tenths; all by default",
    )
    parser.add_argument(
        "--known-labels",
        action="store_true",
        help="leave out labels that none of these has, as most test sets do",
    )
    return parser


def recipe_parser(description: str | None) -> argparse.ArgumentParser:
    """Return such a parser, to which a recipe and its settings can be named, too."""
    parser = training_parser(description)
    parser.add_argument(
        "--recipe", default="longtail", metavar="NAME", help="what is trained (longtail)"
    )
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the recipe"
    )
    return parser


def recipe_of(arguments: argparse.Namespace) -> LabelEstimator:
    """Return the recipe that the arguments name, yet to be trained."""
    kind = recipe(arguments.recipe)
    return kind(random_state=arguments.seed, **parse_settings(kind, arguments.set))


def split_of(arguments: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return nine tenths of the training points that the arguments name, and the others."""
    warnings.simplefilter("ignore", InputWarning)
    data = Dataset.read(arguments.train, labels_file=arguments.labels)
    if data.n_points < N_PARTS:
        raise InputError(
            f"{arguments.train} has {data.n_points} points, of which a tenth is to be asked. "
            f"Pass {N_PARTS} or more."
        )
    order = np.random.default_rng(arguments.seed).permutation(data.n_points)
    kept, rest = np.split(order, [data.n_points // N_PARTS])
    if arguments.points is not None and arguments.points > len(rest):
        raise InputError(
            f"--points {arguments.points:,} are more than the {len(rest):,} that are not asked. "
            "Use fewer, or leave it out for all."
        )
    train, points = data.take(np.sort(rest[: arguments.points])), data.take(np.sort(kept))
    return of_known_labels(train, points) if arguments.known_labels else (train, points)


def of_known_labels(train: Dataset, points: Dataset) -> tuple[Dataset, Dataset]:
    """Return both with the labels alone that training points have."""
    known = np.flatnonzero(np.bincount(train.labels.indices, minlength=train.n_labels))
    space = train.label_space
    names, texts = (column and column.take(known) for column in (space.names, space.texts))
    kept = LabelSpace(len(known), names, texts)
    first, second = (
        replace(part, labels=part.labels[:, known], label_space=kept) for part in (train, points)
    )
    return first, second
