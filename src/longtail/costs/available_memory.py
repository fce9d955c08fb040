"""How much memory this process has, and how much more it can take."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from longtail.training.peak_memory import peak_memory

__all__ = ["available_memory", "resident_memory"]

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return how many bytes this process can still take, as far as the system tells.

    The least of what the machine has free, what the control groups of the process (a container,
    a batch system) leave it, and the limit of its address space. What the system would drop or
    swap out for it counts as free.

    Examples
    --------
    >>> from longtail.costs.available_memory import available_memory
    >>> available_memory() > 10**6
    True
    """
    limits = [_free_of_machine(), *_free_of_groups()]
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space - _pages(0))
    return max(min(limits), 0)


def resident_memory() -> int:
    """Return how many bytes of memory this process has now, or has had at most, if nothing tells.

    Examples
    --------
    >>> from longtail.costs.available_memory import resident_memory
    >>> resident_memory() > 10**6
    True
    """
    return _pages(1) or peak_memory()


def _free_of_machine() -> int:
    """Return what the machine has free, swap space included."""
    told = _named_numbers(PROC / "meminfo")
    if "MemAvailable:" in told:
        return 1024 * (told["MemAvailable:"] + told.get("SwapFree:", 0))
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _free_of_groups() -> list[int]:
    """Return what each control group (version 2) that the process is in leaves free."""
    own = _text(PROC / "self" / "cgroup").partition("0::/")[2].partition("\n")[0]
    folder, free = CGROUPS / own, []
    for group in (folder, *folder.parents):
        if not group.is_relative_to(CGROUPS):
            break
        most, now = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
        if most.isdecimal() and now.isdecimal():
            told = _named_numbers(group / "memory.stat")
            cached = told.get("inactive_file", 0) + told.get("active_file", 0)
            free.append(int(most) - int(now) + cached + _free_swap(group))
    return free


def _free_swap(group: Path) -> int:
    """Return how much a control group may still swap out."""
    most, now = (_text(group / f"memory.swap.{name}").strip() for name in ("max", "current"))
    of_machine = 1024 * _named_numbers(PROC / "meminfo").get("SwapFree:", 0)
    if not (most.isdecimal() and now.isdecimal()):
        return of_machine
    return min(int(most) - int(now), of_machine)


def _pages(place: int) -> int:
    """Return a number of /proc/self/statm in bytes: 0 the address space, 1 what is in memory."""
    numbers = _text(PROC / "self" / "statm").split()
    return int(numbers[place]) * os.sysconf("SC_PAGE_SIZE") if len(numbers) > place else 0


def _named_numbers(path: Path) -> dict[str, int]:
    """Return the lines of a file that are a name and a number."""
    words = (line.split() for line in _text(path).splitlines())
    return {found[0]: int(found[1]) for found in words if len(found) > 1 and found[1].isdecimal()}


def _text(path: Path) -> str:
    """Return what a file of the system says; nothing on another system."""
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
