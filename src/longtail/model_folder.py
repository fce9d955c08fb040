"""The saved form of a model: a folder of safetensors and JSON files, memory-mapped and checked.

::

    model/
    ├── manifest.json          what the model is; size and checksums of every other file
    ├── training.json          any further documents
    ├── labels.safetensors     the arrays named "labels/..."
    └── tokens.safetensors     the arrays named "tokens/..."

A folder appears under its name only when it is complete, so there is never half a model. Where a
folder cannot be renamed, as where a disk is mounted, its manifest appears last.

Users may put files of their own beside these, such as README.md: whatever takes the model's place
leaves them there.
"""

from __future__ import annotations

import copy
import hashlib
import json
import stat
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.array_file import (
    DTYPES,
    Layout,
    MappedArrays,
    layouts_in,
    map_bytes,
    read_header,
    write_arrays,
)
from longtail.errors import NO_SPACE, RETRAIN, InputError, ModelFolderError, about_home
from longtail.files_beside import check_files_beside, keep_files_beside
from longtail.folder_exchange import (
    check_writable,
    exchange,
    new_folder_for,
    read_whole,
    resolved,
    would_be_lost,
)
from longtail.manifest import (
    MANIFEST,
    FileRecord,
    Manifest,
    as_json,
    is_plain_name,
    read_json,
    read_manifest,
    sha256_of,
    write_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.named_parts import Arrays

    Document = dict[str, Any]

__all__ = ["ModelFolder", "check_outside", "check_target", "write_model_folder"]


def write_model_folder(
    path: str | Path,
    *,
    manifest: Mapping[str, Any],
    arrays: Arrays,
    documents: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    """Save a model as a folder; an older model of that name is replaced once this is complete.

    Files of the user's own that lie beside the older one stay: see `check_target`.

    Parameters
    ----------
    path : str or Path
        The folder. Missing parents are made.
    manifest : dict
        What the model is, as JSON values.
    arrays : mapping of str to array
        Named ``"group/name"``; each group becomes one file ``group.safetensors``, and a name
        without a group goes to ``arrays.safetensors``. Booleans, integers, and floats of 16, 32
        and 64 bits; not zero-dimensional. C-ordered arrays are written without a copy.
    documents : mapping of str to dict, optional
        Further JSON files by name, such as ``{"training.json": {...}}``.

    Raises
    ------
    InputError
        If an array, a name or a value cannot be saved.
    ModelFolderError
        If `path` is something other than a model folder, or the disk refuses; then nothing is
        left behind and an older model stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from longtail.model_folder import ModelFolder, write_model_folder
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_model_folder(
    ...         f"{place}/model",
    ...         manifest={"n_labels": 2},
    ...         arrays={"labels/vectors": np.eye(2, dtype=np.float32)},
    ...     )
    ...     model = ModelFolder.open(f"{place}/model")
    ...     model.manifest, model.arrays["labels/vectors"].tolist()
    ({'n_labels': 2}, [[1.0, 0.0], [0.0, 1.0]])
    """
    groups = _group_arrays(arrays)
    texts = {name: as_json(name, document) for name, document in documents.items()}
    _check_document_names(texts, groups)
    content = json.loads(as_json("The manifest", manifest))
    old = check_target(path)
    target = Path(path).resolve()
    try:
        with new_folder_for(target) as new:
            _write_files(new, content, groups, texts)
            keep_files_beside(target, new)
            exchange(new, target, last=MANIFEST, old=old)
    except OSError as error:
        raise ModelFolderError(_explain_write_failure(target, error)) from error


def check_outside(path: str | Path) -> None:
    """Raise ModelFolderError if a path is in a model folder: the next model could not be told of.

    Examples
    --------
    >>> from longtail.model_folder import check_outside
    >>> check_outside("metrics.json")
    """
    folder = resolved(path).parent
    if not (folder / MANIFEST).is_file():
        return
    try:
        read_manifest(folder)
    except ModelFolderError:  # another program's
        return
    raise ModelFolderError(
        f"{path} is in the model folder {folder}, where it would stay beside the next model that "
        "takes this one's place. Name a place elsewhere."
    )


def check_target(path: str | Path) -> set[str]:
    """Raise unless a model can be saved at `path`; worth calling before hours of training.

    Parameters
    ----------
    path : str or Path
        May be missing, an empty folder, or a model folder. Further files in that stay, but for
        what `longtail.files_beside` refuses: folders, and names that end in ``.json`` or
        ``.safetensors``, as the next model may have a file of that name.

    Returns
    -------
    set of str
        The files of the model that is there now.

    Raises
    ------
    ModelFolderError
        If something else is there, which saving would delete, nothing can be written there, it is
        in another model's folder, or the path is ``-`` or empty, or begins with a ``~`` that nobody
        has expanded.

    Examples
    --------
    >>> from longtail.model_folder import check_target
    >>> check_target("a/new/folder")
    set()
    """
    if str(path) in {"", "-"}:
        what = "- (standard output)" if str(path) else "an empty name"
        raise ModelFolderError(f"A model is a folder, which {what} is not. Name one.")
    if at_home := about_home(path):  # else a folder of that name would be made
        raise ModelFolderError(f"The model folder {path} cannot be made.{at_home}")
    target = resolved(path)
    if _is_no_folder(target):
        raise ModelFolderError(f"{target} is a file. Name a new folder for the model.")
    check_outside(target)
    check_writable(target)
    try:
        present, own = read_whole(target, MANIFEST, partial(_names_in, target))
    except ModelFolderError as error:
        raise ModelFolderError(
            f"{target} holds files but is not a model folder that may be replaced. "
            f"Name another folder, or delete this one yourself. ({error})"
        ) from error
    check_files_beside(target, present - own)
    return own


def _is_no_folder(path: Path) -> bool:
    """Tell what is something else than a folder, in one look: another may just exchange it."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _names_in(target: Path) -> tuple[set[str], set[str]]:
    """Return what would be lost with a folder, and which files are of the model in it."""
    present = would_be_lost(target) if target.exists() else set()
    return present, {MANIFEST, *read_manifest(target).files} if present else set()


def _group_arrays(arrays: Arrays) -> dict[str, dict[str, NDArray[np.generic]]]:
    """Sort the arrays into files, each C-ordered and little-endian, as safetensors needs them."""
    groups: dict[str, dict[str, NDArray[np.generic]]] = {}
    for name, array in arrays.items():
        group = name.partition("/")[0] if "/" in name else "arrays"
        _check_file_name(f"{group}.safetensors", f"The group of array {name!r}")
        dtype = np.asarray(array).dtype.newbyteorder("<")
        if dtype not in DTYPES.values():
            allowed = ", ".join(kind.name for kind in DTYPES.values())
            raise InputError(
                f"Array {name!r} has dtype {array.dtype}, which cannot be saved. Use one of: "
                f"{allowed}."
            )
        if array.ndim == 0:
            raise InputError(
                f"Array {name!r} is zero-dimensional. Put single numbers into the manifest."
            )
        file_arrays = groups.setdefault(f"{group}.safetensors", {})
        file_arrays[name] = np.ascontiguousarray(array, dtype=dtype)
    return groups


def _check_file_name(name: str, what: str) -> None:
    """Refuse names that would leave the folder or be hidden in it."""
    if not is_plain_name(name):
        raise InputError(
            f"{what} makes the file name {name!r}, which is not allowed. Use letters, digits, "
            "'_', '-' and '.', beginning with a letter or digit."
        )


def _check_document_names(texts: Mapping[str, str], groups: Mapping[str, object]) -> None:
    """Refuse document names that are not plain JSON file names or are taken."""
    for name in texts:
        _check_file_name(name, "A document")
        if not name.endswith(".json") or name == MANIFEST or name in groups:
            raise InputError(
                f"A document cannot be named {name!r}. Use a name that ends in .json, other than "
                f"{MANIFEST}."
            )


def _write_files(
    folder: Path,
    content: Document,
    groups: Mapping[str, dict[str, NDArray[np.generic]]],
    texts: Mapping[str, str],
) -> None:
    """Write all files of a model, the manifest last."""
    for name, arrays in groups.items():
        write_arrays(folder / name, arrays)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    write_manifest(folder, content, [*groups, *texts])


def _explain_write_failure(target: Path, error: OSError) -> str:
    """Say that nothing was left behind, and what to do."""
    is_full = error.errno in NO_SPACE
    cause = "the disk is full" if is_full else f"writing failed ({error})"
    advice = "Free some space" if is_full else "Make the place writable"
    return (
        f"The model was not saved to {target}: {cause}. Nothing was left behind there. "
        f"{advice}, or name another place, and save again."
    )


class ModelFolder:
    """An opened model folder, made by `ModelFolder.open`.

    Attributes
    ----------
    path : Path
    manifest : dict
        What the writer passed as `manifest`.
    arrays : mapping of str to array
        Read-only views of memory maps: nothing is read from disk before it is used.
    files : mapping of str to int
        The size of every file but the manifest, in bytes.
    checksum : str
        Of the manifest, and so of all: no other model has the same.
    version : str
        Of the longtail that wrote it.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        arrays: Arrays,
        unread: Mapping[Path, tuple[NDArray[np.uint8], str]],
        documents: Mapping[str, Document],
    ) -> None:
        self.path = path
        self.manifest: Document = manifest.content
        self.checksum: str = manifest.checksum
        self.version: str = manifest.version
        sizes = {name: file.size for name, file in manifest.files.items()}
        self.files: Mapping[str, int] = MappingProxyType(sizes)
        self.arrays = arrays
        self._documents = documents
        self._unread = unread  # maps of files, and the checksums that they have yet to match

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> ModelFolder:
        """Open a folder and check that it is whole.

        Parameters
        ----------
        path : str or Path
        verify : bool, default False
            Also read every file and compare its checksum. Without it only sizes, headers and all
            documents are checked, which takes no time.

        Raises
        ------
        ModelFolderError
            If the folder is missing, foreign, damaged, or written by a newer longtail.
        """
        if not str(path):
            raise ModelFolderError("An empty path names no model folder. Name one.")
        return read_whole(Path(path), MANIFEST, lambda: cls._read(Path(path), verify=verify))

    @classmethod
    def _read(cls, folder: Path, *, verify: bool) -> ModelFolder:
        """See `open`."""
        if not folder.is_dir():
            there_is = "There is a file, and no" if folder.is_file() else "There is no"
            raise ModelFolderError(
                f"{there_is} model folder at {folder}. Check the path, or train a model into it."
                f"{about_home(folder)}"
            )
        manifest = read_manifest(folder)
        arrays: dict[str, tuple[NDArray[np.uint8], Layout]] = {}
        unread: dict[Path, tuple[NDArray[np.uint8], str]] = {}
        documents: dict[str, Document] = {}
        for name, record in manifest.files.items():
            _check_file(folder / name, record, verify=verify or name.endswith(".json"))
            if name.endswith(".safetensors"):
                buffer = map_bytes(folder / name)
                arrays.update(_find_arrays(folder / name, record, buffer))
                unread[folder / name] = buffer, record.sha256
            elif name.endswith(".json"):  # now: later there may be another model's of that name
                documents[name] = read_json(folder / name)
        return cls(folder, manifest, MappedArrays(arrays), {} if verify else unread, documents)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every file by name, in bytes; those of `files`, and the manifest's."""
        return {**self.files, MANIFEST: (self.path / MANIFEST).stat().st_size}

    def check_arrays(self) -> None:
        """Read every file of arrays, as it is mapped, and compare its checksum, if `open` did not.

        Raises
        ------
        ModelFolderError
            If one is damaged.
        """
        for path, (buffer, sha256) in self._unread.items():
            if hashlib.sha256(buffer.data).hexdigest() != sha256:
                raise _damaged(path)
        self._unread = {}

    def documents(self) -> dict[str, Document]:
        """Return all further JSON files of the folder by name; see `document`."""
        return copy.deepcopy(dict(self._documents))

    def document(self, name: str) -> Document:
        """Return a further JSON file of the folder, such as ``"training.json"``.

        Raises
        ------
        ModelFolderError
            If the model has no such document.
        """
        if name not in self._documents:
            names = ", ".join(self._documents) or "none"
            raise ModelFolderError(f"{self.path} has no document {name!r}. It has: {names}.")
        return copy.deepcopy(self._documents[name])


def _check_file(path: Path, record: FileRecord, *, verify: bool) -> None:
    """Check that a file is there and has its size and, if asked, its checksum."""
    if not path.is_file():
        raise ModelFolderError(f"{path} is missing from the model. {RETRAIN}")
    size = path.stat().st_size
    if size != record.size:
        kind = "truncated" if size < record.size else "too long"
        raise ModelFolderError(
            f"{path} is {kind}: it has {size:,} bytes, expected {record.size:,}. {RETRAIN}"
        )
    if verify and sha256_of(path) != record.sha256:
        raise _damaged(path)


def _damaged(path: Path) -> ModelFolderError:
    """Return what is said of a file that is not the one that was written."""
    return ModelFolderError(f"{path} is damaged: its checksum differs. {RETRAIN}")


def _find_arrays(
    path: Path, record: FileRecord, buffer: NDArray[np.uint8]
) -> dict[str, tuple[NDArray[np.uint8], Layout]]:
    """Find the arrays of a file in its map, whose header must be the one that was written."""
    header = read_header(path)
    if hashlib.sha256(header).hexdigest() != record.header_sha256:
        raise ModelFolderError(
            f"{path} does not belong to this model: its header is not the one that was written. "
            f"{RETRAIN}"
        )
    layouts = layouts_in(path, header, record.size)
    return {name: (buffer, layout) for name, layout in layouts.items()}
