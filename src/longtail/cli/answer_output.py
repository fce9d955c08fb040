"""Where the lines of answers go: standard output, a pipe, or a file that can be resumed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from longtail.cli.files import is_stdout
from longtail.cli.points import is_read_again
from longtail.cli.resuming import resuming
from longtail.data.paths import is_device, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from longtail.cli.resuming import BlockWriter

__all__ = ["PlainOutput", "opened"]


class PlainOutput:
    """An output that cannot be resumed; all else is as in a `BlockWriter`.

    Parameters
    ----------
    stream : binary stream

    Attributes
    ----------
    n_blocks_before, n_points_before : int
        0.
    n_points, n_without : int
        Points that are written in all, and those of them without a label.

    Examples
    --------
    >>> from io import BytesIO
    >>> from longtail.cli.answer_output import PlainOutput
    >>> output = PlainOutput(BytesIO())
    >>> output.write(b"", n_points=2, n_without=1)
    >>> output.n_points, output.n_without
    (2, 1)
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.n_blocks_before = self.n_points_before = self.n_points = self.n_without = 0

    def write(self, block: bytes, n_points: int, n_without: int) -> None:
        """Write the lines of some points, so many of them without a label."""
        self._stream.write(block)
        self.n_points += n_points
        self.n_without += n_without


@contextmanager
def opened(
    output: Path | None, source: str, identity: Callable[[], dict[str, Any]]
) -> Iterator[BlockWriter | PlainOutput]:
    """Open an output; a file takes its name once it is complete.

    Parameters
    ----------
    output : Path or None
        None, as ``-``, is standard output.
    source : str
        What is answered: a file, or ``-``.
    identity : callable
        Returns what `resuming` tells one run from another by. It is asked only where an output can
        be gone on with: a pipe has no size, nor a time of change.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.cli.answer_output import opened
    >>> path = Path(tempfile.mkdtemp(), "answers.jsonl")
    >>> with opened(path, "points.txt", lambda: {"top_k": 5}) as output:
    ...     output.write(b'{"labels": []}', n_points=1, n_without=1)
    >>> path.read_text()
    '{"labels": []}'
    """
    if output is None or is_stdout(output):
        yield PlainOutput(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif is_device(output) or not is_read_again(source):
        # What a pipe gave cannot be read again, nor what it got be taken back.
        with replacing(output) as stream:
            yield PlainOutput(stream)
    else:
        with resuming(output, identity()) as writer:
            yield writer
