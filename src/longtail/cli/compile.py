"""``longtail compile``: all code that the default recipe needs, before anybody waits for it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.cli.compiled_code import places_of_code
from longtail.cli.notices import notice
from longtail.cli.output import result
from longtail.cli.quick_imports import quick_imports
from longtail.recipes.names import DEFAULT_RECIPE, recipe

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail compile"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options: there are none."""
    del parser


def run_command(arguments: argparse.Namespace) -> int:
    """Compile, say where the code is, and return the exit code."""
    del arguments
    places_of_code()  # where there are none, that is said before a minute goes by
    with quick_imports():
        recipe(DEFAULT_RECIPE)  # which says what is missing, if it is not all installed
        from longtail.rehearsal import rehearse  # noqa: PLC0415 - loads much
    notice("Training and asking three made-up models. What is compiled already is not again.")
    with tempfile.TemporaryDirectory(prefix="longtail-") as folder:
        rehearse(Path(folder))
    result(f"The code that the default recipe trains and answers with is in {places_of_code()}.")
    return 0
