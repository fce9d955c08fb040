"""``longtail distill``: a transformer becomes a table of token vectors, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.amounts import counted
from longtail.cli.before_and_after import add_comparison_arguments, comparison, comparison_set
from longtail.cli.files import check_inputs, say_what_stayed
from longtail.cli.notices import notice
from longtail.cli.one_at_a_time import turn_to_change
from longtail.cli.output import result, table
from longtail.cli.own_columns import columns_as_in_training
from longtail.cli.points import points_in
from longtail.distillation import distilled, vectorizer_beside_transformer
from longtail.errors import InputError
from longtail.model_folder import ModelFolder, check_target
from longtail.predictor import Predictor

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail distill model faster --texts train.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder with a transformer")
    parser.add_argument("target", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--texts",
        metavar="FILE",
        required=True,
        help="texts like those that will be asked, ideally the training texts: JSON lines, plain "
        "text (one a line), or a file as for training; - reads standard input",
    )
    add_comparison_arguments(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Distill, and return the exit code."""
    check_target(arguments.target)
    with turn_to_change(arguments.model, arguments.target) as check_unchanged:
        before = ModelFolder.open(arguments.model)
        size = sum(before.sizes.values())  # now: the target may be the same folder
        model = Predictor.from_folder(before)
        if model.vectorizer is None:
            raise InputError(
                f"{arguments.model} reads features. Only a transformer can be distilled."
            )
        check_inputs(arguments.texts, arguments.test, arguments.labels, arguments.label_pairs)
        vectorizer_beside_transformer(model)
        dataset = comparison_set(model, arguments)
        columns = columns_as_in_training(model, arguments, arguments.texts, None)
        blocks, _ = points_in(model, arguments.texts, format_name=None, columns=columns)
        texts = [text for block in blocks for text in block]
        notice(
            f"Reading {counted(len(texts), 'text')}, and the words of the model, with the "
            "transformer ..."
        )
        student, cosine = distilled(model, texts)
        check_unchanged()
        student.save(arguments.target)
    say_what_stayed(arguments.target)
    rows = [["cosine to the transformer", "1.000", f"{cosine:.3f}", ""]]
    rows += comparison(model, student, size, arguments.target, dataset, texts)
    result(table(["", "before", "distilled", "change"], rows))
    return 0
