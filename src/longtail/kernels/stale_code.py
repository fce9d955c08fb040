"""Compiled code that is kept on disk, and thrown away when any kernel has changed."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_stale_code"]


def remove_stale_code(folder: Path) -> None:
    """Delete what numba has compiled of a folder's files, if one of them is not what it was.

    numba looks at the file of a function alone, but what the function calls is part of its machine
    code. So after an update of some files, such code could run on arrays that are laid out in
    another way.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from longtail.kernels.stale_code import remove_stale_code
    >>> with TemporaryDirectory() as folder:
    ...     cache = Path(folder, "__pycache__")
    ...     cache.mkdir()
    ...     (cache / "sums.total-1.py311.1.nbc").touch()
    ...     remove_stale_code(Path(folder))
    ...     [path.name for path in cache.iterdir()]
    ['sources.stamp']
    """
    cache = folder / "__pycache__"
    stamp, kept = _stamp(folder), cache / "sources.stamp"
    # Nobody may write here, or another process does the same: then numba does without.
    with contextlib.suppress(OSError):
        if kept.exists() and kept.read_text("ascii") == stamp:
            return
        for compiled in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            compiled.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        kept.write_text(stamp, "ascii")


def _stamp(folder: Path) -> str:
    """Return what changes when a file does, is added, or goes."""
    files = [(path.name, path.stat()) for path in sorted(folder.glob("*.py"))]
    known = [f"{name} {stat.st_mtime_ns} {stat.st_size}" for name, stat in files]
    return hashlib.blake2b("\n".join(known).encode(), digest_size=16).hexdigest()
