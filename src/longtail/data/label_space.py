"""The labels a model can answer with: ids, names and texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.amounts import counted
from longtail.data.columns import Columns
from longtail.data.csr import MOST_DIGITS
from longtail.data.files import replacing
from longtail.data.label_names import check_name
from longtail.data.labels_file import read_labels_file
from longtail.data.text_column import TextColumn, shown_texts
from longtail.errors import DataFormatError, InputError, named

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset

__all__ = ["LabelSpace", "in_ids_of"]


@dataclass(frozen=True)
class LabelSpace:
    r"""How many labels there are, what they are called and what is known about them.

    Parameters
    ----------
    n_labels : int
        Number of labels; ids run from 0.
    names : TextColumn, optional
        What users see. Two labels may bear the same name: real label files have such.
    texts : TextColumn, optional
        What a model may read about each label: its name, or a longer text. Of one that is empty a
        model reads nothing; a labels file cannot say so, and means the name.

    Raises
    ------
    InputError
        If `n_labels` is no number of labels, or `names` or `texts` do not have as many entries.

    Examples
    --------
    >>> space = LabelSpace.from_names(["cats", "dogs"])
    >>> space.n_labels, space.name(1), space.id_of("cats")
    (2, 'dogs', 0)
    >>> LabelSpace(5).name(3)
    '3'
    """

    n_labels: int
    names: TextColumn | None = None
    texts: TextColumn | None = None

    def __post_init__(self) -> None:
        n_labels = self.n_labels
        if isinstance(n_labels, bool) or not isinstance(n_labels, int | np.integer) or n_labels < 0:
            raise InputError(
                f"A number of labels is a whole number, 0 or more, got {n_labels!r}. Pass how many "
                "labels there are; names are passed to LabelSpace.from_names."
            )
        for what, column in (("names", self.names), ("texts", self.texts)):
            if column is not None and len(column) != self.n_labels:
                raise InputError(
                    f"There are {self.n_labels} labels but {len(column)} label {what}. "
                    "Pass one for each label, or none at all."
                )

    def __repr__(self) -> str:
        shown = "" if self.names is None else f": {shown_texts(self.names)}"
        with_texts = "" if self.texts is None or self.texts_are_names else " with texts"
        return f"<LabelSpace of {counted(self.n_labels, 'label')}{with_texts}{shown}>"

    @classmethod
    def from_names(cls, names: Iterable[str], texts: Iterable[str] | None = None) -> LabelSpace:
        """Make a space from label names, which are the labels' texts too if none are given.

        Raises
        ------
        InputError
            If one string is passed in place of several, or there are not as many texts as names.
        """
        name_column = TextColumn.from_strings(names)
        text_column = name_column if texts is None else TextColumn.from_strings(texts)
        return cls(len(name_column), name_column, text_column)

    @classmethod
    def read(
        cls, path: str | Path, *, text_column: str | Iterable[str] | None = None
    ) -> LabelSpace:
        """Read a labels file, plain or gzip: one label a line, line number = id, from 0.

        A line is a name, or ``name<TAB>text``, or an object of JSON; without a text the name is
        the text too.

        Parameters
        ----------
        path : str or Path
            The labels file.
        text_column : str or iterable of str, optional
            Of JSON, the keys that make up the text, of which the first is the name; if not all are
            there, and by default, ``text``, ``title``, ``name`` or ``label``.

        Raises
        ------
        InputError
            If the file cannot be opened.
        DataFormatError
            If it is empty, not UTF-8, or has a line without a name; blank lines at the very end
            are fine.
        """
        names, texts = read_labels_file(path, Columns.of(text_column).text)
        return cls(len(names), names, texts)

    @property
    def texts_are_names(self) -> bool:
        """Whether the labels have names, and nothing more is known of them."""
        return self.names is not None and self.texts == self.names

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return names and texts as a model folder keeps them: texts only where they say more.

        Returns
        -------
        dict of str to array
            ``names.buffer`` and ``names.offsets``, and the same of ``texts``; see `TextColumn`.

        Examples
        --------
        >>> sorted(LabelSpace.from_names(["cats", "dogs"]).to_arrays())
        ['names.buffer', 'names.offsets']
        """
        columns = {"names": self.names, "texts": None if self.texts_are_names else self.texts}
        arrays: dict[str, NDArray[Any]] = {}
        for name, column in columns.items():
            if column is not None:
                arrays[f"{name}.buffer"] = column.buffer
                arrays[f"{name}.offsets"] = column.offsets
        return arrays

    @classmethod
    def from_arrays(
        cls, n_labels: int, arrays: Mapping[str, NDArray[Any]], *, texts_are_names: bool
    ) -> LabelSpace:
        """Make it again from `to_arrays`, on memory maps as they are.

        Raises
        ------
        InputError
            If the arrays do not belong together.
        """

        def column(name: str) -> TextColumn | None:
            if f"{name}.buffer" not in arrays:
                return None
            return TextColumn(arrays[f"{name}.buffer"], arrays[f"{name}.offsets"])

        names = column("names")
        return cls(n_labels, names, names if texts_are_names else column("texts"))

    def write(self, path: str | Path) -> None:
        """Write a labels file that `read` reads; the name alone where the text says no more.

        Raises
        ------
        InputError
            If the labels have no names.
        DataFormatError
            If a name is empty or holds a TAB, or a name or text holds a line end.
        """
        if self.names is None:
            raise InputError("The labels have no names, so there is no labels file to write.")
        with replacing(path) as stream:
            for number, (name, text) in enumerate(
                zip(self.names, self.texts or self.names, strict=True), start=1
            ):
                if not name.strip() or "\t" in name or any(end in name + text for end in "\r\n"):
                    message = (
                        f"The label {name!r} cannot be written: a name may not be empty or hold "
                        "a TAB, and neither a name nor a text may hold a line end."
                    )
                    raise DataFormatError(message, path=path, line=number)
                line = name if text in {"", name} else f"{name}\t{text}"
                stream.write(f"{line}\n".encode())

    @cached_property
    def ids_by_name(self) -> dict[str, int]:
        """The first id of every name; built when first asked for, and empty without names."""
        if self.names is None:
            return {}
        ids: dict[str, int] = {}
        for label, name in enumerate(self.names):
            ids.setdefault(name, label)
        return ids

    @cached_property
    def _further_ids(self) -> dict[str, list[int]]:
        """All ids but the first of each name that several labels share."""
        ids: dict[str, list[int]] = {}
        if self.names is not None and not self.names_are_unique:
            for label, name in enumerate(self.names):
                if self.ids_by_name[name] != label:
                    ids.setdefault(name, []).append(label)
        return ids

    @property
    def names_are_unique(self) -> bool:
        """Whether there are names and no two labels share one."""
        return self.names is not None and len(self.ids_by_name) == self.n_labels

    @property
    def shared_names(self) -> KeysView[str]:
        """Names that several labels share."""
        return self._further_ids.keys()

    def name(self, label: int) -> str:
        """Return the name of a label id, or the id as a string where labels have no names.

        Raises
        ------
        IndexError
            If there is no such label.
        """
        if not 0 <= label < self.n_labels:
            raise IndexError(f"label {label} of {self.n_labels}")
        return str(label) if self.names is None else self.names[label]

    def _found(self, name: str) -> int:
        """Return the first id of a name, or -1 if no label has it."""
        if self.names is not None:
            return self.ids_by_name.get(name, -1)
        label = int(name) if name.isdecimal() and len(name) <= MOST_DIGITS else -1
        return label if label < self.n_labels else -1

    def knows(self, name: str) -> bool:
        """Tell whether a label has the name.

        Examples
        --------
        >>> LabelSpace.from_names(["cats"]).knows("cats"), LabelSpace(5).knows("5")
        (True, False)
        """
        return self._found(name) >= 0

    def id_of(self, name: str) -> int:
        """Return the id of a name: the first one where several labels share it.

        Raises
        ------
        InputError
            If no label has this name, or it is no string.
        """
        check_name(name)
        label = self._found(name)
        if label < 0:
            raise InputError(
                f"None of the {self.n_labels:,} labels is named {name[:100]!r}. "
                "Names must match exactly, capital letters and spaces included."
            )
        return label

    def ids_of(self, name: str) -> list[int]:
        """Return the ids of all labels of a name, ascending.

        Raises
        ------
        InputError
            As `id_of` does.

        Examples
        --------
        >>> LabelSpace.from_names(["bank", "river", "bank"]).ids_of("bank")
        [0, 2]
        """
        return [self.id_of(name), *self._further_ids.get(name, ())]

    def extended(
        self, new_names: Iterable[str], new_texts: Iterable[str] | None = None
    ) -> LabelSpace:
        """Return a space with further labels behind the present ones; without texts, by name."""
        added = TextColumn.from_strings(new_names)
        if not len(added):
            return self
        texts = added if new_texts is None else TextColumn.from_strings(new_texts)
        return LabelSpace(
            self.n_labels + len(added),
            None if self.names is None else self.names.joined(added),
            None if self.texts is None else self.texts.joined(texts),
        )

    def with_texts(self, texts: Mapping[str, str]) -> LabelSpace:
        """Return a space with texts by name; names that are not here are further labels behind.

        Raises
        ------
        InputError
            If the labels have no names, or `texts` has none.

        Examples
        --------
        >>> space = LabelSpace.from_names(["cats"]).with_texts({"cats": "small", "dogs": "large"})
        >>> list(space.names), list(space.texts)
        (['cats', 'dogs'], ['small', 'large'])
        """
        if self.names is None:
            raise InputError(
                "Texts of labels belong to their names, and these labels have none. Pass the "
                "labels of each point as a list of names."
            )
        if not hasattr(texts, "keys"):
            raise InputError(f"Texts of labels are a dict, {{name: text}}, got {named(texts)}.")
        texts = dict(texts)
        for name, text in texts.items():
            if not isinstance(text, str):
                raise InputError(
                    f"The text of the label {name!r} is {text!r}, not a string. Pass a string; an "
                    "empty one stands for the name."
                )
        names = self.names.joined(
            TextColumn.from_strings(name for name in texts if name not in self.ids_by_name)
        )
        return LabelSpace.from_names(names, (texts.get(name) or name for name in names))


def in_ids_of(known: LabelSpace, dataset: Dataset) -> Dataset:
    """Return the same points with a model's label ids: matched by name where there are names.

    Raises
    ------
    InputError
        If `dataset` is something else, such as a list of texts, or cannot be matched.

    Examples
    --------
    A label that the model does not know comes behind those that it knows.

    >>> from longtail import Dataset
    >>> from longtail.data.label_space import LabelSpace, in_ids_of
    >>> known = LabelSpace.from_names(["yeast", "bread"])
    >>> dataset = Dataset.of(["how to knead"], [["bread", "baking"]])
    >>> in_ids_of(known, dataset).labels.toarray().tolist()
    [[0.0, 1.0, 1.0]]
    """
    if not hasattr(dataset, "label_space"):
        raise InputError(
            f"evaluate takes a Dataset, got {named(dataset)}. Pass what Dataset.read returns, or "
            "Dataset.of(texts, labels)."
        )
    return dataset if dataset.label_space.names is None else dataset.relabelled(known)
