"""Numbers that an innermost loop reads again in every iteration, and never writes -> numbers that are read before it.

LLVM does not know that buffers lie apart: it would read such a number again after every write, and compute again what
depends on it alone.
"""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.lowering.functions import ops_named
from qdialect.lowering.ir.loops import LOOP, inside
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.loop_writes import READ, change_problem

_TRAPS = ("arith.ceildivsi", "arith.ceildivui", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui")
"""Which may not be computed where the loop has no iteration."""


def hoist_invariant_reads(module: ir.Module) -> None:
    """Move reads of one number, and what depends on those alone, before the innermost loops that repeat them."""
    reads = [read for read in ops_named(module, READ) if _is_number(read)]
    parents = [read.parent.operation for read in reads if read.parent is not None]
    for loop in dict.fromkeys(parent for parent in parents if parent.name == LOOP):
        if not any(op.name == LOOP for op in inside(loop)):
            _hoist(loop)


def _hoist(loop: ir.Operation) -> None:
    body = loop.regions[0].blocks[0]
    moved: set[ir.Operation] = set()
    for op in [one.operation for one in body.operations][:-1]:
        if _is_invariant_read(op, loop) or (_is_computed(op) and _depends_on(op, moved, body)):
            op.move_before(loop)
            moved.add(op)


def _is_invariant_read(op: ir.Operation, loop: ir.Operation) -> bool:
    return op.name == READ and _is_number(op) and change_problem(op, loop, "number") is None


def _is_number(read: ir.Operation) -> bool:
    return all(extent == 1 for extent in b.shape_of(read.results[0]))


def _is_computed(op: ir.Operation) -> bool:
    return op.name == "vector.broadcast" or (op.name.startswith("arith.") and op.name not in _TRAPS)


def _depends_on(op: ir.Operation, moved: set[ir.Operation], body: ir.Block) -> bool:
    """Whether `op` uses what was `moved`, and nothing else that the loop computes."""
    owners = [value.owner for value in op.operands]
    found = [owner.operation for owner in owners if not isinstance(owner, ir.Block)]
    is_inside = any(owner == body for owner in owners) or any(owner.block == body for owner in found)
    return not is_inside and any(owner in moved for owner in found)
