"""Parquet files, and folders of them: a table whose header and types are known before its rows.

Columns are found as in a table with a header; an empty cell is a null. Rows are counted from 0, as
pandas and polars do. pyarrow, an extra, is imported where a file is read or written.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from itertools import count, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from longtail.data.blocks import POINTS_AT_ONCE, texts_of
from longtail.data.columns import USUAL
from longtail.data.delimited import add_cell
from longtail.data.files import STDIN, opened_raw, replacing
from longtail.data.json_lines import label_writer
from longtail.data.named_classes import names_of_classes, with_names
from longtail.data.table_header import FirstRow
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError, Remedy, needs_extra, source_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.input_notes import InputNotes
    from longtail.data.kept_columns import Kept, Value
    from longtail.data.label_rows import LabelRows
    from longtail.data.table_header import Layout

__all__ = [
    "arrow",
    "is_parquet",
    "names_of_columns",
    "read_parquet",
    "read_parquet_texts",
    "write_parquet",
    "write_rows",
]

_SUFFIX = ".parquet"
_MAGIC = (b"PAR1", b"PARE")  # at both ends of a file; the latter of one that is encrypted
_FIRST_PAGE = b"\x15"  # behind it where nothing is encrypted: some texts begin with "PAR1", too
_DELTA_LOG = "_delta_log"
_SPLITS = {"train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval"}
_ROWS_AT_ONCE = 65_536  # in a group of rows of a file that is written
_SHOWN = 80  # letters of a type
_IS_LIST = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
_OTHER_TEXT = Remedy("text_column", "Or pass another column as {}.")
_OTHER_LABELS = Remedy("labels_column", "Or pass another column as {}.")


class _Wanted(NamedTuple):
    """Names of the columns that are read."""

    text: tuple[str, ...]
    labels: str | None
    kept: tuple[str, ...]


def is_parquet(path: Path) -> bool:
    """Tell a file by its first and last bytes, whatever its name, and a folder by names in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.parquet import is_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "genes.txt")
    ...     _ = path.write_text("PAR1 is a receptor")
    ...     is_parquet(path)
    False
    """
    if path.is_dir():
        return bool(_parts_of(path))
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as stream:
        magic, behind = stream.read(4), stream.read(1)
        if magic not in _MAGIC:
            return False
        stream.seek(-4, os.SEEK_END)
        return behind == _FIRST_PAGE or stream.read() == magic


def names_of_columns(path: Path) -> list[str]:
    """Return the columns of a file, or of the first one in a folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.parquet import names_of_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.parquet")
    ...     Dataset.of(["how to knead"], [["bread"]]).write(path)
    ...     names_of_columns(path)
    ['text', 'labels']
    """
    with _opened(_parts_of(path)[0]) as file:
        return list(file.schema_arrow.names)


def read_parquet(path: Path, labels: LabelRows, *, columns: Columns = USUAL) -> TextColumn:
    r"""Read a file, or the files in a folder in the order of their names.

    Parameters
    ----------
    path, labels
        See `FileFormat`.
    columns : Columns
        What the columns are called, and what is between labels where they are in one string.

    Raises
    ------
    DataFormatError
        If a file is broken or encrypted, a column is not there or of another type; see also
        `LabelRows`.
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.parquet")
    ...     Dataset.of(["how to knead"], [["bread"]]).write(path)
    ...     Dataset.read(path).texts
    TextColumn(['how to knead'])
    """
    labels.notes.unit = "row"

    def layout_of(names: Sequence[str]) -> Layout:
        return FirstRow(names, columns, labels.notes, path, None).layout_of_header()

    texts = TextColumnBuilder()
    for row, parts, given, _ in _rows(path, layout_of, labels.takes_names):
        _add_labels(labels, given, columns, row)
        texts.append(_text_of(parts, columns, labels.notes, row))
    return texts.finish()


def read_parquet_texts(
    path: Path, notes: InputNotes, *, columns: Columns = USUAL, kept: Kept | None = None
) -> TextColumn:
    """Read the texts alone, and what is kept of each row; labels are not looked at.

    Parameters
    ----------
    path, columns
        As of `read_parquet`.
    notes : InputNotes
        Takes what is odd.
    kept : Kept, optional
        Takes further cells of each row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.parquet import read_parquet_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "texts.parquet")
    ...     Dataset.of(["how to knead"], [["bread"]]).write(path)
    ...     read_parquet_texts(path, InputNotes(path))
    TextColumn(['how to knead'])
    """
    notes.unit = "row"

    def layout_of(names: Sequence[str]) -> Layout:
        return FirstRow(names, columns, notes, path, None).layout_of_text_header(kept)

    texts = TextColumnBuilder()
    for row, parts, _, carried in _rows(path, layout_of):
        if kept is not None and carried:
            kept.add(carried)
        texts.append(_text_of(parts, columns, notes, row))
    return texts.finish()


def write_parquet(path: Path, dataset: Dataset) -> None:
    """Write a data set of texts, labels as `write_json_lines` does.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.parquet import names_of_columns, write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.parquet")
    ...     write_parquet(path, Dataset.of(["how to knead"], [["bread", "baking"]]))
    ...     names_of_columns(path)
    ['text', 'labels']
    """
    texts = texts_of(dataset, "Parquet files")
    to_label = label_writer(dataset.label_space)
    pa = arrow()
    label_type = pa.int64() if to_label is int else pa.string()
    rows = (
        {"text": text, "labels": [to_label(label) for label in ids]}
        for text, ids in zip(texts, dataset.label_lists(), strict=True)
    )
    with replacing(path) as stream:
        write_rows(stream, {"text": pa.string(), "labels": pa.list_(label_type)}, rows)


def write_rows(
    stream: IO[bytes], types: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows, with a type of pyarrow for each column.

    Examples
    --------
    >>> from io import BytesIO
    >>> from longtail.data.parquet import arrow, write_rows
    >>> stream = BytesIO()
    >>> write_rows(stream, {"id": arrow().int64()}, [{"id": 17}])
    >>> stream.getvalue()[:4]
    b'PAR1'
    """
    pa = arrow()
    schema = pa.schema(list(types.items()))
    with pa.parquet.ParquetWriter(stream, schema) as writer:
        left = iter(rows)
        while some := list(islice(left, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, schema=schema))


def arrow() -> Any:
    """Return pyarrow with its reader of Parquet, or raise MissingExtraError.

    Examples
    --------
    >>> from longtail.data.parquet import arrow
    >>> arrow().__name__
    'pyarrow'
    """
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise needs_extra("Parquet", error, "parquet") from error
    return pyarrow


def _rows(
    path: Path,
    layout_of: Callable[[Sequence[str]], Layout],
    takes_names: Callable[[Sequence[str]], bool] = lambda _: False,
) -> Iterator[tuple[int, tuple[str | None, ...], Any, tuple[Value, ...]]]:
    """Yield the number of a row, the parts of its text, its labels, and what is kept of it.

    Where `takes_names` of the names that a file has for ids of labels, these are the labels.
    """
    n_before, wanted = 0, None
    for part in _parts_of(path):
        with _opened(part) as file:
            if wanted is None:
                wanted = _wanted(file.schema_arrow.names, layout_of)
            _check_types(file.schema_arrow, wanted, part)
            names = [name for name in {*wanted.text, wanted.labels, *wanted.kept} if name]
            classes = names_of_classes(file.schema_arrow.metadata, wanted.labels)
            has_names = bool(classes) and takes_names(classes)
            for batch in _batches(file, names):
                texts, labels, kept = _values(batch, wanted, path, n_before)
                if has_names:
                    labels = (with_names(given, classes) for given in labels)
                yield from zip(count(n_before), texts, labels, kept)
                n_before += batch.num_rows


def _batches(file: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield some rows at a time, of one group: pyarrow joins no lists of categories of two."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(POINTS_AT_ONCE, row_groups=[group], columns=names)


def _wanted(names: Sequence[str], layout_of: Callable[[Sequence[str]], Layout]) -> _Wanted:
    """Return which columns are read of those that there are."""
    layout = layout_of(names)
    text, kept = (tuple(names[i] for i in places) for places in (layout.text, layout.kept))
    return _Wanted(text, names[layout.labels] if layout.labels >= 0 else None, kept)


def _values(
    batch: Any, wanted: _Wanted, path: Path, n_before: int
) -> tuple[Iterable[tuple[str | None, ...]], Iterable[Any], Iterable[tuple[Value, ...]]]:
    """Return what is wanted of some rows as objects of Python."""
    try:
        texts = zip(*(batch.column(name).to_pylist() for name in wanted.text), strict=True)
        labels = batch.column(wanted.labels).to_pylist() if wanted.labels else repeat(None)
        kept = zip(*(_kept(batch.column(name)) for name in wanted.kept), strict=True)
    except UnicodeDecodeError as error:
        message = (
            f"Among the {batch.num_rows:,} rows from this one on is a string that is not UTF-8. "
            "Write the file from strings, not from bytes."
        )
        raise DataFormatError(message, path=path, line=n_before, unit="row") from error
    return texts, labels, kept if wanted.kept else repeat(())


def _kept(column: Any) -> list[Value]:
    """Return the values of a column that is carried to answers: strings, or values of JSON."""
    types = arrow().types
    if types.is_temporal(column.type) or types.is_decimal(column.type):
        column = column.cast("string")  # Python has no nanoseconds
    return [
        value
        if value is None or isinstance(value, str)
        else msgspec.Raw(msgspec.json.encode(value, enc_hook=str))
        for value in column.to_pylist()
    ]


def _text_of(parts: Sequence[str | None], columns: Columns, notes: InputNotes, row: int) -> str:
    """Return the text of a row; an empty one is noted."""
    text = columns.joined([part or "" for part in parts])
    if not text:
        notes.add("empty texts (kept)", line=row)
    return text


def _add_labels(labels: LabelRows, given: Any, columns: Columns, row: int) -> None:
    """Add the labels of a row: a list, a string as a cell of a table, an id, or none."""
    if isinstance(given, str):
        add_cell(labels, given, columns, row)
        return
    found = given if isinstance(given, list) else [] if given is None else [given]
    if None in found:
        message = "A label is null. Leave it out of the list, which may be empty."
        raise DataFormatError(message, path=labels.path, line=row, unit="row")
    add = labels.add_names if found and isinstance(found[0], str) else labels.add_ids
    add(found, line=row)


def _check_types(schema: Any, wanted: _Wanted, part: Path) -> None:
    """Raise DataFormatError unless the columns are there and hold what they should."""
    for name in (*wanted.text, *wanted.kept, *filter(None, [wanted.labels])):
        if (n_columns := schema.names.count(name)) != 1:
            message = (
                f"There are {n_columns or 'no'} columns {name!r}, of which one is read. Rename "
                "those that are not meant, and give each file the same columns."
            )
            raise DataFormatError(message, path=part)
    for name in wanted.text:
        if not _is_words(kind := schema.field(name).type):
            message = f"{_said(name, kind)}, and texts are strings. Cast it to strings."
            raise DataFormatError(message, _OTHER_TEXT, path=part)
    if wanted.labels and not _is_labels(kind := schema.field(wanted.labels).type):
        message = (
            f"{_said(wanted.labels, kind)}. Labels are lists of strings (names) or of whole "
            "numbers (ids), or one of these a row; a string may hold several. Cast it to such."
        )
        raise DataFormatError(message, _OTHER_LABELS, path=part)


def _said(name: str, kind: Any) -> str:
    """Say of which type a column is."""
    shown = str(kind)
    return f"The column {name!r} is of type {shown[:_SHOWN]}{'...' * (len(shown) > _SHOWN)}"


def _is_words(kind: Any) -> bool:
    """Tell a type of strings, dictionaries of them included, or of nulls alone."""
    types = arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(test(kind) for test in tests)


def _is_labels(kind: Any) -> bool:
    """Tell a type of names or ids, or of lists of them."""
    types = arrow().types
    if any(getattr(types, f"is_{name}")(kind) for name in _IS_LIST):
        kind = kind.value_type
    is_dictionary = types.is_dictionary(kind)
    return _is_words(kind) or types.is_integer(kind.value_type if is_dictionary else kind)


def _parts_of(path: Path) -> list[Path]:
    """Return the files of a folder in the order of the numbers in their names; a file itself.

    As Spark does, folders such as ``year=2026`` are gone into, and names with ``_`` or ``.`` in
    front are passed over.
    """
    if not path.is_dir():
        return [path]
    if (path / _DELTA_LOG).is_dir():
        raise InputError(
            f"{path} is a Delta table, whose log says which of its files still count. Write what "
            "it holds now as Parquet files into another folder, and name that."
        )
    files = [file for file in path.rglob(f"*{_SUFFIX}") if _is_part(file.relative_to(path))]
    words = _SPLITS.intersection(re.split("[^a-z]", file.name.lower())[0] for file in files)
    if len(words) > 1:
        raise InputError(
            f"{path} has files of several splits, {' and '.join(sorted(words))}. Name one of the "
            "files, or move each split to a folder of its own."
        )
    return sorted(files, key=_in_order)


def _is_part(place: Path) -> bool:
    """Tell a file of rows from hidden ones, and from those in folders with other contents."""
    is_hidden = any(name.startswith(("_", ".")) for name in place.parts)
    return not is_hidden and all("=" in name for name in place.parts[:-1])


def _in_order(path: Path) -> list[tuple[int, str]]:
    """Return what sorts part.10 behind part.2."""
    words = re.findall(r"\d+|\D+", str(path))
    return [(int(word), word) if word.isdecimal() else (-1, word) for word in words]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file by pyarrow, whose errors come out as ours."""
    pa = arrow()
    if str(path) == STDIN or path.is_fifo():
        raise InputError(
            f"Parquet is read from its end, and {source_name(path)} can be read only once, from "
            "its beginning. Name a file."
        )
    with opened_raw(path) as stream:
        start = stream.read(4)
        if not start:
            raise DataFormatError("The file is empty. Pass a file with points in it.", path=path)
        if not is_parquet(path):
            message = "The file does not begin and end as Parquet does. Unpack it if it is packed."
            raise DataFormatError(message, path=path)
        try:
            with pa.parquet.ParquetFile(stream) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(error, path, is_encrypted=start == _MAGIC[1]) from error


def _unreadable(error: Exception, path: Path, *, is_encrypted: bool) -> DataFormatError:
    """Return what is said of a file that pyarrow cannot read."""
    words = " ".join(str(error).split()).rstrip(".")
    if is_encrypted or "crypt" in words:
        message = "The file is encrypted. Write it without encryption."
    else:
        message = (
            f"pyarrow cannot read this Parquet file: {words}. If it was cut off or damaged, copy "
            "or write it again."
        )
    return DataFormatError(message, path=path)
