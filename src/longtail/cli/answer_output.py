"""Where answers go: standard output, a pipe, or a file that the next run goes on with.

It goes on behind the last block that is complete.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from longtail import __version__
from longtail.amounts import counted
from longtail.cli.answer_formats import as_parquet
from longtail.cli.answer_parquet import parquet_from_lines, replace_by_parquet
from longtail.cli.files import check_output, is_stdout
from longtail.cli.one_at_a_time import lock
from longtail.cli.points import is_read_again
from longtail.data.files import is_device, replacing
from longtail.errors import LongtailError
from longtail.log import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["BlockWriter", "PlainOutput", "digest_of", "identity_of", "opened", "resuming"]


@contextmanager
def opened(
    output: Path | None, source: str, settings: Mapping[str, Any]
) -> Iterator[BlockWriter | PlainOutput]:
    """Open an output; a file takes its name once it is complete.

    Parameters
    ----------
    output : Path or None
        None, as ``-``, is standard output.
    source : str
        What is answered: a file, or ``-``.
    settings : mapping
        What else the answers depend on: see `identity_of`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.cli.answer_output import opened
    >>> path = Path(tempfile.mkdtemp(), "answers.jsonl")
    >>> with opened(path, "points.txt", {"top_k": 5}) as output:
    ...     output.write(b'{"labels": []}', n_points=1, n_without=1)
    >>> path.read_text()
    '{"labels": []}'
    """
    if output is None or is_stdout(output):
        yield PlainOutput(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif is_device(output) or not is_read_again(source):
        # A pipe cannot be read a second time, and what was written to one cannot be cut off.
        with replacing(output) as stream, _converted(stream, output) as lines:
            yield PlainOutput(lines)
    else:
        finish = replace_by_parquet if as_parquet(output) else Path.replace
        with resuming(output, identity_of(source, **settings), finish=finish) as writer:
            yield writer


@contextmanager
def _converted(stream: IO[bytes], output: Path) -> Iterator[IO[bytes]]:
    """Take what is written to an output, and hand it on: as Parquet once it is complete."""
    if not as_parquet(output):
        yield stream
        return
    with TemporaryFile(dir=output.resolve().parent) as lines:
        yield cast("IO[bytes]", lines)
        lines.seek(0)
        parquet_from_lines(cast("IO[bytes]", lines), stream)


class PlainOutput:
    """An output that cannot be resumed; all else is as in a `BlockWriter`.

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


class _Progress(msgspec.Struct):
    """What stands beside a partial file."""

    identity: dict[str, Any]
    n_blocks: int = 0
    n_points: int = 0
    n_bytes: int = 0
    n_without: int = 0


class BlockWriter:
    """Appends blocks to a partial file and keeps beside it how far it is whole.

    Parameters
    ----------
    stream : binary stream
        The partial file, at its end.
    progress_path : Path
    progress : _Progress
    is_packed : bool
        Write each block as a gzip member of its own.

    Attributes
    ----------
    n_blocks_before, n_points_before : int
        Blocks and points that an earlier run has written.
    """

    def __init__(
        self, stream: IO[bytes], progress_path: Path, progress: _Progress, *, is_packed: bool
    ) -> None:
        self._stream = stream
        self._path = progress_path
        self._progress = progress
        self._is_packed = is_packed
        self.n_blocks_before, self.n_points_before = progress.n_blocks, progress.n_points

    @property
    def n_points(self) -> int:
        """Points that are written in all."""
        return self._progress.n_points

    @property
    def n_without(self) -> int:
        """Points without a label that are written in all."""
        return self._progress.n_without

    def write(self, block: bytes, n_points: int, n_without: int = 0) -> None:
        """Append the lines of some points, so many of them without a label."""
        data = gzip.compress(block, compresslevel=6, mtime=0) if self._is_packed else block
        self._stream.write(data)
        self._stream.flush()
        self._progress.n_blocks += 1
        self._progress.n_points += n_points
        self._progress.n_without += n_without
        self._progress.n_bytes += len(data)
        with replacing(self._path) as stream:
            stream.write(msgspec.json.encode(self._progress))


def identity_of(file: str, **settings: Any) -> dict[str, Any]:
    """Return what an output depends on, as JSON values: it is resumed only where all is the same.

    Parameters
    ----------
    file : str
        The input. Its size and time of change stand for its content.
    **settings
        Whatever else the output depends on, such as the model, by its checksum.
    """
    status = Path(file).stat()
    name = os.fsencode(Path(file).resolve()).decode(errors="backslashreplace")  # may be no UTF-8
    return {
        "longtail": __version__,
        "file": [name, status.st_size, status.st_mtime_ns],
        **settings,
    }


def digest_of(value: object) -> str:
    """Return a short name of a JSON value.

    Examples
    --------
    >>> from longtail.cli.answer_output import digest_of
    >>> digest_of(["red", "white"])
    'baddb4f61983'
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def resuming(
    path: Path, identity: dict[str, Any], *, finish: Callable[[Path, Path], object] = Path.replace
) -> Iterator[BlockWriter]:
    """Open an output that takes its name once it is complete.

    If the run is stopped, what is written stays in a hidden file beside it, and the next run of the
    same identity goes on there. One of another identity says what differs and begins anew; what it
    found is kept under another name, where a run of that identity finds it. After wrong input a
    hidden file is removed.

    Parameters
    ----------
    path : Path
        A name that ends in ``.gz`` is compressed.
    identity : dict
        See `identity_of`.
    finish : callable
        Makes the output, the second path, of the complete hidden file, which is then gone.

    Raises
    ------
    InputError
        If it cannot be written, or another run is writing it now.

    Examples
    --------
    The first run is stopped after a block; the second, of the same identity, goes on behind it.

    >>> import contextlib, pathlib, tempfile
    >>> from longtail.cli.answer_output import resuming
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.jsonl")
    ...     with contextlib.suppress(KeyboardInterrupt), resuming(path, {"k": 5}) as writer:
    ...         writer.write(b"first, ", n_points=1)
    ...         raise KeyboardInterrupt
    ...     with resuming(path, {"k": 5}) as writer:
    ...         writer.write(b"second", n_points=1)
    ...     writer.n_points_before, writer.n_points, path.read_bytes()
    (1, 2, b'first, second')
    """
    check_output(path)
    target = path.resolve()
    partial, beside = _hidden(target)
    with _leaving_nothing_empty(partial, beside, path):
        with _alone_in(partial, path):
            _set_aside(target, identity)
        with _alone_in(partial, path) as stream:
            progress = _resumed(stream, beside, identity)
            try:
                yield BlockWriter(stream, beside, progress, is_packed=path.suffix == ".gz")
                finish(partial, target)
            except LongtailError:
                _remove(partial, beside)
                raise
            beside.unlink(missing_ok=True)


@contextmanager
def _leaving_nothing_empty(partial: Path, beside: Path, path: Path) -> Iterator[None]:
    """Remove what nobody can go on with where a run is stopped, even as it opens its files."""
    try:
        yield
    except LongtailError:  # as of another run, whose files these are
        raise
    except BaseException:
        with suppress(LongtailError, OSError), _alone_in(partial, path) as stream:
            if not stream.tell() or _progress_of(beside) is None:
                _remove(partial, beside)
        raise


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@contextmanager
def _alone_in(partial: Path, path: Path) -> Iterator[IO[bytes]]:
    """Open a partial file, and keep other runs away until it is closed."""
    taken = f"Another run is writing {path} now. Wait until it is done, or name another output."
    with partial.open("ab") as stream:
        # Another run may have completed and renamed the file just now, which `lock` finds out.
        lock(stream.fileno(), partial, taken)
        yield stream


def _hidden(target: Path, mark: str = "") -> tuple[Path, Path]:
    """Return where the answers and the progress of an output that is not complete are kept."""
    name = f".{target.name}{mark}.partial"
    return target.with_name(name), target.with_name(f"{name}.json")


def _set_aside(target: Path, identity: dict[str, Any]) -> None:
    """Put what a run of another identity has left under another name, and take up one's own."""
    partial, beside = _hidden(target)
    earlier = _progress_of(beside)
    if earlier is not None and earlier.identity != identity and earlier.n_points:
        kept, kept_beside = _hidden(target, f".{digest_of(earlier.identity)}")
        beside.replace(kept_beside)
        partial.replace(kept)
        LOG.warning(
            "An earlier run of %s stopped after %s, with %s. This one starts over. What was "
            "answered is in %s, from which the earlier command resumes; delete it if you no "
            "longer need it.",
            target,
            counted(earlier.n_points, "point"),
            _differences(identity, earlier.identity),
            kept,
        )
    own, own_beside = _hidden(target, f".{digest_of(identity)}")
    if (earlier is None or earlier.identity != identity) and own_beside.exists() and own.exists():
        own.replace(partial)
        own_beside.replace(beside)


def _differences(own: dict[str, Any], other: dict[str, Any]) -> str:
    """Say what another identity has that one's own has not."""
    words = {
        "longtail": "another version of longtail",
        "model": "another model",
        "file": "another input, or one that was changed since",
        "allowed": "other --allowed labels",
        "masked": "other --masked labels",
    }
    return "; ".join(
        words.get(key, f"--{key.replace('_', '-')} {other.get(key)}, not {own.get(key)}")
        for key in {**own, **other}
        if own.get(key) != other.get(key)
    )


def _resumed(stream: IO[bytes], beside: Path, identity: dict[str, Any]) -> _Progress:
    """Return how far an earlier run of the same identity came, and cut off what lies behind."""
    progress = _progress_of(beside)
    n_bytes_there = stream.seek(0, io.SEEK_END)
    if progress is None or progress.identity != identity or progress.n_bytes > n_bytes_there:
        progress = _Progress(identity)
    stream.truncate(progress.n_bytes)
    return progress


def _progress_of(beside: Path) -> _Progress | None:
    """Return how far an earlier run came; None if there was none."""
    try:
        return msgspec.json.decode(beside.read_bytes(), type=_Progress)
    except (OSError, msgspec.DecodeError):
        return None
