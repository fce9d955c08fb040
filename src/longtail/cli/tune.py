"""``longtail tune``: settings tried on training points that are kept from the training."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, NamedTuple

from longtail.amounts import counted, time_text
from longtail.cli.files import check_inputs
from longtail.cli.notices import notice
from longtail.cli.output import result, table
from longtail.cli.own_columns import told_columns
from longtail.cli.training_options import (
    add_data_arguments,
    add_points_argument,
    add_recipe_arguments,
    add_recipe_help,
    configured,
    option_hint,
    said_of_points,
    statistics,
    training_set,
)
from longtail.data.copies import points_of_rows
from longtail.errors import InputError, did_you_mean
from longtail.metrics import compare
from longtail.progress import ProgressBar
from longtail.recipes.names import DEFAULT_RECIPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.metrics import Difference
    from longtail.trials import Trial

__all__ = ["add_arguments", "option_hint", "run_command"]

EXAMPLE = "longtail tune train.jsonl --try tail=0 --try dimension=256 epochs=5"
SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5", "R@100")
CERTAIN = 2.0  # standard errors
_RECIPE = "recipe"


class _Choice(NamedTuple):
    """Settings that are tried, and what they are called."""

    name: str
    recipe: str
    settings: list[str]
    estimator: LabelEstimator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_points_argument(parser)
    parser.add_argument(
        "--try",
        dest="tries",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        required=True,
        help="settings to try in place of those of --set, and recipe=NAME; once for each try",
    )
    parser.add_argument(
        "--by",
        metavar="METRIC",
        default=SHOWN[0],
        help=f"the metric that decides: {', '.join(SHOWN)} (%(default)s)",
    )
    parser.add_argument(
        "--share",
        metavar="SHARE",
        type=float,
        default=0.1,
        help="of the points, which are kept from the trainings and asked (%(default)s)",
    )
    add_data_arguments(parser)
    add_recipe_arguments(parser)
    add_recipe_help(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Try all of them, say which is best, and return the exit code."""
    check_inputs(arguments.train, arguments.labels, arguments.label_pairs)
    _check(arguments)
    choices = _choices(arguments)
    dataset = points_of_rows(training_set(arguments, told_columns(arguments)))[0]
    notice(statistics(dataset))
    trials = _tried(choices, dataset, arguments)
    _tell(choices, trials, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what is no metric and no share."""
    if arguments.by not in SHOWN:
        raise InputError(
            f"--by {arguments.by} is not one of the metrics.{did_you_mean(arguments.by, SHOWN)} "
            f"There are {', '.join(SHOWN)}."
        )
    if not 0 < arguments.share < 1:
        raise InputError(f"--share must lie between 0 and 1, got {arguments.share:g}.")


def _choices(arguments: argparse.Namespace) -> list[_Choice]:
    """Return what is there without a try, and the tries; what is wrong with one is found now."""
    usual = f"{arguments.recipe}, as it is" if not arguments.set else " ".join(arguments.set)
    choices = [_Choice(usual, arguments.recipe, arguments.set, configured(arguments))]
    for words in arguments.tries:
        told = [word.partition("=")[2] for word in words if word.startswith(f"{_RECIPE}=")]
        own = [word for word in words if not word.startswith(f"{_RECIPE}=")]
        recipe = told[-1] if told else arguments.recipe
        settings = own
        if recipe == arguments.recipe:  # what else is set stays as it is
            keys = {word.partition("=")[0] for word in own}
            kept = [word for word in arguments.set if word.partition("=")[0] not in keys]
            settings = kept + own
        options = argparse.Namespace(**{**vars(arguments), "recipe": recipe, "set": settings})
        choices.append(_Choice(" ".join(words), recipe, settings, configured(options)))
    return choices


def _tried(
    choices: Sequence[_Choice], dataset: Dataset, arguments: argparse.Namespace
) -> list[Trial]:
    """Train and ask each, and say at once what it reaches."""
    from longtail.cli.training_costs import announce  # noqa: PLC0415 - loads much
    from longtail.trials import kept_apart, trial  # noqa: PLC0415 - so does this

    train, asked = kept_apart(dataset, arguments.share, arguments.seed or 0)
    notice(
        f"{counted(len(choices), 'training')} on {counted(train.n_points, 'point')} each; "
        f"{counted(asked.n_points, 'other')} are asked."
    )
    trials = []
    for number, choice in enumerate(choices, start=1):
        notice(f"{number} of {len(choices)}: {choice.name}")
        announce(choice.estimator, train, ignore_memory=arguments.ignore_memory)
        with ProgressBar() as progress:
            found = trial(choice.estimator, train, asked, callbacks=[progress])
        choice.estimator.__dict__.pop("predictor_")  # one model in memory is enough
        reached = (f"{metric} {found.metrics[metric].mean():.2f}" for metric in SHOWN)
        notice(f"{choice.name}: {', '.join(reached)}")
        trials.append(found)
    return trials


def _tell(
    choices: Sequence[_Choice], trials: Sequence[Trial], arguments: argparse.Namespace
) -> None:
    """Show all of them, and which to take."""
    first = trials[0]
    found = [compare(other.metrics, first.metrics) for other in trials]
    rows = [
        (
            choice.name,
            *(f"{of[metric].ours:.2f}" for metric in SHOWN),
            "" if of is found[0] else f"{of[arguments.by].value:+.2f}",
            "" if of is found[0] else f"{of[arguments.by].standard_error:.2f}",
            time_text(tried.seconds),
        )
        for choice, tried, of in zip(choices, trials, found, strict=True)
    ]
    result(table(["%", *SHOWN, f"{arguments.by} gains", "standard error", "training"], rows))
    best = max(range(1, len(found)), key=lambda i: found[i][arguments.by].value)
    gained = found[best][arguments.by]
    if not _is_certain(gained):
        result(f"None gains more {arguments.by} than chance may. Keep what there is.")
        return
    many = " The best of many is in part the luckiest." if len(choices) > 3 else ""
    errors = gained.value / gained.standard_error
    result(f"{choices[best].name} gains {gained.value:.2f}, {errors:.1f} standard errors.{many}")
    result(f"  {_command(choices[best], arguments)}")


def _is_certain(gained: Difference) -> bool:
    """Tell what is more than chance."""
    return gained.value > CERTAIN * gained.standard_error


def _command(choice: _Choice, arguments: argparse.Namespace) -> str:
    """Return the command that trains on all points as was best."""
    words = ["longtail", "train", *said_of_points(arguments), "--model", "model"]
    if choice.recipe != DEFAULT_RECIPE:
        words += ["--recipe", choice.recipe]
    for name in ("seed", "device"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name}", str(value)]
    return shlex.join(words + (["--set", *choice.settings] if choice.settings else []))
