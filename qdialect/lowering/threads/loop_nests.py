"""The loop nests of a kernel, and which of their loops may be divided among threads.

A loop may be divided where the addresses show that each iteration writes elements of its own. Loop nests stay
together where one reads in scratch memory what another wrote. One thing is taken on trust: no iteration reads another's
scratch memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from qdialect._mlir import ir
from qdialect.lowering.functions import op_in
from qdialect.lowering.ir.loops import bounds
from qdialect.lowering.text.kernel_text import SCRATCH
from qdialect.lowering.threads.accesses import Access, known_accesses, ops_of
from qdialect.lowering.threads.cost import cycles
from qdialect.lowering.threads.dependences import is_order_free
from qdialect.lowering.threads.division import Work
from qdialect.lowering.threads.scratch_groups import scratch_groups

_INNER_SHARE = 0.9
"""Of the cost of an iteration that a loop inside it must have to be divided."""
_OWN_MEMORY = ("memref.alloc", "memref.alloca", "func.call")
"""Ops that make memory, or call what may, through which others may hand over what is in no access."""


@dataclass(frozen=True)
class LoopNest:
    """Ops at the top of a kernel that write: a loop, or several ops that are one iteration."""

    ops: tuple[ir.Operation, ...]
    """In their order, with those at the top that compute only for them."""
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
    """Arguments that are memory of which each thread needs its own."""
    is_chained: bool = False
    """Whether loop nests touch what others write, so that parts must be cut where none needs another's."""
    is_open: bool = False
    """Whether it may touch memory beside that of its accesses."""

    @property
    def name(self) -> str:
        """What it is called by."""
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @property
    def shared(self) -> list[Access]:
        """The accesses to memory that all threads have."""
        return [access for access in self.accesses if access.argument not in self.scratch]

    def loop_nest_of(self, access: Access) -> int | None:
        """Which loop nest `access` belongs to; None where every part does it."""
        top = _top(access.op, self.function)
        return next((i for i, loop_nest in enumerate(self.loop_nests) if top in loop_nest.ops), None)


def analyse(function: ir.Operation) -> KernelFunction:
    """What `function` reads and writes, and how it could be divided."""
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
    """All loop nests in their order; none where one writes scratch memory alone."""
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
    """The ops at the top that write, those that need each other's scratch memory or values together."""
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
    """Which of the `known` ops at the top compute with values of `top`."""
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
    """The ops of `group` and those at the top of its function that compute only for them, in their order."""
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
        # What stands beside an inner loop is done again by each part of it.
        inner = next((op for op in holders if len(holders) == 1 and cycles(op) >= _INNER_SHARE * whole), None)
    return tuple(loops)


def _is_independent(op: ir.Operation, writes: Sequence[Access]) -> bool:
    """Whether `op` is a loop of known trip count, each iteration of which writes elements of its own."""
    if op.name != "scf.for" or len(op.results) or bounds(op) is None:
        return False
    return all(access.run is not None and access.run.is_injective and op in dict(access.loops) for access in writes)


def _is_in_order(kernel: KernelFunction) -> bool:
    """Whether loop nests touch what is written one after the other: then each may be moved to where its last op is."""
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
