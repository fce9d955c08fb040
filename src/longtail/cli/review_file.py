"""Files of what a review has found: CSV or TSV for a spreadsheet, else JSON lines."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from longtail.amounts import counted
from longtail.cli.answer_formats import DELIMITERS, delimiter_of, lines_of
from longtail.cli.files import is_stdout
from longtail.cli.output import result, short
from longtail.cli.review_page import is_page
from longtail.data.delimited import csv_lines
from longtail.data.files import decode_line, is_device, numbered_lines, replacing
from longtail.data.formats import FORMATS
from longtail.data.input_notes import InputNotes
from longtail.data.table_rows import TableRows
from longtail.errors import DataFormatError, InputError
from longtail.review import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.review import LabelReview

__all__ = ["Accepted", "as_rows", "check_suffix", "read_review", "write_review"]

MISSING, DOUBTFUL = "missing", "doubtful"
COLUMNS = ("kind", "point", "text", "label", "probability", "given", "answers", "label_id")
_ADVICE = (
    "Delete whole rows of what `longtail review` has written, and leave the others as they are."
)


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
    rows = []
    for kind, findings in ((MISSING, review.missing), (DOUBTFUL, review.doubtful)):
        columns = (findings.points, findings.labels, findings.probabilities)
        for point, label, probability in zip(*(c.tolist() for c in columns), strict=True):
            row: dict[str, Any] = {"kind": kind, "point": point}
            if dataset.texts is not None:
                row["text"] = dataset.texts[point]
            row |= {
                "label": dataset.label_space.name(label),
                "probability": round(probability, 4),
                "given": _names(dataset.labels[[point]].indices, dataset),
                "answers": _names(review.best[point], dataset),
                "label_id": label,
            }
            rows.append(row)
    return rows


def _names(labels: NDArray[np.integer], dataset: Dataset) -> list[str]:
    """Return the names of label ids, less those that are padding."""
    return [dataset.label_space.name(label) for label in labels.tolist() if label >= 0]


def check_suffix(path: Path) -> None:
    """Raise InputError if the name of a file tells of nothing that a review is written as.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.review_file import check_suffix
    >>> check_suffix(Path("review.csv.gz"))
    >>> check_suffix(Path("review.xlsx"))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: review.xlsx: what a review finds is written as a page, as CSV, ...
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if is_stdout(path) or is_device(path):
        return
    if not is_page(path) and suffix not in {*DELIMITERS, *FORMATS["json-lines"].suffixes}:
        raise InputError(
            f"{path}: what a review finds is written as a page, as CSV, TSV or JSON lines, the "
            "latter packed where .gz stands behind. Name it .html, .csv, .tsv or .jsonl."
        )


def write_review(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    r"""Write what was found, as `as_rows` has it; in CSV and TSV, ``|`` is between answers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.review_file import write_review
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "review.tsv")
    ...     write_review(path, [{"kind": "missing", "point": 3, "answers": ["bread", "yeast"]}])
    ...     path.read_text()
    'kind\tpoint\tanswers\nmissing\t3\tbread|yeast\n'
    """
    delimiter = delimiter_of(path)
    if not delimiter:
        lines = lines_of(rows)
    elif rows:
        lines = lines_of([_as_cells(row) for row in rows], delimiter, with_header=True)
    else:
        lines = csv_lines([COLUMNS], delimiter)
    if not is_stdout(path):
        with replacing(path) as stream:
            stream.write(lines)
    elif rows:
        result(lines.decode().removesuffix("\n"))


def _as_cells(row: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return a row with numbers written out."""
    return {key: v if isinstance(v, str | list) else str(v) for key, v in row.items()}


def read_review(path: Path, dataset: Dataset) -> Accepted:
    r"""Read what is left of a review of these points.

    Raises
    ------
    DataFormatError
        If a row is not as `write_review` writes it, or is of other points or labels, or two rows
        contradict each other.
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
    kinds: dict[tuple[int, int], str] = {}
    for number, row in _table(path) if delimiter_of(path) else _json_lines(path):
        _check(row, dataset, path, number)
        pair = row.point, row.label_id
        if kinds.setdefault(pair, row.kind) != row.kind:
            message = (
                f"Point {row.point} has one row that puts the label {short(row.label)!r} in, and "
                "one that takes it out. Delete one of them."
            )
            raise DataFormatError(message, path=path, line=number)
    if not kinds:
        raise InputError(f"{path} has no rows, so there is nothing to put right.")
    by_kind = ([pair for pair in kinds if kinds[pair] == kind] for kind in (MISSING, DOUBTFUL))
    return Accepted(*map(_findings, by_kind))


def _json_lines(path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield the rows of JSON lines, each with its line."""
    for number, line in numbered_lines(path):
        if line.strip():
            decode_line(line, path=path, number=number)  # which says it where it is not UTF-8
            with _explained(path, number):
                row = msgspec.json.decode(line, type=_Row, strict=False)
            yield number, row


def _table(path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield the rows of CSV or TSV, each with the line that it ends on."""
    notes, header = InputNotes(path), list[str]()
    for number, cells in TableRows(path, delimiter_of(path), notes, set(_Row.__struct_fields__)):
        heading = [cell.strip().lower() for cell in cells]
        if not header and any(heading):
            header = heading
            _check_header(header, path, number)
        elif any(heading) and heading != header:  # which is there once more where files were joined
            with _explained(path, number):
                row = msgspec.convert(dict(zip(header, cells, strict=False)), _Row, strict=False)
            yield number, row
    notes.warn()


@contextmanager
def _explained(path: Path, number: int) -> Iterator[None]:
    """Say of a row that cannot be read where it is, and what to do."""
    try:
        yield
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"The row is not one of a review ({error}). {_ADVICE}"
        raise DataFormatError(message, path=path, line=number) from error


def _check_header(header: list[str], path: Path, number: int) -> None:
    """Refuse a table whose first row does not name the columns: it would be lost."""
    wanted = ("kind", "point", "label", "label_id")
    if not {*wanted} <= {*header}:
        message = (
            f"The first row must name the columns, {', '.join(wanted)} among them, as `longtail "
            f"review` writes it, and not be {short(', '.join(header))!r}."
        )
        raise DataFormatError(message, path=path, line=number)


def _check(row: _Row, dataset: Dataset, path: Path, number: int) -> None:
    """Refuse rows of another data set: they would put labels where they do not belong."""
    if other := _difference(row, dataset):
        message = (
            f"The row is not of this training set, {other}. Name the file that was reviewed, and "
            "read it as it was: with the same labels file and columns. If a spreadsheet has "
            "changed the cell, use JSON lines."
        )
        raise DataFormatError(message, path=path, line=number)


def _difference(row: _Row, dataset: Dataset) -> str:
    """Return what a row says otherwise than the data set; nothing where they agree."""
    if not 0 <= row.point < dataset.n_points:
        return f"which has {counted(dataset.n_points, 'point')}, and none is number {row.point}"
    if not 0 <= row.label_id < dataset.n_labels:
        return f"which has {counted(dataset.n_labels, 'label')}, and none is number {row.label_id}"
    name = dataset.label_space.name(row.label_id)
    if not _are_alike(name, row.label):
        return f"whose label {row.label_id} is {short(name)!r} and not {short(row.label)!r}"
    text = row.text if dataset.texts is None else dataset.texts[row.point]
    if text is None or row.text is None or _are_alike(text, row.text):
        return ""
    return f"whose point {row.point} is {short(text)!r} and not {short(row.text)!r}"


def _are_alike(one: str, other: str) -> bool:
    """Tell whether strings are the same, but for blanks and line ends, which programs change."""
    return one.split() == other.split()


def _findings(pairs: list[tuple[int, int]]) -> Findings:
    """Return pairs as arrays; how probable they are is a person's matter by now."""
    points, labels = np.array(pairs, np.int64).reshape(-1, 2).T
    return Findings(points, labels.astype(np.int32), np.zeros(len(points), np.float32))
