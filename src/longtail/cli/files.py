"""Files that a command reads and writes, which are looked at before the work; - is a stream."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.commands import check_file
from longtail.cli.notices import notice
from longtail.cli.output import one_line, result
from longtail.data.files import STDIN, check_place, is_device, replacing
from longtail.errors import RETRAIN, InputError, ModelFolderError
from longtail.files_beside import files_beside
from longtail.folder_exchange import resolved
from longtail.model_folder import check_outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "CARD",
    "TRAINING",
    "check_inputs",
    "check_output",
    "is_stdout",
    "reading_training",
    "say_what_stayed",
    "write_json",
    "write_text",
]

CARD = "README.md"  # in a model folder, what users say of it, or a model card
TRAINING = "training.json"  # in a model folder, how training went

_STDOUT = "-"


def is_stdout(path: Path | None) -> bool:
    """Tell whether an output goes to standard output: ``-``, or none that is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.files import is_stdout
    >>> is_stdout(None), is_stdout(Path("-")), is_stdout(Path("answers.jsonl"))
    (True, True, False)
    """
    return path is None or str(path) == _STDOUT


def check_inputs(*names: str | None) -> None:
    """Raise InputError if a file is not there, or standard input is named more than once.

    Examples
    --------
    >>> from longtail.cli.files import check_inputs
    >>> check_inputs("-", None)
    >>> check_inputs("-", "-")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: Standard input (-) is named 2 times, but it can be read only ...
    """
    for name in names:
        if name not in {None, STDIN}:
            check_file(str(name))
    count = names.count(STDIN)
    n_processes = os.environ.get("WORLD_SIZE", "1")  # as launchers of several tell each of them
    if count and n_processes not in {"", "1"}:
        raise InputError(
            f"Standard input (-) can be read by one process, and there are {n_processes} of them. "
            "Name a file."
        )
    if count > 1:
        raise InputError(
            f"Standard input (-) is named {count} times, but it can be read only once. Name files "
            "for the others."
        )


def check_output(
    path: Path, *, read: Iterable[str | Path | None] = (), beside: str | Path | None = None
) -> None:
    """Raise InputError if a file cannot be written there; better now than after the work.

    Parameters
    ----------
    path : Path
        ``-`` is standard output.
    read : iterable of str, Path or None
        Files that the command reads, which the output must not replace, and folders, in which it
        would be read the next time.
    beside : str or Path, optional
        A model folder in which the file may be, as it describes that model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.files import check_output
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "points.jsonl")
    ...     _ = file.write_text("{}")
    ...     check_output(file, read=[file])
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: ... is read by this command and would be lost. Name another file.
    """
    if is_stdout(path):
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file.")
    check_place(path)
    if is_device(path):
        return
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise InputError(
            f"{path} cannot be written: you may not write to the folder it is in. Name another "
            "place, or make that one writable."
        )
    if beside is None or resolved(path).parent != resolved(beside):
        check_outside(path)
    sources = [Path(name) for name in read if name]
    if path.exists() and any(source.exists() and source.samefile(path) for source in sources):
        raise InputError(f"{path} is read by this command and would be lost. Name another file.")
    for source in sources:
        if source.is_dir() and source.resolve() in path.resolve().parents:
            raise InputError(
                f"{path} is in {source}, all of which this command reads. Name a place beside it."
            )


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is never half there, or to standard output.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.files import write_json
    >>> write_json(Path("-"), {"P@1": 51.2})
    {
      "P@1": 51.2
    }
    """
    write_text(path, json.dumps(dict(content), indent=2))


def write_text(path: Path, text: str) -> None:
    """Write lines to a file that is never half there, or to standard output.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.files import write_text
    >>> write_text(Path("-"), "# A model")
    # A model
    """
    if is_stdout(path):
        result(text)
        return
    with replacing(path) as stream:
        stream.write(f"{text}\n".encode())


def say_what_stayed(folder: str) -> None:
    """Name the files of a user's own beside a model that was just written, if there are any.

    Examples
    --------
    >>> from longtail.cli.files import say_what_stayed
    >>> say_what_stayed("a/new/model")
    """
    names = [name for name in files_beside(folder) if not name.startswith(".")]
    if names:
        notice(f"{', '.join(map(one_line, names))} in {folder} stayed as before.")
    if CARD in names:
        written = f"{shlex.quote(folder)} --card {shlex.quote(str(Path(folder, CARD)))}"
        notice(f"{CARD} may be of the model before: `longtail inspect {written}` writes it anew.")


@contextmanager
def reading_training(folder: Path) -> Iterator[None]:
    """Raise ModelFolderError where the document lacks what is read of it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.files import reading_training
    >>> with reading_training(Path("model")):
    ...     {}["wall_seconds"]
    Traceback (most recent call last):
        ...
    longtail.errors.ModelFolderError: model/training.json says something else than how training ...
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFolderError(
            f"{folder / TRAINING} says something else than how training went "
            f"({error!r:.80}). It may be of another version. {RETRAIN}"
        ) from error
