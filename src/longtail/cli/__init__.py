"""The command line: ``longtail COMMAND``, one of `longtail.cli.commands.COMMANDS`.

Results go to standard output; progress, notices and errors to standard error. Exit codes: 0 done,
1 whoever read the output has left, 2 something a user can mend, 130 stopped by Ctrl-C, 143 by
SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import warnings
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from longtail import __version__
from longtail.cli.commands import COMMANDS, check_first_places
from longtail.cli.interrupts import STOPPED, code_of, stoppable
from longtail.cli.notices import notice, warning
from longtail.cli.parser import CommandParser, WholeParser
from longtail.errors import NO_SPACE, InputError, LongtailError, did_you_mean
from longtail.log import heard_by

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

READER_LEFT, USER_ERROR = 1, 2
_LAST_STREAM = 2  # the number of standard error
_OWN_OPTIONS = ("-h", "--help", "--version")
# Options whose value may be empty, or that say themselves what else it must be.
_MAY_BE_EMPTY = {
    "--keep",
    "--label-separator",
    "--labels-column",
    "--model",
    "--text",
    "--text-column",
}
# What the Python functions call `format` is `--format` here, and so on.
_OPTIONS = {
    "labels_file": "--labels",
    "labels_path": "--label-pairs",
    "format": "--format",
    "text_column": "--text-column",
    "labels_column": "--labels-column",
    "label_separator": "--label-separator",
    "keep": "--keep",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process, and return its exit code.

    Examples
    --------
    >>> from longtail.cli import main
    >>> main(["predict", "no-such-model", "--text", "red wine"])
    2
    """
    _make_streams_safe()
    # At exit the system frees all memory; to collect garbage before that would take half a second.
    atexit.register(gc.freeze)
    with _written_whole(), stoppable() as stops, heard_by(notice), _warnings_as_notices():
        try:
            return _run(arguments)
        except KeyboardInterrupt as stop:
            notice(STOPPED)
            return code_of(stop)
        except BrokenPipeError:
            _drop_output()  # whoever read it, such as `head`, has seen enough
            return READER_LEFT
        except (LongtailError, OSError, MemoryError) as error:
            notice(f"longtail: error: {_in_one_line(error)}")
            _drop_output()
            return USER_ERROR
        except Exception:
            if not stops:
                raise
            notice(STOPPED)  # the interrupt made something fail that does not expect one
            return code_of(stops[-1])


def _run(arguments: Sequence[str] | None) -> int:
    """Parse the arguments, and run the command to the last byte of its output."""
    given_words = sys.argv[1:] if arguments is None else arguments
    _refuse_no_command(given_words)
    _refuse_no_value(given_words)
    _refuse_empty(given_words)
    check_first_places(given_words)
    try:
        given = _parser().parse_args(arguments)
    except SystemExit:
        sys.stdout.flush()  # of --help
        raise
    code: int = given.run_command(given)
    sys.stdout.flush()
    return code


def _refuse_no_command(arguments: Sequence[str]) -> None:
    """Refuse a command or an option that there is not, with the one that was probably meant."""
    word = arguments[0] if arguments else ""
    if word.startswith("-") and word not in _OWN_OPTIONS:
        raise InputError(
            f"{word} is not an option of longtail itself.{did_you_mean(word, _OWN_OPTIONS)} The "
            "command comes first, and its options after it: `longtail --help` lists the commands."
        )
    if word and not word.startswith("-") and word not in COMMANDS:
        raise InputError(
            f"There is no command {word!r}.{did_you_mean(word, COMMANDS)} There are "
            f"{', '.join(COMMANDS)}: `longtail --help` says what they do."
        )


def _refuse_no_value(arguments: Sequence[str]) -> None:
    """Refuse ``--option=--``, of which Python 3.11 makes an option without a value."""
    for argument in arguments:
        if argument.startswith("--") and argument.endswith("=--"):
            raise InputError(f"{argument[:-3]} cannot be '--'. Name something else.")


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse empty words but texts: as a path, one would be the folder where the command runs."""
    for before, word in pairwise(["longtail", *arguments]):
        option, is_assigned, value = word.partition("=")
        what = ""
        if not word and before not in _MAY_BE_EMPTY:
            what = f"The word behind {before}"
        elif is_assigned and not value and option.startswith("--") and option not in _MAY_BE_EMPTY:
            what = option
        if what:
            raise InputError(
                f"{what} is empty, as a shell leaves it where a variable is not set. Write what is "
                "meant, or leave it out."
            )


def _make_streams_safe() -> None:
    """Let output go nowhere where it was closed, and write what a terminal's letters can."""
    _occupy_streams()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # as after `>&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def _written_whole() -> Iterator[None]:
    """Write to standard output all that is to be written, or fail.

    Python without a buffer, as ``PYTHONUNBUFFERED`` asks of many a container, drops without a word
    what a disk that is full by then, or a reader that leaves, does not take.
    """
    usual = sys.stdout
    if not isinstance(usual, io.TextIOWrapper) or not isinstance(usual.buffer, io.RawIOBase):
        yield
        return
    buffer = io.BufferedWriter(usual.buffer, buffer_size=1)  # passes each write on at once
    sys.stdout = io.TextIOWrapper(buffer, usual.encoding, usual.errors, write_through=True)
    try:
        yield
    finally:
        whole, sys.stdout = sys.stdout, usual
        with suppress(OSError):  # an error that was reported before
            whole.detach()
            buffer.detach()  # or it would close the process's own stream


def _occupy_streams() -> None:
    """Fill the places of closed streams, which whatever is opened next would take.

    An event loop that has taken one ends by SIGABRT. Processes that are started keep them filled.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        os.set_inheritable(handle, True)
    os.close(handle)


def _drop_output() -> None:
    """Forget output that cannot be written: Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each fills in its own options when it is chosen."""
    parser = WholeParser(
        prog="longtail",
        allow_abbrev=False,
        usage="%(prog)s COMMAND ...\n  `longtail --help` lists the commands",
        description="Extreme multi-label classification: text in, the most relevant few of up to "
        "millions of label names out.",
        epilog="`longtail COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"longtail {__version__}")
    commands = parser.add_subparsers(
        metavar="COMMAND",
        required=True,
        dest="command",
        prog="longtail",
        parser_class=CommandParser,
    )
    for name, command in COMMANDS.items():
        commands.add_parser(
            name, help=command.summary, description=f"{command.summary}.", module=command.module
        )
    return parser


def _in_one_line(error: BaseException) -> str:
    """Say what was wrong in the words of the command line."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Use a machine with more, or less data."
    if isinstance(error, OSError) and not isinstance(error, LongtailError):
        place = f"{error.filename}: " if error.filename else ""
        advice = "Check the path and its permissions."
        if error.errno in NO_SPACE:
            advice = "Free some space, then run the same command again."
        return f"{place}{error.strerror or error}. {advice}"
    message = error.in_words_of(_OPTIONS) if isinstance(error, InputError) else str(error)
    return " ".join(message.split())


@contextmanager
def _warnings_as_notices() -> Iterator[None]:
    """Write warnings as plain lines: where in our code they arose is of no use to a user."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        warning(str(message))

    with warnings.catch_warnings():
        warnings.filterwarnings("default", module="longtail")
        warnings.showwarning = show
        yield
