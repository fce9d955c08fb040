"""What answers are written as: JSON lines, a TSV or CSV with all labels in a cell, or a matrix.

Parquet is made of JSON lines: see `longtail.cli.answer_parquet`.

A matrix is one of probabilities, points by labels, to fuse with those of other systems.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from scipy.sparse import csr_array, save_npz, vstack

from longtail.cli.files import is_stdout
from longtail.data.columns import USUAL
from longtail.data.delimited import csv_lines
from longtail.data.files import is_device, replacing
from longtail.data.input_notes import warn
from longtail.data.parquet import arrow
from longtail.errors import InputError
from longtail.metrics import score_matrix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longtail.cli.points import AnsweredBlock
    from longtail.data.label_space import LabelSpace

__all__ = [
    "as_parquet",
    "check_kind_of",
    "check_names",
    "delimiter_of",
    "is_matrix",
    "lines_of",
    "write_scores",
]

DELIMITERS = {".tsv": "\t", ".csv": ","}
# Names of other kinds of files: programs that open these could not read what we write.
_OTHERS = {".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow", ".avro", ".orc", ".xml"}
_OTHERS |= {".html", ".pdf", ".db", ".sqlite", ".pickle", ".pkl", ".npy", ".npz", ".h5"}
_OTHERS |= {".bz2", ".xz", ".zst", ".lz4", ".zip", ".7z", ".tar", ".tgz"}


def check_kind_of(path: Path) -> None:
    """Raise InputError if the name of an output says that it is what answers are not written as.

    Where it is Parquet, and pyarrow is not installed, a MissingExtraError says so before the work.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.answer_formats import check_kind_of
    >>> check_kind_of(Path("answers.jsonl.gz"))
    >>> check_kind_of(Path("answers.xlsx"))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: answers.xlsx: answers are not written as '.xlsx', but as CSV, ...
    """
    if is_stdout(path) or is_device(path) or is_matrix(path):
        return
    if as_parquet(path):
        arrow()
        return
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix.lower() in _OTHERS:
        raise InputError(
            f"{path}: answers are not written as {suffix!r}, but as CSV, TSV or Parquet where the "
            "name ends in .csv, .tsv or .parquet, as a matrix of scipy in .npz, as JSON lines "
            "else, and compressed where .gz stands behind .csv, .tsv or JSON lines. Name it .csv, "
            ".tsv, .parquet, .npz or .jsonl."
        )


def delimiter_of(path: Path | None) -> str:
    r"""Return what the name of an output says is between cells; nothing for JSON lines.

    Examples
    --------
    >>> delimiter_of(Path("a.tsv.gz")), delimiter_of(Path("a.jsonl")), delimiter_of(None)
    ('\t', '', '')
    """
    if is_stdout(path) or path is None:
        return ""
    return DELIMITERS.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "")


def as_parquet(path: Path | None) -> bool:
    """Tell by an output's name whether it is to be Parquet.

    Examples
    --------
    >>> as_parquet(Path("answers.parquet")), as_parquet(Path("answers.csv")), as_parquet(None)
    (True, False, False)
    """
    return path is not None and path.suffix.lower() == ".parquet" and not is_device(path)


def is_matrix(path: Path | None) -> bool:
    """Tell by an output's name whether it is to be a matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.answer_formats import is_matrix
    >>> is_matrix(Path("scores.npz")), is_matrix(Path("answers.csv")), is_matrix(None)
    (True, False, False)
    """
    return path is not None and path.suffix.lower() == ".npz"


def check_names(space: LabelSpace, path: Path) -> None:
    """Raise InputError if a label's name would be another one once a table is read again.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.answer_formats import check_names
    >>> from longtail.data.label_space import LabelSpace
    >>> check_names(LabelSpace.from_names(["R&B|soul"]), Path("answers.tsv"))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: The label 'R&B|soul' holds '|', which separates labels in TSV ...
    """
    name = next((name for name in space.names or () if USUAL.split(name) != [name]), None)
    if name is None:
        return
    what = (
        f"holds '{USUAL.separator}', which separates labels in TSV and CSV"
        if USUAL.separator in name
        else "begins or ends with a blank, which does not count in TSV and CSV"
    )
    raise InputError(
        f"The label {name!r} {what}. Call {path} something else, such as "
        f"{path.with_suffix('.jsonl').name}, for JSON lines."
    )


def lines_of(
    points: Sequence[Mapping[str, Any]], delimiter: str = "", *, with_header: bool = False
) -> bytes:
    r"""Return the lines of some points.

    Parameters
    ----------
    points : sequence of dict
        Each with ``labels``, ``scores`` and, of texts, ``text``, and what is kept of it.
    delimiter : str
        Between cells; nothing for JSON lines.
    with_header : bool
        Begin with a row of the cells' names, which JSON lines have in each.

    Warns
    -----
    InputWarning
        If a cell is longer than is read from a table again.

    Examples
    --------
    >>> points = [{"text": "how to knead", "labels": ["bread", "yeast"], "scores": [0.5, 0.25]}]
    >>> lines_of(points)
    b'{"text":"how to knead","labels":["bread","yeast"],"scores":[0.5,0.25]}\n'
    >>> lines_of(points, ",", with_header=True)
    b'text,labels,scores\nhow to knead,bread|yeast,0.5|0.25\n'
    """
    if not delimiter:
        return b"".join(msgspec.json.encode(point) + b"\n" for point in points)
    rows = [[_cell(value) for value in point.values()] for point in points]
    limit = csv.field_size_limit()
    if any(len(cell) > limit for row in rows for cell in row):
        warn(
            f"Among the answers are cells of more than {limit:,} characters, which neither "
            "longtail nor Python's csv module reads from a table. For those, name the output "
            ".jsonl.",
        )
    return csv_lines([[*points[0]], *rows] if with_header and points else rows, delimiter)


def _cell(value: str | msgspec.Raw | Sequence[str | float] | None) -> str:
    """Return a text as it is, a list as one cell, and other values as JSON has them."""
    if isinstance(value, msgspec.Raw):
        written = bytes(value)  # kept as written: Python cannot read every number
        is_text_or_none = written.startswith(b'"') or written == b"null"
        value = msgspec.json.decode(value) if is_text_or_none else written.decode()
    if value is None:
        return ""
    return value if isinstance(value, str) else USUAL.separator.join(map(str, value))


def write_scores(
    blocks: Iterable[AnsweredBlock], path: Path, *, n_labels: int, threshold: float
) -> tuple[int, int]:
    """Write what `scipy.sparse.load_npz` reads, once all of it is answered.

    Parameters
    ----------
    blocks : iterable of AnsweredBlock
    path : Path
    n_labels : int
        The model's: columns are its label ids.
    threshold : float
        Least probability.

    Returns
    -------
    n_points, n_without : int
        Points, and how many of them have no answer. Nothing is written where there are none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.cli.points import AnsweredBlock
    >>> from longtail.cli.answer_formats import write_scores
    >>> from longtail.metrics import read_scores
    >>> block = AnsweredBlock(["a", "b"], np.array([[1], [2]]), np.array([[0.5], [0.125]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scores.npz")
    ...     write_scores([block], path, n_labels=3, threshold=0.25)
    ...     read_scores(path).toarray().tolist()
    (2, 1)
    [[0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = [
        score_matrix(np.where(block.scores >= threshold, block.ids, -1), block.scores, n_labels)
        for block in blocks
    ]
    if not rows:
        return 0, 0
    scores = csr_array(vstack(rows, format="csr"))
    with replacing(path) as stream:
        save_npz(stream, scores, compressed=False)
    return scores.shape[0], int(np.count_nonzero(np.diff(scores.indptr) == 0))
