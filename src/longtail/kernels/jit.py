"""How every kernel is compiled, and how kernels are run over rows by several threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numba
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock

from longtail.errors import LongtailError
from longtail.kernels.code_cache import CodeCache, code_folders

__all__ = [
    "Begun",
    "HelpingThreads",
    "fast_inlined_kernel",
    "fast_kernel",
    "fast_lean_kernel",
    "in_background",
    "inner_kernel",
    "is_fork_of_torch",
    "kernel",
    "lean_kernel",
    "n_usable_cores",
    "n_usable_threads",
    "over_row_chunks",
    "uncompiled",
]

F = TypeVar("F", bound=Callable[..., object])
R = TypeVar("R")

# The folder and the files that hold the quota and the period, of versions 2 and 1.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup", "cpu.max"),
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
)
_MOST_THREADS_A_CORE = 4
_SOURCES = Path(__file__).parent

_FAST_MATH = {"reassoc", "contract", "arcp", "nsz"}

if numba.config.DISABLE_JIT:  # many kernels are instructions that Python does not have
    raise LongtailError(
        "longtail cannot do without compiled code, which NUMBA_DISABLE_JIT forbids. Unset it; what "
        "a kernel computes is written in plain numpy beside its test."
    )


def kernel(function: F) -> F:
    """Compile `function` once, keep the machine code on disk, and release the global lock in it.

    One that Python calls returns no NamedTuple: where Ctrl-C comes while its result is turned into
    Python's objects, numba would call the class with what is not there, and end the process. The
    arrays alone, in a plain tuple, come out as an error: see `longtail.errors.interruptible`.

    A kernel whose name begins with `_` is for other kernels alone, and Python must not call it: to
    compile the way from Python into a function of many arrays takes longer than the function.
    """
    return _compiled(function)


def fast_kernel(function: F) -> F:
    """Like `kernel`, and let sums be re-ordered into vector instructions.

    Not for code that tests for NaN or infinity. A loop that adds up floats must not write to an
    array as well: where that one begins less than a few vectors behind one that is read, the loop
    goes number by number, and its sum is another in the last bit.
    """
    return _compiled(function, fastmath=_FAST_MATH)


def fast_inlined_kernel(function: F) -> F:
    """Like `fast_kernel`, and become a part of whatever kernel of the same file calls it.

    Else the process that compiles calls the function's own code, and one that finds the caller's
    code on disk calls a copy in there. Each may order its sums, and round, in a way of its own.
    """
    return _compiled(function, fastmath=_FAST_MATH, forceinline=True)


def lean_kernel(function: F) -> F:
    """Like `kernel`, and do not count who uses an array.

    Counts are kept by instructions that wait for all others, at every call and every view. For
    functions that neither make nor return arrays, nor call any that do; whoever calls them holds on
    to those that they are given.
    """
    return _compiled(function, _nrt=False)


def fast_lean_kernel(function: F) -> F:
    """Like `fast_kernel`, and do not count who uses an array; see `lean_kernel`."""
    return _compiled(function, fastmath=_FAST_MATH, _nrt=False)


def inner_kernel(function: F) -> F:
    """Like `lean_kernel`, for kernels of other files alone: Python must not call it."""
    return _compiled(function, _nrt=False, no_cpython_wrapper=True)


def uncompiled(function: F) -> F:
    """Return what a kernel was compiled from, which may return what it may not to Python.

    Examples
    --------
    >>> from longtail.kernels.jit import kernel, uncompiled
    >>> def doubled(number):
    ...     return 2 * number
    >>> uncompiled(kernel(doubled)) is doubled
    True
    """
    return cast("F", cast("Any", function).py_func)


def _compiled(function: F, **options: object) -> F:
    """Leave to numba to compile `function` when it is first called."""
    for_kernels_alone = {"no_cpython_wrapper": True} if function.__name__.startswith("_") else {}
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        no_cfunc_wrapper=True,  # nobody passes kernels to kernels
        **for_kernels_alone,
        **options,
    )(function)
    compiled._cache = CodeCache(function, code_folders(_SOURCES))
    compiled.get_call_template = _whatever_the_number(compiled.get_call_template)
    return cast("F", compiled)


def _whatever_the_number(template_of: Callable[..., object]) -> Callable[..., object]:
    """Let kernels that pass a constant to a kernel have the code for any whole number.

    Else numba compiles it, and what it calls, for each constant, and once more for a variable.
    """

    def plain(kind: Any) -> Any:
        return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind

    def template_of_any(args: Any, named: Any) -> object:
        return template_of(
            [plain(kind) for kind in args], {name: plain(kind) for name, kind in named.items()}
        )

    return template_of_any


def n_usable_cores() -> int:
    """Return the number of cores that this process may use.

    Those that the system shows it; fewer where a container has a smaller share of their time, or
    where ``OMP_NUM_THREADS`` asks for fewer.
    """
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    limits = [int(wanted)] if wanted.isdecimal() else []
    limits += [max(1, round(share)) for share in _shares_of_containers(_CONTROL_GROUPS)]
    return max(1, min([n_cores, *limits]))


def n_usable_threads(wanted: int | None) -> int:
    """Return how many threads to work with: one a core unless asked, and at most four a core.

    Any further thread would only wait for the others.
    """
    n_cores = n_usable_cores()
    return n_cores if wanted is None else max(1, min(wanted, _MOST_THREADS_A_CORE * n_cores))


@cache
def _shares_of_containers(groups: tuple[tuple[str, ...], ...]) -> list[float]:
    """Return how many cores' time the control groups of Linux allow, where they limit it."""
    shares = []
    for group in groups:
        try:
            words = " ".join(
                (Path(group[0]) / name).read_text("ascii") for name in group[1:]
            ).split()
            quota, period = map(int, words)
        except (OSError, ValueError):  # another system, or no limit
            continue
        if quota > 0 and period > 0:
            shares.append(quota / period)
    return shares


def over_row_chunks(
    work: Callable[[int, int], None], n_rows: int, *, n_threads: int, chunk: int = 1024
) -> None:
    """Call ``work(start, stop)`` for consecutive row ranges, on several threads.

    The kernels release the global lock, so plain threads are enough; and because a row is always
    computed whole by one of them, the result does not depend on how many there are.
    """
    ranges = [(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)]
    n_helpers = min(n_threads, len(ranges)) - 1
    rest = iter(ranges)

    def take_ranges() -> None:
        for start, stop in rest:  # whoever holds the global lock takes the next
            work(start, stop)

    helpers = [_helpers(n_threads).submit(take_ranges) for _ in range(n_helpers)]
    try:
        take_ranges()
    finally:
        for _ in rest:  # after an error, nobody needs it
            pass
        # One that has not begun has nothing left to do; to wait for it could be for ever, where
        # all helpers wait so.
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


class HelpingThreads(ThreadPoolExecutor):
    """Threads that help whoever asks them; once Python is ending, it does their work itself.

    Then Python starts no work in threads of a pool, but threads of a user's go on to their end,
    and what is registered with `atexit` is run.

    Examples
    --------
    >>> from longtail.kernels.jit import HelpingThreads
    >>> with HelpingThreads(2) as threads:
    ...     list(threads.map(abs, [-3, 2]))
    [3, 2]
    """

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Have something done, as `concurrent.futures.Executor.submit` does."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            if "cannot schedule new futures" not in str(error):
                raise
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # who asks for the result gets it
            done.set_exception(error)
        return done


class Begun(Generic[R]):
    """Work that a helper may have begun; whoever wants the result does it, if none has.

    So nobody waits for helpers that are busy with something else.
    """

    def __init__(self, work: Callable[[], R], helper: Future[R]) -> None:
        self._work = work
        self._helper = helper

    def result(self) -> R:
        """Return what the work returns, or raise what it raises; to be called once."""
        return self._work() if self._helper.cancel() else self._helper.result()


def in_background(work: Callable[[], R], n_threads: int) -> Begun[R]:
    """Begin what the caller needs later; with one thread, do it at once.

    Examples
    --------
    >>> from longtail.kernels.jit import in_background
    >>> in_background(lambda: 2 + 3, n_threads=2).result()
    5
    """
    if n_threads > 1:
        return Begun(work, _helpers(n_threads).submit(work))
    done: Future[R] = Future()
    done.set_result(work())
    return Begun(work, done)


@cache
def _helpers(n_threads: int) -> HelpingThreads:
    """Return threads that stay: to start and end them for each call would take half a millisecond.

    They are idle, or in a kernel, and belong to this process alone. One fewer than `n_threads`, as
    whoever asks works too: with one more, torch's products would wait for threads out of turn.
    """
    return HelpingThreads(max(1, n_threads - 1), thread_name_prefix="longtail")


_forked_with_torch: set[int] = set()


def is_fork_of_torch() -> bool:
    """Return whether this process was forked from one that had loaded torch.

    Torch's own threads do not come along: if the parent has used them, a product that is shared
    out among them waits for ever.

    Examples
    --------
    >>> from longtail.kernels.jit import is_fork_of_torch
    >>> is_fork_of_torch()
    False
    """
    return os.getpid() in _forked_with_torch


def _after_fork() -> None:
    """Note in the child what did not come along."""
    global_compiler_lock.release()
    _helpers.cache_clear()
    if "torch" in sys.modules:
        _forked_with_torch.add(os.getpid())


if hasattr(os, "register_at_fork"):
    # A fork waits for what another thread compiles: the child has nobody who would end that, and
    # its first call of a kernel would wait for ever.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=_after_fork,
    )
