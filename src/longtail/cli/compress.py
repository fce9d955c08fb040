"""``longtail compress``: a model laid out for serving, in fewer bits, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from longtail.cli.before_and_after import add_comparison_arguments, comparison, comparison_set
from longtail.cli.files import say_what_stayed
from longtail.cli.notices import notice, warning
from longtail.cli.one_at_a_time import turn_to_change
from longtail.cli.output import result, table
from longtail.compiled.scorer import CompiledScorer, StorageType
from longtail.model_folder import ModelFolder, check_target
from longtail.predictor import Predictor

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail compress model smaller --test test.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "model",
        metavar="DIR",
        help="a model folder of the default recipe, dexa, ngame, siamesexml, or with a transformer",
    )
    parser.add_argument("target", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--storage",
        choices=get_args(StorageType),
        default="int8",
        help="how numbers are kept; int8: a scale a row, 4 bits for tokens (default: %(default)s)",
    )
    add_comparison_arguments(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Compress, and return the exit code."""
    check_target(arguments.target)
    with turn_to_change(arguments.model, arguments.target) as check_unchanged:
        before = ModelFolder.open(arguments.model)
        size = sum(before.sizes.values())  # now: the target may be the same folder
        before.check_arrays()  # what is damaged would get a checksum that says it is not
        model = Predictor.from_folder(before)
        dataset = comparison_set(model, arguments)
        smaller = model.compressed(arguments.storage)
        if smaller.scorer is model.scorer:
            notice(
                f"{arguments.model} already keeps its numbers as {arguments.storage}, "
                "so this is a copy."
            )
        _warn_of_growth(model, arguments)
        check_unchanged()
        smaller.save(arguments.target)
    say_what_stayed(arguments.target)
    rows = comparison(model, smaller, size, arguments.target, dataset)
    result(table(["", "before", arguments.storage, "change"], rows))
    return 0


def _warn_of_growth(model: Predictor, arguments: argparse.Namespace) -> None:
    """Say so if numbers get more bits than they have: what was rounded stays so."""
    scorer, kinds = model.scorer, get_args(StorageType)  # the widest first
    if not isinstance(scorer, CompiledScorer):
        return
    if kinds.index(arguments.storage) < kinds.index(scorer.storage):
        warning(
            f"{arguments.model} keeps its numbers as {scorer.storage}. As {arguments.storage} they "
            "take more room and stay rounded, so nothing is gained. For finer ones, train the "
            f"default recipe with --set storage={arguments.storage}, or compress the model that "
            "this one was made from."
        )
