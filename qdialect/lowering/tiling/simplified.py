"""Kernels at the phase `x86` without what LLVM computes once and this phase still says twice.

Upstream's passes find equal ops and what does not change in a loop.  Beside them, reads of the same bytes are one: rows
of a window overlap, and their addresses are equal as sums of multiples of the same indices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from qdialect import context
from qdialect._mlir import ir
from qdialect.lowering.functions import functions
from qdialect.lowering.ir.effects import effects_of
from qdialect.lowering.ir.loops import constant
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.tiling.occupations import LOADS
from qdialect.lowering.tiling.tile_traffic import root
from qdialect.lowering.upstream import load_kernel_dialects, run_passes
from qdialect.lowering.x86 import building as b

_PASSES = "builtin.module(func.func(lower-affine,canonicalize,cse,loop-invariant-code-motion,canonicalize,cse))"
_ONCE_MORE = "builtin.module(func.func(cse))"
_NAME = "simplify-kernels"
_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()
Sum = Counter[ir.Value | None]
"""How often each value is in it; None counts for 1."""


def simplified(module: ir.Module) -> ir.Module:
    """A copy of `module` that says everything once."""
    copy = context.copy(module)
    load_kernel_dialects(copy)
    run_passes(copy, _PASSES, _NAME)
    for function in functions(copy):
        _merge_reads(function)
    run_passes(copy, _ONCE_MORE, _NAME)
    return copy


def _merge_reads(function: ir.Operation) -> None:
    """Replace what reads the same bytes as an op before it in its block, from a buffer that nothing writes."""
    ops = [(op, effects_of(op)) for op in _ops(function)]
    if not all(effects.is_known for _, effects in ops):
        return
    written = {root(op.operands[number]) for op, effects in ops for number in effects.writes}
    for block in _blocks(function):
        known: dict[tuple[object, ...], ir.Operation] = {}
        for op in [op.operation for op in block.operations if op.name in LOADS]:
            buffer, position = _where(op)
            if buffer is None or buffer in written or position is None:
                continue
            first = known.setdefault((op.name, buffer, str(op.results[0].type), frozenset(position.items())), op)
            if first != op:
                op.results[0].replace_all_uses_with(first.results[0])


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                yield from _blocks(inner.operation)


def _ops(function: ir.Operation) -> Iterator[ir.Operation]:
    return (op.operation for block in _blocks(function) for op in block.operations)


def _where(read: ir.Operation) -> tuple[ir.BlockArgument | None, Sum | None]:
    """The buffer that is read, and the byte of it that the read begins with; None where that is not known."""
    if read.name == "llvm.load":
        return _pointed(read.operands[0])
    buffer = root(read.operands[0])
    return buffer, None if buffer is None else _position(read)


def _pointed(pointer: ir.Value) -> tuple[ir.BlockArgument | None, Sum]:
    """The buffer that `pointer` points into, and at which byte of it."""
    total, op = Sum(), _owner(pointer)
    while op is not None and op.name == "llvm.getelementptr":
        size = b.integer_bits(ir.TypeAttr(op.attributes["elem_type"]).value) // 8
        (number,) = ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])
        if len(op.operands) == 1:
            total[None] += size * number
        else:
            _add(total, op.operands[1], size)
        op = _owner(op.operands[0])
    if op is None or op.name != "llvm.extractvalue":
        return None, total
    descriptor = _owner(op.operands[0])
    is_cast = descriptor is not None and descriptor.name == "builtin.unrealized_conversion_cast"
    return (root(descriptor.operands[0]) if descriptor is not None and is_cast else None), total


def _owner(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _position(op: ir.Operation) -> Sum | None:
    """The byte that a read begins with, counted from the start of its buffer; None where its view does not say."""
    type_ = ir.MemRefType(op.operands[0].type)
    strides = static_strides(type_)
    _, offset = type_.get_strides_and_offset() if strides is not None else ((), _DYNAMIC)
    if strides is None or offset == _DYNAMIC or not isinstance(type_.element_type, ir.IntegerType | ir.FloatType):
        return None
    total = Sum({None: offset})
    for index, stride in zip(list(op.operands)[1 : 1 + type_.rank], strides, strict=True):
        _add(total, index, stride)
    size = math.ceil(type_.element_type.width / 8)
    return Sum({value: factor * size for value, factor in total.items() if factor})


def _add(total: Sum, value: ir.Value, factor: int) -> None:
    """Add `factor` times `value`, a sum itself where it is computed as one."""
    number = constant(value)
    if number is not None:
        total[None] += factor * number
        return
    op = _owner(value)
    if op is not None and op.name == "arith.index_cast":
        _add(total, op.operands[0], factor)
        return
    if op is not None and op.name == "arith.addi":
        for operand in op.operands:
            _add(total, operand, factor)
        return
    scale = constant(op.operands[1]) if op is not None and op.name == "arith.muli" else None
    if op is not None and scale is not None:
        _add(total, op.operands[0], factor * scale)
        return
    total[value] += factor
