"""``longtail compress``: a model laid out for serving, in fewer bits, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from longtail.classifiers.compiled import StorageType
from longtail.cli.evaluate import add_test_arguments, test_set
from longtail.cli.output import bytes_text, notice, result, table
from longtail.model_folder import MANIFEST, ModelFolder, check_target
from longtail.predictor import Predictor

if TYPE_CHECKING:
    import argparse

    from longtail.data.dataset import Dataset

__all__ = ["add_arguments", "run_command"]

PLACES = (1, 3, 5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder of the default recipe")
    parser.add_argument("target", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--dtype",
        choices=get_args(StorageType),
        default="int8",
        help="how numbers are kept; int8 with one scale a row (default: %(default)s)",
    )
    parser.add_argument("--test", metavar="TEST", help="labelled points, to measure what is lost")
    add_test_arguments(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Compress, and return the exit code."""
    check_target(arguments.target)
    before = ModelFolder.open(arguments.model)
    model = Predictor.from_folder(before)
    smaller = model.compressed(arguments.dtype)
    smaller.save(arguments.target, before.documents())
    after = ModelFolder.open(arguments.target)
    rows = [
        ["size", bytes_text(_size(before)), bytes_text(_size(after)), _share(before, after)],
    ]
    if arguments.test is None:
        notice("Pass --test FILE to see what is lost in accuracy.")
    else:
        dataset = test_set(model, arguments)
        own, other = _precisions(model, dataset), _precisions(smaller, dataset)
        rows += [
            [name, f"{own[name]:.2f}", f"{other[name]:.2f}", _lost(own, other, name)]
            for name in own
        ]
    result(table(["", "before", arguments.dtype, "change"], rows))
    return 0


def _precisions(model: Predictor, dataset: Dataset) -> dict[str, float]:
    """Return P@1, P@3 and P@5, in percent."""
    metrics = model.evaluate(dataset, PLACES, recall_ks=PLACES)
    return {f"P@{k}": metrics[f"P@{k}"] for k in PLACES}


def _lost(own: dict[str, float], other: dict[str, float], name: str) -> str:
    """Return the change of a metric."""
    return f"{other[name] - own[name]:+.2f}"


def _share(before: ModelFolder, after: ModelFolder) -> str:
    """Return what is left of the size."""
    return f"{100 * _size(after) / _size(before):.0f} %"


def _size(folder: ModelFolder) -> int:
    """Return the size of all files, in bytes."""
    return sum(folder.files.values()) + (folder.path / MANIFEST).stat().st_size
