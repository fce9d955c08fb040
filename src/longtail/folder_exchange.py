"""Putting a whole folder in the place of another, so that nobody ever sees half of one.

By renaming it; within a folder that cannot be renamed, such as one where a disk is mounted, file by
file.
"""

from __future__ import annotations

import errno
import glob
import math
import os
import re
import secrets
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from longtail.errors import InputError, LongtailError, ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "check_writable",
    "exchange",
    "hidden_beside",
    "is_fixed",
    "keep_files",
    "new_folder_for",
    "obstacle_to",
    "read_whole",
    "resolved",
    "would_be_lost",
]

_OF_A_DISK = "lost+found"
_HIDDEN, _BEFORE, _TRIAL = "partial", "old", "trial"
_LONGEST_EXCHANGE, _MOMENT, _ABANDONED = 1.0, 0.001, 3600.0  # seconds
Found = TypeVar("Found")
_REFUSALS = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST}


def hidden_beside(target: Path, what: str) -> Path:
    """Return a hidden name beside a file or folder that nobody else writes to.

    Neither another thread, nor another process, nor one with the same number in another container.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import hidden_beside
    >>> first, second = (hidden_beside(Path("models/red"), "partial") for _ in range(2))
    >>> first.parent == Path("models"), first.name.startswith(".red.partial-"), first == second
    (True, True, False)
    """
    return target.with_name(f".{target.name}.{what}-{os.getpid()}-{secrets.token_hex(4)}")


def resolved(path: str | Path) -> Path:
    """Return a path with all links followed.

    Raises
    ------
    InputError
        If they lead round in a circle, or the folder that it starts from is no more.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import resolved
    >>> resolved("model") == Path.cwd() / "model"
    True
    """
    try:
        target = Path(path).resolve()
    except FileNotFoundError as error:  # only where this process works need anything be there
        raise InputError(
            f"{path} cannot be found: the folder in which this runs is no more. Change to another "
            "one, or give the whole path."
        ) from error
    except RuntimeError:  # so a circle is told by Python up to 3.12, and by later ones not at all
        target = Path(path).absolute()
    if _leads_in_a_circle(target):
        raise InputError(
            f"{path} cannot be found: links lead round in a circle there. Delete them, or name "
            "another place."
        )
    return target


def _leads_in_a_circle(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def is_fixed(target: Path) -> bool:
    """Return whether a folder is there and cannot be renamed, so that it is written within.

    Where a disk or a container's volume is mounted, the system refuses; where this process works,
    whoever works there would be left in a folder that is no more.

    Parameters
    ----------
    target : Path
        With all links followed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import is_fixed
    >>> is_fixed(Path("/")), is_fixed(Path.cwd()), is_fixed(Path("/no/such/folder"))
    (True, True, False)
    """
    if not target.is_dir():
        return False
    with suppress(OSError):  # of a folder that is no more
        if Path.cwd().is_relative_to(target):
            return True
    return target.parent == target or _is_refused(target)


def _is_refused(target: Path) -> bool:
    """Try to rename a folder to where that is never possible, and see for which reason it fails.

    Neither names nor devices tell: a folder of the same disk may be mounted, and one of a
    container's image, which is on no disk of its own, stays where it is. Such are refused before
    the system finds out that the new name is taken.
    """
    taken = hidden_beside(target, _TRIAL)
    try:
        (taken / "taken").mkdir(parents=True)
        target.rename(taken)
    except OSError as error:
        _delete(taken)
        return error.errno in _REFUSALS
    except BaseException:  # Ctrl-C
        if target.exists():
            _delete(taken)
        raise
    taken.rename(target)  # a file system that replaced a folder with files in it
    return False


def would_be_lost(target: Path) -> set[str]:
    """Return the names in a folder that may be lost with it, or hinder those that come.

    In one that stays, hidden files and what a disk has of its own are in nobody's way.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import would_be_lost
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "notes.txt").write_text("mine")
    ...     would_be_lost(Path(folder))
    {'notes.txt'}
    """
    names = {entry.name for entry in target.iterdir()}
    if names and is_fixed(target):
        return {name for name in names if not name.startswith(".")} - {_OF_A_DISK}
    return names


def obstacle_to(folder: Path) -> Path | None:
    """Return what is in the way of files in a folder, which may have to be made; None if nothing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import obstacle_to
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "file").write_text("in the way")
    ...     obstacle_to(Path(place, "new", "folder"))
    ...     obstacle_to(Path(place, "file", "folder")).name
    'file'
    """
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return None if there.is_dir() and os.access(there, os.W_OK | os.X_OK) else there


def check_writable(target: Path) -> None:
    """Raise ModelFolderError unless `exchange` could put a folder there.

    Parameters
    ----------
    target : Path
        With all links followed.
    """
    place = obstacle_to(target if is_fixed(target) else target.parent)
    if place is not None:
        raise ModelFolderError(
            f"The model cannot be written to {target}: {place} cannot be written to. Make it "
            "writable, or name another folder."
        )


@contextmanager
def new_folder_for(target: Path) -> Iterator[Path]:
    """Make a hidden folder on the same disk as `target`, to be filled and then exchanged.

    What processes that were killed an hour ago or earlier have left of theirs is deleted first.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import new_folder_for
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with new_folder_for(Path(place, "model")) as partial:
    ...         partial.parent == Path(place), partial.name.startswith(".model.")
    ...     partial.exists()  # it was not exchanged
    (True, True)
    False
    """
    partial = hidden_beside(target / target.name if is_fixed(target) else target, _HIDDEN)
    try:
        partial.mkdir(parents=True)
        _delete_abandoned(partial, target)
        yield partial
    finally:
        _delete(partial)


def _delete(folder: Path) -> None:
    """Delete a folder, if it is there; Ctrl-C comes after that."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _delete_abandoned(partial: Path, target: Path) -> None:
    """Delete the hidden folders of processes that were killed, each as large as a model.

    An old folder only where there is a new one: who is killed between the two names leaves nothing
    else.
    """
    ours = re.compile(
        rf"\.{re.escape(target.name)}\.({_HIDDEN}|{_BEFORE}|{_TRIAL})-\d+-[0-9a-f]{{8}}"
    )
    with suppress(OSError):  # a place may be written to and not listed
        found = [(place, ours.fullmatch(place.name)) for place in partial.parent.iterdir()]
        has_new = target.is_dir()  # asked behind what was found: an exchange may go on
        latest = partial.stat().st_ctime - _ABANDONED  # by this disk's clock
        for place, match in found:
            if match and (has_new or match[1] != _BEFORE) and _last_change(place) < latest:
                shutil.rmtree(place, ignore_errors=True)


def _last_change(folder: Path) -> float:
    """Return when something of a folder was written or renamed; never, if that cannot be told."""
    with suppress(OSError):  # it is gone, or another user's
        within = [place.lstat() for place in folder.iterdir()]
        # A user's file that other folders have, too, changes with these: see `keep_files`.
        own = (status.st_ctime for status in within if status.st_nlink == 1)
        return max([folder.stat().st_ctime, *own])
    return math.inf


def keep_files(target: Path, partial: Path, names: Iterable[str]) -> None:
    """Let files of a folder be in the one that takes its place, too, so that they outlive it.

    Those of a folder that stays are where they belong already.

    Parameters
    ----------
    target : Path
    partial : Path
        From `new_folder_for`; it has none of these names.
    names : iterable of str
        Files, or links; not folders.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import exchange, keep_files, new_folder_for
    >>> with tempfile.TemporaryDirectory() as place:
    ...     target = Path(place, "model")
    ...     target.mkdir()
    ...     _ = (target / "README.md").write_text("mine")
    ...     with new_folder_for(target) as partial:
    ...         keep_files(target, partial, ["README.md"])
    ...         exchange(partial, target, last="manifest.json", old=())
    ...     (target / "README.md").read_text()
    'mine'
    """
    if partial.parent == target:
        return
    for name in names:
        if os.path.lexists(partial / name):  # from an attempt before: see `read_whole`
            continue
        try:  # the very file: what is written into it meanwhile is not lost, nor is its owner
            os.link(target / name, partial / name, follow_symlinks=False)
        except OSError:  # not on this file system, or not of another user's file
            shutil.copy2(target / name, partial / name, follow_symlinks=False)


def exchange(partial: Path, target: Path, *, last: str, old: Iterable[str]) -> None:
    """Give a new folder its name, or its files to a folder that stays.

    Parameters
    ----------
    partial : Path
        From `new_folder_for`.
    target : Path
    last : str
        The file without which the others are nothing: of a folder that stays it goes first and
        comes last.
    old : iterable of str
        All files of what is there now.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import exchange, new_folder_for
    >>> with tempfile.TemporaryDirectory() as place:
    ...     target = Path(place, "model")
    ...     with new_folder_for(target) as partial:
    ...         _ = (partial / "manifest.json").write_text("{}")
    ...         exchange(partial, target, last="manifest.json", old=())
    ...     [file.name for file in target.iterdir()]
    ['manifest.json']
    """
    if target.is_dir():  # else nothing can be lost, and nobody need wait for the disk
        _flush(partial)
    if partial.parent == target:
        _exchange_files(partial, target, last, old)
    else:
        _exchange_folders(partial, target)


def _flush(folder: Path) -> None:
    """Wait until a folder's files are on the disk, before what they replace is deleted.

    A machine that goes down some seconds after a rename has else the new names, and nothing in the
    files; and some disks say only now that they are full.
    """
    for place in (*folder.iterdir(), folder):
        if place.is_symlink():  # a user's own, which may lead nowhere
            continue
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:  # not on this file system, or not of folders
                raise
        finally:
            os.close(handle)


def _exchange_files(partial: Path, target: Path, last: str, old: Iterable[str]) -> None:
    """Move files into a folder; who has an old one mapped keeps it."""
    names = [file.name for file in partial.iterdir() if file.name != last]
    try:
        _move_files(partial, target, names, last)
    except BaseException as error:
        if not isinstance(error, OSError):  # Ctrl-C: half of the files are no model
            _move_files(partial, target, names, last)
        raise
    for name in {*old} - {*names, last}:
        with suppress(OSError):  # it is in nobody's way
            (target / name).unlink()
    partial.rmdir()


def _move_files(partial: Path, target: Path, names: Iterable[str], last: str) -> None:
    """Move those that are not there yet."""
    if (partial / last).exists():
        (target / last).unlink(missing_ok=True)
    for name in [*names, last]:
        if (partial / name).exists():
            (partial / name).replace(target / name)


def _exchange_folders(partial: Path, target: Path) -> None:
    """Give the new folder its name; the old one is deleted only after that.

    Who is killed between the two names leaves both folders whole, the old one under a hidden name
    beside.
    """
    while not _is_exchanged(partial, target):
        pass  # another process has put its folder there meanwhile: the next to be exchanged


def _is_exchanged(partial: Path, target: Path) -> bool:
    """Try to give the new folder its name; return whether that was free."""
    before = hidden_beside(target, _BEFORE)
    is_taken = False
    try:
        with suppress(FileNotFoundError):  # there is no old one
            target.rename(before)
        partial.rename(target)
    except BaseException as error:
        is_taken = isinstance(error, OSError) and error.errno in _TAKEN
        if not is_taken:
            _leave_one(partial, target, before)
            raise
    _delete(before)
    return not is_taken


def _leave_one(partial: Path, target: Path, before: Path) -> None:
    """Leave the new folder, or else the old one, after an exchange that was stopped.

    Ctrl-C comes behind what the system has done meanwhile, so the folders tell how far that was.
    """
    if partial.exists() and before.exists():
        before.rename(target)
    else:
        _delete(before)


def read_whole(folder: Path, last: str, read: Callable[[], Found]) -> Found:
    """Read a folder that may be exchanged meanwhile: all that is returned is of one version.

    Parameters
    ----------
    folder : Path
    last : str
        As in `exchange`: what tells one folder from the next.
    read : callable
        Whatever it finds, or finds wrong, counts only if the folder is still the same.

    Raises
    ------
    LongtailError
        As `read` does.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.folder_exchange import read_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = Path(folder, "manifest.json")
    ...     _ = name.write_text("{}")
    ...     read_whole(Path(folder), name.name, name.read_text)
    '{}'
    """
    patience = time.monotonic() + _LONGEST_EXCHANGE
    while True:
        before = _version_of(folder / last)
        try:
            found = read()
        except (OSError, LongtailError):
            # In this order: a folder that came after the first look is seen by the second.
            may_come = _is_between_two(folder, last) and time.monotonic() < patience
            if not may_come and _version_of(folder / last) == before:
                raise
            time.sleep(_MOMENT)
        else:
            if _version_of(folder / last) == before:
                return found


def _version_of(file: Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced by another of its name; None without a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _is_between_two(folder: Path, last: str) -> bool:
    """Tell a folder that has gone, or lacks its last file, for the moment that an exchange takes.

    Or for good, if whoever exchanged it was killed in that moment.
    """
    if (folder / last).exists():
        return False
    target = resolved(folder)
    name = glob.escape(f".{target.name}.")
    beside, within = f"{name}{_BEFORE}-*", f"{name}{_HIDDEN}-*"
    return any(target.parent.glob(beside)) or any(target.glob(within))
