"""From the labels of one point at a time to a CSR matrix and a label space."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from longtail.data.csr import MAX_IDS, csr_from_rows, n_labels_of
from longtail.data.label_names import (
    as_seen,
    is_list_text,
    remark_on_packed,
    remark_on_twins,
    written_id,
)
from longtail.data.label_space import LabelSpace
from longtail.errors import DataFormatError, InputError, Remedy, require_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.input_notes import InputNotes

__all__ = ["LabelRows", "UnknownLabels"]

UnknownLabels = Literal["error", "extend", "skip"]

# What programs write where there is no value.
_MISSING = ("nan", "NaN", "NAN", "None", "null", "NULL", "<NA>", "#N/A")

_SHARED = (
    "labels by a name that several lines of the labels file share (the first is taken: write ids "
    "in place of names)"
)
_SKIP = Remedy("unknown_labels", "Or read with {}'skip' (drop it).")
_EXTEND_OR_SKIP = Remedy(
    "unknown_labels", "Or read with {}'extend' (count it) or 'skip' (drop it)."
)


class LabelRows:
    """Collects the labels of a file, point after point, as names or as ids.

    Parameters
    ----------
    path : str or Path
        The file, for error messages.
    notes : InputNotes
        Where repeated, missing and skipped labels are counted.
    known : LabelSpace, optional
        The labels there are: names are looked up in it and ids must lie in it. Without it, names
        get ids in order of first appearance, and ids are taken as they are.
    unknown : {"error", "extend", "skip"}
        What to do with a label that `known` has not: refuse the file, give it a new id behind
        the known ones, or leave it out and count it.
    ids_are_lines : bool
        Ids are the lines of a labels file, so that an id behind the last one means nothing and
        gets no new label.

    Examples
    --------
    >>> from longtail.data.input_notes import InputNotes
    >>> rows = LabelRows("train.jsonl", notes=InputNotes("train.jsonl"))
    >>> rows.add_names(["b", "a"], line=1)
    >>> rows.add_names(["a"], line=2)
    >>> labels, space = rows.finish()
    >>> labels.toarray().tolist(), list(space.names)
    ([[1.0, 1.0], [0.0, 1.0]], ['b', 'a'])
    """

    def __init__(
        self,
        path: str | Path,
        *,
        notes: InputNotes,
        known: LabelSpace | None = None,
        unknown: UnknownLabels = "error",
        ids_are_lines: bool = False,
    ) -> None:
        require_one_of("unknown_labels", unknown, get_args(UnknownLabels))
        self.path = path
        self.notes = notes
        self._known = known
        self._unknown = unknown
        self._ids_are_lines = ids_are_lines
        self._kind: Literal["names", "ids"] | None = None
        self._new_ids: dict[str, int] = {}
        self.n_declared: int | None = None  # labels that the file itself says it has
        self._indices = array("i")
        self._lengths = array("q")

    def __len__(self) -> int:
        return len(self._lengths)

    def takes_names(self, names: Sequence[str]) -> bool:
        """Tell whether ids that a file has names for are to be read as these.

        Not if they are the lines of a labels file, or labels are known that have other names.
        """
        known = self._known
        is_known = known is None or any(name in known.ids_by_name for name in names)
        return is_known and not self._ids_are_lines

    def declare(self, n_labels: int, *, line: int | None = 1) -> None:
        """Take the number of labels that the header in a line says, or without one the columns.

        Raises
        ------
        DataFormatError
            If a labels file has another number: it belongs to another data set.
        """
        if self._ids_are_lines and self._known is not None and n_labels != self._known.n_labels:
            message = (
                f"{'The matrix has' if line is None else 'The header says'} {n_labels} labels, but "
                f"the labels file has {self._known.n_labels}. Pass the labels file that belongs to "
                "these points."
            )
            raise self._error(message, line=line)
        self.n_declared = n_labels

    def add_names(self, names: Sequence[str], *, line: int) -> None:
        """Add one point's label names.

        Raises
        ------
        DataFormatError
            If a name is unknown and must not be, or is empty, or the text of a list, or the file
            had ids before.
        """
        if names:
            self._expect("names", line)
        ids = [self._id_of(name, line) for name in names]
        self._append([label for label in ids if label >= 0], line)

    def add_ids(self, ids: Sequence[int], *, line: int) -> None:
        """Add one point's label ids.

        Raises
        ------
        DataFormatError
            If an id is out of range, or the file had names before.
        """
        if ids:
            self._expect("ids", line)
            self._check_range(ids, line)
            if self._known is not None and max(ids) >= self._known.n_labels:
                ids = self._known_ids(ids, line)
        self._append(ids, line)

    def finish(self) -> tuple[csr_array, LabelSpace]:
        """Return the labels, float32 ones of shape (n_points, n_labels), and their space."""
        indices = np.frombuffer(self._indices, dtype=np.int32)
        lengths = np.frombuffer(self._lengths, dtype=np.int64)
        space = self._space(indices)
        return csr_from_rows(indices, lengths, space.n_labels), space

    def _space(self, ids: NDArray[np.int32]) -> LabelSpace:
        """Settle the labels that there are, now that all of the file was seen."""
        if self._kind == "names":
            if self._known is None:
                if max(self._lengths, default=0) <= 1:
                    remark_on_packed(self.notes, self._new_ids, ids, _packed_name)
                self._remark_on_missing()
                remark_on_twins(self.notes, self._new_ids)
                return LabelSpace.from_names(self._new_ids)
            return self._known.extended(self._new_ids)
        if self.n_declared is not None and self._known is None:
            return LabelSpace(self.n_declared)
        try:
            n_used = n_labels_of(ids)
        except InputError as error:
            raise DataFormatError(str(error), path=self.path) from error
        if self._known is None:
            return LabelSpace(n_used)
        return self._known.extended(map(str, range(self._known.n_labels, n_used)))

    def _error(self, message: str, *remedies: Remedy, line: int | None) -> DataFormatError:
        """Return an error of a line, or of a row."""
        return DataFormatError(message, *remedies, path=self.path, line=line, unit=self.notes.unit)

    def _append(self, ids: Sequence[int], line: int) -> None:
        """Store one row, sorted and without repeats."""
        row = sorted(set(ids)) if len(ids) > 1 else ids
        if not row:
            self.notes.add("points without labels (kept)", line=line)
        elif len(row) < len(ids):
            self.notes.add("points with a label twice (merged)", line=line)
        self._indices.extend(row)
        self._lengths.append(len(row))

    def _expect(self, kind: Literal["names", "ids"], line: int) -> None:
        """Hold a file to one way of naming labels: mixing them is a mistake we cannot resolve."""
        if self._kind is None:
            self._kind = kind
        elif self._kind != kind:
            message = (
                f"The labels are {kind} here but {self._kind} further up. Use either names "
                "(strings) or ids (whole numbers) throughout a file."
            )
            raise self._error(message, line=line)

    def _id_of(self, name: str, line: int) -> int:
        """Look a name up; -1 means: leave it out."""
        if self._known is not None and self._known.names is None:
            return self._written_id(name, self._known.n_labels, line)
        label = -1 if self._known is None else self._known.ids_by_name.get(name, -1)
        if self._known is not None and label >= 0:
            if self._ids_are_lines and name in self._known.shared_names:
                self.notes.add(_SHARED, line=line)
            return label
        if self._known is None or self._unknown == "extend":
            if name not in self._new_ids:
                self._check_name(name, line)
            n_known = 0 if self._known is None else self._known.n_labels
            return self._new_ids.setdefault(name, n_known + len(self._new_ids))
        if self._unknown == "skip":
            self.notes.add("unknown labels (skipped)", line=line)
            return -1
        message = self._unknown_name(name, self._known)
        raise self._error(message, _EXTEND_OR_SKIP, line=line)

    def _unknown_name(self, name: str, known: LabelSpace) -> str:
        """Say that no known label has a name, and what to do."""
        which = "names of the labels file" if self._ids_are_lines else "known ones"
        remedy = "it, or add a line with it to that file" if self._ids_are_lines else "it"
        seen_as = as_seen(name)
        twin = next((other for other in known.names or () if as_seen(other) == seen_as), None)
        near = "" if twin is None else f" It looks like {twin!r}, which is another name."
        return (
            f"The label {name!r} is none of the {known.n_labels:,} {which}.{near} Correct {remedy}."
        )

    def _written_id(self, name: str, n_labels: int, line: int) -> int:
        """Take a name for an id: others mean nothing to a model that was trained on ids alone."""
        label = written_id(name, n_labels)
        if label < 0:
            message = (
                f"The labels are names, such as {name!r}, but the known labels have ids only, from "
                f"0 to {n_labels - 1}. Use ids, or train with a labels file."
            )
            raise self._error(message, line=line)
        return label

    def _check_name(self, name: str, line: int) -> None:
        """Refuse a new name that is none, or the text of a list of names."""
        message = ""
        if not name.strip():
            message = (
                f"A label has no name, got {name!r}. Write its name, or leave it out: a point may "
                "have no labels."
            )
        elif is_list_text(name):
            message = (
                f"The label {name[:60]!r} is the text of a list. Write each label by itself: "
                "separated by '|' in TSV and CSV, as strings of a list in JSON lines and Parquet."
            )
        if message:
            raise self._error(message, line=line)

    def _remark_on_missing(self) -> None:
        """Say so if a label is called what programs write for none."""
        for name in _MISSING:
            if name in self._new_ids:
                self.notes.remark(
                    f"{name!r} is taken as the name of a label: if it stands for no label, leave "
                    "the cell empty in TSV and CSV, and write an empty list in JSON lines"
                )

    def _check_range(self, ids: Sequence[int], line: int) -> None:
        """Refuse ids that no label can have."""
        if min(ids) < 0:
            message = f"The label id {min(ids)} is negative. Ids are whole numbers from 0."
            raise self._error(message, line=line)
        limit = MAX_IDS if self.n_declared is None else self.n_declared
        if max(ids) >= limit:
            message = (
                f"The label id {max(ids)} is out of range: ids run from 0 to {limit - 1}. "
                "Correct the id, or the number of labels in the header if there is one."
            )
            if max(ids) == self.n_declared:
                message += " If all ids count from 1, subtract 1 from each."
            raise self._error(message, line=line)

    def _known_ids(self, ids: Sequence[int], line: int) -> Sequence[int]:
        """Handle ids behind the last known one as `unknown` says."""
        if self._known is None or (self._unknown == "extend" and not self._ids_are_lines):
            return ids
        n_labels = self._known.n_labels
        if self._unknown == "skip":
            for _ in (label for label in ids if label >= n_labels):
                self.notes.add("unknown labels (skipped)", line=line)
            return [label for label in ids if label < n_labels]
        what = f"there are {n_labels:,} labels, from 0 to {n_labels - 1}. Correct it"
        ways = _EXTEND_OR_SKIP
        if self._ids_are_lines:
            what = (
                f"the labels file has {n_labels:,} lines, for the ids 0 to {n_labels - 1}. Pass "
                "the labels file that belongs to these points"
            )
            ways = _SKIP
        message = f"The label id {max(ids)} is out of range: {what}."
        raise self._error(message, ways, line=line)


def _packed_name(_: str, example: str) -> str:
    """Say which name looks like several, and what to do."""
    return (
        f"such as {example[:60]!r}, and is taken as one name: if these are several labels, pass "
        "what separates them as label_separator (--label-separator); where nothing is passed, "
        "that is '|' in TSV and CSV, and in JSON lines a list"
    )
