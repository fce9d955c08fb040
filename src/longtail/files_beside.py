"""What users put beside a model, such as README.md: it stays when another model takes its place."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.errors import ModelFolderError
from longtail.folder_exchange import is_fixed, keep_files, read_whole
from longtail.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_files_beside", "files_beside", "keep_files_beside"]

_OURS = {".json", ".safetensors"}  # what the next model may have a file of


def files_beside(path: str | Path) -> list[str]:
    """Return what a user has put beside a model, by name: what stays when it is replaced.

    Parameters
    ----------
    path : str or Path
        A model folder; one that is none, or that is not there, has no such files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.files_beside import files_beside
    >>> from longtail.model_folder import write_model_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model_folder(folder, manifest={"n_labels": 2}, arrays={})
    ...     _ = Path(folder, "README.md").write_text("# Mine")
    ...     write_model_folder(folder, manifest={"n_labels": 3}, arrays={})
    ...     files_beside(folder)
    ['README.md']
    """
    try:
        return read_whole(Path(path), MANIFEST, partial(_names_beside, Path(path)))
    except ModelFolderError:
        return []


def keep_files_beside(target: Path, new: Path) -> None:
    """Let a user's files be in a new folder, too, before it takes the place of the old one.

    Parameters
    ----------
    target : Path
        With all links followed; a model, or nothing, may be there.
    new : Path
        From `new_folder_for`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.files_beside import keep_files_beside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep_files_beside(Path(folder, "none"), Path(folder))
    ...     list(Path(folder).iterdir())
    []
    """
    with suppress(ModelFolderError):  # there is no old one
        read_whole(target, MANIFEST, lambda: keep_files(target, new, _names_beside(target)))


def check_files_beside(target: Path, names: Iterable[str]) -> None:
    """Raise ModelFolderError unless all that is beside a model may stay.

    Parameters
    ----------
    target : Path
        The model folder, with all links followed.
    names : iterable of str
        What is in it, but for the model's files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.files_beside import check_files_beside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "notes.json").write_text("{}")
    ...     check_files_beside(Path(folder), ["notes.json"])
    Traceback (most recent call last):
        ...
    longtail.errors.ModelFolderError: ... is a model folder, but holds the file 'notes.json' ...
    """
    read_whole(target, MANIFEST, partial(_check_each, target, sorted(names)))


def _check_each(target: Path, names: Iterable[str]) -> None:
    """See `check_files_beside`; another process may just be exchanging the folder."""
    for name in names:
        place = target / name
        if not _may_stay(place):
            what = _kind_of(place)
            raise ModelFolderError(
                f"{target} is a model folder, but holds the {what} {name!r} besides, which "
                f"replacing the model would delete. Move that {what} away, or name another "
                "folder. Files such as README.md may stay, but neither folders, nor pipes, sockets "
                "and devices, nor names that end in .json or .safetensors."
            )
        if not (place.is_symlink() or os.access(place, os.R_OK) or is_fixed(target)):
            raise ModelFolderError(
                f"{target} is a model folder, but holds the file {name!r} besides, which you may "
                "not read, so that it could not stay beside the next model. Make it readable, move "
                "it away, or name another folder."
            )


def _names_beside(folder: Path) -> list[str]:
    """See `files_beside`; raise ModelFolderError where there is no model."""
    own = {MANIFEST, *read_manifest(folder).files}
    places = (place for place in folder.iterdir() if place.name not in own)
    return sorted(place.name for place in places if _may_stay(place))


def _may_stay(place: Path) -> bool:
    """Tell a file that no model will have, and that is none of a disk's own folders."""
    if place.suffix.lower() in _OURS:
        return False
    return place.is_file() or place.is_symlink()


def _kind_of(place: Path) -> str:
    """Return what is there, in a word."""
    if place.is_dir():
        return "folder"
    return "file" if place.is_file() or place.is_symlink() else "pipe, socket or device"
