"""Where the commands that compile keep what they have compiled."""

from __future__ import annotations

from pathlib import Path

from longtail import kernels
from longtail.errors import InputError
from longtail.kernels.code_cache import code_folders

__all__ = ["places_of_code"]


def places_of_code() -> str:
    """Name the folders that compiled code is taken from and kept in.

    Raises
    ------
    InputError
        If there are none, or what this process has compiled could not be kept.

    Examples
    --------
    >>> from longtail.cli.compiled_code import places_of_code
    >>> "longtail" in places_of_code()
    True
    """
    folders = code_folders(Path(kernels.__file__).parent)
    if not folders.readable:
        raise InputError(
            "There is no folder to keep compiled code in. Set NUMBA_CACHE_DIR to one that may be "
            "written to."
        )
    if folders.faults:
        raise InputError(
            f"Not all code could be kept in {folders.writable}: {folders.faults[0]}. Mend that, or "
            "set NUMBA_CACHE_DIR to another folder; then run the same command again."
        )
    return " and ".join(map(str, folders.readable))
