"""svmlight with several labels: ``l1,l2 f:v f:v  # remark``, without a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.data.blocks import features_of
from longtail.data.files import numbered_lines, replacing
from longtail.data.repository import split_label_part
from longtail.data.sparse_lines import SparseRowBuilder, format_entries, parse_ids
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows

__all__ = ["read_svmlight", "write_svmlight"]


def read_svmlight(path: Path, labels: LabelRows) -> csr_array:
    r"""Read a multi-label svmlight file.

    Feature ids are taken as they are: where they run from 1, column 0 stays empty, which costs
    nothing, and training and test files agree without a guess. Blank lines are skipped and
    counted, lines with only a remark skipped.

    There are as many features as the largest id says. Labels are ids from 0, separated by commas.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> from longtail.data.svmlight import read_svmlight
    >>> labels = LabelRows("train.svm", notes=InputNotes("train.svm"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.svm")
    ...     _ = path.write_text("0,2 1:0.5 # the first point\n 2:1\n")  # the second has no labels
    ...     features = read_svmlight(path, labels)
    >>> features.toarray().tolist(), labels.finish()[0].toarray().tolist()
    ([[0.0, 0.5, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    """
    features = SparseRowBuilder(path, notes=labels.notes)
    for number, line in numbered_lines(path):
        content, remark, _ = line.partition(b"#")
        if not content.strip():
            if not remark:
                labels.notes.add("blank lines (skipped)", line=number)
            continue
        label_part, entries = split_label_part(content)
        labels.add_ids(parse_ids(label_part, path=path, line=number), line=number)
        features.add(entries, line=number)
    return features.finish()


def write_svmlight(path: Path, dataset: Dataset) -> None:
    r"""Write a data set of features as multi-label svmlight, feature ids from 0.

    Raises
    ------
    DataFormatError
        If a point has neither labels nor features: its line would be blank.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.svmlight import write_svmlight
    >>> dataset = Dataset.of([[0, 0.5, 2], [1, 0, 0]], [[0, 2], []])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_svmlight(pathlib.Path(folder, "train.svm"), dataset)
    ...     pathlib.Path(folder, "train.svm").read_text()
    '0,2 1:0.5 2:2.0\n 0:1.0\n'
    """
    matrix = features_of(dataset, "svmlight files")
    with replacing(path) as stream:
        for row, ids in enumerate(dataset.label_lists()):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            if not ids and part.start == part.stop:
                message = (
                    f"Point {row} has neither labels nor features, and svmlight skips blank lines. "
                    "Use the format 'repository'."
                )
                raise DataFormatError(message, path=path, line=row + 1)
            entries = format_entries(matrix.indices[part], matrix.data[part])
            stream.write(f"{','.join(map(str, ids))} {entries}\n".encode())
