"""Where the commands write, and how numbers look."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from longtail.cli.lazy import check_file
from longtail.cli.notices import notice
from longtail.data.paths import STDIN, check_place, is_device, replacing
from longtail.errors import InputError
from longtail.manifest import MANIFEST
from longtail.model_folder import ModelFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "bytes_text",
    "check_inputs",
    "check_output",
    "counted",
    "is_stdout",
    "notice",
    "one_line",
    "result",
    "short",
    "table",
    "time_text",
    "write_json",
]

MOST_SHOWN = 60  # letters of a name in a table
_STDOUT = "-"
_CONTROLS = {"Cc", "Zl", "Zp"}  # of Unicode: control characters, line and paragraph separators


def result(line: str) -> None:
    """Write a line of the result to standard output."""
    sys.stdout.write(f"{line}\n")


def one_line(name: str) -> str:
    r"""Return a name with its line ends and other control characters as escapes.

    Examples
    --------
    >>> from longtail.cli.output import one_line
    >>> one_line("two\nlines")
    'two\\nlines'
    """
    return "".join(
        sign.encode("unicode_escape").decode() if category(sign) in _CONTROLS else sign
        for sign in name
    )


def short(name: str) -> str:
    r"""Return a name in one line, as `one_line` does, of which a table has room for the beginning.

    Examples
    --------
    >>> from longtail.cli.output import short
    >>> short("two\nlines"), short(70 * "a") == 59 * "a" + "\N{HORIZONTAL ELLIPSIS}"
    ('two\\nlines', True)
    """
    line = one_line(name[: MOST_SHOWN + 1])  # a name may be as long as a book
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 1]}\N{HORIZONTAL ELLIPSIS}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows under a head: the first column to the left, the others to the right.

    Examples
    --------
    >>> from longtail.cli.output import table
    >>> table(["", "@1", "@5"], [["P", "51.2", "8.4"]]).splitlines()
    ['     @1   @5', 'P  51.2  8.4']
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def counted(number: int, thing: str) -> str:
    """Return a number of things, of which one is only one.

    Examples
    --------
    >>> from longtail.cli.output import counted
    >>> counted(1, "label"), counted(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def bytes_text(n_bytes: float) -> str:
    """Return a size as people read it.

    Examples
    --------
    >>> from longtail.cli.output import bytes_text
    >>> bytes_text(900), bytes_text(3.3e9)
    ('900 B', '3.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} TB"


def time_text(seconds: float) -> str:
    """Return a duration as people read it.

    Examples
    --------
    >>> from longtail.cli.output import time_text
    >>> time_text(4.2), time_text(200), time_text(9000)
    ('4 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def is_stdout(path: Path | None) -> bool:
    """Tell whether an output goes to standard output: ``-``, or none that is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.output import is_stdout
    >>> is_stdout(None), is_stdout(Path("-")), is_stdout(Path("answers.jsonl"))
    (True, True, False)
    """
    return path is None or str(path) == _STDOUT


def check_inputs(*names: str | None) -> None:
    """Raise InputError if a file is not there, or standard input is named more than once.

    Examples
    --------
    >>> from longtail.cli.output import check_inputs
    >>> check_inputs("-", None)
    >>> check_inputs("-", "-")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: Standard input (-) is named 2 times, but it can be read only ...
    """
    for name in names:
        if name not in {None, STDIN}:
            check_file(str(name))
    count = names.count(STDIN)
    if count > 1:
        raise InputError(
            f"Standard input (-) is named {count} times, but it can be read only once. Name files "
            "for the others."
        )


def check_output(
    path: Path, *, read: Iterable[str | Path | None] = (), model: str | None = None
) -> None:
    """Raise InputError if a file cannot be written there; better now than after the work.

    Parameters
    ----------
    path : Path
        ``-`` is standard output.
    read : iterable of str, Path or None
        Files that the command reads, which the output must not replace.
    model : str, optional
        A model folder whose files it must not replace either.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.output import check_output
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "points.jsonl")
    ...     _ = file.write_text("{}")
    ...     check_output(file, read=[file])
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: ... is read by this command and would be lost. Name another file.
    """
    if is_stdout(path):
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file.")
    check_place(path)
    if is_device(path):
        return
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: you may not write to the folder it is in.")
    if not path.exists():
        return
    sources = [Path(name) for name in read if name]
    if model is not None:
        folder = ModelFolder.open(model)
        sources += [folder.path / name for name in (MANIFEST, *folder.files)]
    if any(source.exists() and source.samefile(path) for source in sources):
        raise InputError(f"{path} is read by this command and would be lost. Name another file.")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is never half there, or to standard output.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.output import write_json
    >>> write_json(Path("-"), {"P@1": 51.2})
    {
      "P@1": 51.2
    }
    """
    if is_stdout(path):
        result(json.dumps(dict(content), indent=2))
        return
    with replacing(path) as stream:
        stream.write(json.dumps(dict(content), indent=2).encode() + b"\n")
