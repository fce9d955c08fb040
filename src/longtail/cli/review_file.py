"""Files of what a review has found: CSV or TSV for a spreadsheet, else JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from longtail.cli.answer_formats import delimiter_of, lines_of
from longtail.cli.files import write_text
from longtail.data.files import numbered_lines
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import object_in
from longtail.data.table_rows import TableRows
from longtail.errors import DataFormatError, InputError
from longtail.review import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.review import LabelReview

__all__ = ["Accepted", "as_rows", "read_review", "write_review"]

MISSING, DOUBTFUL = "missing", "doubtful"


class Accepted(NamedTuple):
    """What a person has left of a review."""

    missing: Findings
    doubtful: Findings


class _Row(msgspec.Struct):
    """What is read of a row; the rest is for people."""

    kind: Literal["missing", "doubtful"]
    point: int
    label: str
    label_id: int
    text: str | None = None


def as_rows(review: LabelReview, dataset: Dataset) -> list[dict[str, Any]]:
    """Return what was found, a dict each, the missing labels first.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Dataset
    >>> from longtail.cli.review_file import as_rows
    >>> from longtail.review import Findings, LabelReview
    >>> dataset = Dataset.of(["old car"], [["drink"]])
    >>> found = Findings(np.array([0]), np.array([0]), np.array([0.125]))
    >>> none = Findings(*(column[:0] for column in found))
    >>> as_rows(LabelReview(none, found, np.array([[0, -1, -1]])), dataset)[0]["label"]
    'drink'
    """
    name = dataset.label_space.name
    rows = []
    for kind, findings in ((MISSING, review.missing), (DOUBTFUL, review.doubtful)):
        columns = (findings.points, findings.labels, findings.probabilities)
        for point, label, probability in zip(*(c.tolist() for c in columns), strict=True):
            best = [name(answer) for answer in review.best[point].tolist() if answer >= 0]
            row: dict[str, Any] = {"kind": kind, "point": point}
            if dataset.texts is not None:
                row["text"] = dataset.texts[point]
            row |= {"label": name(label), "probability": round(probability, 4), "answers": best}
            rows.append(row | {"label_id": label})
    return rows


def write_review(path: Path, review: LabelReview, dataset: Dataset) -> None:
    """Write what was found; in CSV and TSV, answers are in one cell, parted by ``|``."""
    rows = as_rows(review, dataset)
    delimiter = delimiter_of(path)
    if delimiter:
        rows = [
            {key: v if isinstance(v, str | list) else str(v) for key, v in row.items()}
            for row in rows
        ]
    write_text(path, lines_of(rows, delimiter, with_header=True).decode().removesuffix("\n"))


def read_review(path: Path, dataset: Dataset) -> Accepted:
    r"""Read what is left of a review of these points.

    Raises
    ------
    DataFormatError
        If a row is not as `write_review` writes it, or is of other points or labels.
    InputError
        If nothing is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.cli.review_file import read_review
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "review.csv")
    ...     _ = path.write_text("kind,point,text,label,label_id\ndoubtful,0,old car,drink,0\n")
    ...     read_review(path, Dataset.of(["old car"], [["drink"]])).doubtful.points
    array([0])
    """
    pairs: dict[str, list[tuple[int, int]]] = {MISSING: [], DOUBTFUL: []}
    for number, cells in _rows(path):
        try:
            row = msgspec.convert(cells, _Row, strict=False)
        except msgspec.ValidationError as error:
            message = (
                f"The row is not one of a review ({error}). Delete whole rows of what `longtail "
                "review` has written, and leave the others as they are."
            )
            raise DataFormatError(message, path=path, line=number) from error
        _check(row, dataset, path, number)
        pairs[row.kind].append((row.point, row.label_id))
    if not any(pairs.values()):
        raise InputError(f"{path} has no rows, so there is nothing to put right.")
    return Accepted(*(_findings(pairs[kind]) for kind in (MISSING, DOUBTFUL)))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows as dicts, each with the line that it ends on."""
    delimiter = delimiter_of(path)
    if not delimiter:
        for number, line in numbered_lines(path):
            if line.strip():
                cells = {key: msgspec.json.decode(v) for key, v in object_in(line).items()}
                yield number, cells
        return
    notes, header = InputNotes(path), list[str]()
    for number, row in TableRows(path, delimiter, notes, set(_Row.__struct_fields__)):
        if header and any(row):
            yield number, dict(zip(header, row, strict=False))
        header = header or row
    notes.warn()


def _check(row: _Row, dataset: Dataset, path: Path, number: int) -> None:
    """Refuse rows of another data set: they would put labels where they do not belong."""
    space = dataset.label_space
    is_there = 0 <= row.point < dataset.n_points and 0 <= row.label_id < dataset.n_labels
    is_same = is_there and space.name(row.label_id) == row.label
    if is_same and dataset.texts is not None and row.text is not None:
        is_same = dataset.texts[row.point].split() == row.text.split()
    if not is_same:
        message = (
            f"Point {row.point} and the label {row.label!r}, {row.label_id}, are not those of the "
            "training set. Name the file that was reviewed, and read it as it was: with the same "
            "labels file and columns."
        )
        raise DataFormatError(message, path=path, line=number)


def _findings(pairs: list[tuple[int, int]]) -> Findings:
    """Return pairs as arrays; how probable they are is a person's matter by now."""
    points, labels = np.array(pairs, np.int64).reshape(-1, 2).T
    return Findings(points, labels.astype(np.int32), np.zeros(len(points), np.float32))
