"""A data set: points, as texts or as features, and their labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.amounts import counted
from longtail.data.blocks import n_points_of
from longtail.data.columns import Columns
from longtail.data.csr import check_indices, row_with_repeats
from longtail.data.foreign import images_as_rows
from longtail.data.formats import format_for_reading, format_for_writing
from longtail.data.from_python import features_from, holds_texts, labels_from, texts_from
from longtail.data.input_notes import InputNotes
from longtail.data.label_matching import matched_labels
from longtail.data.label_rows import LabelRows
from longtail.data.label_space import LabelSpace
from longtail.data.pairs import read_pair, write_pair
from longtail.data.storage import open_parts, save_parts
from longtail.data.text_column import TextColumn
from longtail.data.unlabelled import remark_if_narrow, widened
from longtail.errors import DataFormatError, InputError, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from longtail.data.blocks import Points
    from longtail.data.label_rows import UnknownLabels

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    r"""Points and their labels, in memory or memory-mapped.

    Parameters
    ----------
    texts : TextColumn or None
        One text a point; or None, with `features` given.
    features : csr_array of float32, shape (n_points, n_features), or None
        One sparse row a point; or None, with `texts` given.
    labels : csr_array of float32, shape (n_points, n_labels)
        One where a point has a label; sorted indices, no repeats. Rows may be empty.
    label_space : LabelSpace
        The labels' names and texts.
    rows : int (n_points,) or None
        Which points, from 0, of what was read or passed these are; None for all of it, in order.
        What is saved or written is read again as data of its own.

    Raises
    ------
    InputError
        If both or neither of `texts` and `features` are given, a part is of another type, the sizes
        differ, indices of a matrix lie beyond it, which compiled code follows blindly, features are
        no floats, or a label that is stored is not 1 or comes twice at one point.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.tsv")
    ...     _ = path.write_text("how to knead\tbread|baking\nthe tango\tdance\n")
    ...     dataset = Dataset.read(path)
    >>> dataset.n_points, dataset.n_labels, dataset.label_space.name(2)
    (2, 3, 'dance')
    >>> dataset.describe()["labels_per_point"]
    1.5
    """

    texts: TextColumn | None
    features: csr_array | None
    labels: csr_array
    label_space: LabelSpace
    rows: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.features is None):
            raise InputError("A data set has either texts or features. Pass exactly one of them.")
        _check_columns(self.texts, self.label_space)
        for name, matrix in (("features", self.features), ("labels", self.labels)):
            if matrix is not None:
                _check_matrix(name, matrix)
        n_points = len(self.texts or ()) if self.features is None else self.features.shape[0]
        if self.rows is not None and np.shape(self.rows) != (n_points,):
            raise InputError(f"`rows` must be {n_points} numbers, got {np.shape(self.rows)}.")
        if self.labels.shape != (n_points, self.label_space.n_labels):
            raise InputError(
                f"`labels` has the shape {self.labels.shape}, but there are {n_points} points and "
                f"{self.label_space.n_labels} labels."
            )

    def __repr__(self) -> str:
        points, labels = counted(self.n_points, "point"), counted(self.n_labels, "label")
        kind = "texts" if self.features is None else counted(self.features.shape[1], "feature")
        mean = self.labels.nnz / max(self.n_points, 1)
        return f"<Dataset of {points} ({kind}) and {labels}, {mean:.1f} a point>"

    @classmethod
    def of(cls, X: Any, y: Any, *, label_texts: Mapping[str, str] | None = None) -> Dataset:
        """Make a data set of what `fit` takes: lists, arrays, columns of a table.

        Parameters
        ----------
        X : sequence of str, or matrix (n_points, n_features)
            Texts, or features: sparse, or dense numbers. Images (n_points, channels, height, width)
            become a row of numbers each, as architectures that read images take them.
        y : list of lists, matrix, table or classes
            Labels in any form that `fit` takes; or a data set, whose labels these points have.
        label_texts : mapping of str to str, optional
            What a model may read about labels, by their names, as from a labels file: of one that
            is not in it, its name. A name that no point has is one more label.

        Returns
        -------
        Dataset
            In memory.

        Raises
        ------
        InputError
            If `X` and `y` cannot be used, or there are texts for labels that have no names.

        Examples
        --------
        >>> texts, labels = ["how to knead", "the tango"], [["bread", "baking"], ["dance"]]
        >>> dataset = Dataset.of(texts, labels, label_texts={"dance": "tango, waltz", "yeast": ""})
        >>> dataset.n_points, list(dataset.label_space.names)
        (2, ['bread', 'baking', 'dance', 'yeast'])
        >>> list(dataset.label_space.texts)
        ['bread', 'baking', 'tango, waltz', 'yeast']
        """
        points = texts_from(X) if holds_texts(X) else features_from(images_as_rows(X))
        n_points = n_points_of(points)
        if isinstance(y, Dataset):
            labels, space = y.labels.copy(), y.label_space
        else:
            labels, space, _ = labels_from(y, n_points)
        if label_texts is not None:
            space = space.with_texts(label_texts)
            labels.resize((n_points, space.n_labels))
        return cls._of_points(points, labels, space)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        labels_file: str | Path | None = None,
        labels_path: str | Path | None = None,
        format: str | None = None,  # noqa: A002 - the word that users look for
        label_space: LabelSpace | None = None,
        unknown_labels: UnknownLabels = "error",
        n_features: int | None = None,
        text_column: str | Iterable[str] | None = None,
        labels_column: str | None = None,
        label_separator: str | None = None,
    ) -> Dataset:
        """Read a file, plain or gzip. What is odd but harmless is told in one `InputWarning`.

        Parameters
        ----------
        path : str or Path
            The file; ``-`` reads standard input, and needs `format`. Parquet: a folder, too.
        labels_file : str or Path, optional
            A file of label names, line number = id from 0 (see `LabelSpace.read`).
        labels_path : str or Path, optional
            The labels of a pair such as ``trn_X_Xf.txt`` and ``trn_X_Y.txt``, or a matrix of them
            (``.npz`` of scipy, ``.npy``); `path` is then the features or texts, row by row.
        format : str, optional
            A key of `longtail.data.FORMATS`: ``json-lines``, ``tsv``, ``csv``, ``parquet``,
            ``fasttext``, ``repository`` or ``svmlight``; without it, guessed from the file's name,
            then from its first line.
        label_space : LabelSpace, optional
            The labels of a trained model, for reading a test file: names and ids mean its own.
        unknown_labels : {"error", "extend", "skip"}
            What becomes of a label that `labels_file` or `label_space` has not: the file is
            refused; the label gets a new id behind the known ones (so that in an evaluation it
            counts as missed); or it is left out and counted. Ids behind the last line of
            `labels_file` have no name, and are refused with ``"extend"`` too.
        n_features : int, optional
            Make the features this wide: svmlight files do not tell.
        text_column : str or iterable of str, optional
            What the text is called in the header of a table, or which key of JSON lines it is; of
            several, it is joined by blanks.
        labels_column : str, optional
            The same of the labels.
        label_separator : str, optional
            What is between two labels in a cell, or in a string of JSON lines; ``|`` without it.

        Returns
        -------
        Dataset
            In memory.

        Raises
        ------
        InputError
            If the file cannot be opened, or the arguments do not fit together.
        DataFormatError
            If the file cannot be used; the message names the line, and the format if guessed.
        """
        _check_sources(path, labels_file, label_space, labels_path, format)
        columns = Columns.of(text_column, labels_column, label_separator)
        path = Path(path)
        known = (
            label_space
            if labels_file is None
            else LabelSpace.read(labels_file, text_column=columns.text)
        )
        notes = InputNotes(path)
        rows = LabelRows(
            path,
            notes=notes,
            known=known,
            unknown=unknown_labels,
            ids_are_lines=labels_file is not None,
        )
        if labels_path is None:
            points = _read_points(path, format, columns, rows)
        else:
            rows.path = notes.source = labels_path
            points = read_pair(path, Path(labels_path), rows, columns)
        if not len(rows):
            raise DataFormatError("The file is empty. Pass a file with points in it.", path=path)
        labels, space = rows.finish()
        tells_width = rows.n_declared is not None or labels_path is not None
        if tells_width and not isinstance(points, TextColumn):
            remark_if_narrow(points, n_features, notes)
        notes.warn()
        if not isinstance(points, TextColumn):
            points = widened(points, n_features, path)
        return cls._of_points(points, labels, space)

    @classmethod
    def _of_points(cls, points: Points, labels: csr_array, space: LabelSpace) -> Dataset:
        """Put texts where texts belong, and features where features do."""
        if isinstance(points, TextColumn):
            return cls(points, None, labels, space)
        return cls(None, points, labels, space)

    def write(
        self,
        path: str | Path,
        *,
        labels_path: str | Path | None = None,
        format: str | None = None,  # noqa: A002 - the word that users look for
    ) -> None:
        """Write a file that `read` reads back; a name that ends in ``.gz`` is compressed.

        Parameters
        ----------
        path : str or Path
            The file.
        labels_path : str or Path, optional
            Write a pair of sparse files, with the labels here; ``.npz`` if they are so called.
        format : str, optional
            As in `read`; without it, taken from the file's name.

        Raises
        ------
        InputError
            If the format is unknown, or holds texts where this has features or the reverse.
        DataFormatError
            If a point cannot be carried by the format; the message names the line. Nothing is
            left behind.
        """
        if labels_path is not None:
            write_pair(Path(path), Path(labels_path), self)
        else:
            format_for_writing(Path(path), format).write(Path(path), self)

    @classmethod
    def open(cls, folder: str | Path) -> Dataset:
        """Open what `save` wrote, memory-mapped.

        Only where rows start, which ids are in them and that labels are ones is read, to see that
        all of it fits.

        Raises
        ------
        InputError
            If the folder is missing, is no saved data set, or is damaged.
        """
        return cls(*open_parts(Path(folder)))

    def save(self, folder: str | Path) -> None:
        """Write a folder of ``.npy`` files that `open` maps into memory.

        A data set already saved there is replaced once the new one is complete.

        Raises
        ------
        InputError
            If `folder` exists and is something else.
        """
        save_parts(Path(folder), self)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.labels.shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels, those without points included."""
        return int(self.labels.shape[1])

    def __len__(self) -> int:
        return self.n_points

    def take(self, rows: ArrayLike) -> Dataset:
        """Return the given points, in the given order, with all labels.

        Parameters
        ----------
        rows : array-like of int, shape (n,), or of bool, shape (n_points,)
            Row numbers from 0, or a mask.

        Raises
        ------
        InputError
            If a row is not there, or the mask has another length.
        """
        wanted = np.asarray(rows)
        try:
            chosen = np.arange(self.n_points)[wanted if wanted.size else []].reshape(-1)
        except IndexError as error:
            raise InputError(
                f"`rows` must be row numbers, from 0 to {self.n_points - 1}, or a mask of "
                f"{self.n_points}: {error}."
            ) from error
        return Dataset(
            None if self.texts is None else self.texts.take(chosen),
            None if self.features is None else self.features[chosen],
            self.labels[chosen],
            self.label_space,
            chosen if self.rows is None else self.rows[chosen],
        )

    def relabelled(self, known: LabelSpace) -> Dataset:
        """Return the same points with the label ids of a model, matched by name.

        Where neither has names, ids stay, and there are as many labels as the model has, or more.

        Parameters
        ----------
        known : LabelSpace
            The model's labels. Names that it has not come behind them, and so count as missed.

        Raises
        ------
        InputError
            If these labels have names and those of the model have none, or the reverse.

        Warns
        -----
        InputWarning
            Where names that several labels share cannot be told apart; see `matched_labels`.
        """
        names = self.label_space.names
        if names is not None and names[: known.n_labels] == known.names:
            return self  # the very same labels, even if two share a name
        ids, space = matched_labels(self.label_space, known)
        return self._with_labels(ids[self.labels.indices], space)

    def _with_labels(self, columns: NDArray[np.int32], space: LabelSpace) -> Dataset:
        """Return the same points, their labels called otherwise: each by its id in a space."""
        labels, shape = self.labels.copy(), (self.n_points, space.n_labels)
        moved = csr_array((labels.data, columns, labels.indptr), shape=shape)
        moved.sum_duplicates()
        moved.data[:] = 1
        return Dataset(self.texts, self.features, moved, space, self.rows)

    def label_lists(self) -> Iterator[list[int]]:
        """Yield each point's label ids, in ascending order."""
        for start, stop in pairwise(self.labels.indptr):
            yield self.labels.indices[start:stop].tolist()

    def describe(self) -> dict[str, int | float]:
        """Return counts and averages, under plain names.

        Returns
        -------
        dict
            ``n_points``, ``n_labels``, ``labels_per_point``, ``points_per_label`` (over all
            labels), ``points_without_labels``, ``labels_without_points``, and for texts
            ``words_per_text``, ``empty_texts``, for features ``n_features``,
            ``features_per_point``.
        """
        per_label = np.bincount(self.labels.indices, minlength=self.n_labels)
        facts: dict[str, int | float] = {
            "n_points": self.n_points,
            "n_labels": self.n_labels,
            "labels_per_point": self.labels.nnz / max(self.n_points, 1),
            "points_per_label": self.labels.nnz / max(self.n_labels, 1),
            "points_without_labels": int((np.diff(self.labels.indptr) == 0).sum()),
            "labels_without_points": int((per_label == 0).sum()),
        }
        if self.texts is not None:
            facts["words_per_text"] = _n_words(self.texts) / max(self.n_points, 1)
            facts["empty_texts"] = int((np.diff(self.texts.offsets) == 0).sum())
        if self.features is not None:
            facts["n_features"] = int(self.features.shape[1])
            facts["features_per_point"] = self.features.nnz / max(self.n_points, 1)
        return facts


def _check_sources(
    path: str | Path,
    labels_file: str | Path | None,
    label_space: LabelSpace | None,
    labels_path: str | Path | None,
    name: str | None,
) -> None:
    """Refuse what is no path, and what says the same thing twice."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"Dataset.read takes the path of a file, got {named(path)}. What is in Python "
            "already, such as columns of a table, is passed to Dataset.of."
        )
    if any(name == "" for name in (path, labels_file, labels_path)):
        raise InputError("An empty path names no file. Name one.")
    if labels_file is not None and label_space is not None:
        raise InputError("Pass labels_file or label_space, not both.")
    if labels_path is not None and name is not None:
        raise InputError(
            f"Pass labels_path or format, not both: {labels_path} is half of a pair of files, "
            f"which are told by their names and first lines, got {name!r}."
        )


def _read_points(path: Path, name: str | None, columns: Columns, rows: LabelRows) -> Points:
    """Read one file, and tell the guess in the error if the guess may have been the mistake."""
    file_format, guess = format_for_reading(path, name, columns=columns)
    try:
        return file_format.read(path, rows)
    except DataFormatError as error:
        error.remedies += guess
        raise


def _check_columns(texts: object, label_space: object) -> None:
    """Raise InputError unless these are what a data set keeps texts and labels' names in."""
    if texts is not None and not isinstance(texts, TextColumn):
        raise InputError(
            f"`texts` must be a TextColumn, got {named(texts)}. Dataset.of makes a data set of "
            "lists, TextColumn.from_strings such a column."
        )
    if not isinstance(label_space, LabelSpace):
        raise InputError(
            f"`label_space` must be a LabelSpace, got {named(label_space)}. Pass "
            "LabelSpace.from_names(names) or, of labels without names, LabelSpace(n_labels)."
        )


def _check_matrix(name: str, matrix: object) -> None:
    """Raise InputError unless this is a matrix that the compiled code can follow."""
    if not isinstance(matrix, csr_array):
        raise InputError(
            f"`{name}` must be a scipy.sparse.csr_array, got {named(matrix)}. Dataset.of makes a "
            "data set of other matrices, and of lists."
        )
    check_indices(f"`{name}`", matrix)
    if name == "features" and matrix.dtype.kind != "f":
        raise InputError(
            f"`features` must be of float32, got {matrix.dtype}. Pass features.astype('float32')."
        )
    if name == "labels" and not (matrix.data == 1).all():
        wrong = matrix.data[matrix.data != 1][0]
        raise InputError(
            f"`labels` must hold ones and nothing else, stored zeros neither, got {wrong}. "
            "Dataset.of makes a data set of a matrix that has such."
        )
    if name == "labels" and (row := row_with_repeats(matrix)) is not None:
        raise InputError(
            f"`labels` must have a label once at a point, and row {row} has one twice. "
            "Dataset.of merges them."
        )


def _n_words(texts: TextColumn) -> int:
    """Count the words, as blanks separate them, without making a string of any text."""
    is_word = texts.buffer > ord(" ")
    starts = is_word.copy()
    starts[1:] &= ~is_word[:-1]
    # The first byte of a text begins a word, whatever the text before it ended with.
    firsts = texts.offsets[:-1][np.diff(texts.offsets) > 0]
    starts[firsts] = is_word[firsts]
    return int(np.count_nonzero(starts))
