"""A kernel of which each call computes one part.

The kernel gets one more argument, the number of the part, and reads where that part begins and ends in each of its loop
nests from a table of constants. Dividing several loops makes the bounds of the inner ones depend on the outer ones: not
all iterations in the first and last of these belong to the part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect._mlir import arith, ir, memref, scf
from qdialect.lowering.ir.loops import constant
from qdialect.lowering.threads.division import Partition
from qdialect.lowering.threads.loop_nests import KernelFunction, LoopNest


def divide(kernel: KernelFunction, partitions: Sequence[Partition]) -> None:
    """Rewrite `kernel` in place so that it computes one of the parts that `partitions` says, one for each loop nest."""
    function = kernel.function
    block = function.regions[0].blocks[0]
    with function.location:
        part = block.add_argument(ir.IndexType.get(), function.location)
        inputs = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
        if "arg_attrs" in function.attributes:
            # One for each argument, and only read until here.
            del function.attributes["arg_attrs"]
        table = _table(function, partitions)
        with ir.InsertionPoint.at_block_begin(block):
            starts = memref.GetGlobalOp(table[1], table[0]).result
            ends = [(_entry(starts, i, part, 0), _entry(starts, i, part, 1)) for i in range(len(partitions))]
        for loop_nest, found, (first, last) in zip(kernel.loop_nests, partitions, ends, strict=True):
            if found.depth:
                _bound(loop_nest, found.depth, first, last)
            else:
                _guard(loop_nest, first, last)


def _table(function: ir.Operation, partitions: Sequence[Partition]) -> tuple[str, ir.MemRefType]:
    """A constant table of the bounds of every cut, a row each: its name and type."""
    name = f"{ir.StringAttr(function.attributes['sym_name']).value}_parts"
    rows = np.array([found.bounds for found in partitions], dtype=np.int64)
    index = ir.IndexType.get()
    type_ = ir.MemRefType.get(rows.shape, index)
    content = ir.DenseElementsAttr.get(rows, type=index)
    with ir.InsertionPoint(function):
        memref.GlobalOp(
            sym_name=name, type_=type_, sym_visibility="private", initial_value=content, constant=ir.UnitAttr.get()
        )
    return name, type_


def _entry(table: ir.Value, row: int, part: ir.Value, shift: int) -> ir.Value:
    at = arith.addi(part, _index(shift)) if shift else part
    return memref.load(table, [_index(row), at])


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _guard(loop_nest: LoopNest, first: ir.Value, last: ir.Value) -> None:
    """Compute `loop_nest`, which is a single iteration, where it is in [first, last)."""
    last_op = loop_nest.ops[-1]
    with ir.InsertionPoint(last_op), last_op.location:
        loop = scf.ForOp(first, last, _index(1))
        with ir.InsertionPoint(loop.body):
            end = scf.YieldOp([])
    for op in loop_nest.ops:
        op.move_before(end)


def _bound(loop_nest: LoopNest, depth: int, first: ir.Value, last: ir.Value) -> None:
    """Let the `depth` outermost loops of `loop_nest` run over iterations [first, last)."""
    for level, loop in enumerate(loop_nest.loops[:depth]):
        inside = math.prod(loop_nest.work.trips[level + 1 : depth])
        lower, step = constant(loop.operands[0]) or 0, constant(loop.operands[2]) or 1
        with ir.InsertionPoint(loop), loop.location:
            begin, end = _floor(first, inside), _floor(arith.addi(last, _index(inside - 1)), inside)
            loop.operands[0] = arith.addi(arith.muli(begin, _index(step)), _index(lower))
            loop.operands[1] = arith.addi(arith.muli(end, _index(step)), _index(lower))
        if level + 1 < depth:
            with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), loop.location:
                done = _floor(arith.subi(loop.regions[0].blocks[0].arguments[0], _index(lower)), step)
                first, last = _within(arith.muli(done, _index(inside)), inside, first, last)


def _within(before: ir.Value, inside: int, first: ir.Value, last: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Of units [first, last) those in a step of `inside` units, counted from its own first; `before` is that one."""
    start = arith.maxsi(arith.subi(first, before), _index(0))
    return start, arith.minsi(arith.subi(last, before), _index(inside))


def _floor(value: ir.Value, divisor: int) -> ir.Value:
    return value if divisor == 1 else arith.divui(value, _index(divisor))
