"""Where compiled code is kept, what it was compiled of, and who is told that it takes a while.

numba keeps code as well, with five shortcomings. It looks at the file of a function alone, but
what the function calls is part of its machine code: after an update of some files, such code could
run on arrays that are laid out in another way. It takes no code from a folder that it could not
write to, such as one that is part of a container's image. And it numbers its files: two processes
that compile a function for two types at one time can take the same number, and from then on the
code for the one runs on arrays of the other. And it numbers functions, from 1 in each process: two
functions of one name that were compiled in two processes, such as the steps of sorting numbers and
of sorting their places, can be taken for each other where a third process loads both. And before
it takes code from disk, it loads all that compiling needs, for a third of a second.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Self

import numba
from numba.core import event
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

from longtail.kernels.held_signals import signals_held_back
from longtail.log import LOG

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CodeCache", "CodeFolders", "code_folders", "stamp_of"]

SECONDS_IN_SILENCE = 1.0
_STAMP = "sources.stamp"
_BAGS = Path(__file__).parents[1] / "data" / "bags.py"  # kernels are compiled for them
_FUNCTION_BITS = 60  # of the first function's number


def _number_functions_anew() -> None:
    """Let numba count the functions of this process from a number that no other begins with."""
    FunctionIdentity._unique_ids = count(random.SystemRandom().getrandbits(_FUNCTION_BITS))


_number_functions_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions_anew)


def stamp_of(sources: Path) -> str:
    """Return what changes when any of a folder's source files does, or `Bags`: a digest of all.

    Neither when they were written, nor where they lie, is part of it: both change in an image.
    """
    digest = hashlib.blake2b(digest_size=12)
    for path in [*sorted(sources.glob("*.py")), _BAGS]:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


@dataclass(frozen=True)
class CodeFolders:
    """Where code is looked for, and where it is put.

    Attributes
    ----------
    stamp : str
        Of the sources.
    readable : tuple of Path
        Those that have code of these sources.
    writable : Path or None
        The first that may be written to.
    faults : list of str
        Why code could not be put there all the same: the first reason, if there was any.
    """

    stamp: str
    readable: tuple[Path, ...]
    writable: Path | None
    faults: list[str] = field(default_factory=list, compare=False)


@cache
def code_folders(sources: Path) -> CodeFolders:
    """Find the folders for the code of some sources.

    What ``NUMBA_CACHE_DIR`` names, the ``__pycache__`` beside the sources, and the user's own.

    Parameters
    ----------
    sources : Path

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from longtail.kernels.code_cache import code_folders
    >>> with TemporaryDirectory() as place:
    ...     code_folders(Path(place)).writable.name
    '__pycache__'
    """
    stamp = stamp_of(sources)
    beside = sources / "__pycache__"
    named = numba.config.CACHE_DIR
    places = [Path(named) / f"longtail-{stamp}"] if named else []
    places.append(beside)
    with suppress(RuntimeError):  # who runs this has no home
        places.append(_own_folder() / f"longtail-{stamp}")
    writable = next((place for place in places if _is_writable(place)), None)
    if writable is not None and not _has_code_of(writable, stamp):
        _take_over(writable, stamp)
    readable = [place for place in places if place == writable or _has_code_of(place, stamp)]
    return CodeFolders(stamp, tuple(readable), writable)


def _own_folder() -> Path:
    """Return where programs keep what they could make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_writable(place: Path) -> bool:
    """Return whether files can be made there, and make the folder if so."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True


def _has_code_of(place: Path, stamp: str) -> bool:
    """Return whether a folder's code was compiled of these sources."""
    try:
        return (place / _STAMP).read_text("ascii") == stamp
    except (OSError, UnicodeDecodeError):
        return False


def _take_over(place: Path, stamp: str) -> None:
    """Delete code of other sources, which nobody would ever use again, and mark the folder.

    The mark is never half there: another process would delete what this one has compiled.
    """
    partial = place / f"{_STAMP}.{os.getpid()}"
    with suppress(OSError):  # another process does the same, or the disk is full
        for compiled in [*place.glob("*.nbi"), *place.glob("*.nbc")]:
            compiled.unlink(missing_ok=True)
        partial.write_text(stamp, "ascii")
        partial.replace(place / _STAMP)


@dataclass(frozen=True)
class _Locator:
    """What numba asks for one folder."""

    folder: Path
    stamp: str
    line: int = 0

    def from_function(self, function: Callable[..., object], path: str) -> Self:  # noqa: ARG002 - numba's
        return replace(self, line=function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return str(self.line)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]  # numba has no types
    """What is kept of a function, as numba has it, in a folder of ours."""

    def __init__(self, function: Callable[..., object], locator: _Locator) -> None:
        self._locator_classes = [locator]
        super().__init__(function)


class _Files(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """The code of a function in one folder: a file for each combination of types, named for it."""

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        super().__init__(folder, name, stamp)
        self._folder, self._prefix = Path(folder), name

    def save(self, key: object, data: object) -> None:
        """Keep what was compiled for these types, whole or not at all."""
        self._save_data(self._name_of(key), (key, data))

    def load(self, key: object) -> Any:
        """Return what was compiled for these types, None if nothing was."""
        with suppress(FileNotFoundError):
            of, data = self._load_data(self._name_of(key))
            return data if of == key else None
        return None

    def flush(self) -> None:
        """Delete everything."""
        for path in self._folder.glob(f"{self._prefix}.*.nbc"):
            path.unlink(missing_ok=True)

    def _name_of(self, key: object) -> str:
        written = repr((self._version, self._source_stamp, key)).encode()
        return f"{self._prefix}.{hashlib.blake2b(written, digest_size=8).hexdigest()}.nbc"


class _Layer(FunctionCache):  # type: ignore[misc]  # numba has no types
    """The code of a function in one folder."""

    def __init__(self, function: Callable[..., object], folder: Path, stamp: str) -> None:
        self._impl_class = lambda of: _Implementation(of, _Locator(folder, stamp))
        super().__init__(function)
        self._cache_file = _Files(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for these types; only who compiles needs a refreshed target."""
        rtsys.initialize(target)  # what code on disk calls to make arrays
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)


class CodeCache:
    """The code of a function, taken from whichever folder has it, and put where one may write.

    A folder that cannot be read or written is no reason not to go on: the function is compiled.

    Parameters
    ----------
    function : callable
    folders : CodeFolders
    """

    def __init__(self, function: Callable[..., object], folders: CodeFolders) -> None:
        self._folders = folders
        self._layers = {path: _Layer(function, path, folders.stamp) for path in folders.readable}
        self._writable = None if folders.writable is None else self._layers[folders.writable]

    @property
    def cache_path(self) -> str | None:
        """Where code is put."""
        return None if self._writable is None else str(self._writable.cache_path)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for these types of arguments, None if nothing was."""
        with signals_held_back():
            for layer in self._layers.values():
                with suppress(OSError, EOFError, UnpicklingError):
                    if (found := layer.load_overload(signature, target)) is not None:
                        return found
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled; the first time that this fails, say so."""
        if self._writable is None:
            return
        try:
            self._writable.save_overload(signature, compiled)
        except OSError as error:
            if not self._folders.faults:
                self._folders.faults.append(error.strerror or str(error))
                LOG.warning(
                    "Compiled code cannot be kept in %s: %s. The next process compiles it anew.",
                    self._folders.writable,
                    *self._folders.faults,
                )

    def flush(self) -> None:
        """Forget everything."""
        if self._writable is not None:
            self._writable.flush()


class _CompilingNotice(event.Listener):  # type: ignore[misc]  # numba has no types
    """Says once that code is being compiled, if that takes more than a moment.

    numba compiles one function at a time, and within it those that it calls. To look for garbage
    among all that it makes, and throws away at the end, would take a tenth of the time.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._began = self._spent = 0.0
        self._has_said = self._collects = False

    def on_start(self, begun: event.Event) -> None:
        """Take the time of the outermost function."""
        if not _is_ours(begun):
            return
        now = time.perf_counter()
        if self._depth == 0:
            self._began = now
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1
        if self._spent + now - self._began > SECONDS_IN_SILENCE and not self._has_said:
            self._has_said = True
            LOG.warning(_notice())

    def on_end(self, ended: event.Event) -> None:
        """Add it up."""
        if _is_ours(ended):
            self._depth -= 1
            if self._depth == 0:
                self._spent += time.perf_counter() - self._began
                if self._collects:
                    gc.enable()


def _is_ours(what: event.Event) -> bool:
    """Tell our functions from those of others who use numba."""
    return str(what.data["dispatcher"].py_func.__module__).startswith("longtail.")


def _notice() -> str:
    """Say what takes so long, and what can be done about it."""
    folders = code_folders(Path(__file__).parent)
    what = "Compiling code for this machine, which can take a minute"
    if folders.writable is None:
        return (
            f"{what}, each time anew: there is no folder to keep it in. Set NUMBA_CACHE_DIR to one "
            "that may be written to."
        )
    if folders.faults:  # which has been said
        return f"{what}."
    return f"{what}, once: it is kept in {folders.writable}."


event.register("numba:compile", _CompilingNotice())
