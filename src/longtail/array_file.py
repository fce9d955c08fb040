"""Arrays as a safetensors file: written aligned, checked, and mapped in large pages."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import RETRAIN, ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "DTYPES",
    "Layout",
    "MappedArrays",
    "layouts_in",
    "map_bytes",
    "read_header",
    "write_arrays",
]

_SIZES = {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}  # in bytes
DTYPES = {"BOOL": np.dtype("bool")} | {
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in _SIZES.items()
    for size in sizes
}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CACHE_LINE = 64
_LENGTH_BYTES = 8  # in front of a header


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], *, note: str | None = None
) -> None:
    """Write a safetensors file whose large arrays begin on cache lines, once it is mapped.

    Those whose sizes are multiples of the largest powers of two go first: then each begins at a
    multiple of its own. The library's own function writes to a file of a name that nobody knows
    first, and who is killed meanwhile leaves that for ever.

    Parameters
    ----------
    path : Path
    arrays : mapping of str to array
        C-ordered and little-endian, of one of `DTYPES`.
    note : str or None
        What stands under ``longtail`` in the file's metadata.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from safetensors.numpy import load_file
    >>> from longtail.array_file import write_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.safetensors")
    ...     write_arrays(path, {"ids": np.array([3, 1], np.int32)})
    ...     load_file(path)["ids"].tolist()
    [3, 1]
    """
    ordered = sorted(arrays.items(), key=lambda item: (-_alignment(item[1]), -item[1].nbytes))
    header: dict[str, Any] = {} if note is None else {"__metadata__": {"longtail": note}}
    place = 0
    for name, array in ordered:
        offsets = [place, place := place + array.nbytes]
        kind = _DTYPE_NAMES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(len(text) + _LENGTH_BYTES) % _CACHE_LINE)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little"))
        file.write(text)
        for _, array in ordered:
            file.write(array.data)


def _alignment(array: NDArray[np.generic]) -> int:
    """Return the largest power of two, up to a cache line, that divides the array's size."""
    return min(array.nbytes & -array.nbytes or _CACHE_LINE, _CACHE_LINE)


def map_bytes(path: Path) -> NDArray[np.uint8]:
    """Map a file into memory.

    A prediction reads all over its tables. Where the system can, they are read from the disk in
    large pages, each of which takes one look-up of where it is, in place of hundreds; processes
    share these as they share others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.array_file import map_bytes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "bytes")
    ...     _ = path.write_bytes(bytes([3, 1, 4]))
    ...     mapped = map_bytes(path)
    >>> mapped.tolist(), mapped.flags.writeable
    ([3, 1, 4], False)
    """
    mapped: Any = np.memmap(path, dtype=np.uint8, mode="r")
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without them
            mapped.base.madvise(mmap.MADV_HUGEPAGE)
    return np.asarray(mapped)


@dataclass(frozen=True)
class Layout:
    """Where in its file an array lies.

    Parameters
    ----------
    dtype : dtype
    shape : tuple of int
    start, stop : int
        The array's bytes, counted from the beginning of the file.
    """

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    start: int
    stop: int


class MappedArrays(Mapping[str, "NDArray[np.generic]"]):
    """Makes a view of the memory map when an array is asked for.

    Parameters
    ----------
    layouts : mapping of str to (uint8 (n_bytes,), Layout)
        The map of each array's file, and its place there.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.array_file import Layout, MappedArrays
    >>> file = np.array([0, 0, 0, 0, 3, 0, 1, 0], np.uint8)  # four bytes, then two numbers
    >>> arrays = MappedArrays({"ids": (file, Layout(np.dtype("<i2"), (2,), start=4, stop=8))})
    >>> list(arrays), arrays["ids"].tolist()
    (['ids'], [3, 1])
    """

    def __init__(self, layouts: Mapping[str, tuple[NDArray[np.uint8], Layout]]) -> None:
        self._layouts = layouts

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        buffer, layout = self._layouts[name]
        return buffer[layout.start : layout.stop].view(layout.dtype).reshape(layout.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)


def read_header(path: Path) -> bytes:
    """Return the header of a safetensors file: eight bytes of length, then so many of JSON.

    Raises
    ------
    ModelFolderError
        If the file is shorter than that.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if length > path.stat().st_size - _LENGTH_BYTES:
            raise ModelFolderError(f"{path} is not a safetensors file. {RETRAIN}")
        return file.read(length)


def layouts_in(path: Path, header: bytes, n_bytes: int) -> dict[str, Layout]:
    """Return where the arrays of a safetensors file lie.

    Parameters
    ----------
    path : Path
        For messages.
    header : bytes
        What `read_header` returns.
    n_bytes : int
        Size of the file, which no array may lead out of.

    Raises
    ------
    ModelFolderError
        If the header is none, or does not fit the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from longtail.array_file import layouts_in, read_header, write_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.safetensors")
    ...     write_arrays(path, {"ids": np.array([3, 1], np.int32)})
    ...     layout = layouts_in(path, read_header(path), path.stat().st_size)["ids"]
    >>> layout.dtype.name, layout.shape, layout.stop - layout.start
    ('int32', (2,), 8)
    """
    first = _LENGTH_BYTES + len(header)
    try:
        entries: dict[str, Any] = json.loads(header)
        entries.pop("__metadata__", None)
        return {
            name: _as_layout(path, name, entry, first, n_bytes) for name, entry in entries.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFolderError(
            f"{path} is not a safetensors file: its header is none ({error!r}). {RETRAIN}"
        ) from error


def _as_layout(path: Path, name: str, entry: dict[str, Any], first: int, n_bytes: int) -> Layout:
    """Check one array of a header against the size of the file, whose arrays begin at `first`."""
    dtype = DTYPES.get(entry["dtype"])
    shape = tuple(entry["shape"])
    start, stop = (first + offset for offset in entry["data_offsets"])
    if (
        dtype is None
        or not first <= start <= stop <= n_bytes
        or math.prod(shape) * dtype.itemsize != stop - start
    ):
        raise ModelFolderError(
            f"{path} describes array {name!r} as {entry}, which does not fit the file. {RETRAIN}"
        )
    return Layout(dtype, shape, start, stop)
