"""A data set as a folder of ``.npy`` files, opened as memory maps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from longtail.data.label_space import LabelSpace
from longtail.data.matrix_files import BROKEN
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.folder_exchange import exchange, new_folder_for, read_whole, resolved

if TYPE_CHECKING:
    from pathlib import Path

    from longtail.data.dataset import Dataset

__all__ = ["open_parts", "save_parts"]

_FORMAT = "longtail-dataset"
_VERSION = 1
_FACTS = "dataset.json"

Parts: TypeAlias = "tuple[TextColumn | None, csr_array | None, csr_array, LabelSpace]"


def save_parts(folder: Path, dataset: Dataset) -> None:
    """Write the folder under another name, then put it into place; see `Dataset.save`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.storage import save_parts
    >>> with tempfile.TemporaryDirectory() as place:
    ...     save_parts(pathlib.Path(place, "train"), Dataset.of(["how to knead"], [[0]]))
    ...     sorted({file.name.split(".")[0] for file in pathlib.Path(place, "train").iterdir()})
    ['dataset', 'labels', 'texts']
    """
    folder = resolved(folder)
    old = _replaced(folder) if folder.exists() else set()
    features, space = dataset.features, dataset.label_space
    with new_folder_for(folder) as partial:
        _save_column(partial, "texts", dataset.texts)
        _save_column(partial, "label_names", space.names)
        if not space.texts_are_names:
            _save_column(partial, "label_texts", space.texts)
        _save_matrix(partial, "features", features)
        _save_matrix(partial, "labels", dataset.labels)
        facts = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "n_points": dataset.n_points,
            "n_labels": space.n_labels,
            "n_features": None if features is None else features.shape[1],
            "label_texts_are_names": space.texts_are_names,
        }
        (partial / _FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        exchange(partial, folder, last=_FACTS, old=old)


def _replaced(folder: Path) -> set[str]:
    """Return the files of a saved data set; raise InputError unless all there is its own."""
    if not (folder / _FACTS).is_file():
        raise InputError(f"{folder} exists and is not a saved data set. Choose another name.")
    names = {entry.name for entry in folder.iterdir()}
    foreign = sorted(name for name in names - {_FACTS} if not name.endswith(".npy"))
    if foreign:
        raise InputError(
            f"{folder} holds {foreign[0]}, which saving would delete. Move it, or choose another "
            "name."
        )
    return names


def open_parts(folder: Path) -> Parts:
    """Map the folder's arrays into memory; see `Dataset.open`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.storage import open_parts
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Dataset.of(["how to knead"], [["bread"]]).save(f"{place}/train")
    ...     texts, features, labels, space = open_parts(pathlib.Path(place, "train"))
    >>> list(texts), features, labels.toarray().tolist(), list(space.names)
    (['how to knead'], None, [[1.0]], ['bread'])
    """
    return read_whole(folder, _FACTS, lambda: _read_parts(folder))


def _read_parts(folder: Path) -> Parts:
    """See `open_parts`."""
    facts = _read_facts(folder)
    try:
        names = _open_column(folder, "label_names")
        shared = facts["label_texts_are_names"]
        space = LabelSpace(
            facts["n_labels"], names, names if shared else _open_column(folder, "label_texts")
        )
        features = None
        if facts["n_features"] is not None:
            features = _open_matrix(folder, "features", (facts["n_points"], facts["n_features"]))
        labels = _open_matrix(folder, "labels", (facts["n_points"], facts["n_labels"]))
        return _open_column(folder, "texts"), features, labels, space
    except (OSError, *BROKEN) as error:
        raise InputError(
            f"The saved data set {folder} is damaged ({error}). Save it again."
        ) from error


def _read_facts(folder: Path) -> dict[str, Any]:
    """Check that this is a folder of ours, of a version that we know."""
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder} is not a saved data set: {_FACTS} cannot be read. "
            "Make one with Dataset.save."
        ) from error
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise InputError(
            f"{folder / _FACTS} does not describe a data set of longtail. Make one with "
            "Dataset.save."
        )
    if facts.get("format_version") != _VERSION:
        raise InputError(
            f"{folder} has format version {facts.get('format_version')}, and this longtail reads "
            f"{_VERSION}. Upgrade longtail, or save the data set again."
        )
    return facts


def _save_column(folder: Path, name: str, column: TextColumn | None) -> None:
    """Write two files for a column, if there is one."""
    if column is not None:
        np.save(folder / f"{name}.buffer.npy", column.buffer)
        np.save(folder / f"{name}.offsets.npy", column.offsets)


def _open_column(folder: Path, name: str) -> TextColumn | None:
    """Map a column, or return None where there is none."""
    if not (folder / f"{name}.buffer.npy").exists():
        return None
    column = TextColumn(_map(folder, f"{name}.buffer"), _map(folder, f"{name}.offsets"))
    if (column.offsets[1:] < column.offsets[:-1]).any():
        raise InputError(f"a text of {name} ends before it starts")
    return column


def _save_matrix(folder: Path, name: str, matrix: csr_array | None) -> None:
    """Write three files for a matrix, if there is one."""
    if matrix is not None:
        for part in ("data", "indices", "indptr"):
            np.save(folder / f"{name}.{part}.npy", getattr(matrix, part))


def _open_matrix(folder: Path, name: str, shape: tuple[int, int]) -> csr_array:
    """Map a matrix; scipy keeps the maps as they are because their types already agree.

    Where rows start and the ids in them are looked at: compiled code follows them blindly.
    """
    data, indices, indptr = (
        _map(folder, f"{name}.{part}") for part in ("data", "indices", "indptr")
    )
    matrix = csr_array((data, indices, indptr), shape=shape)
    matrix.check_format()
    return matrix


def _map(folder: Path, name: str) -> Any:
    """Map one array, read-only."""
    return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
