"""The commands, and what their first places must name. Imports next to nothing."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from longtail.errors import InputError, ModelFolderError, about_home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["COMMANDS", "Command", "check_file", "check_first_places"]

MODEL, DATA, ASKED = "a model folder", "a file", "a file of points to answer"


class Command(NamedTuple):
    """A command, and what its first places must name: to see that takes no import.

    Its module has `add_arguments(parser)`, `run_command(arguments) -> exit code`, an EXAMPLE of how
    it is called, and maybe `option_hint(option, words)`: what to say of an option that it lacks.
    """

    module: str
    summary: str
    places: tuple[str, ...] = ()


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "train": Command("longtail.cli.train", "Train a model and write it to a folder", (DATA,)),
        "evaluate": Command(
            "longtail.cli.evaluate", "Measure a model on a test set", (MODEL, DATA)
        ),
        "predict": Command(
            "longtail.cli.predict",
            "Answer one text, or a file of points, with labels",
            (MODEL, ASKED),
        ),
        "serve": Command(
            "longtail.cli.serve", "Answer over HTTP, with a page to try the model", (MODEL,)
        ),
        "inspect": Command("longtail.cli.inspect", "Show what is in a model", (MODEL,)),
        "tune": Command(
            "longtail.cli.tune", "Try settings on training points that are kept apart", (DATA,)
        ),
        "review": Command(
            "longtail.cli.review", "Find labels of a training set that may be wrong", (DATA,)
        ),
        "compress": Command(
            "longtail.cli.compress", "Make a model smaller, and say what that costs", (MODEL,)
        ),
        "distill": Command(
            "longtail.cli.distill", "Distil a transformer into a table of token vectors", (MODEL,)
        ),
        "labels": Command(
            "longtail.cli.labels", "List, add, remove or rename labels without retraining"
        ),
        "compile": Command(
            "longtail.cli.compile", "Compile all code of the default recipe, so that nobody waits"
        ),
        "demo": Command(
            "longtail.demo.command", "Train, measure and query a model on bundled data"
        ),
    }
)


def check_first_places(arguments: Sequence[str]) -> None:
    """Refuse a model or a file that is not there, before a second goes by with imports.

    Only what stands right behind the command is looked at. What is further back, or is no option's
    value for sure, the command finds out itself.

    Raises
    ------
    LongtailError
        If there is nothing of that name.

    Examples
    --------
    >>> from longtail.cli.commands import check_first_places
    >>> check_first_places(["predict", "no-such-model", "--help"])
    >>> check_first_places(["predict", "--text", "red wine", "no-such-model"])
    """
    command = COMMANDS.get(arguments[0]) if arguments else None
    if command is None or not {"-h", "--help"}.isdisjoint(arguments):
        return
    for kind, name in zip(command.places, arguments[1:], strict=False):
        if name.startswith("-"):
            return
        if kind == DATA:
            check_file(name)
        elif kind == ASKED:
            check_file(name, 'Check the path; a text is passed as --text "some text".')
        elif not Path(name).exists():
            raise ModelFolderError(
                f"There is no model folder at {name}. Check the path, or train a model into it."
                f"{about_home(name)}"
            )


def check_file(name: str, remedy: str = "Check the path.") -> None:
    """Raise InputError if there is nothing of that name.

    Examples
    --------
    >>> from longtail.cli.commands import check_file
    >>> check_file("no-such-file")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: no-such-file cannot be opened: No such file or directory. ...
    """
    if not Path(name).exists():
        raise InputError(
            f"{name} cannot be opened: No such file or directory. {remedy}{about_home(name)}"
        )
