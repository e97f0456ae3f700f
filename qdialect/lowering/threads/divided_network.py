"""Divides a network of the vector phase among threads: one parallel region, in which each thread does its part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qdialect.ir._mlir import arith, ir, memref, scf
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.functions import constant, entry, functions, has_body, name_of
from qdialect.lowering.ir.phase_pass import load_kernel_dialects, run_passes
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.lowering.threads.chunks import Division, divided
from qdialect.lowering.threads.loop_nests import KernelFunction, LoopNest, Partition, analyse
from qdialect.lowering.threads.region import Clock, Region, ThreadMemory, clock_of, has_counters
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall, check_network, network_calls, schedule

# Every thread runs through all calls of `main`. Each thread computes a part of an expensive call; cheap calls run on
# one thread; `omp.barrier` separates dependent parts of different threads. There is a part for each requested thread,
# and large parts are cut into chunks, which idle threads steal. If the runtime gives fewer threads, one computes
# several parts: results are the same for every number of threads.

_TRANSFER_CYCLES = 0.1
"""Cost of a byte that a kernel on one thread reads or writes: half of the data of a neighbouring divided kernel is in
another core's cache, from which a line of 64 bytes takes some 12 cycles."""

# Nothing waits for a kernel without inputs, and its result stays with the thread that continues with it.
_FILL_SHARE = 0.05

_TIDY = "builtin.module(canonicalize,cse)"


def to_threads(module: ir.Module, threads: int, min_cycles: int = MIN_CYCLES, *, is_clocked: bool = False) -> int:
    """Divide the network among `threads` threads, in place.

    Nothing is divided if no kernel takes `min_cycles` cycles, or if a kernel may access memory that is not its
    arguments'. One that `is_clocked` reads the cycle counter before and behind each call on each thread.

    Gives the bytes by which its working memory grows: threads have scratch memory and counters of their own.  Raises
    `CompileError` for a `main` that does more than call kernels.
    """
    if threads == 1:
        return 0
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        main = entry(module)
        clock = clock_of(main, threads) if is_clocked else None
        growth = _divide_network(module, main, threads, min_cycles, clock)
        if clock and not growth:
            clock.read_around_all(main)
    return growth


def _divide_network(module: ir.Module, main: ir.Operation, threads: int, min_cycles: int, clock: Clock | None) -> int:
    """The bytes by which the working memory grows; 0 where nothing is divided."""
    others = {name_of(function): function for function in functions(module) if function != main}
    check_network(main, others)
    kernels = {name: analyse(function) for name, function in others.items() if has_body(function)}
    if any(kernel.is_open for kernel in kernels.values()):
        return 0
    found = network_calls(main, kernels)
    memory = len(main.regions[0].blocks[0].arguments) - 1
    divisions = _divisions(kernels, found, memory, threads, min_cycles)
    if not divisions:
        return 0
    calls = list(schedule(found, frozenset(divisions), threads))
    counters = _counters(calls, divisions) if has_counters(main) else {}
    for chosen in divisions.values():
        divide(chosen.kernel, chosen.partitions)
    own = ThreadMemory(main, [kernels[name] for name in divisions], threads, len(counters))
    Region(module, main, threads, own, divisions, counters, clock).fill(calls)
    run_passes(module, _TIDY, "qnn-to-threads")
    return own.growth


def _divisions(
    kernels: Mapping[str, KernelFunction], found: Sequence[NetworkCall], memory: int, threads: int, min_cycles: int
) -> dict[str, Division]:
    """The division of each kernel that is expensive enough; results are in the network's argument `memory`."""
    aliased = {network_call.kernel.name for network_call in found if network_call.is_aliased}
    moved = {network_call.kernel.name: network_call.moved(memory) for network_call in found}
    chosen: dict[str, Division] = {}
    for name, kernel in kernels.items():
        reads = any(not access.is_write for access in kernel.accesses)
        worth = min_cycles if reads else min_cycles * _FILL_SHARE
        cost = kernel.cost + _TRANSFER_CYCLES * moved.get(name, 0)
        if cost < worth or name in aliased or not kernel.loop_nests:
            continue
        division = divided(kernel, found, threads, min_cycles)
        if division:
            chosen[name] = division
    return chosen


def _counters(calls: Sequence[ScheduledCall], divisions: Mapping[str, Division]) -> dict[ir.Operation, int]:
    """By call with counted chunks, its counter: calls after the first barrier, when all counters are clear."""
    waits = next((i for i, scheduled in enumerate(calls) if scheduled.waits), len(calls))
    counted = [
        scheduled.call.op
        for scheduled in calls[waits:]
        if scheduled.thread is None and divisions[scheduled.call.kernel.name].chunks > 1
    ]
    return {op: i for i, op in enumerate(counted)}


# Rewrites a kernel so that each call computes one part.
#
# The kernel gets one more argument, the number of the part, and reads the bounds of that part in each of its loop nests
# from a table of constants. If several loops are divided, the bounds of the inner ones depend on the outer ones: only
# some iterations in the first and last of these belong to the part.


def divide(kernel: KernelFunction, partitions: Sequence[Partition]) -> None:
    """Rewrite `kernel` in place so that it computes one of the parts of `partitions`, one for each loop nest."""
    function = kernel.function
    block = function.regions[0].blocks[0]
    with function.location:
        part = block.add_argument(ir.IndexType.get(), function.location)
        inputs = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
        if "arg_attrs" in function.attributes:
            # One for each argument; they are not read any more.
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
    at = arith.addi(part, b.index(shift)) if shift else part
    return memref.load(table, [b.index(row), at])


def _guard(loop_nest: LoopNest, first: ir.Value, last: ir.Value) -> None:
    """Compute `loop_nest`, which is a single iteration, where it is in [first, last)."""
    last_op = loop_nest.ops[-1]
    with ir.InsertionPoint(last_op), last_op.location:
        loop = scf.ForOp(first, last, b.index(1))
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
            begin, end = _floor(first, inside), _floor(arith.addi(last, b.index(inside - 1)), inside)
            loop.operands[0] = arith.addi(arith.muli(begin, b.index(step)), b.index(lower))
            loop.operands[1] = arith.addi(arith.muli(end, b.index(step)), b.index(lower))
        if level + 1 < depth:
            with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), loop.location:
                done = _floor(arith.subi(loop.regions[0].blocks[0].arguments[0], b.index(lower)), step)
                first, last = _within(arith.muli(done, b.index(inside)), inside, first, last)


def _within(before: ir.Value, inside: int, first: ir.Value, last: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Of units [first, last) those in a step of `inside` units, counted from its own first; `before` is that one."""
    start = arith.maxsi(arith.subi(first, before), b.index(0))
    return start, arith.minsi(arith.subi(last, before), b.index(inside))


def _floor(value: ir.Value, divisor: int) -> ir.Value:
    return value if divisor == 1 else arith.divui(value, b.index(divisor))
