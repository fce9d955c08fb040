"""``longtail tune``: settings tried on training points that are kept from the training."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longtail.amounts import counted
from longtail.cli.files import check_inputs, check_output, is_stdout, write_json
from longtail.cli.notices import notice, warning
from longtail.cli.output import one_line, result
from longtail.cli.training_options import (
    add_data_arguments,
    add_points_argument,
    add_recipe_arguments,
    add_recipe_help,
    configured,
    option_hint,
    said_of_points,
    training_points,
)
from longtail.cli.tune_results import (
    SHOWN,
    Choice,
    Tried,
    as_json,
    best_of,
    results_table,
    verdict,
)
from longtail.errors import InputError, LongtailError, did_you_mean
from longtail.progress import ProgressBar
from longtail.recipes.names import DEFAULT_RECIPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.data.dataset import Dataset
    from longtail.trials import Trial

__all__ = ["add_arguments", "option_hint", "run_command"]

EXAMPLE = "longtail tune train.jsonl --try tail=0 --try dimension=256 epochs=5"
N_SEEDS = 2  # one does not tell what another would change
MOST_SEED = 2**31 - 1
SOME_FAILED = 2  # the exit code
_RECIPE = "recipe"


class _Parts(NamedTuple):
    """The points to learn from, and those to ask."""

    train: Dataset
    asked: Dataset


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
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=int,
        default=N_SEEDS,
        help="train each with so many seeds, which tells what chance the seed is (%(default)s)",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="write what each reaches there, too, after each training; - is standard output",
    )
    add_data_arguments(parser)
    add_recipe_arguments(parser)
    add_recipe_help(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Try all of them, say which is best, and return the exit code."""
    names = (arguments.train, arguments.labels, arguments.label_pairs)
    check_inputs(*names)
    if arguments.json is not None:
        check_output(arguments.json, read=names)
    _check(arguments)
    choices = _choices(arguments)
    return _try(choices, training_points(arguments), arguments)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what is no metric, no share and no number of seeds."""
    if arguments.by not in SHOWN:
        raise InputError(
            f"--by {arguments.by} is not one of the metrics.{did_you_mean(arguments.by, SHOWN)} "
            f"There are {', '.join(SHOWN)}."
        )
    if not 0 < arguments.share < 1:
        raise InputError(f"--share must lie between 0 and 1, got {arguments.share:g}.")
    if arguments.seeds < 1:
        raise InputError(f"--seeds {arguments.seeds} is too few. Take 1 or more.")


def _choices(arguments: argparse.Namespace) -> list[Choice]:
    """Return what is there without a try, and the tries; what is wrong with one is found now."""
    usual = f"{arguments.recipe}, as it is" if not arguments.set else " ".join(arguments.set)
    choices = [Choice(usual, arguments.recipe, arguments.set, configured(arguments))]
    for words in arguments.tries:
        recipe, settings = _replaced(words, arguments)
        options = argparse.Namespace(**{**vars(arguments), "recipe": recipe, "set": settings})
        estimator = configured(options, option="--try")
        choice = Choice(" ".join(words), recipe, settings, estimator)
        _check_is_new(choice, choices)
        choices.append(choice)
    return choices


def _replaced(words: Sequence[str], arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the recipe and all settings of a try."""
    told = [word.partition("=")[2] for word in words if word.startswith(f"{_RECIPE}=")]
    if len(told) > 1:
        raise InputError(f"--try {_RECIPE} is given twice. Write --try once for each of them.")
    own = [word for word in words if not word.startswith(f"{_RECIPE}=")]
    recipe = told[0] if told else arguments.recipe
    if recipe != arguments.recipe:
        return recipe, own
    keys = {word.partition("=")[0] for word in own}  # what else is set stays as it is
    kept = [word for word in arguments.set if word.partition("=")[0] not in keys]
    return recipe, kept + own


def _check_is_new(choice: Choice, others: Sequence[Choice]) -> None:
    """Refuse to train the very same again."""
    for other in others:
        same_kind = type(other.estimator) is type(choice.estimator)
        if same_kind and other.estimator.get_params() == choice.estimator.get_params():
            raise InputError(
                f"--try {one_line(choice.name)} is the same as {one_line(other.name)!r}: no "
                "setting differs. Leave it out, or try another value."
            )


def _try(choices: Sequence[Choice], dataset: Dataset, arguments: argparse.Namespace) -> int:
    """Train and ask each, tell what they reach, and return the exit code.

    What was measured is told, too, when somebody or something puts an end to it.
    """
    from longtail.trials import kept_apart  # noqa: PLC0415 - loads much

    is_given = arguments.labels is not None
    parted = kept_apart(dataset, arguments.share, _seed(arguments), labels_are_given=is_given)
    parts = _Parts(*parted)
    _announce(choices, parts, arguments)
    tried = [Tried(choice) for choice in choices]
    try:
        _train_all(tried, parts, arguments)
    finally:
        _tell(tried, parts, arguments)
    return SOME_FAILED if any(one.failure for one in tried) else 0


def _seed(arguments: argparse.Namespace) -> int:
    """Return the seed by which points are kept apart."""
    return arguments.seed or 0


def _announce(choices: Sequence[Choice], parts: _Parts, arguments: argparse.Namespace) -> None:
    """Say what it will take; refuse what cannot fit in memory before hours go by."""
    from longtail.cli.training_costs import announce  # noqa: PLC0415 - loads much

    notice(
        f"{counted(arguments.seeds * len(choices), 'training')} on "
        f"{counted(parts.train.n_points, 'point')} each; "
        f"{counted(parts.asked.n_points, 'other')} are asked."
    )
    for choice in choices:
        notice(f"{one_line(choice.name)}:")
        announce(choice.estimator, parts.train, ignore_memory=arguments.ignore_memory)


def _train_all(tried: Sequence[Tried], parts: _Parts, arguments: argparse.Namespace) -> None:
    """Train and ask each by a seed, then by the next one, and put down what they reach.

    A try that cannot be trained ends nothing but itself. Where nothing can be trained as it is,
    there is nothing to compare with.
    """
    number, n_trainings = 0, arguments.seeds * len(tried)
    for seed in range(arguments.seeds):
        for one in tried:
            number += 1
            if one.failure:
                continue
            notice(f"{number} of {n_trainings}: {one_line(one.choice.name)}")
            try:
                one.trials.append(_trained(one.choice, seed, parts))
            except (LongtailError, MemoryError, OSError) as error:
                if one is tried[0]:
                    raise
                one.failure = " ".join(str(error).split()) or "There is not enough memory."
                warning(f"{one_line(one.choice.name)} fails: {one.failure}")
            if arguments.json is not None and not is_stdout(arguments.json):
                _write(tried, parts, arguments)
        if all(one.failure for one in tried[1:]):
            return


def _trained(choice: Choice, seed: int, parts: _Parts) -> Trial:
    """Train by a seed so much further, ask, and say at once what is reached."""
    from longtail.trials import trial  # noqa: PLC0415 - loads much

    own_seed = (choice.estimator.random_state + seed) % (MOST_SEED + 1)
    estimator = replace(choice.estimator, random_state=own_seed)
    with ProgressBar() as progress:
        found = trial(estimator, *parts, callbacks=[progress])
    reached = (f"{metric} {found.metrics[metric].mean():.2f}" for metric in SHOWN)
    notice(f"{one_line(choice.name)}: {', '.join(reached)}")
    return found


def _tell(tried: Sequence[Tried], parts: _Parts, arguments: argparse.Namespace) -> None:
    """Show all that was measured, and which to take."""
    if not any(one.trials for one in tried):
        return
    is_for_program = arguments.json is not None and is_stdout(arguments.json)
    say = notice if is_for_program else result
    say(results_table(tried, arguments.by))
    if said := verdict(tried, arguments.by):
        say(said)
        if arguments.seeds == 1:
            say("What chance the seed is was not measured: --seeds 2 does.")
    best = best_of(tried, arguments.by)
    if best is not None:
        say(f"  {_command(tried[best].choice, arguments)}")
    if is_for_program:
        _write(tried, parts, arguments)


def _write(tried: Sequence[Tried], parts: _Parts, arguments: argparse.Namespace) -> None:
    """Write what is known by now."""
    measured = {
        "train": arguments.train,
        "n_train": parts.train.n_points,
        "n_asked": parts.asked.n_points,
        "share": arguments.share,
        "seed": _seed(arguments),
        "n_seeds": arguments.seeds,
        "n_choices": len(tried),
    }
    write_json(arguments.json, measured | as_json(tried, arguments.by))


def _command(choice: Choice, arguments: argparse.Namespace) -> str:
    """Return the command that trains on all points as was best."""
    words = ["longtail", "train", *said_of_points(arguments), "--model", "model"]
    if choice.recipe != DEFAULT_RECIPE:
        words += ["--recipe", choice.recipe]
    for name in ("seed", "device"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name}", str(value)]
    return shlex.join(words + (["--set", *choice.settings] if choice.settings else []))
