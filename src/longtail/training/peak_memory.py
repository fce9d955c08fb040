"""The most memory that this process has had."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak_memory"]

STATUS = Path("/proc/self/status")
LARGEST_RESIDENT = "VmHWM:"


def peak_memory() -> int:
    """Return how many bytes of memory this process has had at most.

    Where Linux tells: `getrusage` counts what the process that started this one had by then, too.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from longtail.training.peak_memory import peak_memory
    >>> peak_memory() > 10**6
    True
    """
    if STATUS.exists():
        for line in STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith(LARGEST_RESIDENT):
                return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
