"""Words of the command line that are texts or names, and no paths."""

from __future__ import annotations

import os

__all__ = ["is_utf8", "word"]


def word(argument: str) -> str:
    r"""Return an argument as it was typed, where the system's locale is no UTF-8.

    With such a locale (``LC_ALL=POSIX`` and ``PYTHONUTF8=0``) Python hands each byte of a letter
    on as half a character. Paths must stay so: the system is asked for them in the same way.

    Parameters
    ----------
    argument : str

    Returns
    -------
    str
        The argument itself if its bytes are no UTF-8.

    Examples
    --------
    >>> from longtail.cli.words import word
    >>> word("wei\udcc3\udc9f"), word("red")
    ('weiß', 'red')
    """
    if is_utf8(argument):
        return argument
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def is_utf8(argument: str) -> bool:
    r"""Tell whether an argument can be written as UTF-8, which half characters cannot.

    Examples
    --------
    >>> from longtail.cli.words import is_utf8
    >>> is_utf8("weiß"), is_utf8("wei\udcdf")
    (True, False)
    """
    return argument.encode(errors="replace").decode() == argument
