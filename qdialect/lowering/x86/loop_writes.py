"""What a loop writes: whether a number that it reads in every iteration is the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from qdialect._mlir import ir
from qdialect.lowering.x86 import building as b

LOOP, READ = "scf.for", "vector.transfer_read"
_WRITES = {"vector.transfer_write": 1, "vector.store": 1, "memref.store": 1}
"""By name: which operand is the memory."""
_OTHER_WRITES = ("vector.maskedstore", "vector.compressstore", "vector.scatter", "memref.copy")
_DIALECTS = (
    *("arith.", "math.", "vector.", "memref.", "scf.", "affine.", "ub.", "builtin.unrealized_conversion_cast"),
    *("llvm.call_intrinsic", "llvm.extractvalue", "llvm.getelementptr", "llvm.load", "llvm.bitcast"),
    "llvm.shufflevector",
)
"""Ops of all others may write anywhere; the intrinsics are those of instructions that compute."""
_VIEWS = ("memref.reinterpret_cast", "memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape")


def change_problem(read: ir.Operation, loop: ir.Operation, what: str) -> str | None:
    """Why `what`, which `read` reads in the body of `loop`, may change from one iteration to the next."""
    if any(_is_inside(value, loop) for value in read.operands):
        return f"must have a {what} that its loop does not change"
    ops = list(inside(loop))
    written = [_written(op) for op in ops]
    if any(memory and _base(memory) == _base(read.operands[0]) for memory in written):
        return f"must not be in a loop that writes where the {what} is read"
    unknown = next((op.name for op in ops if _may_write_anywhere(op)), None)
    return f"must not be in a loop with '{unknown}', which may write where the {what} is read" if unknown else None


def keeps(loop: ir.Operation, memory: ir.Value) -> bool:
    """Whether `loop` neither writes nor makes `memory`."""
    ops = list(inside(loop))
    written = [found for op in ops if (found := _written(op))]
    owner = memory.owner
    is_made_inside = not isinstance(owner, ir.Block) and owner.operation in ops
    is_written = any(_base(one) == _base(memory) for one in written) or any(_may_write_anywhere(op) for op in ops)
    return not is_made_inside and not is_written


def writes_to(loop: ir.Operation, memory: ir.Value) -> bool:
    """Whether `loop` is known to write to the buffer that `memory` is a view of."""
    written = [_written(op) for op in inside(loop)]
    return any(one and _base(one) == _base(memory) for one in written)


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the regions of `op`, and in theirs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from inside(child.operation)


def _is_inside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is defined in the body of `loop`, constants apart."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation == loop
    return owner.parent is not None and owner.parent.operation == loop


def _written(op: ir.Operation) -> ir.Value | None:
    """The memory that `op` writes; None where it is none, or not known."""
    return op.operands[_WRITES[op.name]] if op.name in _WRITES else None


def _may_write_anywhere(op: ir.Operation) -> bool:
    return op.name in _OTHER_WRITES or not op.name.startswith(_DIALECTS)


def _base(memory: ir.Value) -> ir.Value:
    """What `memory` is a view of."""
    return b.looked_through(memory, *_VIEWS)
