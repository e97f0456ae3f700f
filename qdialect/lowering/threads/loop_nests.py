"""The loop nests of a kernel: which of their loops may be divided among threads, and where into parts of equal cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.accesses import Access, known_accesses, ops_of
from qdialect.lowering.ir.functions import bounds, contraction_of, op_in
from qdialect.lowering.qnn_to_linalg.program.kernel_text import SCRATCH

# About how many cycles ops of the vector phase take on a CPU with vectors of 64 bytes.
#
# Only the shares of micro-kernels count: threads get parts of equal cost. A vector op takes a cycle for every 64 bytes
# it computes, a contraction one for every 64 products of bytes or 16 of wider numbers. Several K groups at once are
# matrix tiles: 16 cycles for each tile of sums, as with whole tiles.

_VECTOR_BITS = 512
_WIDEST = 64
_BYTE_PRODUCTS, _WIDE_PRODUCTS = 64, 16
_K_GROUP, _TILE_CYCLES = 4, 16
# The cycles that a sum waits for the one before it.
_LATENCY = 4
_UNKNOWN_STEPS = 16
# Vectors of the lanes' own addresses, constants and casts between forms of a vector are no instructions.
_FREE = ("arith.constant", "arith.index_cast", "vector.broadcast", "vector.shape_cast", "vector.create_mask")
_WIDENING = ("arith.extui", "arith.extsi")
_SLOW = {"arith.divf": 16, "arith.divsi": 30, "arith.divui": 30, "arith.remsi": 30, "math.sqrt": 16}


def cycles(op: ir.Operation) -> float:
    """Cycles of `op` with all that is in it."""
    if op.name == "scf.for":
        found = bounds(op)
        return (found[2] if found else _UNKNOWN_STEPS) * (1 + _inside(op))
    if op.name == "vector.contract":
        found = contraction_of(op)
        if _is_in_tiles(op):
            # The innermost two are the rows and columns of a tile, one of which is missing where it has one alone.
            return _TILE_CYCLES * found.terms(found.result[:-2])
        return max(math.prod(found.extents) / (_BYTE_PRODUCTS if _is_of_bytes(op) else _WIDE_PRODUCTS), _LATENCY)
    return _inside(op) + (0 if _is_free(op) else _own(op))


def _is_free(op: ir.Operation) -> bool:
    if op.name in _FREE or op.name.startswith("memref.reinter"):
        return True
    # Tiles are bytes.
    return op.name in _WIDENING and any(_is_in_tiles(use.owner.operation) for use in op.results[0].uses)


def _inside(op: ir.Operation) -> float:
    return sum(
        cycles(child.operation) for region in op.regions for block in region.blocks for child in block.operations
    )


def _own(op: ir.Operation) -> float:
    types = [value.type for value in (*op.results, *op.operands)]
    vectors = [type_ for type_ in types if isinstance(type_, ir.VectorType)]
    bits = max((math.prod(type_.shape) * _bits(type_.element_type) for type_ in vectors), default=1)
    return math.ceil(bits / _VECTOR_BITS) * _SLOW.get(op.name, 1)


def _bits(element: ir.Type) -> int:
    # Indices of table entries are as wide as what they come from.
    if isinstance(element, ir.IndexType):
        return 8
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else _WIDEST


def _is_in_tiles(op: ir.Operation) -> bool:
    """Whether `op` multiplies several K groups of bytes at once."""
    if op.name != "vector.contract" or not _is_of_bytes(op):
        return False
    found = contraction_of(op)
    return found.terms(found.reduced) > _K_GROUP


def _is_of_bytes(op: ir.Operation) -> bool:
    return all(
        not isinstance(value.owner, ir.Block)
        and value.owner.name in _WIDENING
        and _bits(ir.VectorType(value.owner.operands[0].type).element_type) == 8
        for value in list(op.operands)[:2]
    )


# The loop nests of a kernel, and which of their loops may be divided among threads.
#
# A loop may be divided if the addresses prove that each iteration writes different elements. Loop nests that pass data
# in scratch memory stay together. One assumption is not checked: no iteration reads another's scratch memory.

_INNER_SHARE = 0.9
"""Least share of an iteration's cost that a loop inside it must have to be divided."""
_OWN_MEMORY = ("memref.alloc", "memref.alloca", "func.call")
"""Ops that allocate memory, or may: other ops may pass data through it that no access shows."""


@dataclass(frozen=True)
class LoopNest:
    """Ops at the top of a kernel that write: a loop, or several ops that are one iteration."""

    ops: tuple[ir.Operation, ...]
    """In order, with the ops at the top that only they use."""
    loops: tuple[ir.Operation, ...]
    """Loops whose iterations may run in any order, outermost first."""
    work: Work


@dataclass(frozen=True)
class KernelFunction:
    """A kernel: its accesses, and its loop nests, empty where it cannot be divided."""

    function: ir.Operation
    accesses: tuple[Access, ...]
    loop_nests: tuple[LoopNest, ...]
    cost: float
    scratch: tuple[int, ...]
    """Arguments that are private memory: each thread needs its own."""
    is_chained: bool = False
    """Whether loop nests access elements that others write, so that parts must be cut where none depends on another."""
    is_open: bool = False
    """Whether it may access other memory than its accesses show."""

    @property
    def name(self) -> str:
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @property
    def shared(self) -> list[Access]:
        """The accesses to memory that threads share."""
        return [access for access in self.accesses if access.argument not in self.scratch]

    def loop_nest_of(self, access: Access) -> int | None:
        """The number of the loop nest of `access`; None if every part makes the access."""
        top = _top(access.op, self.function)
        return next((i for i, loop_nest in enumerate(self.loop_nests) if top in loop_nest.ops), None)


def analyse(function: ir.Operation) -> KernelFunction:
    """Analyse the accesses of `function`, and how it can be divided."""
    ops = ops_of(function)
    every, unknown = known_accesses(function, ops)
    scratch = _scratch(function)
    has_own_memory = any(op.name in _OWN_MEMORY for op in ops)
    loop_nests = () if has_own_memory or unknown else _loop_nests(function, every, scratch)
    cost = sum(cycles(op) for op in _ops(function))
    is_chained = not is_order_free([access for access in every if access.argument not in scratch])
    kernel = KernelFunction(function, tuple(every), loop_nests, cost, scratch, is_chained, bool(unknown))
    if is_chained and not unknown and not _is_in_order(kernel):
        return KernelFunction(function, tuple(every), (), cost, scratch)
    return kernel


def _scratch(function: ir.Operation) -> tuple[int, ...]:
    if "arg_attrs" not in function.attributes:
        return ()
    notes = enumerate(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return tuple(i for i, note in notes if SCRATCH in ir.DictAttr(note))


def _loop_nests(function: ir.Operation, every: Sequence[Access], scratch: tuple[int, ...]) -> tuple[LoopNest, ...]:
    """All loop nests in order; empty if one of them writes only scratch memory."""
    writes: dict[ir.Operation, list[Access]] = {}
    for access in every:
        if access.is_write and access.argument not in scratch:
            writes.setdefault(_top(access.op, function), []).append(access)
    groups = _groups(function, every, scratch)
    found = [(group, [access for op in group for access in writes.get(op, ())]) for group in groups]
    if not all(written for _, written in found):
        return ()
    return tuple(_loop_nest(group, written) for group, written in found)


def _groups(function: ir.Operation, every: Sequence[Access], scratch: tuple[int, ...]) -> list[list[ir.Operation]]:
    """The ops at the top that write, grouped if they need each other's scratch memory or values."""
    order = {op: i for i, op in enumerate(_ops(function))}
    owned = [access for access in every if access.is_write or access.argument in scratch]
    group_of = {top: {top} for top in (_top(access.op, function) for access in owned)}
    for argument in scratch:
        touching = [access for access in owned if access.argument == argument]
        writing, reading = (
            {_top(access.op, function) for access in touching if access.is_write == is_write}
            for is_write in (True, False)
        )
        if writing == reading:
            continue
        for group in scratch_groups(sorted(writing | reading, key=order.__getitem__), touching):
            _merge(group_of, set(group))
    for top in list(group_of):
        _merge(group_of, {top, *_readers(top, group_of)})
    distinct = {id(group): group for group in group_of.values()}.values()
    return sorted((sorted(group, key=order.__getitem__) for group in distinct), key=lambda group: order[group[-1]])


def _merge(group_of: dict[ir.Operation, set[ir.Operation]], tops: set[ir.Operation]) -> None:
    merged = set[ir.Operation]().union(*(group_of[top] for top in tops))
    group_of |= dict.fromkeys(merged, merged)


def _readers(top: ir.Operation, known: Collection[ir.Operation]) -> set[ir.Operation]:
    """The ops among `known` at the top that use values of `top`."""
    found: set[ir.Operation] = set()
    left, seen = [top], {top}
    while left:
        uses = [use for result in left.pop().results for use in result.uses]
        users = {op_in(use.owner.operation, top.block) for use in uses} - seen
        seen |= users
        found |= users & set(known)
        left += users - set(known)
    return found


def _loop_nest(group: Sequence[ir.Operation], writes: Sequence[Access]) -> LoopNest:
    loops = _independent_loops(group[0], writes) if len(group) == 1 else ()
    ops = _slice_of(group)
    trips = tuple(found[2] for loop in loops if (found := bounds(loop)))
    cost = sum(cycles(op) for op in (loops[:1] or ops))
    first, of_loop = writes[0], dict(writes[0].loops)
    strides = tuple(of_loop[loop] for loop in loops)
    start, end = (first.run.start, first.run.end) if first.run else (0, first.extent)
    span = end - start - (strides[0] * (trips[0] - 1) if loops else 0)
    return LoopNest(tuple(ops), loops, Work(trips, max(cost, 1.0), start, strides, first.extent, span))


def _slice_of(group: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops of `group` and those at the top of its function that only they use, in order."""
    block = group[0].block
    chosen = set(group)
    for other in reversed(list(block.operations)):
        users = {op_in(use.owner.operation, block) for result in other.operation.results for use in result.uses}
        if users and users <= chosen and other.operation.name not in ("arith.constant", "memref.reinterpret_cast"):
            chosen.add(other.operation)
    return [other.operation for other in block.operations if other.operation in chosen]


def _independent_loops(op: ir.Operation, writes: Sequence[Access]) -> tuple[ir.Operation, ...]:
    loops: list[ir.Operation] = []
    inner: ir.Operation | None = op
    while inner is not None and _is_independent(inner, writes):
        loops.append(inner)
        body = inner.regions[0].blocks[0]
        holders = {op_in(access.op, body) for access in writes}
        whole = sum(cycles(op.operation) for op in body.operations)
        # Each part repeats the ops next to an inner loop.
        inner = next((op for op in holders if len(holders) == 1 and cycles(op) >= _INNER_SHARE * whole), None)
    return tuple(loops)


def _is_independent(op: ir.Operation, writes: Sequence[Access]) -> bool:
    """Whether `op` is a loop of known trip count, each iteration of which writes elements of its own."""
    if op.name != "scf.for" or len(op.results) or bounds(op) is None:
        return False
    return all(access.run is not None and access.run.is_injective and op in dict(access.loops) for access in writes)


def _is_in_order(kernel: KernelFunction) -> bool:
    """Whether the loop nests access written memory in turn: then each may move to the place of its last op."""
    written = {access.argument for access in kernel.shared if access.is_write}
    order = {op: i for i, op in enumerate(_ops(kernel.function))}
    touching = [access for access in kernel.shared if access.argument in written]
    touching.sort(key=lambda access: order[_top(access.op, kernel.function)])
    owners = [kernel.loop_nest_of(access) for access in touching]
    runs = [owners[0], *(after for before, after in pairwise(owners) if after != before)]
    return None not in runs and len(runs) == len(set(runs))


def _ops(function: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in function.regions[0].blocks[0].operations]


def _top(op: ir.Operation, function: ir.Operation) -> ir.Operation:
    return op_in(op, function.regions[0].blocks[0])


# Cuts the work of a kernel into parts of equal cost.
#
# A loop nest consists of nested loops whose iterations may run in any order. The iterations of its outermost loops are
# numbered consecutively, and each part gets a contiguous range of them.
#
# All loop nests of a kernel are divided at the same offsets of their outputs: so a part reads data that the same part
# of the previous kernel wrote, and the padding of an image is filled by the part that has its rows.

# A part this much more expensive than an even share is good enough: counting through more loops costs more.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Work:
    """The work of a loop nest: the trip counts of its loops, outermost first, its cost, and where it writes."""

    trips: tuple[int, ...]
    cost: float
    start: int = 0
    strides: tuple[int, ...] = ()
    """Elements from one iteration of each loop to the next."""
    extent: int = 1
    """Elements of the buffer that it writes."""
    span: int = 1
    """Elements from the first to one past the last that an iteration of the outermost loop writes."""

    def units(self, depth: int) -> int:
        """Iterations of the `depth` outermost loops together."""
        return math.prod(self.trips[:depth])

    def positions(self, depth: int) -> NDArray[np.int64]:
        """About where each iteration writes, in ascending order."""
        found = np.full(1, self.start, np.int64)
        for trips, stride in list(zip(self.trips, self.strides, strict=True))[:depth]:
            found = (found[:, None] + np.arange(trips) * stride).reshape(-1)
        if (np.diff(found) >= 0).all():
            return found
        even: NDArray[np.float64] = np.linspace(float(found.min()), float(found.max()), len(found))
        return even.astype(np.int64)


@dataclass(frozen=True)
class Partition:
    """How many outermost loops are divided, and the iteration where each part starts and the last one ends."""

    depth: int
    bounds: tuple[int, ...]


def partition(works: Sequence[Work], parts: int) -> list[Partition]:
    """How each of `works` is cut into `parts`: through the fewest loops that make parts even, or the best available."""
    alike = _cut_alike(works, parts)
    if alike and largest_share(works, alike) * parts <= 1 + _TOLERANCE:
        return alike
    best, minimum = _partition(works, parts, 0), 1.0
    for depth in range(1 + max(len(work.trips) for work in works)):
        found = _partition(works, parts, depth)
        share = largest_share(works, found)
        if share < minimum * (1 - _TOLERANCE):
            best, minimum = found, share
        if share * parts <= 1 + _TOLERANCE:
            break
    return best


def chained_partition(works: Sequence[Work], parts: int) -> list[Partition] | None:
    """Dependent `works`, all cut at the same offsets of their buffers.

    No iteration of an outermost loop writes on both sides of such a cut; None if there are too few such offsets.
    """
    depths = [min(1, len(work.trips)) for work in works]
    starts = [work.positions(depth) / work.extent for work, depth in zip(works, depths, strict=True)]
    shares = np.unique(np.concatenate(starts))
    for work, depth in zip(works, depths, strict=True):
        ends = np.insert((work.positions(depth) + work.span) / work.extent, 0, 0.0)
        shares = shares[ends[np.searchsorted(work.positions(depth) / work.extent, shares)] <= shares]
    if len(shares) < parts:
        return None
    before = [np.searchsorted(found, shares) for found in starts]
    costs = sum(work.cost / work.units(depth) * n for work, depth, n in zip(works, depths, before, strict=True))
    total = sum(work.cost for work in works)
    cuts = [int(np.argmin(np.abs(costs - total * part / parts))) for part in range(1, parts)]
    return [
        Partition(depth, (0, *(int(n[cut]) for cut in cuts), work.units(depth)))
        for work, depth, n in zip(works, depths, before, strict=True)
    ]


def largest_share(works: Sequence[Work], partitions: Sequence[Partition]) -> float:
    """The share of all cost that the most expensive part has."""
    costs = sum(
        work.cost / work.units(found.depth) * np.diff(found.bounds)
        for work, found in zip(works, partitions, strict=True)
    )
    return float(np.max(costs) / np.sum(costs))


def _cut_alike(works: Sequence[Work], parts: int) -> list[Partition] | None:
    """All outermost loops cut at the same iterations, if they are over the same rows or columns.

    One thread reads the data that such loops share, such as the weights of the columns, and parts are even whatever the
    relative costs of the loops.
    """
    if len({(work.trips[:1], work.strides[:1]) for work in works}) != 1 or not works[0].trips:
        return None
    count = works[0].trips[0]
    return [Partition(1, tuple(round(count * part / parts) for part in range(parts + 1)))] * len(works)


def _partition(works: Sequence[Work], parts: int, depth: int) -> list[Partition]:
    """The division of at most the `depth` outermost loops."""
    depths = [min(depth, len(work.trips)) for work in works]
    units = [work.units(depth) for work, depth in zip(works, depths, strict=True)]
    positions = np.concatenate([work.positions(depth) for work, depth in zip(works, depths, strict=True)])
    costs = np.repeat([work.cost / count for work, count in zip(works, units, strict=True)], units)
    order = np.argsort(positions, kind="stable")
    middles = np.cumsum(costs[order]) - costs[order] / 2
    share = float(costs.sum()) / parts
    ends = [0, *(int(np.count_nonzero(middles < share * part)) for part in range(1, parts)), len(order)]
    owner = np.empty(len(order), np.int64)
    for part, (first, last) in enumerate(pairwise(ends)):
        owner[order[first:last]] = part
    begins = np.cumsum([0, *units])
    return [
        Partition(chosen, tuple(int(np.count_nonzero(owner[first:last] < part)) for part in range(parts + 1)))
        for chosen, (first, last) in zip(depths, pairwise(begins), strict=True)
    ]


# Whether accesses of a kernel depend on each other.


def is_order_free(found: Sequence[Access]) -> bool:
    """Whether the order of all accesses is free: no two write the same element, none reads what another writes."""
    writes = [access for access in found if access.is_write]
    reads = [access for access in found if not access.is_write]
    pairs = [*combinations(writes, 2), *((write, read) for write in writes for read in reads)]
    same = ((one.run, other.run) for one, other in pairs if one.argument == other.argument)
    return not any(one is None or other is None or one.overlaps(other) for one, other in same)


# Groups the ops at the top of a kernel that pass data in scratch memory (liveness analysis).
#
# Scratch memory is dead at an op if every element that is read from there on is written first. For example, a loop over
# blocks of rows and the remaining block each write a tile of accumulators and read it again: between them the memory is
# dead, and each is divided on its own.

_WHOLE_WRITES = (
    *("vector.transfer_write", "vector.store", "memref.store", "memref.copy", "affine.store", "affine.vector_store"),
)


def scratch_groups(tops: Sequence[ir.Operation], touching: Sequence[Access]) -> list[list[ir.Operation]]:
    """Group the `tops` of a block, which make the accesses `touching` of one buffer; groups end where it is dead.

    They are one group if the first reads elements that none has written: an iteration may then use another's elements.
    """
    live = np.zeros(touching[0].extent, np.bool_)
    groups: list[list[ir.Operation]] = [[]]
    for top in reversed(tops):
        groups[-1].append(top)
        for access in reversed(_in_order(top, touching)):
            if not access.is_write:
                live[slice(None) if access.run is None else access.run.mask(len(live))] = True
            elif access.run is not None and _writes_all(access.op):
                live[access.run.mask(len(live))] = False
        if not live.any():
            groups.append([])
    return [list(tops)] if live.any() else groups[:-1]


def _in_order(top: ir.Operation, touching: Sequence[Access]) -> list[Access]:
    """The accesses that `top` makes, in the order of their ops; an op that does both reads first."""
    position = {op: i for i, op in enumerate(_walk(top))}
    found = [access for access in touching if access.op in position]
    return sorted(found, key=lambda access: (position[access.op], access.is_write))


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield from _walk(child.operation)


def _writes_all(op: ir.Operation) -> bool:
    """Whether `op` is certain to write every element of its run."""
    if op.name not in _WHOLE_WRITES or (op.name == "vector.transfer_write" and not _is_whole(op)):
        return False
    holder = op.parent
    while holder and holder.name != "func.func":
        found = bounds(holder.operation) if holder.name == "scf.for" else None
        if found is None or not found[2]:
            return False
        holder = holder.operation.parent
    return True


def _is_whole(op: ir.Operation) -> bool:
    """Whether a write of a vector is without mask and within its buffer."""
    *_, masks = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return not masks and all(ir.BoolAttr(value).value for value in ir.ArrayAttr(op.attributes["in_bounds"]))
