"""The inner loops of a walk of a graph, written out: edges sixteen at a time, a beam in registers.

Edges of a node are distinct, so sixteen of them can be looked up and marked at once.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.coded_graph import HIGHEST_KEY, IS_OPEN, KEY_BITS, LAST_NODE, NODE_BITS
from longtail.kernels.instructions import LANES, LINE, each_lane, first_lanes, in_lanes, load, store
from longtail.kernels.lanes import KEYS_AT_ONCE
from longtail.kernels.packed_ids import ID_WIDTHS, id_there
from longtail.kernels.prefetch import fetch_line
from longtail.kernels.sparse_lanes import gathered, has_instructions, packed_columns

__all__ = ["MOST_IN_REGISTERS", "insert_products", "keep_unseen_edges"]

MOST_IN_REGISTERS = 8  # blocks of eight keys
_LINES_WRITTEN_OUT = 5  # of a row
_BIT, _BYTE, _SHORT, _INT, _LONG = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
_INTS = ir.VectorType(_INT, LANES)
_KEYS = ir.VectorType(_LONG, KEYS_AT_ONCE)
_EIGHT_INTS = ir.VectorType(_INT, KEYS_AT_ONCE)
_BELOW_ALL = -(1 << 63)  # of 64 bits: lower than any key


def _fetch_rows(builder: Any, start: Any, width: Any, listed: Any, first: Any, after: Any) -> None:
    """Ask for all cache lines of some rows of a table of bytes."""
    n_lines = builder.udiv(builder.add(width, _LONG(LINE - 1)), _LONG(LINE))
    last = builder.sub(width, _LONG(1))  # a row may begin in the middle of a line
    for n in range(1, _LINES_WRITTEN_OUT + 1):
        relation = "==" if n < _LINES_WRITTEN_OUT else ">="
        with (
            builder.if_then(builder.icmp_unsigned(relation, n_lines, _LONG(n))),
            cgutils.for_range_slice(builder, first, after, _LONG(1)) as (place, _),
        ):
            node = builder.zext(builder.load(builder.gep(listed, [place])), _LONG)
            row = builder.gep(start, [builder.mul(node, width)])
            for line in range(n):
                fetch_line(builder, builder.gep(row, [_LONG(LINE * line)]))
            fetch_line(builder, builder.gep(row, [last]))


def _compress(builder: Any, numbers: Any, mask: Any, there: Any) -> None:
    """Store the lanes of a mask side by side; sixteen places are written, whatever there are."""
    kind = ir.FunctionType(_INTS, [_INTS, _INTS, mask.type])
    compress = cgutils.get_or_insert_function(
        builder.module, kind, "llvm.x86.avx512.mask.compress.v16i32"
    )
    none = ir.Constant(_INTS, [0] * LANES)
    store(builder, builder.call(compress, [numbers, none, mask]), there)


def _count(builder: Any, mask: Any, kind: Any) -> Any:
    """Return how many lanes of a mask are set, as an intp."""
    name = f"llvm.ctpop.i{kind.width}"
    count = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
    return builder.zext(builder.call(count, [builder.bitcast(mask, kind)]), _LONG)


class _Notes:
    """Which nodes were seen, by the last stamp, and a list of those that were not.

    Nodes are marked when all edges of one have been looked up, as distinct ones can be: to write to
    sixteen places by one instruction takes many processors longer than to write to each alone.
    """

    def __init__(self, builder: Any, n_nodes: Any, stamps: Any, fresh: Any, n_fresh: Any) -> None:
        self.builder = builder
        self.n_nodes, self.stamps = n_nodes, stamps
        self.fresh, self.n_fresh = fresh, n_fresh
        self.stamp = builder.load(builder.gep(stamps, [n_nodes]))

    def sixteen(self, context: Any, ids: Any, place: Any, n_left: Any, n_bytes: int) -> None:
        """Note those of sixteen ids, or of as many as are left, that were not seen."""
        builder = self.builder
        n_left, none = builder.trunc(n_left, _INT), ir.Constant(_INTS, [0] * LANES)
        stamps_now = in_lanes(builder, self.stamp, _INTS)
        nodes_there = in_lanes(builder, builder.trunc(self.n_nodes, _INT), _INTS)
        mask = first_lanes(builder, n_left, LANES)
        nodes = packed_columns(context, builder, ids, place, n_left, n_bytes)
        inside = builder.and_(mask, builder.icmp_unsigned("<", nodes, nodes_there))
        places = builder.select(inside, nodes, none)
        seen = gathered(builder, self.stamps, places, _INTS)
        unseen = builder.and_(inside, builder.icmp_signed("!=", seen, stamps_now))
        n_now = builder.load(self.n_fresh)
        _compress(builder, nodes, unseen, builder.gep(self.fresh, [n_now]))
        builder.store(builder.add(n_now, _count(builder, unseen, _SHORT)), self.n_fresh)

    def one(self, _context: Any, ids: Any, place: Any, _n_left: Any, n_bytes: int) -> None:
        """Note an id that was not seen, without a branch; what is no node has the last stamp."""
        builder = self.builder
        node = builder.zext(id_there(builder, ids, place, n_bytes), _LONG)
        is_node = builder.icmp_unsigned("<", node, self.n_nodes)
        mark = builder.gep(self.stamps, [builder.select(is_node, node, self.n_nodes)])
        is_unseen = builder.icmp_signed("!=", builder.load(mark), self.stamp)
        n_now = builder.load(self.n_fresh)
        builder.store(builder.trunc(node, _INT), builder.gep(self.fresh, [n_now]))
        builder.store(builder.add(n_now, builder.zext(is_unseen, _LONG)), self.n_fresh)

    def mark(self, first: Any, after: Any) -> None:
        """Mark some of the nodes listed as seen."""
        builder = self.builder
        with cgutils.for_range_slice(builder, first, after, _LONG(1)) as (place, _):
            node = builder.load(builder.gep(self.fresh, [place]))
            builder.store(self.stamp, builder.gep(self.stamps, [builder.zext(node, _LONG)]))


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def keep_unseen_edges(
    _: Any, ids: Any, first: Any, n_ids: Any, codes: Any, stamps: Any, fresh: Any, n_fresh: Any
) -> Any:
    """Note the nodes among some ids not yet seen, mark them, have their codes fetched.

    Parameters
    ----------
    ids : of `pack_ids`
    first, n_ids : int
        The ids that are looked at: distinct ones. Those of no node are passed over.
    codes : uint8 (n_nodes, width)
    stamps : int32 (n_nodes + 1,)
        The last one marks what was seen.
    fresh : int32 (at least ``n_fresh + n_ids + 16``,)
        Written from `n_fresh` on.
    n_fresh : int

    Returns
    -------
    int
        How many there are now.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        packed, table, marks, target = (
            context.make_array(kinds[i])(context, builder, arguments[i]) for i in (0, 3, 4, 5)
        )
        begin, n_all, before = (
            context.cast(builder, arguments[i], kinds[i], types.int64) for i in (1, 2, 6)
        )
        n_nodes, width = cgutils.unpack_tuple(builder, table.shape)
        n_kept = cgutils.alloca_once_value(builder, before)
        notes = _Notes(builder, n_nodes, marks.data, target.data, n_kept)
        id_width = cgutils.unpack_tuple(builder, packed.shape)[1]
        after = builder.add(begin, n_all)
        note, step = (notes.sixteen, LANES) if has_instructions(context) else (notes.one, 1)
        for n_bytes in ID_WIDTHS:
            with (
                builder.if_then(builder.icmp_unsigned("==", id_width, _LONG(n_bytes))),
                cgutils.for_range_slice(builder, begin, after, _LONG(step)) as (place, _i),
            ):
                note(context, packed.data, place, builder.sub(after, place), n_bytes)
        start = builder.bitcast(table.data, _BYTE.as_pointer())
        _fetch_rows(builder, start, width, target.data, before, builder.load(n_kept))
        notes.mark(before, builder.load(n_kept))
        return builder.load(n_kept)

    return types.int64(ids, first, n_ids, codes, stamps, fresh, n_fresh), generate


class _Beam:
    """A falling list of keys, in registers as long as it is worked on."""

    def __init__(self, builder: Any, first: Any, n_blocks: int) -> None:
        self.builder = builder
        self.places = [builder.gep(first, [_LONG(KEYS_AT_ONCE * b)]) for b in range(n_blocks)]
        blocks = [load(builder, place, _KEYS, align=8) for place in self.places]
        self.blocks = [cgutils.alloca_once_value(builder, block) for block in blocks]

    def least(self) -> Any:
        """Return the last key in all lanes."""
        last = self.builder.load(self.blocks[-1])
        which = ir.Constant(_EIGHT_INTS, [KEYS_AT_ONCE - 1] * KEYS_AT_ONCE)
        return self.builder.shuffle_vector(last, last, which)

    def insert(self, key: Any) -> None:
        """Insert a key: see `longtail.kernels.lanes.insert_key`."""
        builder = self.builder
        new = in_lanes(builder, key, _KEYS)
        own = [builder.load(block) for block in self.blocks]
        before = ir.Constant(_KEYS, [int(HIGHEST_KEY)] * KEYS_AT_ONCE)
        which = ir.Constant(_EIGHT_INTS, list(range(KEYS_AT_ONCE - 1, 2 * KEYS_AT_ONCE - 1)))
        for keys, block in zip(own, self.blocks, strict=True):
            previous = builder.shuffle_vector(before, keys, which)
            smaller = builder.select(builder.icmp_signed("<", previous, new), previous, new)
            larger = builder.select(builder.icmp_signed(">", keys, smaller), keys, smaller)
            builder.store(larger, block)
            before = keys

    def write(self, key: Any) -> Any:
        """Write the list, and return how many keys are above one."""
        builder = self.builder
        limit, n_above = in_lanes(builder, key, _KEYS), _LONG(0)
        for place, block in zip(self.places, self.blocks, strict=True):
            keys = builder.load(block)
            store(builder, keys, place, align=8)
            above = builder.icmp_signed(">", keys, limit)
            n_above = builder.add(n_above, _count(builder, above, _BYTE))
        return n_above


def _keys_of(builder: Any, nodes: Any, products: Any, place: Any) -> Any:
    """Return the keys of eight nodes, from a place on."""
    own, sums = (
        load(builder, builder.gep(table, [place]), _EIGHT_INTS, align=4)
        for table in (nodes, products)
    )
    key_bits, node_bits, is_open = (
        ir.Constant(_KEYS, [int(n)] * KEYS_AT_ONCE) for n in (KEY_BITS, NODE_BITS, IS_OPEN)
    )
    low = builder.or_(builder.shl(builder.zext(own, _KEYS), node_bits), is_open)
    return builder.or_(builder.shl(builder.sext(sums, _KEYS), key_bits), low)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def insert_products(
    _: Any, keys: Any, nodes: Any, products: Any, n: Any, neighbours: Any, degree: Any
) -> Any:
    """Put nodes into a beam of at most 64, have the edges of those that enter fetched.

    Parameters
    ----------
    keys : int64 (8 * n_blocks + 1,)
        See `longtail.kernels.code_search.walk_graph`; the beam begins at the second place.
    nodes, products : int32 (at least `n` rounded up to a multiple of eight,)
        Nodes not yet there, and their products with the query.
    n : int
    neighbours : of `pack_ids`
    degree : int
        Edges of each node.

    Returns
    -------
    int
        The place of the best that entered, where the beam ends if none did.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        beam, own, sums, edges = (
            context.make_array(kinds[i])(context, builder, arguments[i]) for i in (0, 1, 2, 4)
        )
        end, n_edges = (context.cast(builder, arguments[i], kinds[i], types.int64) for i in (3, 5))
        width = cgutils.unpack_tuple(builder, edges.shape)[1]
        row_bytes = builder.mul(width, n_edges)
        last_byte = builder.sub(row_bytes, _LONG(1))  # lines between come by themselves
        edge_bytes = builder.bitcast(edges.data, _BYTE.as_pointer())
        n_keys = cgutils.unpack_tuple(builder, beam.shape)[0]
        n_blocks = builder.udiv(n_keys, _LONG(KEYS_AT_ONCE))
        first = builder.gep(beam.data, [_LONG(1)])
        place = cgutils.alloca_once_value(builder, n_keys)
        best, room = cgutils.alloca_once(builder, _LONG), cgutils.alloca_once(builder, _KEYS)
        for n_own in range(1, MOST_IN_REGISTERS + 1):
            with builder.if_then(builder.icmp_unsigned("==", n_blocks, _LONG(n_own))):
                registers = _Beam(builder, first, n_own)
                builder.store(_LONG(_BELOW_ALL), best)
                step = _LONG(KEYS_AT_ONCE)
                with cgutils.for_range_slice(builder, _LONG(0), end, step) as (j, _i):
                    some = _keys_of(builder, own.data, sums.data, j)
                    n_left = builder.trunc(builder.sub(end, j), _INT)
                    inside = first_lanes(builder, n_left, KEYS_AT_ONCE)
                    above = builder.icmp_signed(">", some, registers.least())
                    builder.store(some, room)
                    with each_lane(builder, builder.and_(inside, above)) as lane:
                        there = builder.bitcast(room, _LONG.as_pointer())
                        key = builder.load(builder.gep(there, [lane]))
                        below, last_node = _LONG(int(NODE_BITS)), _LONG(int(LAST_NODE))
                        node = builder.and_(builder.lshr(key, below), last_node)
                        row = builder.gep(edge_bytes, [builder.mul(node, row_bytes)])
                        for offset in (_LONG(0), _LONG(LINE), last_byte):
                            fetch_line(builder, builder.gep(row, [offset]))
                        highest = builder.load(best)
                        is_higher = builder.icmp_signed(">", key, highest)
                        builder.store(builder.select(is_higher, key, highest), best)
                        registers.insert(key)
                n_above = registers.write(builder.load(best))
                builder.store(builder.add(n_above, _LONG(1)), place)
        return builder.load(place)

    return types.int64(keys, nodes, products, n, neighbours, degree), generate
