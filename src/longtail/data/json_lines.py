"""JSON lines: one ``{"text": ..., "labels": [...]}`` a line; labels are names or ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from longtail.data.paths import numbered_lines, replacing
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows

__all__ = ["read_json_lines", "write_json_lines"]

_SHAPE = 'Write one object a line: {"text": "some words", "labels": ["a name", "another"]}.'


class _Row(msgspec.Struct, gc=False):
    """One line; further keys are ignored."""

    text: str
    labels: list[int | str]


def read_json_lines(path: Path, labels: LabelRows) -> TextColumn:
    """Read a JSON-lines file.

    Strings in ``labels`` are names and whole numbers are ids; a file has either. Blank lines are
    skipped and counted.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    labels : LabelRows
        Takes the labels.

    Returns
    -------
    TextColumn
        The texts.

    Raises
    ------
    DataFormatError
        If a line is not such an object; see also `LabelRows`.
    """
    decoder = msgspec.json.Decoder(_Row)
    texts = TextColumnBuilder()
    for number, line in numbered_lines(path):
        if not line or line.isspace():
            labels.notes.add("blank lines (skipped)", line=number)
            continue
        row = _decode(decoder, line, path, number)
        _add_labels(labels, row.labels, path, number)
        if not row.text:
            labels.notes.add("empty texts (kept)", line=number)
        texts.append(row.text)
    return texts.finish()


def write_json_lines(path: Path, dataset: Dataset) -> None:
    """Write a data set of texts as JSON lines.

    Labels are written as names where every label has a name of its own, not an empty one, else as
    ids; the names then belong into a labels file beside it (`LabelSpace.write`).

    Raises
    ------
    InputError
        If the data set has features instead of texts.
    """
    if dataset.texts is None:
        raise InputError("JSON lines hold texts, and this data set has features. Use 'repository'.")
    space = dataset.label_space
    by_name = space.names_are_unique and all(map(str.strip, space.names or ()))
    to_label = space.name if by_name else int
    with replacing(path) as stream:
        for text, ids in zip(dataset.texts, dataset.label_lists(), strict=True):
            row = {"text": text, "labels": [to_label(label) for label in ids]}
            stream.write(msgspec.json.encode(row) + b"\n")


def _decode(decoder: msgspec.json.Decoder[_Row], line: bytes, path: Path, number: int) -> _Row:
    """Say of a broken line what the decoder found and what the line should be."""
    try:
        return decoder.decode(line)
    except UnicodeDecodeError as error:
        message = (
            f"The line is not UTF-8 (byte 0x{error.object[error.start]:02x}). Save it as such."
        )
        raise DataFormatError(message, path=path, line=number) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataFormatError(f"{error}. {_SHAPE}", path=path, line=number) from error


def _add_labels(labels: LabelRows, given: list[int | str], path: Path, number: int) -> None:
    """Tell names from ids by their type."""
    names = [label for label in given if isinstance(label, str)]
    if not names:
        labels.add_ids([label for label in given if isinstance(label, int)], line=number)
    elif len(names) == len(given):
        labels.add_names(names, line=number)
    else:
        message = "The labels mix names and ids. Use strings only, or whole numbers only."
        raise DataFormatError(message, path=path, line=number)
