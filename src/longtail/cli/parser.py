"""A parser of commands that are imported when they are chosen, and that says what was meant."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import shlex
import sys
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NoReturn

from longtail.cli.interrupts import nothing_to_lose
from longtail.cli.quick_imports import quick_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["CommandParser", "HintingParser", "OnlyOnce", "WholeParser", "is_utf8", "word"]

_SEVERAL = {"+", "*"}  # values of one place, in words of argparse


def word(argument: str) -> str:
    r"""Return an argument as it was typed, where the system's locale is no UTF-8.

    With such a locale (``LC_ALL=POSIX`` and ``PYTHONUTF8=0``) Python hands each byte of a letter
    on as half a character. Paths must stay so: the system is asked for them in the same way. What
    is no UTF-8 at all stays so, too.

    Examples
    --------
    >>> from longtail.cli.parser import word
    >>> word("wei\udcc3\udc9f"), word("red")
    ('weiß', 'red')
    """
    if is_utf8(argument):
        return argument
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def is_utf8(argument: str) -> bool:
    r"""Tell whether an argument can be written as UTF-8, which half characters cannot.

    Examples
    --------
    >>> from longtail.cli.parser import is_utf8
    >>> is_utf8("weiß"), is_utf8("wei\udcdf")
    (True, False)
    """
    return argument.encode(errors="replace").decode() == argument


class OnlyOnce(argparse.Action):
    """An option that names what is read: of two, argparse would drop the first without a word.

    Examples
    --------
    >>> from longtail.cli.parser import HintingParser, OnlyOnce
    >>> parser = HintingParser(prog="ask")
    >>> _ = parser.add_argument("--text", action=OnlyOnce)
    >>> parser.parse_args(["--text", "wine"]).text
    'wine'
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Take the value, the first and only one."""
        before = getattr(namespace, self.dest)
        if before is not None:
            parser.error(
                f"{option_string} came twice, with {before!r} and {values!r}. Pass one; a file, or "
                "standard input, may have several"
            )
        setattr(namespace, self.dest, values)


class WholeParser(argparse.ArgumentParser):
    """A parser that fails where its help cannot be written, which argparse passes over."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


class HintingParser(WholeParser):
    """A parser that says what was probably meant where it cannot read something."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)  # --k would be --keep, not --top-k
        self._given: Sequence[str] = ()
        self._own_hint: Callable[[str, Sequence[str]], str] = lambda *_: ""

    def parse_known_args(  # type: ignore[override]  # its own overloads say the same at length
        self,
        args: Any = None,
        namespace: Any = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; what is left over is an error."""
        self._given = sys.argv[1:] if args is None else args
        parsed, rest = super().parse_known_args(args, namespace)
        self._take_late(parsed, rest)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Stop, and point out what was probably meant."""
        hints = [*self._hints()] if "required" in message or "unrecognized" in message else []
        if "expected one argument" in message or "expected at least one argument" in message:
            hints += self._hints_at_values()
        hints.append(f"`{self.prog} --help` lists all options")
        super().error(". ".join([message, *hints]))

    def _hints(self) -> Iterator[str]:
        """Yield advice on options that are misspelt, that took too much, or that are left out."""
        known = self._known_options()
        for word in takewhile(lambda word: word != "--", self._given):
            name = word.partition("=")[0]
            if name.startswith("-") and name not in {"-", *known}:
                yield from self._hints_at(name, known)
        greedy = {option: action for option, action in known.items() if action.nargs == "+"}
        for option, action in greedy.items():
            if option in self._given:
                yield f"{option} takes all words after it: put it last"
            elif action.metavar == "KEY=VALUE" and any(
                "=" in word and not word.startswith("-") for word in self._given
            ):
                yield f"Settings such as KEY=VALUE go after {option}"

    def _hints_at_values(self) -> Iterator[str]:
        """Yield how to write values that were taken for options."""
        for option, word in pairwise(self._given):
            if option in self._option_string_actions and word.startswith("-"):
                yield f"A value that begins with a dash is written as {option}={shlex.quote(word)}"

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
        is_long = name.startswith("--")  # of those with one dash there is but -h
        own_hint = self._own_hint(name, self._given) if is_long else ""
        near = _near_option(name, known) if is_long else None
        if own_hint:
            yield own_hint
        elif name == "--model":
            yield "--model is not an option: the model folder comes first, without one"
        elif near:
            yield f"{name} is not an option (did you mean {near}?)"
        elif any(place.nargs in _SEVERAL and not place.option_strings for place in self._actions):
            if is_long:
                names = f"{self.prog} MODEL NAME ... OUT"
                yield f"{name} is not an option: names need none, as in `{names}`"
            names = f"{self.prog} MODEL -- NAME ... OUT"
            yield f"If {name} is a name, write -- before the names: {names}"

    def _take_late(self, parsed: argparse.Namespace, rest: list[str]) -> None:
        """Fill optional places from behind the options, where argparse does not look for them."""
        for action in self._actions:
            is_place = action.nargs == "?" and not action.option_strings
            if is_place and getattr(parsed, action.dest) is None and _begins_with_a_word(rest):
                setattr(parsed, action.dest, rest.pop(0))


class CommandParser(HintingParser):
    """A parser that asks a command's module for the options once the command is chosen."""

    def __init__(self, *, module: str, **settings: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
            **settings,
        )
        self._module: str | None = module

    def parse_known_args(  # type: ignore[override]  # as above
        self,
        args: Any = None,
        namespace: Any = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Import the command, then parse."""
        if self._module is not None:
            with nothing_to_lose(), quick_imports():
                command = importlib.import_module(self._module)
            self._module = None
            command.add_arguments(self)
            self.set_defaults(run_command=command.run_command)
            self._own_hint = getattr(command, "option_hint", self._own_hint)
            if "--help" not in self._option_string_actions:
                self.add_argument("-h", "--help", action="help", help="show this and stop")
            self.usage = f"%(prog)s{self._places()} [options]\n  such as: {command.EXAMPLE}"
        return super().parse_known_args(args, namespace)

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


def _near_option(name: str, known: Iterable[str]) -> str | None:
    """Return the option that is spelt alike, has the name as a word, or begins with it.

    Help is what few misspell: who writes --label means something else than --help.
    """
    options = [option for option in known if option.startswith("--")]
    others = [option for option in options if option != "--help"]
    near = [
        *difflib.get_close_matches(name, options, n=1, cutoff=0.8),
        *(option for option in options if name[2:] in option[2:].split("-")),
        *(option for option in options if option.startswith(name)),
        *difflib.get_close_matches(name, others, n=1),
    ]
    return near[0] if near else None


def _begins_with_a_word(rest: list[str]) -> bool:
    """Tell arguments that begin with an option, or that are none; ``-`` is standard input."""
    return bool(rest) and (rest[0] == "-" or not rest[0].startswith("-"))
