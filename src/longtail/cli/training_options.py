"""Options of what trains: which points, which recipe; and what they name, read and made."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from longtail.amounts import counted
from longtail.cli.interrupts import nothing_to_lose
from longtail.cli.notices import notice
from longtail.cli.own_columns import add_column_arguments, told_columns
from longtail.cli.quick_imports import quick_imports
from longtail.cli.settings import parse_settings, setting_names, settings_help
from longtail.data.copies import points_of_rows
from longtail.data.dataset import Dataset
from longtail.data.formats import FORMATS
from longtail.errors import InputError, LongtailError
from longtail.recipes.names import DEFAULT_RECIPE, RECIPES, recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longtail.data.columns import Columns
    from longtail.estimators.estimator import LabelEstimator

__all__ = [
    "add_data_arguments",
    "add_points_argument",
    "add_recipe_arguments",
    "add_recipe_help",
    "configured",
    "option_hint",
    "said_of_points",
    "statistics",
    "training_points",
    "training_set",
]


class _Help(argparse.Action):
    """Shows the settings of the recipe too, which are not imported for any other purpose."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print the help and stop."""
        del values, option_string
        parser.epilog = settings_help(recipe(namespace.recipe), namespace.recipe)
        parser.print_help()
        parser.exit()


def add_points_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the file of points, which comes first."""
    parser.add_argument(
        "train",
        metavar="TRAIN",
        help="points and their labels: JSON lines, TSV, CSV, ...; - reads standard input, which "
        "needs --format",
    )


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `training_set` reads beside the file of points."""
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="names of the labels, one a line, a TAB and a text behind it if it has one, or JSON "
        "lines; ids of labels are line numbers, from 0",
    )
    parser.add_argument(
        "--label-pairs",
        metavar="FILE",
        help="labels of TRAIN in a file of their own, row by row: a matrix of points by labels "
        "(.npz, .npy), or the trn_X_Y half of a pair of sparse files",
    )
    parser.add_argument("--format", choices=FORMATS, help="of TRAIN; guessed without it")
    add_column_arguments(parser, "TRAIN")


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `configured` reads."""
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        default=DEFAULT_RECIPE,
        help=f"the algorithm: {', '.join(RECIPES)} ({DEFAULT_RECIPE})",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="same seed, same model (0)")
    parser.add_argument("--device", metavar="NAME", help="cpu or cuda (cpu)")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        help="change settings of the recipe; `longtail train --recipe NAME --help` lists them",
    )
    parser.add_argument(
        "--ignore-memory", action="store_true", help="train even if it is sure not to fit in memory"
    )
    parser.add_argument(
        "--download",
        action="store_true",
        help="fetch a transformer that `--set encoder=OWNER/NAME` names from the Hugging Face hub, "
        "unless it is in its local cache; nothing is fetched without this",
    )


def add_recipe_help(parser: argparse.ArgumentParser) -> None:
    """Declare a help that has the settings of the recipe, too."""
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this and stop")


def training_set(arguments: argparse.Namespace, columns: Columns) -> Dataset:
    """Read the points; `columns` are what the options tell of their names."""
    return Dataset.read(
        arguments.train,
        labels_file=arguments.labels,
        labels_path=arguments.label_pairs,
        format=arguments.format,
        text_column=columns.text,
        labels_column=columns.labels,
        label_separator=columns.separator,
    )


def training_points(arguments: argparse.Namespace) -> Dataset:
    """Read the points that the options name, one row each, and say how many they are."""
    dataset = points_of_rows(training_set(arguments, told_columns(arguments)))[0]
    notice(statistics(dataset))
    return dataset


def said_of_points(arguments: argparse.Namespace) -> list[str]:
    """Return the words of the command that tell how the points are read.

    Examples
    --------
    >>> import argparse
    >>> from longtail.cli import training_options as options
    >>> parser = argparse.ArgumentParser()
    >>> options.add_points_argument(parser)
    >>> options.add_data_arguments(parser)
    >>> options.said_of_points(parser.parse_args(["train.csv", "--labels-column", "tags"]))
    ['train.csv', '--labels-column', 'tags']
    """
    words = [arguments.train]
    for name in ("labels", "label_pairs", "format", "labels_column", "label_separator"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name.replace('_', '-')}", value]
    return words + (["--text-column", *arguments.text_column] if arguments.text_column else [])


def statistics(dataset: Dataset) -> str:
    """Return the data set in one line.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.cli.training_options import statistics
    >>> statistics(Dataset.of(["red wine"], [["drink"]]))
    '1 point, 1 label, 1.00 labels a point, 2.0 words a text.'
    """
    facts = dataset.describe()
    of_points = (
        f"{facts['words_per_text']:.1f} words a text"
        if dataset.texts is not None
        else f"{counted(int(facts['n_features']), 'feature')}, "
        f"{facts['features_per_point']:.1f} a point"
    )
    return (
        f"{counted(dataset.n_points, 'point')}, {counted(dataset.n_labels, 'label')}, "
        f"{facts['labels_per_point']:.2f} labels a point, {of_points}."
    )


def configured(arguments: argparse.Namespace, *, option: str = "--set") -> LabelEstimator:
    """Return the estimator that the options ask for; what is wrong is found before data is read.

    Parameters
    ----------
    arguments : argparse.Namespace
    option : str
        Behind which the settings were written.

    Raises
    ------
    LongtailError
        If there is no such recipe or setting, or a setting cannot have its value.

    Examples
    --------
    >>> import argparse
    >>> from longtail.cli.training_options import add_recipe_arguments, configured
    >>> parser = argparse.ArgumentParser(add_help=False)
    >>> add_recipe_arguments(parser)
    >>> configured(parser.parse_args(["--recipe", "dismec", "--set", "cost=2"])).cost
    2.0
    """
    with nothing_to_lose(), quick_imports():
        kind = recipe(arguments.recipe)
    settings = parse_settings(kind, arguments.set, option=option)
    for name, key in (("seed", "random_state"), ("device", "device")):
        given = getattr(arguments, name)
        if given is None:
            continue
        if key in settings:
            raise InputError(
                f"{key} is set by --{name} ({given}) and by {option} ({settings[key]}). Keep one."
            )
        settings[key] = given
    estimator = kind(**settings)
    if arguments.download:
        _download_for(estimator)
    from longtail.estimators.limits import check_settings  # noqa: PLC0415 - loads much

    check_settings(estimator)
    return estimator


@runtime_checkable
class _ReadsTransformers(Protocol):
    """A recipe around encoders that may be transformers."""

    def transformer_names(self) -> Iterable[str]:
        """Return the folder or the hub's name of each."""


def _download_for(estimator: LabelEstimator) -> None:
    """Fetch the transformers that a recipe reads, unless they are here."""
    from longtail.features.hub import download_transformer  # noqa: PLC0415 - for this alone

    names: list[str] = []
    if isinstance(estimator, _ReadsTransformers):
        names += estimator.transformer_names()
    if not names:
        notice("--download fetches transformers, and this recipe reads none as it is set.")
    for name in names:
        download_transformer(name)


def option_hint(option: str, words: Sequence[str]) -> str:
    """Return how to write what is a setting of the recipe instead of an option; else nothing.

    Examples
    --------
    >>> from longtail.cli.training_options import option_hint
    >>> option_hint("--epochs", ["train.jsonl", "--epochs", "3"])
    'epochs is a setting of the recipe: write --set epochs=3'
    >>> option_hint("--modle", ["train.jsonl", "--modle", "model"])
    ''
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument("--recipe", default=DEFAULT_RECIPE)
    finder.add_argument(option, nargs="?", dest="value")
    try:
        given, _ = finder.parse_known_args(words)
        kind = recipe(given.recipe)
    except (argparse.ArgumentError, LongtailError):
        return ""
    key = option.removeprefix("--").replace("-", "_")
    if key not in setting_names(kind):
        return ""
    value = "VALUE" if given.value is None else shlex.quote(given.value)
    return f"{key} is a setting of the recipe: write --set {key}={value}"
