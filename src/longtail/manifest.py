"""The manifest of a model folder: what the model is, and what all its other files must be."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail import __version__
from longtail.array_file import read_header
from longtail.errors import RETRAIN, InputError, ModelFolderError, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    Document = dict[str, Any]

__all__ = [
    "MANIFEST",
    "FileRecord",
    "Manifest",
    "as_json",
    "is_plain_name",
    "read_json",
    "read_manifest",
    "sha256_of",
    "write_manifest",
]

MANIFEST = "manifest.json"
FORMAT = "longtail-model"
FORMAT_VERSION = 1

_PLAIN_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class FileRecord:
    """What the manifest says of another file.

    Parameters
    ----------
    size : int
        In bytes.
    sha256 : str
        Of the whole file, in hexadecimal digits.
    header_sha256 : str
        Of the header of a safetensors file; empty for a document.
    """

    size: int
    sha256: str
    header_sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Measure a file that was just written."""
        is_safetensors = path.suffix == ".safetensors"
        header_sha256 = hashlib.sha256(read_header(path)).hexdigest() if is_safetensors else ""
        return cls(path.stat().st_size, sha256_of(path), header_sha256)


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read and is whole.

    Parameters
    ----------
    content : dict
        What the writer said of the model, as JSON values.
    files : dict of str to FileRecord
        Every other file of the folder, by name.
    checksum : str
        The SHA-256 of the manifest's content, and so of all: no other model has the same.
    version : str
        Of the longtail that wrote it.
    """

    content: Document
    files: dict[str, FileRecord]
    checksum: str
    version: str


def write_manifest(folder: Path, content: Document, names: Iterable[str]) -> None:
    """Write the manifest of files that are there already.

    Parameters
    ----------
    folder : Path
    content : dict
        What the model is, as JSON values.
    names : iterable of str
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.manifest import read_manifest, write_manifest
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "training.json").write_text("{}")
    ...     write_manifest(Path(place), {"n_labels": 2}, ["training.json"])
    ...     manifest = read_manifest(Path(place))
    >>> manifest.content, manifest.files["training.json"].size
    ({'n_labels': 2}, 2)
    """
    body: Document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "longtail_version": __version__,
        "manifest": content,
        "files": {name: asdict(FileRecord.of(folder / name)) for name in sorted(names)},
    }
    body["checksum"] = _checksum(body)
    text = as_json(MANIFEST, body)
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a model folder.

    Raises
    ------
    ModelFolderError
        If there is none, or it is damaged, foreign, or written by a newer longtail.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelFolderError(
            f"{folder} is not a longtail model folder: it has no {MANIFEST}. "
            "Name the folder that `longtail train --model` or `.save` wrote."
        )
    body = read_json(path)
    if body.get("format") != FORMAT:
        raise ModelFolderError(
            f"{folder} is not a longtail model folder: {MANIFEST} says format "
            f"{body.get('format')!r}, expected {FORMAT!r}."
        )
    found = body.get("format_version")
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} has format version {found}, this longtail reads up to {FORMAT_VERSION}. "
            f"Install longtail {body.get('longtail_version')} or newer."
        )
    checksum = body.pop("checksum", None)
    if found != FORMAT_VERSION or checksum != _checksum(body):
        raise ModelFolderError(f"{path} was changed after it was written. {RETRAIN}")
    try:
        files = {name: _as_record(path, name, entry) for name, entry in body["files"].items()}
        return Manifest(body["manifest"], files, checksum, str(body["longtail_version"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"{path} lacks a part ({error!r}). {RETRAIN}") from error


def _as_record(manifest_path: Path, name: str, entry: Document) -> FileRecord:
    """Make a file record, refusing a name that leads out of the folder."""
    if not is_plain_name(name) or name == MANIFEST:
        raise ModelFolderError(
            f"{manifest_path} lists the file {name!r}, which is not a plain name inside the "
            "folder. Do not use this model unless you trust where it came from."
        )
    return FileRecord(**entry)


def is_plain_name(name: str) -> bool:
    """Tell the name of a file inside a folder, and not hidden there, from a path that leads out.

    Examples
    --------
    >>> from longtail.manifest import is_plain_name
    >>> is_plain_name("labels.safetensors"), is_plain_name("../labels"), is_plain_name(".labels")
    (True, False, False)
    """
    return _PLAIN_NAME.fullmatch(name) is not None


def as_json(what: str, content: Mapping[str, Any]) -> str:
    """Write JSON that any reader takes: no NaN, no Python objects.

    Raises
    ------
    InputError
        If there are such, in `what`.

    Examples
    --------
    >>> from longtail.manifest import as_json
    >>> as_json("The manifest", {"scale": float("nan")})
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: The manifest cannot be saved as JSON: ...
    """
    try:
        text = json.dumps(
            dict(content), indent=2, ensure_ascii=False, allow_nan=False, default=_as_python
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be saved as JSON: {error}.") from error
    return text + "\n"


def _as_python(value: Any) -> Any:
    """Return one of numpy's numbers as Python's: settings out of a range of numpy's are such."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{named(value)} is no JSON value")


def read_json(path: Path) -> Document:
    """Read a JSON object.

    Raises
    ------
    ModelFolderError
        If the file holds none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{path} is not valid JSON ({error}). {RETRAIN}") from error
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path} does not hold a JSON object. {RETRAIN}")
    return content


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the manifest's content, however it is laid out."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
