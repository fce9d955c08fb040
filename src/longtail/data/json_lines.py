"""JSON lines: one ``{"text": ..., "labels": [...]}`` a line; labels are names or ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from longtail.data.blocks import texts_of
from longtail.data.columns import USUAL
from longtail.data.files import decode_line, numbered_lines, replacing
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows
    from longtail.data.label_space import LabelSpace

__all__ = [
    "JsonRows",
    "keys_of",
    "label_writer",
    "object_in",
    "read_json_lines",
    "write_json_lines",
]

_Labels: TypeAlias = list[int | str]
_SHAPE = 'Write one object a line: {"text": "some words", "labels": ["a name", "another"]}.'
_TEXT_SHAPE = 'Write one object a line: {"text": "some words"}.'
_OWN_SHAPE = "Texts are strings, and labels a list of names or of ids, or one string."
_MISSING = "Object missing required field"
_IS_LIST = "Expected `object`, got `array`"
_BY_JQ = "jq -c '.[]' FILE > NEW_FILE"
_N_SHOWN = 20  # of the keys that there are
_OF_TEXT = Remedy("text_column", "Or pass the key that is the text as {}.")
_OF_LABELS = Remedy("labels_column", "Or pass the key with the labels as {}.")
_IN_ONE_STRING = (
    Remedy("label_separator", "If it holds several labels, pass what is between them as {}."),
    Remedy("labels_column", "If that is '|', or it is one label, pass 'labels' as {}."),
)
_NO_LABELS = Remedy("labels_column", "If null stands for no labels, pass 'labels' as {}.")
_NO_TEXT = Remedy("text_column", "If null stands for an empty text, pass 'text' as {}.")

# For lines in which a key seems to be written twice: it keeps both.
_PAIRS = json.JSONDecoder(object_pairs_hook=list, parse_int=str, strict=False)
_OBJECTS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def keys_of(line: bytes) -> dict[str, msgspec.Raw]:
    """Return an object of JSON, values as they are written.

    Examples
    --------
    >>> from longtail.data.json_lines import keys_of
    >>> list(keys_of(b'{"id": 17, "text": "red wine"}'))
    ['id', 'text']
    """
    return _OBJECTS.decode(line)


def object_in(line: bytes) -> dict[str, msgspec.Raw]:
    """Return what `keys_of` does; nothing of a line that is no object of JSON.

    Examples
    --------
    >>> from longtail.data.json_lines import object_in
    >>> list(object_in(b'{"uid": 17, "title": "red wine"}')), object_in(b"red wine")
    (['uid', 'title'], {})
    """
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        return keys_of(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


class JsonRows:
    """Reads what is wanted of a line; further keys are ignored.

    Parameters
    ----------
    columns : Columns
        What the keys are called. Under names of a user's own, labels may also be one string or
        number, and nothing (``null``) is an empty text, or no labels.
    path : Path
        The file, for messages.
    points_only : bool
        Do not look at labels.

    Raises
    ------
    InputError
        If no key can have such a name.

    Examples
    --------
    >>> from longtail.data.columns import Columns
    >>> from longtail.data.json_lines import JsonRows
    >>> rows = JsonRows(Columns(("title",), "tags", ","), "books.jsonl")
    >>> rows.read(b'{"title": "how to knead", "tags": "bread, baking"}', 1)
    ('how to knead', ['bread', 'baking'])
    """

    def __init__(self, columns: Columns, path: Path, *, points_only: bool = False) -> None:
        self._columns = columns
        self._path = path
        self._is_usual = columns == USUAL or (points_only and not columns.text)
        keys = {f"text_{i}": key for i, key in enumerate(columns.text or ("text",))}
        kinds: dict[str, Any] = dict.fromkeys(keys, str if self._is_usual else str | None)
        self._shape = _TEXT_SHAPE if points_only else _SHAPE
        if not points_only:
            keys["labels"] = columns.labels or "labels"
            kinds["labels"] = _Labels if self._is_usual else _Labels | str | int | None
        if len({*keys.values()}) < len(keys):
            raise columns.twice(keys["labels"])
        self._keys = keys
        self._is_plain = columns == USUAL and not points_only  # most files, and quickest to read
        self._written = [json.dumps(key, ensure_ascii=False).encode() for key in keys.values()]
        self._decoder = msgspec.json.Decoder(_row_type(keys, kinds))
        self._has_read = False

    def read(self, line: bytes, number: int) -> tuple[str, _Labels]:
        """Return the text and the labels of a line.

        Raises
        ------
        DataFormatError
            If it is no object, or a key is not there, there twice, or something else.
        """
        try:
            row: Any = self._decoder.decode(line)
            for key in self._written:
                if line.count(key) > 1:
                    self._check_once(line, number)
        except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
            raise self._explained(error, line, number) from error
        self._has_read = True
        if self._is_plain:
            return row.text_0, row.labels
        parts = [getattr(row, field) or "" for field in self._keys if field != "labels"]
        return self._columns.joined(parts), self._listed(getattr(row, "labels", None))

    def _check_once(self, line: bytes, number: int) -> None:
        """Refuse a key that is there twice: a decoder takes the last one, and says nothing."""
        text = decode_line(line, path=self._path, number=number)
        given = [key for key, _ in _PAIRS.decode(text.strip())]
        if twice := [key for key in self._keys.values() if given.count(key) > 1]:
            message = f"The key {twice[0]!r} is there twice. Write each key once."
            raise DataFormatError(message, path=self._path, line=number)

    def _listed(self, labels: _Labels | str | int | None) -> _Labels:
        """Return labels in any form as a list."""
        if isinstance(labels, str):
            return list(self._columns.split(labels))
        if isinstance(labels, int):
            return [labels]
        return labels or []

    def _explained(self, error: Exception, line: bytes, number: int) -> DataFormatError:
        """Say of a broken line what the decoder found and what the line should be."""
        decode_line(line, path=self._path, number=number)  # which says it where it is not UTF-8
        if self._has_read and str(error).startswith(_MISSING):
            return self._missing_here(line, number)
        if self._is_usual:
            return self._not_usual(error, line, number)
        if str(error).startswith(_MISSING):
            known = list(keys_of(line))
            key = next(key for key in self._keys.values() if key not in known)
            return self._columns.missing(key, known, path=self._path, line=number, what="key")
        what = _with_hint(str(error))
        return DataFormatError(f"{what}. {_OWN_SHAPE}", path=self._path, line=number)

    def _missing_here(self, line: bytes, number: int) -> DataFormatError:
        """Say of a key that the lines before have how its absence is written."""
        known = keys_of(line)
        field, key = next((f, key) for f, key in self._keys.items() if key not in known)
        none = "null" if not self._is_usual else "[]" if field == "labels" else '""'
        stands_for = "no labels" if field == "labels" else "an empty text"
        message = (
            f"There is no key {key!r}, which the lines before have. Write {json.dumps(key)}: "
            f"{none} for {stands_for}, or leave the line out."
        )
        return DataFormatError(message, path=self._path, line=number)

    def _not_usual(self, error: Exception, line: bytes, number: int) -> DataFormatError:
        """Say the same where keys are called as usual, and how they may be called otherwise."""
        what = _with_hint(str(error))
        remedies: tuple[Remedy, ...] = ()
        if what.startswith(_MISSING):
            known = list(keys_of(line))
            missing = [key for key in self._keys.values() if key not in known]
            shown = ", ".join(map(repr, known[:_N_SHOWN])) + ", ..." * (len(known) > _N_SHOWN)
            what = f"There is no key {' and no key '.join(map(repr, missing))}"
            what += f". There are: {shown}" if known else ""
            named = known[len(self._keys) - len(missing) :]  # may be those that are meant
            remedies = tuple(_OF_TEXT if key == "text" else _OF_LABELS for key in missing if named)
        elif "got `str` - at `$.labels`" in what:
            remedies = _IN_ONE_STRING
        elif "got `null` - at `$.labels`" in what:
            remedies = (_NO_LABELS,)
        elif "got `null` - at `$.text`" in what:
            remedies = (_NO_TEXT,)
        return DataFormatError(f"{what}. {self._shape}", *remedies, path=self._path, line=number)


def _with_hint(what: str) -> str:
    """Say of a list of objects, which many programs write, how it becomes lines."""
    if what != _IS_LIST:
        return what
    return f"{what}. If the file is one list, write its elements a line each, as {_BY_JQ} does"


def read_json_lines(path: Path, labels: LabelRows, *, columns: Columns = USUAL) -> TextColumn:
    r"""Read a JSON-lines file.

    Strings in ``labels`` are names and whole numbers are ids; a file has either. Blank lines are
    skipped and counted.

    Parameters
    ----------
    path, labels
        See `FileFormat`.
    columns : Columns
        What the keys are called.

    Raises
    ------
    DataFormatError
        If a line is not such an object; see also `LabelRows`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.json_lines import read_json_lines
    >>> from longtail.data.label_rows import LabelRows
    >>> labels = LabelRows("train.jsonl", notes=InputNotes("train.jsonl"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.jsonl")
    ...     _ = path.write_text('{"text": "how to knead", "labels": [2, 0]}\n')
    ...     texts = read_json_lines(path, labels)
    >>> list(texts), labels.finish()[0].toarray().tolist()
    (['how to knead'], [[1.0, 0.0, 1.0]])
    """
    rows = JsonRows(columns, path)
    texts = TextColumnBuilder()
    for number, line in numbered_lines(path):
        if not line or line.isspace():
            labels.notes.add("blank lines (skipped)", line=number)
            continue
        text, given = rows.read(line, number)
        _add_labels(labels, given, path, number)
        if not text:
            labels.notes.add("empty texts (kept)", line=number)
        texts.append(text)
    return texts.finish()


def write_json_lines(path: Path, dataset: Dataset) -> None:
    r"""Write a data set of texts as JSON lines.

    Labels are written as names where every label has a name of its own, not an empty one, else as
    ids; the names then belong into a labels file beside it (`LabelSpace.write`).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.json_lines import write_json_lines
    >>> dataset = Dataset.of(["how to knead"], [["bread", "baking"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json_lines(pathlib.Path(folder, "train.jsonl"), dataset)
    ...     pathlib.Path(folder, "train.jsonl").read_text()
    '{"text":"how to knead","labels":["bread","baking"]}\n'
    """
    texts = texts_of(dataset, "JSON lines")
    to_label = label_writer(dataset.label_space)
    with replacing(path) as stream:
        for text, ids in zip(texts, dataset.label_lists(), strict=True):
            row = {"text": text, "labels": [to_label(label) for label in ids]}
            stream.write(msgspec.json.encode(row) + b"\n")


def label_writer(space: LabelSpace) -> Callable[[int], str | int]:
    """Return what makes of an id what is written: see `write_json_lines`.

    Examples
    --------
    >>> from longtail.data.json_lines import label_writer
    >>> from longtail.data.label_space import LabelSpace
    >>> label_writer(LabelSpace.from_names(["bread"]))(0), label_writer(LabelSpace(1))(0)
    ('bread', 0)
    """
    by_name = space.names_are_unique and all(map(str.strip, space.names or ()))
    return space.name if by_name else int


def _row_type(keys: dict[str, str], kinds: dict[str, Any]) -> type[msgspec.Struct]:
    """Return the type of a line, of which a field may have any key."""
    try:
        return msgspec.defstruct("Row", list(kinds.items()), rename=keys, gc=False)
    except ValueError as error:
        names = ", ".join(map(repr, keys.values()))
        message = f"A key cannot hold quotes, backslashes or control characters, got {names}."
        raise InputError(message) from error


def _add_labels(labels: LabelRows, given: _Labels, path: Path, number: int) -> None:
    """Tell names from ids by their type."""
    kinds = {*map(type, given)}
    if str not in kinds:
        labels.add_ids(cast("list[int]", given), line=number)
    elif len(kinds) == 1:
        labels.add_names(cast("list[str]", given), line=number)
    else:
        message = "The labels mix names and ids. Use strings only, or whole numbers only."
        raise DataFormatError(message, path=path, line=number)
