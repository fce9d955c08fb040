"""Two commands must not write to one place: each would delete what the other goes on from."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.cli.notices import notice
from longtail.errors import InputError
from longtail.folder_exchange import resolved
from longtail.manifest import MANIFEST
from longtail.model_folder import ModelFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["alone_in", "lock", "turn_to_change"]


@contextmanager
def alone_in(folder: Path, target: str) -> Iterator[None]:
    """Make a folder, and keep other processes that ask for it away until the block ends.

    The folder is removed in the end if nothing is in it, and so are parents that were made for it.
    A process that is killed holds it no longer.

    Parameters
    ----------
    folder : Path
    target : str
        What is written, for the message.

    Raises
    ------
    InputError
        If another process holds it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.one_at_a_time import alone_in
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pathlib.Path(place, "model.checkpoint")
    ...     with alone_in(folder, "model"):
    ...         folder.is_dir()
    ...     folder.exists()
    True
    False
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    handle = _opened(folder)
    try:
        lock(
            handle,
            folder,
            f"Another training is writing to {target} now. Wait until it is done, or name another "
            "model folder.",
        )
        try:
            yield
        finally:
            with suppress(OSError):  # something is in it
                for place in dict.fromkeys((folder, *made)):
                    place.rmdir()
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    """Make a folder and open it; again where one that ends removes it in between."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return os.open(folder, os.O_RDONLY)


def lock(handle: int, path: Path, taken: str) -> None:
    """Lock what is open, for this process, until it is closed.

    Parameters
    ----------
    handle : int
    path : Path
        Under which it was opened.
    taken : str
        What to say where another process has it.

    Raises
    ------
    InputError
        If another process has the lock; or had it since `handle` was opened, and has removed or
        renamed what is open here: the next process would open, and lock, another file.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(taken) from error
    except OSError:
        pass  # a file system without locks
    if not path.exists() or path.stat().st_ino != os.fstat(handle).st_ino:
        raise InputError(taken)


@contextmanager
def turn_to_change(model: str, target: str) -> Iterator[Callable[[], None]]:
    """Let a command that writes a model over the one that it reads undo no other's work.

    Such commands take turns, each for the whole block. A training takes no part in that: it may put
    its model there at any time, and a link may be pointed at another one.

    Parameters
    ----------
    model, target : str
        Of different folders, nothing is waited for.

    Yields
    ------
    callable
        To be called before the model is written. It raises InputError if another one is there than
        when the block began.

    Raises
    ------
    ModelFolderError
        If there is no model to be changed.

    Examples
    --------
    >>> from longtail.cli.one_at_a_time import turn_to_change
    >>> with turn_to_change("model", "larger") as check_unchanged:
    ...     check_unchanged()
    """
    if resolved(model) != resolved(target):
        yield lambda: None
        return
    manifest = Path(model, MANIFEST)
    handle = _held(manifest, model)

    def check_unchanged() -> None:
        if not _is_open(handle, manifest):
            raise InputError(
                f"Another model is at {target} now than the one that was read, which a training, a "
                "copy or a link has put there meanwhile. Nothing was written. Run the same command "
                "again, to change that one."
            )

    try:
        yield check_unchanged
    finally:
        os.close(handle)


def _held(manifest: Path, model: str) -> int:
    """Return the open manifest of a model, once no other command holds it."""
    while True:
        ModelFolder.open(model)  # says what is wrong, and waits where folders are being exchanged
        with suppress(FileNotFoundError):
            handle = os.open(manifest, os.O_RDONLY)
            try:
                _wait_for(handle, model)
                if _is_open(handle, manifest):
                    return handle
            except BaseException:  # Ctrl-C
                os.close(handle)
                raise
            os.close(handle)  # of the model that the other one has replaced


def _wait_for(handle: int, model: str) -> None:
    """Lock what is open, for this process, when it is its turn."""
    with suppress(OSError):  # a file system without locks
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notice(f"Another command is changing {model} now, and this one waits for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)


def _is_open(handle: int, path: Path) -> bool:
    """Tell whether a path still leads to the file that is open."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False
