"""What the library says on its way: lines to the logger ``longtail``, as Python's logging has it.

Who sets up no logging sees warnings alone, on standard error. The command line shows all lines.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LOG", "heard_by"]

LOG = logging.getLogger("longtail")


class _To(logging.Handler):
    """Hands the text of each line to a function."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Hand one on."""
        self._say(record.getMessage())


@contextmanager
def heard_by(say: Callable[[str], None]) -> Iterator[None]:
    """Let a function have all lines, and nobody else.

    Examples
    --------
    >>> from longtail.log import LOG, heard_by
    >>> lines = []
    >>> with heard_by(lines.append):
    ...     LOG.info("%d of %d", 2, 3)
    >>> lines
    ['2 of 3']
    """
    before = LOG.handlers[:], LOG.propagate, LOG.level
    LOG.handlers[:], LOG.propagate = [_To(say)], False
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.handlers[:], LOG.propagate = before[:2]
        LOG.setLevel(before[2])
