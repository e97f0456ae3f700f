"""What a loop writes: whether a number that it reads in every iteration is the same in all of them."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.lowering.ir.effects import effects_of
from qdialect.lowering.ir.loops import bounds, constant, inside
from qdialect.lowering.ir.views import buffer_of, may_meet

READ = "vector.transfer_read"


def change_problem(read: ir.Operation, loop: ir.Operation, what: str) -> str | None:
    """Why `what`, which `read` reads in the body of `loop`, may change in it, or may not be read before it."""
    if any(_is_inside(value, loop) for value in read.operands):
        return f"must have a {what} that its loop does not change"
    memory = read.operands[0]
    for op in inside(loop):
        effects = effects_of(op)
        if not effects.is_known:
            return f"must not be in a loop with '{op.name}', which may write where the {what} is read"
        if any(may_meet(op.operands[number], memory) for number in effects.writes):
            return f"must not be in a loop that writes where the {what} is read"
    is_read = _is_sure(read) or bool((found := bounds(loop)) and found[2])
    return None if is_read else f"must be in a loop that has an iteration, or have a {what} at a place that there is"


def keeps(loop: ir.Operation, memory: ir.Value) -> bool:
    """Whether `loop` neither writes nor makes `memory`."""
    owner = memory.owner
    for op in inside(loop):
        effects = effects_of(op)
        is_made_here = not isinstance(owner, ir.Block) and owner.operation == op
        if is_made_here or not effects.is_known:
            return False
        if any(may_meet(op.operands[number], memory) for number in effects.writes):
            return False
    return True


def writes_to(loop: ir.Operation, memory: ir.Value) -> bool:
    """Whether `loop` is known to write to the buffer that `memory` is a view of."""
    buffer = buffer_of(memory)
    written = (op.operands[number] for op in inside(loop) for number in effects_of(op).writes)
    return buffer is not None and any(buffer_of(one) == buffer for one in written)


def _is_inside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is defined in the body of `loop`, constants apart."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation == loop
    return owner.parent is not None and owner.parent.operation == loop


def _is_sure(read: ir.Operation) -> bool:
    """Whether a read of one number is of one that its buffer has."""
    type_ = read.operands[0].type
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return False
    indices = [constant(value) for value in list(read.operands)[1 : 1 + type_.rank]]
    sizes = zip(indices, type_.shape, strict=True)
    is_number = math.prod(ir.VectorType(read.results[0].type).shape) == 1
    return is_number and all(index is not None and 0 <= index < size for index, size in sizes)
