"""A network of the vector phase divided among threads: one parallel region, in which each thread does its part.

Every thread runs through all calls of `main`. Of a call that is worth it each computes a part; others run on one
thread; `omp.barrier` stands where one call needs what another has done. Parts are as many as the threads asked for.
Where the runtime gives fewer, a thread computes several: results are the same for every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect._mlir import arith, func, ir, scf
from qdialect.lowering.errors import error_at
from qdialect.lowering.functions import entry, functions, has_body, name_of
from qdialect.lowering.program import ALIGNMENT
from qdialect.lowering.storage import SLACK, element_bytes
from qdialect.lowering.threads.dependences import parts_are_order_free
from qdialect.lowering.threads.division import Partition, chained_partition, largest_share, partition
from qdialect.lowering.threads.loop_nests import KernelFunction, analyse
from qdialect.lowering.threads.network import check_network
from qdialect.lowering.threads.parts import divide
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall, network_calls, schedule
from qdialect.lowering.upstream import run_passes

MIN_CYCLES = 4000
"""Cycles from which on a kernel is divided: below, threads lose more on waiting for each other."""

_TRANSFER_CYCLES = 0.1
"""Of a byte that a kernel on one thread reads or writes: half of what a divided kernel wrote, or is to read, is in the
other core's cache, from where a line of 64 bytes takes some 12 cycles."""

# Nothing waits for a kernel that reads nothing, and what it writes stays with the thread that goes on with it.
_FILL_SHARE = 0.05

# A kernel whose largest part has more of it than this stays whole.
_MAX_SHARE = 0.8

_TIDY = "builtin.module(canonicalize,cse)"


def to_threads(module: ir.Module, threads: int, min_cycles: int = MIN_CYCLES) -> int:
    """Divide the network among `threads` threads, in place; nothing changes where no call is worth it.

    A kernel is worth it from `min_cycles` cycles on.

    Gives the bytes by which its working memory grows: threads have scratch memory of their own.  Raises `CompileError`
    for a `main` that does more than call kernels.
    """
    if threads == 1:
        return 0
    with module.context, ir.Location.unknown():
        main = entry(module)
        others = {name_of(function): function for function in functions(module) if function != main}
        check_network(main, others)
        kernels = {name: analyse(function) for name, function in others.items() if has_body(function)}
        found = network_calls(main, kernels)
        memory = len(main.regions[0].blocks[0].arguments) - 1
        partitions = _partitions(kernels, found, memory, threads, min_cycles)
        if not partitions:
            return 0
        calls = list(schedule(found, frozenset(partitions), threads))
        for name, chosen in partitions.items():
            divide(kernels[name], chosen)
        scratch = _Scratch(main, [kernels[name] for name in partitions], threads)
        _Region(module, main, threads, scratch).fill(calls)
        run_passes(module, _TIDY, "qnn-to-threads")
    return scratch.growth


def _partitions(
    kernels: Mapping[str, KernelFunction], found: Sequence[NetworkCall], memory: int, threads: int, min_cycles: int
) -> dict[str, list[Partition]]:
    """How each kernel that is worth it is cut; results lie in the network's argument `memory`."""
    aliased = {network_call.kernel.name for network_call in found if network_call.is_aliased}
    moved = {network_call.kernel.name: network_call.moved(memory) for network_call in found}
    chosen: dict[str, list[Partition]] = {}
    for name, kernel in kernels.items():
        reads = any(not access.is_write for access in kernel.accesses)
        worth = min_cycles if reads else min_cycles * _FILL_SHARE
        cost = kernel.cost + _TRANSFER_CYCLES * moved.get(name, 0)
        if cost < worth or name in aliased or not kernel.loop_nests:
            continue
        partitions = _divided(kernel, threads)
        if partitions:
            chosen[name] = partitions
    return chosen


def _divided(kernel: KernelFunction, threads: int) -> list[Partition] | None:
    """How `kernel` is cut; None where one part would have nearly all of it, or parts would need each other's results."""
    works = [loop_nest.work for loop_nest in kernel.loop_nests]
    found = chained_partition(works, threads) if kernel.is_chained else partition(works, threads)
    if found is None or largest_share(works, found) > _MAX_SHARE:
        return None
    return None if kernel.is_chained and not parts_are_order_free(kernel, found) else found


class _Scratch:
    """Scratch memory of each part, at the end of the working memory."""

    def __init__(self, main: ir.Operation, kernels: Sequence[KernelFunction], threads: int) -> None:
        arguments = list(main.regions[0].blocks[0].arguments)
        self._memory = arguments[-1]
        self._offsets = {kernel.function: _offsets(kernel) for kernel in kernels}
        self._part = max(end for _, end in self._offsets.values())
        self._start, self.growth = 0, 0
        if not self._part:
            return
        if not isinstance(self._memory.type, ir.MemRefType) or element_bytes(self._memory.type) != 1:
            what = "must be bytes to be divided: threads have scratch memory of their own there"
            raise error_at(main.location, f"last argument of main {what}, but got {self._memory.type}")
        before = self._memory.type.shape[0]
        self._start = -(-before // ALIGNMENT) * ALIGNMENT
        self.growth = self._start + self._part * threads - before
        self._memory.set_type(ir.MemRefType.get([before + self.growth], ir.IntegerType.get_signless(8)))
        inputs = [argument.type for argument in arguments]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))

    def operands(self, kernel: KernelFunction, call: ir.Operation, part: ir.Value) -> list[ir.Value]:
        """The operands of `call` with `kernel`'s scratch in the memory of `part`."""
        operands = list(call.operands)
        for argument, offset in self._offsets[kernel.function][0].items():
            index = ir.IndexType.get()
            start = arith.muli(part, arith.constant(index, self._part))
            start = arith.addi(start, arith.constant(index, self._start + offset))
            type_ = operands[argument].type
            operands[argument] = ir.Operation.create("memref.view", [type_], [self._memory, start]).result
        return operands


def _offsets(kernel: KernelFunction) -> tuple[dict[int, int], int]:
    """Where in a part's memory each scratch argument starts, and where the last one ends."""
    offsets: dict[int, int] = {}
    end = 0
    for argument in kernel.scratch:
        type_ = ir.MemRefType(kernel.function.regions[0].blocks[0].arguments[argument].type)
        offsets[argument] = end
        size = type_.shape[0] * (element_bytes(type_) or 0) + SLACK
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, end


class _Region:
    """Builds the parallel region of `main` around its calls."""

    def __init__(self, module: ir.Module, main: ir.Operation, threads: int, scratch: _Scratch) -> None:
        self._scratch = scratch
        self._block = main.regions[0].blocks[0]
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint.at_block_begin(module.body):
            for name in ("omp_get_thread_num", "omp_get_num_threads"):
                func.FuncOp(name, ir.FunctionType.get([], [i32]), visibility="private")
        *self._body, end = [op.operation for op in self._block.operations]
        with ir.InsertionPoint(end):
            count = arith.constant(i32, threads)
            # Of the clauses that it may have, one with one operand.
            clauses = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 1, 0, 0])}
            region = ir.Operation.create("omp.parallel", operands=[count], attributes=clauses, regions=1)
        inside = region.regions[0].blocks.append()
        with ir.InsertionPoint(inside):
            self._end = ir.Operation.create("omp.terminator")
        with ir.InsertionPoint(self._end):
            self._thread = self._number("omp_get_thread_num", i32)
            self._threads = self._number("omp_get_num_threads", i32)
            self._parts = arith.constant(ir.IndexType.get(), threads)

    def fill(self, calls: Sequence[ScheduledCall]) -> None:
        """Move all of `main` into the region, its calls as `calls` say."""
        scheduled_of = {scheduled.call.op: scheduled for scheduled in calls}
        for op in self._body:
            op.move_before(self._end)
            if op in scheduled_of:
                self._schedule(scheduled_of[op])

    def _number(self, name: str, type_: ir.Type) -> ir.Value:
        found = func.CallOp([type_], ir.FlatSymbolRefAttr.get(name), []).results[0]
        return arith.index_cast(ir.IndexType.get(), found)

    def _schedule(self, scheduled: ScheduledCall) -> None:
        call = scheduled.call.op
        with ir.InsertionPoint(call), call.location:
            if scheduled.waits:
                ir.Operation.create("omp.barrier")
            if scheduled.thread is None:
                self._divided(scheduled.call)
            else:
                self._alone(call, scheduled.thread)

    def _divided(self, network_call: NetworkCall) -> None:
        """A call for each part that is this thread's."""
        call = network_call.op
        loop = scf.ForOp(self._thread, self._parts, self._threads)
        with ir.InsertionPoint(loop.body):
            part = loop.induction_variable
            operands = [*self._scratch.operands(network_call.kernel, call, part), part]
            again = func.CallOp([], call.attributes["callee"], operands)
            again.operation.attributes["qnn.label"] = call.attributes["qnn.label"]
            scf.YieldOp([])
        call.erase()

    def _alone(self, call: ir.Operation, thread: int) -> None:
        """The call where this thread is the one; threads are counted from the start again where there are fewer."""
        chosen = arith.remui(arith.constant(ir.IndexType.get(), thread), self._threads)
        here = arith.cmpi(arith.CmpIPredicate.eq, chosen, self._thread)
        branch = scf.IfOp(here)
        with ir.InsertionPoint(branch.then_block):
            end = scf.YieldOp([])
        call.move_before(end)
