"""fastText lines: ``__label__a __label__b some words``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from longtail.data.blocks import texts_of
from longtail.data.files import decode_line, numbered_lines, replacing
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows

__all__ = ["PREFIX", "parse_line", "read_fasttext", "write_fasttext"]

PREFIX = "__label__"
# What parts words in fastText. Other blanks of Unicode, such as in "New\u00a0York", are of a word.
_BLANKS = " \t\n\r\v\f"
_BETWEEN_WORDS = re.compile(f"[{_BLANKS}]+")


def parse_line(line: str) -> tuple[str, list[str]]:
    """Return a line's text and label names.

    Labels may stand anywhere, as in fastText; text behind leading labels is kept as it is.

    Examples
    --------
    >>> parse_line("__label__baking __label__bread how long  to knead")
    ('how long  to knead', ['baking', 'bread'])
    >>> parse_line("to knead __label__bread long")
    ('to knead long', ['bread'])
    """
    names: list[str] = []
    text = line.strip(_BLANKS)
    while text.startswith(PREFIX):
        label, *rest = _BETWEEN_WORDS.split(text, maxsplit=1)
        names.append(label.removeprefix(PREFIX))
        text = rest[0] if rest else ""
    if PREFIX in text:
        words = _BETWEEN_WORDS.split(text)
        names += [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
        text = " ".join(word for word in words if not word.startswith(PREFIX))
    return text, names


def read_fasttext(path: Path, labels: LabelRows) -> TextColumn:
    r"""Read a file of fastText lines; blank lines are skipped and counted.

    Labels are names, also where they look like numbers.

    Raises
    ------
    DataFormatError
        If a label has no name, or a line is not UTF-8.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.fasttext import read_fasttext
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> labels = LabelRows("train.ft", notes=InputNotes("train.ft"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.ft")
    ...     _ = path.write_text("__label__bread how to knead\n\nthe tango\n")
    ...     texts = read_fasttext(path, labels)
    >>> list(texts), labels.finish()[0].toarray().tolist()
    (['how to knead', 'the tango'], [[1.0], [0.0]])
    """
    texts = TextColumnBuilder()
    for number, line in numbered_lines(path):
        text, names = parse_line(decode_line(line, path=path, number=number))
        if not text and not names:
            labels.notes.add("blank lines (skipped)", line=number)
            continue
        if "" in names:
            message = f"A label has no name. Write it directly behind {PREFIX}, without a blank."
            raise DataFormatError(message, path=path, line=number)
        labels.add_names(names, line=number)
        if not text:
            labels.notes.add("empty texts (kept)", line=number)
        texts.append(text)
    return texts.finish()


def write_fasttext(path: Path, dataset: Dataset) -> None:
    r"""Write a data set of texts as fastText lines.

    Raises
    ------
    DataFormatError
        If a text or a name cannot be carried: a name with a blank, a text with a line end, with
        blanks around it or with a word that begins like a label, a point with neither.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.fasttext import write_fasttext
    >>> dataset = Dataset.of(["how to knead"], [["bread", "baking"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_fasttext(pathlib.Path(folder, "train.ft"), dataset)
    ...     pathlib.Path(folder, "train.ft").read_text()
    '__label__bread __label__baking how to knead\n'
    """
    texts = texts_of(dataset, "fastText lines")
    space = dataset.label_space
    with replacing(path) as stream:
        for row, (text, ids) in enumerate(zip(texts, dataset.label_lists(), strict=True)):
            names = [space.name(label) for label in ids]
            line = " ".join([*(PREFIX + name for name in names), text])
            carried = parse_line(line) == (text, names) and not any(end in line for end in "\r\n")
            if (
                not carried
                or not line
                or not all(map(str.strip, names))
                or [space.id_of(name) for name in names] != ids
            ):
                message = (
                    f"Point {row} ({text[:40]!r}, labels {names[:5]}) cannot be written as a "
                    "fastText line: names must have no blanks and be unique, texts no line ends, "
                    "outer blanks or words like labels, and a line may not be empty. "
                    "Use JSON lines."
                )
                raise DataFormatError(message, path=path, line=row + 1)
            stream.write(f"{line}\n".encode())
