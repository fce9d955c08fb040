"""Two commands must not write to one place: each would delete what the other goes on from."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["alone_in", "lock"]


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
