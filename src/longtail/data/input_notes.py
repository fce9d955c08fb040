"""What was odd in a file but could be read all the same: counted, and said once."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING

from longtail.errors import source_name

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

__all__ = ["InputNotes", "InputWarning", "warn"]

_OURS, _COMMANDS = "longtail", "cli"
_BETWEEN = "contextlib"  # stands between frames of ours where one of our context managers runs


class InputWarning(UserWarning):
    """A data set was read, but some of it was changed, skipped or looks unintended.

    Examples
    --------
    >>> import warnings
    >>> from longtail import Dataset
    >>> from longtail.data.input_notes import InputWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", InputWarning)
    ...     dataset = Dataset.of(["how to knead"], [["bread", "bread"]])
    >>> str(caught[0].message)
    'labels: points with a label twice (merged): 1, first at row 0.'
    """


def warn(message: str, category: type[Warning] = InputWarning) -> None:
    """Issue a warning that shows the line of the user's by which longtail was called.

    Examples
    --------
    >>> import warnings
    >>> from longtail.data.input_notes import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("All points are alike.")
    >>> caught[0].category.__name__, str(caught[0].message)
    ('InputWarning', 'All points are alike.')
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """Tell a call within longtail from the user's; the command line is a user, too."""
    first, *inner = str(frame.f_globals.get("__name__")).split(".")
    return first == _BETWEEN or (first == _OURS and inner[:1] != [_COMMANDS])


class InputNotes:
    """Counts oddities while a file is read, and warns of all of them at the end, once.

    Parameters
    ----------
    source : str or Path
        What the warning begins with: the file, or the argument's name.
    unit : str
        What `line` counts.

    Examples
    --------
    >>> notes = InputNotes("train.jsonl")
    >>> notes.add("blank lines (skipped)", line=3)
    >>> notes.add("blank lines (skipped)", line=9)
    >>> notes.summary()
    'train.jsonl: blank lines (skipped): 2, first at line 3.'
    """

    def __init__(self, source: str | Path, *, unit: str = "line") -> None:
        self.source = source
        self.unit = unit
        self._remarks: list[str] = []
        self._counts: dict[str, int] = {}
        self._first: dict[str, int] = {}

    def add(self, what: str, *, line: int) -> None:
        """Count one more of `what`, a plural noun and in brackets what was done."""
        self._counts[what] = self._counts.get(what, 0) + 1
        self._first.setdefault(what, line)

    def remark(self, what: str) -> None:
        """Keep what is true of all of the file, a clause without a full stop."""
        self._remarks.append(what)

    def summary(self) -> str:
        """Return the one sentence that `warn` says; empty where there is nothing to say."""
        parts = [
            f"{what}: {count:,}, first at {self.unit} {self._first[what]}"
            for what, count in self._counts.items()
        ]
        parts += self._remarks
        if not parts:
            return ""
        return f"{source_name(self.source)}: {'; '.join(parts)}."

    def warn(self) -> None:
        """Issue the summary as one `InputWarning`, or nothing."""
        summary = self.summary()
        if summary:
            warn(summary)
