"""Inner products of a query with int8 rows, by whole numbers where that is quicker.

The query is then its own codes, see `longtail.kernels.rows.quantise`, which lose less than the rows
have lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from longtail.kernels.jit import kernel
from longtail.kernels.packed_codes import BLOCK, add_products, has_instruction, load_block
from longtail.kernels.rows import Rows, row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Codes = NDArray[np.int8]

__all__ = ["near_dot"]

_NUMBER = ir.IntType(32)
_HALF_RANGE = -128  # a byte that is this much more, read without its sign


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _whole_dot(_: Any, query: Any, values: Any, row: Any) -> Any:
    """Return the inner product of int8 codes with an int8 row of whole blocks of 64, int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1)
        ]
        place = context.cast(builder, arguments[2], signature.args[2], types.intp)
        width = cgutils.unpack_tuple(builder, arrays[1].shape)[1]
        byte = ir.IntType(8).as_pointer()
        own, rows = (builder.bitcast(array.data, byte) for array in arrays)
        own_row = builder.gep(rows, [builder.mul(place, width)])
        lanes = ir.VectorType(_NUMBER, BLOCK // 4 if has_instruction(context) else BLOCK)
        total, excess = (cgutils.alloca_once_value(builder, ir.Constant(lanes, None)) for _ in "te")
        block = ir.VectorType(ir.IntType(8), BLOCK)
        middle = ir.Constant(block, [_HALF_RANGE] * BLOCK)
        step = ir.Constant(width.type, BLOCK)
        with cgutils.for_range(builder, builder.udiv(width, step)) as loop:
            at = builder.mul(loop.index, step)
            mine = load_block(builder, own, at)
            raised = builder.xor(load_block(builder, own_row, at), middle)
            for sums, numbers in ((total, raised), (excess, middle)):
                added = add_products(context, builder, builder.load(sums), numbers, mine)
                builder.store(added, sums)
        add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_NUMBER, [lanes]),
            f"llvm.vector.reduce.add.v{lanes.count}i32",
        )
        return builder.call(add, [builder.sub(builder.load(total), builder.load(excess))])

    return types.int32(query, values, row), generate


@kernel
def _coded_dot(query: Codes, scale: np.float32, rows: Rows, row: int) -> np.float32:
    """Return the inner product of codes with a row of codes."""
    return np.float32(_whole_dot(query, rows.values, row)) * scale * rows.scales[row]


def near_dot(point: Floats, query: Codes, scale: Any, rows: Rows, row: int) -> Any:
    """Return the inner product of a point, which is about `scale` times `query`, with one row.

    Parameters
    ----------
    point : float32 (d,)
    query, scale : int8, float
        Its codes, with zeros behind them up to a whole number of blocks of 64.
    rows : Rows
    row : int
    """
    if rows.values.dtype == np.int8 and len(point) % BLOCK == 0:
        return _coded_dot(query, scale, rows, row)
    return row_dot(point, rows, row)


@overload(near_dot)  # type: ignore[untyped-decorator]  # numba has no types
def _near_dot_compiled(
    point: Any,  # noqa: ARG001  # numba wants the names of what is overloaded
    query: Any,  # noqa: ARG001
    scale: Any,  # noqa: ARG001
    rows: Any,
    row: Any,  # noqa: ARG001
) -> Any:
    def exact(point: Any, query: Any, scale: Any, rows: Any, row: Any) -> Any:  # noqa: ARG001
        return row_dot(point, rows, row)

    def coded(point: Any, query: Any, scale: Any, rows: Any, row: Any) -> Any:
        if len(point) % BLOCK == 0:
            return _coded_dot(query, scale, rows, row)
        return row_dot(point, rows, row)

    return coded if rows.types[0].dtype == types.int8 else exact
