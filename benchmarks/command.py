"""The command line of a benchmark: how its options are shown, and its errors told."""

from __future__ import annotations

import argparse
import os
import sys
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, TypeVar

from longtail.cli.interrupts import STOPPED, code_of, stoppable
from longtail.errors import InputError, LongtailError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["chosen", "heading", "parser_of", "positive", "run"]

Number = TypeVar("Number", int, float)

READER_LEFT, USER_ERROR = 1, 2


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows its description as it is written, line by line."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return argparse.ArgumentParser(
        prog=None if started is None else f"python -m {started.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def chosen(names: Sequence[str] | None, there_are: Iterable[str], what: str) -> list[str]:
    """Return the names that were asked for, all of them if none were, none that there is not.

    Examples
    --------
    >>> from benchmarks.command import chosen
    >>> chosen(None, ("one", "two"), "variant")
    ['one', 'two']
    """
    all_names = list(there_are)
    for name in names or ():
        if name not in all_names:
            raise InputError(
                f"There is no {what} {name!r}.{did_you_mean(name, all_names)} There are "
                f"{', '.join(all_names)}."
            )
    return list(names or all_names)


def heading(*columns: str) -> str:
    """Return the two lines of Markdown that begin a table.

    Examples
    --------
    >>> from benchmarks.command import heading
    >>> print(heading("recipe", "P@1"))
    | recipe | P@1 |
    |---|---|
    """
    return f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"


def positive(kind: Callable[[str], Number]) -> Callable[[str], Number]:
    """Return what reads a number of an option that must be over 0; `kind` is int or float.

    Examples
    --------
    >>> from benchmarks.command import positive
    >>> positive(int)("12")
    12
    """

    def read(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = kind("0")
        if not 0 < number < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what} over 0, got {text!r}")
        return number

    return read


def run(main: Callable[[], int | None]) -> None:
    """Run a benchmark and exit; tell what a user can mend in one sentence.

    SIGTERM and SIGHUP end it as Ctrl-C does, with the processes and folders that it has made.
    """
    try:
        with stoppable():
            code = main() or 0
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = READER_LEFT
    except KeyboardInterrupt as stop:
        print(STOPPED, file=sys.stderr)
        code = code_of(stop)
    except (LongtailError, OSError, CalledProcessError) as error:
        print(f"error: {_told(error)}", file=sys.stderr)
        code = USER_ERROR
    sys.exit(code)


def _told(error: LongtailError | OSError | CalledProcessError) -> str:
    """Say what was wrong; of a process that failed, its own last line."""
    if isinstance(error, CalledProcessError) and error.stderr:
        return str(error.stderr.splitlines()[-1])
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Check the path."
    return " ".join(str(error).split())
