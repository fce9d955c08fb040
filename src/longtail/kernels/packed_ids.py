"""Ids in no more bytes than the largest of them needs: two, three or four."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from longtail.kernels.instructions import load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Packed = NDArray[np.uint8]
    Ids = NDArray[np.int32]

__all__ = ["ID_WIDTHS", "N_SPARE", "id_at", "id_there", "is_packed", "pack_ids", "unpacked_ids"]

N_SPARE = 2  # rows behind the last id: it is read with whatever follows, four bytes in all
_BYTE, _NUMBER = ir.IntType(8), ir.IntType(32)
ID_WIDTHS = (2, 3, 4)  # bytes
_WIDEST = ID_WIDTHS[-1]
_AT_ONCE = 1 << 20  # ids: of hundreds of millions, copies would count


def pack_ids(ids: Any, n_values: int) -> Packed:
    """Return ids from 0 to ``n_values - 1`` as uint8 (n + 2, width).

    -1 becomes the largest number there is, which is none of them.

    Parameters
    ----------
    ids : int (n,)
    n_values : int
        How many ids there are, without -1.

    Examples
    --------
    >>> from longtail.kernels.packed_ids import pack_ids, unpacked_ids
    >>> packed = pack_ids([7, 65_000], n_values=65_535)
    >>> packed.shape, unpacked_ids(packed).tolist()
    ((4, 2), [7, 65000])
    """
    width = next(width for width in ID_WIDTHS if n_values < 1 << 8 * width)
    packed = np.zeros((len(ids) + N_SPARE, width), np.uint8)
    for start in range(0, len(ids), _AT_ONCE):
        words = np.asarray(ids[start : start + _AT_ONCE], np.int64).astype("<u4")
        packed[start : start + len(words)] = words.view(np.uint8).reshape(-1, _WIDEST)[:, :width]
    return packed


def unpacked_ids(packed: Packed) -> Ids:
    """Return packed ids as int32 (n,); what was -1 is the largest number of its bytes."""
    n, width = len(packed) - N_SPARE, packed.shape[1]
    ids, words = np.empty(n, np.int32), np.zeros((min(n, _AT_ONCE), _WIDEST), np.uint8)
    for start in range(0, n, _AT_ONCE):
        some = packed[start : min(start + _AT_ONCE, n)]
        words[: len(some), :width] = some
        ids[start : start + len(some)] = words[: len(some)].view("<i4").reshape(-1)
    return ids


def is_packed(array: NDArray[Any]) -> bool:
    """Tell whether an array could have been made by `pack_ids`."""
    return (
        array.dtype == np.uint8
        and array.ndim == 2
        and len(array) >= N_SPARE
        and array.shape[1] in ID_WIDTHS
    )


def id_there(builder: Any, ids: Any, place: Any, width: int) -> Any:
    """Generate what returns an id of so many bytes, as 32 bits; see `_packed_id`."""
    start = builder.bitcast(ids, _BYTE.as_pointer())
    there = builder.gep(start, [builder.mul(place, place.type(width))])
    word = load(builder, there, _NUMBER)
    return builder.and_(word, _NUMBER((1 << 8 * width) - 1))


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _packed_id(_: Any, packed: Any, place: Any) -> Any:
    """Return an id as uint32: four bytes are read, and those of the next ids masked out."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = cgutils.unpack_tuple(builder, array.shape)[1]
        row = context.cast(builder, arguments[1], signature.args[1], types.intp)
        there = builder.gep(
            builder.bitcast(array.data, _BYTE.as_pointer()), [builder.mul(row, width)]
        )
        word = load(builder, there, _NUMBER)
        unused = builder.sub(_NUMBER(32), builder.shl(builder.trunc(width, _NUMBER), _NUMBER(3)))
        ones = ir.Constant(_NUMBER, 2**32 - 1)
        return builder.and_(word, builder.lshr(ones, unused))

    return types.uint32(packed, place), generate


def id_at(ids: Any, place: Any) -> Any:
    """Return an id as uint32, from an array of int32 or from packed ones."""
    if ids.ndim == 1:
        return np.uint32(ids[place])
    word = int.from_bytes(bytes(ids[place]), "little")
    return np.uint32(word)


@overload(id_at, inline="always")  # type: ignore[untyped-decorator]  # numba has no types
def _id_at_compiled(ids: Any, place: Any) -> Any:  # noqa: ARG001  # numba wants both names
    def plain(ids: Any, place: Any) -> Any:
        return np.uint32(ids[place])

    def packed(ids: Any, place: Any) -> Any:
        return _packed_id(ids, place)

    return packed if ids.ndim == 2 else plain
