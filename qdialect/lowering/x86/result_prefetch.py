"""Prefetches of the cache lines that a register tile writes, before its products.

A line that is in no near cache has to come from afar before it is written to, though nothing of it is read.  Where a
tile of sums is a few numbers of many rows, all its lines are asked for at once, and the next products wait behind the
writes:

    for tile:
      fetch the lines of result[tile]       to be written to
      sums = for K group: products
      write result[tile]                    of the sums

Results of up to a quarter of the second-level cache stay there beside what is multiplied: they are near enough.
"""

from __future__ import annotations

import itertools
import math

from qdialect._mlir import ir
from qdialect.lowering.functions import ops_named
from qdialect.lowering.ir.loops import LOOP, bounds
from qdialect.lowering.ir.views import array_of
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.prefetch import FEW_STEPS, FIRST_LEVEL, LINE, prefetch
from qdialect.target.machine import Machine

_WRITE = "vector.transfer_write"
_NEAR_SHARE = 4
"""What part of the second-level cache is taken to hold results."""


def fetch_results(module: ir.Module, machine: Machine) -> None:
    """Prefetch what tiles of products write, in place, where that comes from behind the second level."""
    for write in ops_named(module, _WRITE):
        loop = _loop_of_products(write)
        is_far = _bytes(array_of(write.operands[1])) * _NEAR_SHARE > machine.l2_bytes
        if loop is not None and is_far and _is_known(write):
            with ir.InsertionPoint(loop), write.location:
                _fetch(write)


def _loop_of_products(write: ir.Operation) -> ir.Operation | None:
    """The only loop beside `write`, whose sums are long ones of products."""
    block = write.block
    loops = [op.operation for op in block.operations if op.operation.name == LOOP]
    if len(loops) != 1:
        return None
    found = bounds(loops[0])
    names = {op.operation.name for op in loops[0].regions[0].blocks[0].operations}
    return loops[0] if found and found[2] >= FEW_STEPS and "vector.contract" in names else None


def _is_known(write: ir.Operation) -> bool:
    """Whether `write` goes to a place that is known before its block begins, in steps that are known."""
    buffer, indices = write.operands[1], list(write.operands)[2:]
    if static_strides(ir.MemRefType(buffer.type)) is None:
        return False
    owners = [value.owner for value in (buffer, *indices)]
    return all(isinstance(owner, ir.Block) or owner.operation.block != write.block for owner in owners)


def _fetch(write: ir.Operation) -> None:
    """One prefetch for every line, or for every row that is less."""
    value, buffer, *indices = write.operands
    shape, strides = b.shape_of(value), static_strides(ir.MemRefType(buffer.type)) or ()
    size = _element_bytes(buffer)
    lines: set[int] = set()
    for point in itertools.product(*(range(extent) for extent in shape)):
        offset = size * sum(step * stride for step, stride in zip(point, strides[-len(shape) :], strict=True))
        if offset // LINE not in lines:
            lines.add(offset // LINE)
            prefetch(buffer, b.shifted(indices, [*[0] * (len(indices) - len(point)), *point]), FIRST_LEVEL, writes=True)


def _bytes(buffer: ir.Value) -> int:
    return _element_bytes(buffer) * math.prod(b.shape_of(buffer))


def _element_bytes(buffer: ir.Value) -> int:
    type_ = ir.MemRefType(buffer.type).element_type
    return type_.width // 8 if isinstance(type_, ir.IntegerType | ir.FloatType) else 1
