"""Which file formats there are, and how one is told from another."""

from __future__ import annotations

import re
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from longtail.data.columns import USUAL, check_columns
from longtail.data.delimited import read_delimited, read_texts, write_delimited
from longtail.data.fasttext import PREFIX, read_fasttext, write_fasttext
from longtail.data.files import STDIN, numbered_lines
from longtail.data.json_lines import read_json_lines, write_json_lines
from longtail.data.matrix_files import is_matrix_file
from longtail.data.parquet import is_parquet, read_parquet, read_parquet_texts, write_parquet
from longtail.data.repository import read_features, read_repository, write_repository
from longtail.data.svmlight import read_svmlight, write_svmlight
from longtail.errors import DataFormatError, InputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scipy.sparse import csr_array

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.input_notes import InputNotes
    from longtail.data.kept_columns import Kept
    from longtail.data.label_rows import LabelRows
    from longtail.data.text_column import TextColumn

__all__ = ["FORMATS", "FileFormat", "format_for_reading", "format_for_writing", "suffix_of"]


class FileFormat(NamedTuple):
    """How one format is read, written and recognised.

    A reader takes a file, plain or gzip (Parquet: a file or a folder), and what the labels of each
    point are added to. It returns the texts, or features of float32 (n_points, n_features), and
    raises DataFormatError, with the line, for what it cannot read. A writer takes the name of a
    file and a data set, and raises InputError for one of the other kind: of features where texts
    are written, or the reverse.

    Examples
    --------
    >>> from longtail.data.formats import FORMATS
    >>> table, sparse = FORMATS["csv"], FORMATS["svmlight"]
    >>> table.suffixes, table.holds_texts, sparse.holds_texts
    (('.csv',), True, False)
    >>> [bool(sparse.first_line.match(line)) for line in (b"3,7 0:0.5 4:1", b"text,labels")]
    [True, False]
    """

    read: Callable[[Path, LabelRows], TextColumn | csr_array]
    write: Callable[[Path, Dataset], None]
    suffixes: tuple[str, ...]
    first_line: re.Pattern[bytes]
    holds_texts: bool = True
    # Reads points that need no labels, and takes what is odd; None where `read` does that too.
    read_points: Callable[[Path, InputNotes], TextColumn | csr_array] | None = None
    # The same with names of a user's own, and what is kept; None where nothing has a name.
    with_columns: Callable[[Columns, Kept | None], FileFormat] | None = None


def _table(
    delimiter: str,
    suffix: str,
    first_line: re.Pattern[bytes],
    columns: Columns = USUAL,
    kept: Kept | None = None,
) -> FileFormat:
    """Return a format of rows and cells."""
    return FileFormat(
        partial(read_delimited, delimiter=delimiter, columns=columns),
        partial(write_delimited, delimiter=delimiter),
        (suffix,),
        first_line,
        read_points=partial(read_texts, delimiter=delimiter, columns=columns, kept=kept),
        with_columns=partial(_table, delimiter, suffix, first_line),
    )


def _json_lines(columns: Columns = USUAL, kept: Kept | None = None) -> FileFormat:
    """Return the format of an object a line."""
    del kept  # what is kept of lines is read line by line, see `JsonRows`
    return FileFormat(
        partial(read_json_lines, columns=columns),
        write_json_lines,
        (".jsonl", ".ndjson", ".json"),
        re.compile(rb"\s*\{"),
        with_columns=_json_lines,
    )


def _parquet(columns: Columns = USUAL, kept: Kept | None = None) -> FileFormat:
    """Return the format of typed columns, which is told by both ends of a file."""
    return FileFormat(
        partial(read_parquet, columns=columns),
        write_parquet,
        (".parquet",),
        re.compile(rb"PAR1\x15"),
        read_points=partial(read_parquet_texts, columns=columns, kept=kept),
        with_columns=_parquet,
    )


FORMATS: Mapping[str, FileFormat] = MappingProxyType(
    {
        "json-lines": _json_lines(),
        "fasttext": FileFormat(
            read_fasttext, write_fasttext, (".fasttext", ".ft"), re.compile(PREFIX.encode())
        ),
        "repository": FileFormat(
            read_repository,
            write_repository,
            (),
            re.compile(rb"\s*\d+\s+\d+\s+\d+\s*$"),
            holds_texts=False,
            read_points=read_features,
        ),
        "svmlight": FileFormat(
            read_svmlight,
            write_svmlight,
            (".svm", ".svmlight", ".libsvm"),
            re.compile(
                rb"#|(?:\d+(?:,\d+)*[ \t]+|[ \t]*)\d+:[^\s:]+(?:[ \t]+\d+:[^\s:]+)*[ \t]*(?:#|$)"
            ),
            holds_texts=False,
        ),
        "tsv": _table("\t", ".tsv", re.compile(rb".*\t")),
        "csv": _table(
            ",",
            ".csv",
            re.compile(rb'"?text"?[,;]"?labels?"?|"?labels?"?[,;]"?text"?', re.IGNORECASE),
        ),
        "parquet": _parquet(),
    }
)

_PAIR_HEADER = re.compile(rb"\s*\d+\s+\d+\s*$")
_NAME_IT = Remedy("format", f"Pass {{}}, one of {', '.join(FORMATS)}.")
_NAME_BOTH = Remedy("labels_path", "Pass the file of features, and the file of labels as {}.")


def format_for_reading(
    path: Path,
    name: str | None,
    *,
    columns: Columns = USUAL,
    kept: Kept | None = None,
    points_only: bool = False,
) -> tuple[FileFormat, tuple[Remedy, ...]]:
    """Return the format of a file and, where it was guessed, why: for the error if it fails.

    Parameters
    ----------
    path : Path
        The file. Its name is looked at first (less ``.gz``), then its first line; Parquet is told
        by the bytes at its ends, or as a folder with such files.
    name : str, optional
        A key of `FORMATS`; without it, the format is guessed.
    columns : Columns
        What the columns or keys are called.
    kept : Kept, optional
        What is carried to answers.
    points_only : bool
        Half a pair of sparse files will do.

    Returns
    -------
    file_format : FileFormat
        How to read it.
    guess : tuple of Remedy
        What was guessed and from what; none where `name` was given.

    Raises
    ------
    InputError
        If there is no format of this name, none of its columns has a name, or the file is a matrix
        (see `longtail.data.pairs`) or a folder without Parquet files.
    DataFormatError
        If the file is empty or looks like none of the formats.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.formats import format_for_reading
    >>> file_format, guess = format_for_reading(Path("train.csv.gz"), None)
    >>> file_format.suffixes, guess[0].named("format=")
    (('.csv',), "(Read as 'csv' because of the file's name; pass format= if it is another.)")
    """
    if path.is_dir() and not is_parquet(path):
        raise InputError(
            f"{path} is a folder without Parquet files. Name a file. (What Dataset.save wrote is "
            "read by Dataset.open.)"
        )
    if name is None and is_parquet(path):
        name = "parquet"
    if name is not None:
        return _with_columns(name, columns, kept), ()
    if is_matrix_file(path):
        raise InputError(f"{path} is a matrix of features, without labels.", _NAME_BOTH)
    by_suffix = _by_suffix(path)
    if by_suffix is not None:
        why = "because of the file's name"
        name = by_suffix
    else:
        why = "because of its first line"
        name = _by_first_line(path, points_only=points_only)
    guess = Remedy("format", f"(Read as {name!r} {why}; pass {{}} if it is another.)")
    return _with_columns(name, columns, kept), (guess,)


def format_for_writing(path: Path, name: str | None) -> FileFormat:
    """Return the format to write, from its name or else the file's.

    Raises
    ------
    InputError
        If there is no format of this name, or the file's name does not tell.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.formats import format_for_writing
    >>> format_for_writing(Path("train.jsonl.gz"), None).suffixes
    ('.jsonl', '.ndjson', '.json')
    >>> format_for_writing(Path("train.txt"), "tsv").suffixes
    ('.tsv',)
    """
    name = _by_suffix(path) if name is None else name
    if name is None:
        raise InputError(f"The name {path.name!r} does not show the format.", _NAME_IT)
    return _named(name)


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, less ``.gz``, in small letters.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.formats import suffix_of
    >>> suffix_of(Path("train.TSV.gz")), suffix_of(Path("train.tsv.old")), suffix_of(Path("train"))
    ('.tsv', '.old', '')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def _named(name: str) -> FileFormat:
    """Look a format up by the name that a user gave."""
    if name not in FORMATS:
        raise InputError(f"There is no format {name!r}. Pass one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def _with_columns(name: str, columns: Columns, kept: Kept | None) -> FileFormat:
    """Return a format that reads columns by a user's names, if there are any."""
    file_format = _named(name)
    if file_format.with_columns is None:
        check_columns(columns, f"The format {name!r}")
        if kept is not None:
            kept.refuse(f"The format {name!r}")
        return file_format
    return file_format.with_columns(columns, kept)


def _by_suffix(path: Path) -> str | None:
    """Guess from the file's name."""
    suffix = suffix_of(path)
    return next((name for name, known in FORMATS.items() if suffix in known.suffixes), None)


def _by_first_line(path: Path, *, points_only: bool) -> str:
    """Guess from the first line that is not blank."""
    if path.is_fifo() or str(path) == STDIN:
        what = "Standard input" if str(path) == STDIN else f"{path} is a pipe, which"
        raise InputError(
            f"{what} can be read only once, so its format cannot be guessed.", _NAME_IT
        )
    first = next((line for _, line in numbered_lines(path) if line.strip()), None)
    if first is None:
        raise DataFormatError("The file is empty. Pass a file with points in it.", path=path)
    for name, file_format in FORMATS.items():
        if file_format.first_line.match(first):
            return name
    if points_only and _PAIR_HEADER.match(first):
        return "repository"
    if _PAIR_HEADER.match(first):
        message = "This looks like one of a pair of sparse files (a header of two numbers)."
        raise DataFormatError(message, _NAME_BOTH, path=path, line=1)
    message = f"No format is known that begins with {first[:60].decode(errors='replace')!r}."
    raise DataFormatError(message, _NAME_IT, path=path, line=1)
