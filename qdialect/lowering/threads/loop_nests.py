"""The loop nests of a kernel, and which of their loops may be divided among threads.

A loop may be divided where the addresses show that each iteration writes elements of its own, and a kernel where no
loop nest touches what another one writes. One thing is taken on trust: no iteration reads another's scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from qdialect._mlir import ir
from qdialect.lowering.kernel_text import SCRATCH
from qdialect.lowering.threads.accesses import Access, accesses, bounds
from qdialect.lowering.threads.cost import cycles
from qdialect.lowering.threads.division import Work


@dataclass(frozen=True)
class LoopNest:
    """An op at the top of a kernel that writes: a loop, or a single write with what it depends on."""

    op: ir.Operation
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

    @property
    def name(self) -> str:
        """What it is called by."""
        return ir.StringAttr(self.function.attributes["sym_name"]).value


def analyse(function: ir.Operation) -> KernelFunction:
    """What `function` reads and writes, and how it could be divided."""
    every = accesses(function)
    scratch = _scratch(function)
    found = [access for access in every if access.argument not in scratch]
    writes: dict[ir.Operation, list[Access]] = {}
    for access in found:
        if access.is_write:
            writes.setdefault(_top(access.op, function), []).append(access)
    loop_nests = [_loop_nest(op, writes[op]) for op in _ops(function) if op in writes]
    # What only fills scratch memory belongs to no part.
    owned = all(_top(access.op, function) in writes for access in every if access.is_write)
    is_free = owned and _are_independent(found)
    cost = sum(cycles(op) for op in _ops(function))
    return KernelFunction(function, tuple(every), tuple(loop_nests) if is_free else (), cost, scratch)


def _scratch(function: ir.Operation) -> tuple[int, ...]:
    if "arg_attrs" not in function.attributes:
        return ()
    notes = enumerate(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return tuple(i for i, note in notes if SCRATCH in ir.DictAttr(note))


def _loop_nest(op: ir.Operation, writes: list[Access]) -> LoopNest:
    loops = _independent_loops(op, writes)
    trips = tuple(found[2] for loop in loops if (found := bounds(loop)))
    cost = cycles(op) if loops else sum(cycles(part) for part in slice_of(op))
    run, strides = writes[0].run, dict(writes[0].loops)
    start = run.start if run else 0
    return LoopNest(op, loops, Work(trips, max(cost, 1.0), start, tuple(strides[loop] for loop in loops)))


def slice_of(op: ir.Operation) -> list[ir.Operation]:
    """`op` and the ops at the top of its function that compute only for it, in their order."""
    block = op.block
    chosen = {op}
    for other in reversed(list(block.operations)):
        users = {_top_in(use.owner.operation, block) for result in other.operation.results for use in result.uses}
        if users and users <= chosen and other.operation.name not in ("arith.constant", "memref.reinterpret_cast"):
            chosen.add(other.operation)
    return [other.operation for other in block.operations if other.operation in chosen]


def _independent_loops(op: ir.Operation, writes: list[Access]) -> tuple[ir.Operation, ...]:
    loops: list[ir.Operation] = []
    inner: ir.Operation | None = op
    while inner is not None and _is_independent(inner, writes):
        loops.append(inner)
        holders = {_top_in(access.op, inner.regions[0].blocks[0]) for access in writes}
        inner = holders.pop() if len(holders) == 1 else None
    return tuple(loops)


def _is_independent(op: ir.Operation, writes: list[Access]) -> bool:
    """Whether `op` is a loop of known trip count, each iteration of which writes elements of its own."""
    if op.name != "scf.for" or len(op.results) or bounds(op) is None:
        return False
    return all(access.run is not None and access.run.is_injective and op in dict(access.loops) for access in writes)


def _are_independent(found: list[Access]) -> bool:
    """Whether the order of all accesses is free: no two write the same element, none reads what another writes."""
    writes = [access for access in found if access.is_write]
    reads = [access for access in found if not access.is_write]
    pairs = [*combinations(writes, 2), *((write, read) for write in writes for read in reads)]
    return not any(_conflict(*pair) for pair in pairs)


def _conflict(one: Access, other: Access) -> bool:
    if one.argument != other.argument:
        return False
    return one.run is None or other.run is None or one.run.meets(other.run)


def _ops(function: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in function.regions[0].blocks[0].operations]


def _top(op: ir.Operation, function: ir.Operation) -> ir.Operation:
    return _top_in(op, function.regions[0].blocks[0])


def _top_in(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that is `op` or holds it."""
    while op.block != block and op.parent:
        op = op.parent.operation
    return op
