"""Points and labels as Python users have them: lists, arrays, Series, sparse matrices."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.sparse import csr_array, issparse

from longtail.data.csr import (
    MAX_IDS,
    check_indices,
    csr_from_rows,
    csr_of_dense,
    n_labels_of,
    remark_on_tiny,
    with_int32_indices,
)
from longtail.data.foreign import (
    UNREADABLE,
    as_array,
    as_classes,
    check_unmasked,
    column_names,
    is_missing,
    own_dtype,
    python_values,
)
from longtail.data.input_notes import InputNotes
from longtail.data.label_names import is_list_text, remark_on_packed, remark_on_twins
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.errors import InputError, named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Lists = Sequence[Collection[object]]  # of names or of ids, one for each point

__all__ = [
    "ADVICE",
    "LabelForm",
    "features_from",
    "holds_texts",
    "labels_from",
    "texts_from",
]


ADVICE = (
    "Texts are passed as a list of strings, or as a column of a table: table['text'], not "
    "table[['text']], which is a table; of an array with one column, array[:, 0]."
)
_LEAVE_OUT = "Leave it out of the list, which may be empty."


class LabelForm(Enum):
    """The form in which labels came, and predictions go back.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.from_python import LabelForm, labels_from
    >>> ys = [["bread"], []], [[0], []], np.array([[1], [0]]), ["bread", "yeast"]
    >>> [labels_from(y, 2)[2].value for y in ys]
    ['names', 'ids', 'dense', 'classes']
    """

    NAMES = "names"  # a list of names for each point
    IDS = "ids"  # a list of ids for each point
    SPARSE = "sparse"  # a sparse 0/1 matrix
    DENSE = "dense"  # a dense 0/1 array
    CLASSES = "classes"  # one class for each point


def holds_texts(points: Any) -> bool:
    """Tell a sequence of strings, or of strings, bytes and what should be one, from features.

    Examples
    --------
    >>> holds_texts(["one", None]), holds_texts([[0.5, 1]])
    (True, False)
    """
    points = python_values(points)
    if issparse(points) or getattr(points, "ndim", 1) != 1 or not hasattr(points, "__len__"):
        return False
    return not len(points) or any(isinstance(value, str | bytes) for value in points)


def texts_from(texts: Iterable[str]) -> TextColumn:
    """Pack a list, tuple, array, Series or `TextColumn` of strings.

    Raises
    ------
    InputError
        If `texts` is one string or has no order, or an element is not a string.

    Examples
    --------
    >>> texts_from(("one", "two"))
    TextColumn(['one', 'two'])
    """
    if isinstance(texts, TextColumn):
        return texts
    if isinstance(texts, AbstractSet):
        raise InputError(f"Expected texts in an order, got {_shown(texts)}. {ADVICE}")
    if isinstance(getattr(texts, "texts", None), TextColumn):
        raise InputError("A Dataset holds points and labels. Pass its points: dataset.texts.")
    is_one = isinstance(texts, str | bytes | Mapping) or getattr(texts, "ndim", 1) == 0
    if is_one or not isinstance(texts, Iterable):
        raise InputError(
            f"Expected a sequence of strings, got {_shown(texts)}. For one text, pass [text]."
        )
    return TextColumn.from_strings(python_values(texts))


def features_from(features: Any, name: str = "`features`") -> csr_array:
    """Make a float32 CSR matrix of any sparse matrix or 2-D array of finite numbers.

    Parameters
    ----------
    features : sparse matrix or array-like, shape (n_points, n_features)
        Copied only where the type or format has to change.
    name : str
        What it is called in messages.

    Returns
    -------
    csr_array of float32, shape (n_points, n_features)
        Sorted indices, no repeats, no zeros.

    Raises
    ------
    InputError
        If it is not two-dimensional, not numbers, or has NaN, infinite or masked values.

    Warns
    -----
    InputWarning
        If all numbers of a point are nearer to 0 than 32 bits hold, and so become 0.

    Examples
    --------
    >>> features_from([[0, 0.5], [2, 0]]).toarray().tolist()
    [[0.0, 0.5], [2.0, 0.0]]
    """
    if getattr(own_dtype(features), "kind", "f") == "c":
        raise InputError(f"Complex data not supported: {name} must be real numbers.")
    check_unmasked(name, features)
    if hasattr(features, "collect"):  # as polars' LazyFrame has it
        raise InputError(
            f"{named(features, first=True)} holds no values yet. Pass those that its collect() "
            f"returns. {ADVICE}"
        )
    if issparse(features):
        check_indices(name, features)
    try:
        with np.errstate(over="ignore"):  # what overflows is found below
            dtype = np.float64 if own_dtype(features) in {None, np.dtype(float)} else np.float32
            given = features if issparse(features) else as_array(features, dtype)
            matrix = None
            if given.ndim == 2:
                is_sparse = issparse(given)
                matrix = csr_array(given, dtype=np.float32) if is_sparse else csr_of_dense(given)
    except UNREADABLE as error:
        raise InputError(
            f"{name} cannot be read as a matrix of numbers: {str(error).rstrip('.')}. {ADVICE}"
        ) from error
    if matrix is None:
        raise InputError(f"{name} has {given.ndim} dimensions, not 2: (points, features). {ADVICE}")
    matrix = with_int32_indices(matrix)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        remark_on_tiny(given, matrix)
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise InputError(
            f"{name} holds NaN, or infinite values (first in row {row}). "
            "Replace or remove them; numbers beyond 3e38 are infinite in 32 bits."
        )
    return matrix


def labels_from(
    labels: Any,
    n_points: int,
) -> tuple[csr_array, LabelSpace, LabelForm]:
    """Read labels in any of the forms of `LabelForm`.

    Parameters
    ----------
    labels : list of lists of str or int, sparse matrix, 2-D array of 0 and 1, or 1-D of classes
        A list of lists holds names or ids, never zeros and ones: pass those as an array, or as a
        table, whose columns are the labels' names unless they are 0, 1, 2 and so on. Classes get
        ids in the order of ``numpy.unique(labels)``, and their values as strings are the names.
    n_points : int
        How many rows there should be.

    Returns
    -------
    labels : csr_array of float32, shape (n_points, n_labels)
        Ones.
    label_space : LabelSpace
        With names for names (in order of first appearance), columns of a table and classes.
    form : LabelForm
        What `labels` was.

    Raises
    ------
    InputError
        If `labels` is None, has another number of rows, or values that mean no label. It is called
        y, as by all that people pass labels to.

    Examples
    --------
    >>> matrix, space, form = labels_from([["bread", "baking"], [], ["bread"]], 3)
    >>> matrix.toarray().tolist(), list(space.names), form.name
    ([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]], ['bread', 'baking'], 'NAMES')
    """
    labels = python_values(labels)
    if labels is None:
        raise InputError("y is missing (None). Pass one label list per point.")
    if getattr(labels, "ndim", 1) == 0 or (issparse(labels) and labels.ndim != 2):
        raise InputError(
            f"y has {labels.ndim} dimensions, not 2: (points, labels). Pass one label list per "
            "point, or a matrix of 0 and 1."
        )
    if issparse(labels):
        check_indices("y", labels)
        return _from_matrix(csr_array(labels), n_points, LabelForm.SPARSE)
    check_unmasked("y", labels)
    if hasattr(labels, "__array__"):
        columns = column_names(labels)
        labels = _as_array(labels)
        if labels.ndim == 2:
            matrix, _, form = _from_matrix(_sparsified(labels), n_points, LabelForm.DENSE)
            return matrix, _named_by(columns, labels.shape[1]), form
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InputError(f"y must hold one label list per point, got {_shown(labels)}.")
    if isinstance(labels, AbstractSet | Mapping):
        raise InputError(
            f"y must be in the order of the points, got {_shown(labels)}. Pass a list with "
            "the labels of the first point first."
        )
    rows = list(labels)
    _check_n_rows(len(rows), n_points)
    is_list = [_is_list(row) for row in rows]
    if all(is_list):
        return _from_lists(rows)
    if any(is_list):
        position = is_list.index(False)
        raise InputError(
            f"y, row {position}: got {_shown(rows[position])} where other rows are lists. "
            "Pass a label list for every point (it may be empty)."
        )
    return _from_classes(rows)


def _as_array(labels: Any) -> np.ndarray[Any, Any]:
    """Return what is an array of another library as one of numpy, or say that it cannot be."""
    try:
        return as_array(labels)
    except UNREADABLE as error:
        raise InputError(f"y cannot be read as an array of numpy: {error}") from error


def _check_n_rows(n_rows: int, n_points: int) -> None:
    """Points and labels belong together row by row."""
    if n_rows != n_points:
        raise InputError(
            f"y has {n_rows} rows, but there are {n_points} points. "
            "Pass one label list per point (it may be empty), or a matrix with a row for each."
        )


def _shown(value: object) -> str:
    """Show a wrong argument without filling the screen."""
    text = repr(value)
    return f"{text[:40]}{'...' if len(text) > 40 else ''} ({type(value).__name__})"


def _is_list(row: object) -> bool:
    """Tell a point's list (tuple, set, array) of labels from a single class."""
    return isinstance(row, Collection) and not isinstance(row, str | bytes | dict)


def _sparsified(labels: np.ndarray[Any, Any]) -> csr_array:
    """Turn a dense indicator sparse; NaN is not zero and so stays to be found."""
    # Objects: as of a table with columns of 0 and 1 and of truth values.
    if labels.dtype.kind == "O" or labels.dtype == np.float16:
        with suppress(TypeError, ValueError):
            labels = labels.astype(np.float64)
    if labels.dtype.kind not in "biuf":
        raise InputError(
            f"A 2-D array y must hold 0 and 1, got {labels.dtype}. Pass names as a list of lists, "
            "or one class a point as a column: table['label'], or array[:, 0]."
        )
    return csr_array(labels)


def _from_matrix(
    matrix: csr_array, n_points: int, form: LabelForm
) -> tuple[csr_array, LabelSpace, LabelForm]:
    """Check that an indicator matrix holds nothing but 0 and 1."""
    _check_n_rows(matrix.shape[0], n_points)
    wrong = matrix.data[(matrix.data != 0) & (matrix.data != 1)]
    if len(wrong):
        raise InputError(
            f"A matrix of labels must hold 0 and 1 only, got {wrong[0]}. "
            "Set a 1 where a point has a label."
        )
    matrix = with_int32_indices(matrix.astype(np.float32, copy=True))
    matrix.eliminate_zeros()
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix, LabelSpace(int(matrix.shape[1])), form


def _named_by(columns: list[object] | None, n_labels: int) -> LabelSpace:
    """Return labels that are called as the columns of a table, unless those are but counted."""
    names = [*range(n_labels)] if columns is None else columns
    if names == [*range(n_labels)]:
        return LabelSpace(n_labels)
    nameless = [i for i, name in enumerate(names) if isinstance(name, str) and not name.strip()]
    if nameless:
        raise InputError(
            f"y, column {nameless[0]}: got {names[nameless[0]]!r}, a label without a name. Rename "
            "the column, or pass y.to_numpy(), whose labels have numbers."
        )
    if all(isinstance(name, str) for name in names):
        return LabelSpace.from_names(cast("list[str]", names))
    # A number is a name to show, but no text to learn from.
    return LabelSpace(n_labels, TextColumn.from_strings(map(str, names)))


def _from_lists(rows: Lists) -> tuple[csr_array, LabelSpace, LabelForm]:
    """Take lists of names or of ids: the first label tells which."""
    first = next((label for row in rows for label in row), 0)
    form = LabelForm.NAMES if isinstance(first, str) else LabelForm.IDS
    notes = InputNotes("labels", unit="row")
    labels, space = (_from_names if form is LabelForm.NAMES else _from_ids)(rows, notes)
    notes.warn()
    return labels, space, form


def _from_names(rows: Lists, notes: InputNotes) -> tuple[csr_array, LabelSpace]:
    """Give ids to names in order of first appearance."""
    ids_by_name: dict[str, int] = {}

    def id_of(value: object, row: int) -> int:
        return ids_by_name.setdefault(_name(value, row, ids_by_name), len(ids_by_name))

    ids, lengths = _ids_and_lengths(rows, id_of, notes)
    space = LabelSpace.from_names(ids_by_name)
    remark_on_twins(notes, ids_by_name)
    if lengths.max(initial=0) == 1:
        remark_on_packed(notes, ids_by_name, ids, _packed_labels)
    return csr_from_rows(ids, lengths, space.n_labels), space


def _from_ids(rows: Lists, notes: InputNotes) -> tuple[csr_array, LabelSpace]:
    """Take ids as they are."""
    ids, lengths = _ids_and_lengths(rows, _id, notes)
    if _is_indicator(rows, ids):
        raise InputError(
            "y looks like rows of zeros and ones, but a list of lists holds label ids or "
            "names. Pass numpy.array(labels)."
        )
    space = LabelSpace(n_labels_of(ids))
    return csr_from_rows(ids, lengths, space.n_labels), space


def _ids_and_lengths(
    rows: Lists, id_of: Callable[[object, int], int], notes: InputNotes
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the ids of all rows, ascending in each and without repeats, and how many each has."""
    ids, lengths = array("i"), array("q")
    for position, row in enumerate(rows):
        found = {id_of(value, position) for value in row}
        if len(found) < len(row):
            notes.add("points with a label twice (merged)", line=position)
        ids.extend(sorted(found))
        lengths.append(len(found))
    return np.frombuffer(ids, dtype=np.int32), np.frombuffer(lengths, dtype=np.int64)


def _is_indicator(rows: Lists, ids: NDArray[np.int32]) -> bool:
    """Tell rows of zeros and ones: as long as each other, and as lists of ids they repeat some."""
    width = len(rows[0]) if rows else 0
    if width < 2 or ids.max(initial=0) > 1 or any(len(row) != width for row in rows):
        return False
    return any(len(set(row)) < width for row in rows) or len({tuple(row) for row in rows}) > 1


def _name(value: object, row: int, known: Mapping[str, int]) -> str:
    """Refuse what is not a name among names; one that is known was looked at before."""
    if isinstance(value, str):
        if value not in known:
            _check_text(value, row, _LEAVE_OUT)
        return str(value)
    _check_not_missing(value, row)
    raise InputError(
        f"y, row {row}: got {_shown(value)} among names. Use strings only, or whole numbers only."
    )


def _check_not_missing(value: object, row: int) -> None:
    """Refuse what stands for no label in a list, whatever the others are."""
    if is_missing(value):
        raise InputError(f"y, row {row}: got {_shown(value)}, a missing label. {_LEAVE_OUT}")


def _check_text(name: str, row: int, without: str) -> None:
    """Refuse a name that is none, or the text of a list of names."""
    if not name.strip():
        raise InputError(f"y, row {row}: got {name!r}, a label without a name. {without}")
    if is_list_text(name):
        raise InputError(
            f"y, row {row}: got {_shown(name)}, the text of a list, which would be one "
            "label. Pass the list: ast.literal_eval turns the text into it."
        )


def _packed_labels(separator: str, example: str) -> str:
    """Say which label looks like several, and what to do."""
    return (
        f"such as {_shown(example)}, and is taken as one: if these are several labels, pass a "
        f"list for each point, such as label.split({separator!r})"
    )


def _id(value: object, row: int) -> int:
    """Refuse what is not an id among ids; True is a number to Python, but no id."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and 0 <= int(cast("int", value)) < MAX_IDS:
        return int(cast("int", value))
    _check_not_missing(value, row)
    advice = "Ids are whole numbers from 0; names are strings, and a list holds one or the other."
    if whole and int(cast("int", value)) >= MAX_IDS:
        advice = (
            f"Ids are row numbers, from 0 to {MAX_IDS - 1}. Pass other numbers as strings, which "
            "are names."
        )
    raise InputError(f"y, row {row}: got {_shown(value)} as a label id. {advice}")


def _from_classes(values: list[Hashable]) -> tuple[csr_array, LabelSpace, LabelForm]:
    """Treat single-label data as points with one label each."""
    for position, value in enumerate(values):
        _check_class(value, position)
    if len({isinstance(value, str) for value in values}) > 1:
        raise InputError("y mixes strings and numbers. Use one kind for all classes.")
    classes, ids = np.unique(as_classes(values), return_inverse=True)
    names = TextColumn.from_strings(map(str, classes))
    # A number is a name to show, but no text to learn from.
    texts = names if isinstance(values[0], str) else None
    space = LabelSpace(len(classes), names, texts)
    if texts is not None:
        notes = InputNotes("labels", unit="row")
        remark_on_packed(notes, names, ids, _packed_labels)
        notes.warn()
    lengths = np.ones(len(values), dtype=np.int64)
    return csr_from_rows(ids.astype(np.int32), lengths, len(classes)), space, LabelForm.CLASSES


def _check_class(value: object, row: int) -> None:
    """Refuse what is neither a string nor a whole number."""
    if isinstance(value, str):
        _check_text(
            value,
            row,
            "Leave the point out, or pass a label list for every point, empty where there is no "
            "label.",
        )
    if isinstance(value, str | bool | int | np.integer | np.bool_):
        return
    if is_missing(value):
        raise InputError(
            f"y, row {row}: got {_shown(value)}, a missing label. Leave the point out, "
            "or pass a label list for every point, empty where there is no label."
        )
    if isinstance(value, float | np.floating):
        if float(value).is_integer():
            return
        raise InputError(
            f"y, row {row}: got {_shown(value)}, a continuous target. Pass classes, such as "
            "strings or whole numbers, or a label list for every point."
        )
    raise InputError(
        f"y, row {row}: got {_shown(value)}. Pass either a label list for every point, or "
        "one class (a string or a whole number) for every point."
    )
