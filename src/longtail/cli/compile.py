"""``longtail compile``: all code that the default recipe needs, before anybody waits for it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from longtail import kernels
from longtail.cli.notices import notice
from longtail.cli.output import result
from longtail.cli.quick_imports import quick_imports
from longtail.errors import InputError
from longtail.kernels.code_cache import code_folders
from longtail.recipes.names import DEFAULT_RECIPE, recipe

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "places_of_code", "run_command"]

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


def places_of_code() -> str:
    """Name the folders that compiled code is taken from and kept in.

    Raises
    ------
    InputError
        If there are none, or what this process has compiled could not be kept.

    Examples
    --------
    >>> from longtail.cli.compile import places_of_code
    >>> "longtail" in places_of_code()
    True
    """
    folders = code_folders(Path(kernels.__file__).parent)
    if not folders.readable:
        raise InputError(
            "There is no folder to keep compiled code in. Set NUMBA_CACHE_DIR to one that may be "
            "written to."
        )
    if folders.faults:
        raise InputError(
            f"Not all code could be kept in {folders.writable}: {folders.faults[0]}. Mend that, or "
            "set NUMBA_CACHE_DIR to another folder; then run the same command again."
        )
    return " and ".join(map(str, folders.readable))
