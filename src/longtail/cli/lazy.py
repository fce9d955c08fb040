"""Commands that are imported when they are chosen, so that starting up is quick."""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from longtail.cli.interrupts import nothing_to_lose
from longtail.errors import InputError, ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "COMMANDS",
    "Command",
    "CommandParser",
    "check_file",
    "check_first_places",
    "quick_imports",
]

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
        "compress": Command(
            "longtail.cli.compress", "Make a model smaller, and say what that costs", (MODEL,)
        ),
        "distill": Command(
            "longtail.cli.distill", "Distil a transformer into a table of token vectors", (MODEL,)
        ),
        "labels": Command("longtail.cli.labels", "Add or remove labels without retraining"),
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

    Parameters
    ----------
    arguments : sequence of str
        Those of the process.

    Raises
    ------
    LongtailError
        If there is nothing of that name.

    Examples
    --------
    >>> from longtail.cli.lazy import check_first_places
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
            )


def check_file(name: str, remedy: str = "Check the path.") -> None:
    """Raise InputError if there is nothing of that name.

    Examples
    --------
    >>> from longtail.cli.lazy import check_file
    >>> check_file("no-such-file")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: no-such-file cannot be opened: No such file or directory. ...
    """
    if not Path(name).exists():
        raise InputError(f"{name} cannot be opened: No such file or directory. {remedy}")


class CommandParser(argparse.ArgumentParser):
    """A parser that asks a command's module for the options once the command is chosen.

    Parameters
    ----------
    module : str
        The module.
    **settings
        Those of `argparse.ArgumentParser`.
    """

    def __init__(self, *, module: str, **settings: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
            allow_abbrev=False,  # --k would be --keep, where --top-k was meant
            **settings,
        )
        self._module: str | None = module
        self._given: Sequence[str] = ()
        self._own_hint: Callable[[str, Sequence[str]], str] = lambda *_: ""

    def parse_known_args(  # type: ignore[override]  # its own overloads say the same at length
        self,
        args: Any = None,
        namespace: Any = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Import the command, then parse; what is left over is an error."""
        self._given = sys.argv[1:] if args is None else args
        if self._module is not None:
            with nothing_to_lose():
                command = importlib.import_module(self._module)
            self._module = None
            command.add_arguments(self)
            self.set_defaults(run_command=command.run_command)
            self._own_hint = getattr(command, "option_hint", self._own_hint)
            if "--help" not in self._option_string_actions:
                self.add_argument("-h", "--help", action="help", help="show this and stop")
            self.usage = f"%(prog)s{self._places()} [options]\n  such as: {command.EXAMPLE}"
        parsed, rest = super().parse_known_args(args, namespace)
        self._take_late(parsed, rest)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Stop, and point out what was probably meant."""
        hints = [*self._hints()] if "required" in message or "unrecognized" in message else []
        hints.append(f"`{self.prog} --help` lists all options")
        super().error(". ".join([message, *hints]))

    def _places(self) -> str:
        """Return what must be given, in short."""
        words = ""
        for action in self._actions:
            name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
            if not action.option_strings:
                words += f" [{name}]" if action.nargs == "?" else f" {name}"
            elif action.required:
                words += f" {action.option_strings[0]} {name}"
        return words

    def _hints(self) -> Iterator[str]:
        """Yield advice on options that are misspelt, that took too much, or that are left out."""
        known = self._known_options()
        for word in self._given:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in {"--", *known}:
                yield from self._hints_at(name, known)
        greedy = {option: action for option, action in known.items() if action.nargs == "+"}
        for option, action in greedy.items():
            if option in self._given:
                yield f"{option} takes all words after it: put it last"
            elif action.metavar == "KEY=VALUE" and any(
                "=" in word and not word.startswith("-") for word in self._given
            ):
                yield f"Settings such as KEY=VALUE go after {option}"

    def _known_options(self) -> dict[str, argparse.Action]:
        """Return all options, with those of the command below this one, such as `labels add`."""
        known = dict(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, parser in action.choices.items():
                    known |= parser._option_string_actions if name in self._given else {}
        return known

    def _hints_at(self, name: str, known: Iterable[str]) -> Iterator[str]:
        """Yield what was probably meant by an option that there is not, if anything was."""
        own_hint = self._own_hint(name, self._given)
        near = _near_option(name, known)
        if own_hint:
            yield own_hint
        elif name == "--model":
            yield "--model is not an option: the model folder comes first, without one"
        elif near:
            yield f"{name} is not an option (did you mean {near}?)"

    def _take_late(self, parsed: argparse.Namespace, rest: list[str]) -> None:
        """Fill optional places from behind the options, where argparse does not look for them."""
        for action in self._actions:
            is_place = action.nargs == "?" and not action.option_strings
            if is_place and getattr(parsed, action.dest) is None and _begins_with_a_word(rest):
                setattr(parsed, action.dest, rest.pop(0))


def _near_option(name: str, known: Iterable[str]) -> str | None:
    """Return the option that is spelt alike, has the name as a word, or begins with it."""
    options = [option for option in known if option.startswith("--")]
    near = [
        *difflib.get_close_matches(name, options, n=1, cutoff=0.8),
        *(option for option in options if name[2:] in option[2:].split("-")),
        *(option for option in options if option.startswith(name)),
        *difflib.get_close_matches(name, options, n=1),
    ]
    return near[0] if near else None


def _begins_with_a_word(rest: list[str]) -> bool:
    """Tell arguments that begin with an option, or that are none; ``-`` is standard input."""
    return bool(rest) and (rest[0] == "-" or not rest[0].startswith("-"))


@contextmanager
def quick_imports() -> Iterator[None]:
    """Do not look for garbage meanwhile: modules are none, and torch's take a fifth longer.

    Nor later, among what has been imported: to look through all of torch takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
