"""Opening data files: plain or gzip, line by line, and written whole or not at all."""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from longtail.errors import DataFormatError, InputError, about_home
from longtail.folder_exchange import hidden_beside, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "SAVE_AS_UTF8",
    "STDIN",
    "check_place",
    "decode_line",
    "is_device",
    "numbered_lines",
    "opened_raw",
    "raw_lines",
    "replacing",
]

STDIN = "-"  # the file name that stands for standard input
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNPACK = "Unpack it, or pack it by gzip"
_BY_ICONV = "convert it: iconv -f {0} -t UTF-8 FILE > NEW_FILE"
_CONVERT = f"Save the file as UTF-8, or {_BY_ICONV}"
SAVE_AS_UTF8 = (
    "Save the file as UTF-8. If it is Windows-1252, as Excel's plain CSV is, you can also "
    f"{_BY_ICONV.format('WINDOWS-1252')}."
)
_POINTS_ALONE = (
    "Points are read from it where it is named, not packed, and without another format; write "
    "anything else as text"
)
# What a file that is no text begins with, what it is, and what to do. The mark of UTF-32 begins
# with that of UTF-16, so it comes first.
_FOREIGN = {
    b"\xff\xfe\x00\x00": ("UTF-32", _CONVERT.format("UTF-32")),
    b"\x00\x00\xfe\xff": ("UTF-32", _CONVERT.format("UTF-32")),
    b"\xff\xfe": ("UTF-16", _CONVERT.format("UTF-16")),
    b"\xfe\xff": ("UTF-16", _CONVERT.format("UTF-16")),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "Unpack it, or save it as CSV"),
    b"BZh91AY&SY": ("packed by bzip2", _UNPACK),
    b"\xfd7zXZ\x00": ("packed by xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", _UNPACK),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet or document", "Save it as CSV"),
    b"%PDF-1.": ("a PDF", "Save its text"),
    b"\x93NUMPY": ("an array of numpy", "Load it in Python, and pass it to fit or Dataset.of"),
    b"PAR1\x15": ("a Parquet file", _POINTS_ALONE),
}
_AT_ONCE = 1 << 16  # bytes that are unpacked at a time
_SAMPLE = 1024  # bytes that are looked at for the file's encoding
_FEWEST_NULS = 4
_LEAST_NUL_SHARE = 0.05  # of bytes: in UTF-16, at least the blanks between long words have one


def raw_lines(path: str | Path) -> Iterator[bytes]:
    r"""Yield the lines of a plain or gzip file as they are, less a leading byte order mark.

    Gzip is told by the file's first two bytes, not by its name.

    Parameters
    ----------
    path : str or Path
        The file, or ``-`` for standard input, which can be read only once.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If a gzip file is damaged or cut off; the line named is the last whole one. If the file is
        UTF-16 or UTF-32, or packed by something else than gzip.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> from longtail.data.files import raw_lines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.gz")
    ...     _ = path.write_bytes(gzip.compress(b"one\r\ntwo"))
    ...     list(raw_lines(path))
    [b'one\r\n', b'two']
    """
    number = 0
    with _open_binary(Path(path)) as stream:
        try:
            _refuse_foreign(stream.peek(_SAMPLE)[:_SAMPLE], path)
            for line in stream:
                number += 1
                yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            message = (
                "The gzip data end too early or are damaged after this line. "
                "Copy or download the file again."
            )
            raise DataFormatError(message, path=path, line=number) from error


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    r"""Yield ``(line number from 1, line without its line end)``; else as `raw_lines`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.files import numbered_lines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.txt")
    ...     _ = path.write_bytes(b"one\r\ntwo\n")
    ...     list(numbered_lines(path))
    [(1, b'one'), (2, b'two')]
    """
    for number, line in enumerate(raw_lines(path), start=1):
        yield number, line.rstrip(b"\r\n")


def decode_line(line: bytes, *, path: str | Path, number: int) -> str:
    r"""Decode one line as UTF-8.

    Raises
    ------
    DataFormatError
        If the line is not UTF-8.

    Examples
    --------
    >>> decode_line(b"\xc3\xa4", path="titles.tsv", number=1)
    'ä'
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        message = (
            f"The line is not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start}). "
            f"{SAVE_AS_UTF8}"
        )
        raise DataFormatError(message, path=path, line=number) from error


def is_device(path: str | Path) -> bool:
    """Tell a device or a pipe, such as /dev/null, which is written to and never replaced.

    Examples
    --------
    >>> is_device("/dev/null"), is_device("no-such-file"), is_device(".")
    (True, False, False)
    """
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def check_place(path: str | Path) -> None:
    """Raise InputError unless there is a folder for a file, also where a link leads to one.

    Examples
    --------
    >>> from longtail.data.files import check_place
    >>> check_place("answers.jsonl")
    >>> check_place("no-such-folder/answers.jsonl")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: no-such-folder/answers.jsonl cannot be written: there is no ...
    """
    path = Path(path)
    folder, leads = path.parent, ""
    if path.is_symlink():
        target = resolved(path)
        folder, leads = target.parent, f"it is a link to {target}, and "
    if not folder.is_dir():
        raise InputError(
            f"{path} cannot be written: {leads}there is no folder {folder}. Create it first."
            f"{about_home(path)}"
        )


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only once it is complete.

    Parameters
    ----------
    path : str or Path
        The file; a name that ends in ``.gz`` is compressed (without a time stamp, so that the
        same content gives the same bytes). Where a link stands, the file that it leads to is
        replaced. A device or a pipe is written to as it is.

    Raises
    ------
    InputError
        If the folder that it is to be in does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "out.txt")
    ...     with replacing(path) as stream:
    ...         _ = stream.write(b"all of it")
    ...     path.read_bytes()
    b'all of it'
    """
    path = Path(path)
    check_place(path)
    if is_device(path):
        with path.open("wb") as raw, _packed(raw, path) as stream:
            yield stream
        return
    target = path.resolve()
    partial = hidden_beside(target, "partial")
    try:
        with partial.open("wb") as raw, _packed(raw, path) as stream:
            yield stream
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Compress what is written to a file of that name, if the name says so."""
    if path.suffix == ".gz":
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
            yield cast("IO[bytes]", packed)
    else:
        yield raw


def _refuse_foreign(start: bytes, path: str | Path) -> None:
    """Raise DataFormatError if its first bytes show that a file is not lines of UTF-8."""
    for mark, (what, advice) in _FOREIGN.items():
        if start.startswith(mark):
            raise DataFormatError(f"The file is {what}, not plain text. {advice}.", path=path)
    encoding = _told_by_nuls(start)
    if encoding:
        message = f"The file is {encoding} (its NUL bytes show it), not UTF-8."
        raise DataFormatError(f"{message} {_CONVERT.format(encoding)}.", path=path)
    if b"\r" in start[:-1] and b"\n" not in start:  # one at the end may be half of a line end
        message = "Lines end in a carriage return alone. Save the file with Unix line ends."
        raise DataFormatError(message, path=path, line=1)


def _told_by_nuls(start: bytes) -> str:
    """Name the encoding whose characters begin or end with NUL bytes; empty if it is none.

    >>> _told_by_nuls("a rose".encode("utf-16-le")), _told_by_nuls(b"a rose")
    ('UTF-16LE', '')
    """
    n_nuls = start.count(0)
    if n_nuls < max(_FEWEST_NULS, _LEAST_NUL_SHARE * len(start)):
        return ""
    if 2 * n_nuls > len(start):
        return "UTF-32LE" if start[0] else "UTF-32BE"
    behind = start[1::2].count(0) / n_nuls
    if 0.1 < behind < 0.9:
        return ""  # NUL bytes without an order are odd characters of the text
    return "UTF-16LE" if behind > 0.5 else "UTF-16BE"


@contextmanager
def _open_binary(path: Path) -> Iterator[BufferedReader[Any]]:
    """Open for reading, looking at the first bytes: users rename files."""
    if str(path) == STDIN:
        with _unpacked(_standard_input()) as stream:
            yield stream
        return
    with opened_raw(path) as raw, _unpacked(raw) as stream:
        yield stream


def opened_raw(path: Path) -> BufferedReader:
    """Open a file for reading as it is, or raise InputError.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.files import opened_raw
    >>> opened_raw(Path("no-such-file"))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: no-such-file cannot be opened: No such file or directory. Check ...
    """
    try:
        return path.open("rb")
    except OSError as error:
        message = f"{path} cannot be opened: {error.strerror}. Check the path.{about_home(path)}"
        raise InputError(message) from error


def _standard_input() -> BufferedReader:
    """Return what comes in, which stays open."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:  # as after `<&-`, or in a notebook
        raise InputError("Standard input is closed. Name a file, or send something in by a pipe.")
    return cast("BufferedReader", stream)


@contextmanager
def _unpacked(raw: BufferedReader) -> Iterator[BufferedReader[Any]]:
    """Unpack what gzip has packed, and leave other bytes as they are."""
    if raw.peek(2)[:2] == _GZIP_MAGIC:
        # gzip's own lines take several calls of Python each.
        with gzip.GzipFile(fileobj=raw) as unpacked, BufferedReader(unpacked, _AT_ONCE) as stream:
            yield stream
    else:
        yield raw
