"""Products of bytes with bytes by whatever instructions the processor has, and their sums.

Code that other kernels are generated from. Bytes without a sign are multiplied with bytes that have
one, sixty-four at a time, as that is what the newest instruction takes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils

from longtail.kernels.instructions import LANES, LINE, has, load

__all__ = [
    "add_products",
    "add_small_products",
    "multiplies_pairs",
    "pairs_of_bytes",
    "pairs_of_shorts",
    "picked",
    "sixteen_bytes",
    "sums_of_each",
    "sums_of_sixteen",
]

binding.initialize_native_asmparser()

_BYTE, _SHORT, _INT = (ir.IntType(n) for n in (8, 16, 32))
_BYTES, _INTS = ir.VectorType(_BYTE, LINE), ir.VectorType(_INT, LANES)
_SIXTEEN_BYTES = ir.VectorType(_BYTE, LANES)
_SHORTS, _EIGHT_INTS = ir.VectorType(_SHORT, LANES), ir.VectorType(_INT, LANES // 2)


def add_products(context: Any, builder: Any, total: Any, row: Any, query: Any) -> Any:
    """Add products of bytes without and with signs, four to a lane."""
    if has(context, "avx512vnni"):
        kind = ir.FunctionType(_INTS, [_INTS, _BYTES, _BYTES])
        return builder.asm(kind, "vpdpbusd $3, $2, $0", "=v,0,v,v", [total, row, query], False)
    own = _add_in_pairs if has(context, "avx2") else _add_widened
    return own(builder, total, row, query)


def add_small_products(
    context: Any, builder: Any, total: Any, rows: list[Any], queries: list[Any]
) -> Any:
    """Add products of blocks of bytes, those without a sign at most 15: at most eight blocks."""
    if has(context, "avx512vnni") or not has(context, "avx2"):
        for row, query in zip(rows, queries, strict=True):
            total = add_products(context, builder, total, row, query)
        return total
    half = LINE // 2
    ones = ir.Constant(_SHORTS, [1] * LANES)
    sums = []
    for first in (0, half):
        part = list(range(first, first + half))
        pairs = ir.Constant(_SHORTS, None)  # 16 times 15 * 127 fits
        for row, query in zip(rows, queries, strict=True):
            own, other = (picked(builder, block, block, part) for block in (row, query))
            pairs = builder.add(pairs, pairs_of_bytes(builder, own, other))
        sums.append(pairs_of_shorts(builder, pairs, ones))
    return builder.add(total, picked(builder, sums[0], sums[1], list(range(LANES))))


def _add_in_pairs(builder: Any, total: Any, row: Any, query: Any) -> Any:
    """Add products by an instruction for sums of two products of 16 bits."""
    for first in range(0, LINE, 2 * LANES):
        sums = []
        for begin in (first, first + LANES):
            part = list(range(begin, begin + LANES))
            own = builder.zext(picked(builder, row, row, part), _SHORTS)
            other = builder.sext(picked(builder, query, query, part), _SHORTS)
            sums.append(pairs_of_shorts(builder, own, other))
        total = builder.add(total, picked(builder, sums[0], sums[1], list(range(LANES))))
    return total


def pairs_of_shorts(builder: Any, one: Any, other: Any) -> Any:
    """Return eight sums of two products of sixteen numbers with sixteen, by AVX2."""
    kind = ir.FunctionType(_EIGHT_INTS, [_SHORTS, _SHORTS])
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pmadd.wd")
    return builder.call(multiply, [one, other])


def pairs_of_bytes(builder: Any, row: Any, query: Any) -> Any:
    """Return sixteen sums of two products of 32 bytes without and with signs, by AVX2.

    Sums beyond sixteen bits are cut.
    """
    kind = ir.FunctionType(_SHORTS, [row.type, query.type])
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pmadd.ub.sw")
    return builder.call(multiply, [row, query])


def _add_widened(builder: Any, total: Any, row: Any, query: Any) -> Any:
    """Add products by instructions that any processor has."""
    for first in range(0, LINE, LANES):
        part = list(range(first, first + LANES))
        own = builder.zext(picked(builder, row, row, part), _INTS)
        other = builder.sext(picked(builder, query, query, part), _INTS)
        total = builder.add(total, builder.mul(own, other))
    return total


def picked(builder: Any, one: Any, other: Any, which: list[int]) -> Any:
    """Return lanes of two vectors, those of the second counted on from the first's."""
    mask = ir.Constant(ir.VectorType(_INT, len(which)), which)
    return builder.shuffle_vector(one, other, mask)


def _paired(builder: Any, one: Any, other: Any, size: int, step: int) -> Any:
    """Return sums of parts of two vectors: the first with the second, the third with the fourth.

    A part is `size` lanes; sums of the one and of the other alternate within `step` of them.
    """
    firsts: list[int] = []
    n_lanes = one.type.count
    for begin in range(0, n_lanes, step):
        for of in (0, n_lanes):
            for part in range(begin, begin + step, 2 * size):
                firsts += range(of + part, of + part + size)
    seconds = [lane + size for lane in firsts]
    sums = [picked(builder, one, other, which) for which in (firsts, seconds)]
    return builder.add(*sums)


def _sums_of_four(builder: Any, totals: list[Any]) -> Any:
    """Return parts of four lanes, each with a part of the sums of four vectors."""
    pairs = [_paired(builder, totals[i], totals[i + 1], 1, 4) for i in (0, 2)]
    return _paired(builder, pairs[0], pairs[1], 1, 4)


def sums_of_each(builder: Any, totals: list[Any]) -> Any:
    """Return the sums of four vectors, as a vector of four."""
    sums = _sums_of_four(builder, totals)
    while (size := sums.type.count // 2) >= len(totals):
        halves = [
            picked(builder, sums, sums, list(range(begin, begin + size))) for begin in (0, size)
        ]
        sums = builder.add(*halves)
    return sums


def sums_of_sixteen(builder: Any, totals: list[Any]) -> Any:
    """Return the sums of sixteen vectors, as a vector of sixteen."""
    fours = [totals[i : i + 4] for i in range(0, len(totals), 4)]
    if totals[0].type.count == LANES:
        quarters = [_sums_of_four(builder, four) for four in fours]
        pairs = [_paired(builder, quarters[i], quarters[i + 1], 4, LANES) for i in (0, 2)]
        return _paired(builder, pairs[0], pairs[1], 4, LANES)
    sums = [sums_of_each(builder, four) for four in fours]
    halves = [picked(builder, sums[i], sums[i + 1], list(range(8))) for i in (0, 2)]
    return picked(builder, halves[0], halves[1], list(range(LANES)))


def multiplies_pairs(context: Any) -> bool:
    """Tell whether sums of two products are the best that the processor has."""
    return has(context, "avx2") and not has(context, "avx512vnni")


def sixteen_bytes(builder: Any, start: Any, offset: Any) -> Any:
    """Load sixteen bytes of a row that begins somewhere."""
    return load(builder, builder.gep(start, [offset]), _SIXTEEN_BYTES)
