"""Names of columns and keys that a file has of its own: told by options, or as in training."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.cli.notices import notice
from longtail.cli.parser import word
from longtail.cli.points import is_read_again
from longtail.data.columns import USUAL, Columns, check_columns
from longtail.data.files import numbered_lines
from longtail.data.formats import format_for_reading
from longtail.data.json_lines import object_in
from longtail.data.kept_columns import ANSWER_NAMES
from longtail.data.line_kinds import PLAIN
from longtail.data.parquet import is_parquet, names_of_columns
from longtail.errors import InputError, source_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from longtail.data.kept_columns import Kept
    from longtail.predictor import Predictor

__all__ = [
    "add_column_arguments",
    "check_file_of",
    "columns_as_in_training",
    "columns_beside_pairs",
    "columns_of_points",
    "remember_columns",
    "told_columns",
]

_KEY = "columns"  # in what a model folder says of the training


def add_column_arguments(
    parser: argparse.ArgumentParser, of: str, *, with_labels: bool = True
) -> None:
    """Declare what `told_columns` reads, of a file that is called so in the help."""
    parser.add_argument(
        "--text-column",
        metavar="NAME",
        type=word,
        action="extend",
        nargs="+",
        help=f"the column or key of {of} that is the text; several are joined by blanks",
    )
    if with_labels:
        parser.add_argument(
            "--labels-column",
            metavar="NAME",
            type=word,
            help=f"the column or key of {of} with the labels",
        )
        parser.add_argument(
            "--label-separator",
            metavar="STRING",
            type=word,
            help="what is between two labels in a cell or a string (|)",
        )
    else:
        parser.set_defaults(labels_column=None, label_separator=None)


def told_columns(arguments: argparse.Namespace) -> Columns:
    """Return what the options say.

    Examples
    --------
    >>> import argparse
    >>> from longtail.cli.own_columns import add_column_arguments, told_columns
    >>> parser = argparse.ArgumentParser()
    >>> add_column_arguments(parser, "DATA")
    >>> options = parser.parse_args(["--text-column", "title", "body", "--label-separator", ";"])
    >>> told_columns(options)
    Columns(text=('title', 'body'), labels=None, separator=';')
    """
    return Columns.of(arguments.text_column, arguments.labels_column, arguments.label_separator)


def check_file_of(arguments: argparse.Namespace, file: str, options: Iterable[str]) -> None:
    """Raise InputError if options tell how to read a file that is not named.

    Examples
    --------
    >>> import argparse
    >>> from longtail.cli.own_columns import check_file_of
    >>> check_file_of(argparse.Namespace(test=None, format="tsv"), "test", ["format"])
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: --format says how --test is read, which is not there. ...
    """
    for name in options if getattr(arguments, file) is None else ():
        if getattr(arguments, name) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} says how --{file} is read, which is not there. Pass "
                f"--{file}, or leave that out."
            )


def remember_columns(model: Predictor, columns: Columns) -> None:
    """Let a model know by what names its training was read; the usual ones go without saying."""
    if columns != USUAL:
        model.description[_KEY] = asdict(columns)


def columns_as_in_training(
    model: Predictor, arguments: argparse.Namespace, path: str, format_name: str | None
) -> Columns:
    """Return what the options say, and where they say nothing, the names of the training.

    Parameters
    ----------
    model : Predictor
    arguments : argparse.Namespace
        What `add_column_arguments` declares.
    path : str
        The file that is to be read.
    format_name : str or None
        As an option names it; a format without names does without those of the training.
    """
    told, known = told_columns(arguments), _remembered(model)
    if known == USUAL:
        return told
    has_names = _has_names(path, format_name)
    if told == USUAL and has_names is False:
        return told
    if has_names and _is_answers(path, known):
        notice(f"{source_name(path)} is read as `predict` writes it: labels are parted by '|'.")
        return told
    untold = Columns(
        () if told.text else known.text,
        None if told.labels else known.labels,
        USUAL.separator if arguments.label_separator is not None else known.separator,
    )
    if has_names and untold != USUAL:
        notice(f"{source_name(path)} is read as in training: {_said(untold)}.")
    return told.filled_from(untold)


def columns_beside_pairs(model: Predictor, arguments: argparse.Namespace, path: str) -> Columns:
    """Return the same where labels are in another file: in the training, the text had a name."""
    told, known = told_columns(arguments), Columns(_remembered(model).text)
    if told.text or not known.text or not _has_names(path, None):
        return told
    notice(f"{source_name(path)} is read as in training: {_said(known)}.")
    return told.filled_from(known)


def columns_of_points(model: Predictor, arguments: argparse.Namespace, kept: Kept) -> Columns:
    """Return the same of a file of points that are to be answered, ``file``.

    Parameters
    ----------
    model : Predictor
    arguments : argparse.Namespace
    kept : Kept
        What is to be carried to the answers.

    Raises
    ------
    InputError
        If columns are told of a file that has none, or whose format cannot be known.
    """
    told = told_columns(arguments)
    if told != USUAL or kept.asked:
        if arguments.format == PLAIN:
            check_columns(told, "Plain text")
            kept.refuse("Plain text")
        path = Path(arguments.file)
        format_for_reading(path, arguments.format, columns=told, kept=kept, points_only=True)
    return columns_as_in_training(model, arguments, arguments.file, arguments.format)


def _remembered(model: Predictor) -> Columns:
    """Return the names by which the training was read."""
    kept = model.description.get(_KEY)
    return USUAL if kept is None else Columns(**{**kept, "text": tuple(kept["text"])})


def _has_names(path: str, format_name: str | None) -> bool | None:
    """Tell whether a file's columns or keys have names; None if that only reading it shows."""
    try:
        return (
            format_for_reading(Path(path), format_name, points_only=True)[0].with_columns
            is not None
        )
    except InputError:
        return None


def _is_answers(path: str, known: Columns) -> bool:
    """Tell a file of answers, as `predict` writes it, from one that is called as in training."""
    names = _names_in(path) if is_read_again(path) else set()
    is_as_known = known.has_names and names.issuperset({*known.text, known.labels} - {None})
    return names.issuperset(ANSWER_NAMES) and not is_as_known


def _names_in(path: str) -> set[str]:
    """Return the columns of Parquet, the cells of a header, or the keys of the first line."""
    if is_parquet(Path(path)):
        return set(names_of_columns(Path(path)))
    first = next((line for _, line in numbered_lines(path) if line.strip()), b"")
    if keys := object_in(first):
        return set(keys)
    text = first.decode(errors="replace")
    try:
        return set(next(csv.reader([text], delimiter="\t" if "\t" in text else ","), []))
    except csv.Error:  # which is explained where the rows are read
        return set()


def _said(columns: Columns) -> str:
    """Return columns in words."""
    parts = []
    if columns.text:
        parts.append(f"text from {' and '.join(map(repr, columns.text))}")
    if columns.labels is not None:
        parts.append(f"labels from {columns.labels!r}")
    if columns.separator != USUAL.separator:
        parts.append(f"{columns.separator!r} between labels")
    return ", ".join(parts)
