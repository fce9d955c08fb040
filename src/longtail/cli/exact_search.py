"""``--exact-search``: all labels are compared with each text, where a graph of them was walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.predictor import Predictor

if TYPE_CHECKING:
    import argparse

    from longtail.model_folder import ModelFolder

__all__ = ["add_exact_search", "asked_model"]


def add_exact_search(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--exact-search",
        action="store_true",
        help="compare each text with all labels, where else a graph of them is walked: a few more "
        "of the nearest are found, in more time",
    )


def asked_model(folder: ModelFolder, arguments: argparse.Namespace) -> Predictor:
    """Return the model of a folder, searching as the options say."""
    model = Predictor.from_folder(folder)
    return model.with_exact_search() if arguments.exact_search else model
