"""The parallel region of `main`: its memory, and the code that every thread runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdialect.ir._mlir import arith, func, ir, memref, scf
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.functions import CLOCK, error_at
from qdialect.lowering.ir.thread_pool import RECORD, RECORD_BYTES
from qdialect.lowering.qnn_to_linalg.program.program import ALIGNMENT, EXTRA_BYTES, element_bytes
from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.loop_nests import KernelFunction
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall

# The parallel region of `main`: every thread runs through all calls and computes its parts of them.


class Region:
    """Builds the parallel region of `main` around its calls."""

    def __init__(
        self,
        module: ir.Module,
        main: ir.Operation,
        threads: int,
        memory: ThreadMemory,
        divisions: Mapping[str, Division],
        counters: Mapping[ir.Operation, int],
        clock: Clock | None = None,
    ) -> None:
        """Idle threads take chunks of the calls in `counters`, which count them; `clock` is read around each call."""
        self._clock = clock
        self._memory, self._divisions, self._counters = memory, divisions, counters
        self._block = main.regions[0].blocks[0]
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint.at_block_begin(module.body):
            for name in ("omp_get_thread_num", "omp_get_num_threads"):
                func.FuncOp(name, ir.FunctionType.get([], [i32]), visibility="private")
        *self._body, end = [op.operation for op in self._block.operations]
        with ir.InsertionPoint(end):
            count = arith.constant(i32, threads)
            # Of the clauses that it may have, one with one operand.
            attributes: dict[str, ir.Attribute] = {
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 1, 0, 0]),
                RECORD: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), memory.record),
            }
            region = ir.Operation.create("omp.parallel", operands=[count], attributes=attributes, regions=1)
        inside = region.regions[0].blocks.append()
        with ir.InsertionPoint(inside):
            self._end = ir.Operation.create("omp.terminator")
        with ir.InsertionPoint(self._end):
            self._thread = self._number("omp_get_thread_num", i32)
            self._threads = self._number("omp_get_num_threads", i32)
            self._parts = arith.constant(ir.IndexType.get(), threads)
            if counters:
                with b.loop(self._thread, self._parts, self._threads) as part:
                    self._memory.clear(part)

    def fill(self, calls: Sequence[ScheduledCall]) -> None:
        """Move all of `main` into the region, its calls as `calls` state."""
        scheduled_of = {scheduled.call.op: scheduled for scheduled in calls}
        # Looked up before any op is erased: afterwards another op may have its address.
        numbers = {scheduled.call.op: number for number, scheduled in enumerate(calls)}
        found = [(op, scheduled_of.get(op), self._counters.get(op), numbers.get(op, 0)) for op in self._body]
        for op, scheduled, counter, number in found:
            op.move_before(self._end)
            if scheduled:
                self._schedule(scheduled, counter, number)

    def _number(self, name: str, type_: ir.Type) -> ir.Value:
        found = func.CallOp([type_], ir.FlatSymbolRefAttr.get(name), []).results[0]
        return arith.index_cast(ir.IndexType.get(), found)

    def _schedule(self, scheduled: ScheduledCall, counter: int | None, number: int) -> None:
        call = scheduled.call.op
        with ir.InsertionPoint(call), call.location:
            if scheduled.waits:
                ir.Operation.create("omp.barrier")
            if scheduled.thread is not None:
                self._alone(call, scheduled.thread, number)
                return
            self._read_clock(2 * number)
            if counter is not None:
                self._taken(scheduled.call, counter)
            else:
                self._divided(scheduled.call)
            self._read_clock(2 * number + 1)
        call.erase()

    def _read_clock(self, slot: int) -> None:
        if self._clock:
            self._clock.read(self._thread, slot)

    def _divided(self, network_call: NetworkCall) -> None:
        """All chunks of each part of this thread."""
        chunks = self._divisions[network_call.kernel.name].chunks
        with b.loop(self._thread, self._parts, self._threads) as part:
            if chunks == 1:
                self._call(network_call, part)
                return
            first = arith.muli(part, b.index(chunks))
            with b.loop(first, arith.addi(first, b.index(chunks))) as chunk:
                self._call(network_call, chunk)

    def _taken(self, network_call: NetworkCall, counter: int) -> None:
        """The chunks of this thread's part, one after the other, then the remaining ones of the other parts."""
        chunks = b.index(self._divisions[network_call.kernel.name].chunks)
        with b.loop(0, self._parts) as further:
            part = arith.remui(arith.addi(self._thread, further), self._parts)
            loop = ir.Operation.create("scf.while", results=[ir.IndexType.get()], regions=2)
            with ir.InsertionPoint(loop.regions[0].blocks.append()):
                taken = self._memory.take(part, counter)
                is_left = arith.cmpi(arith.CmpIPredicate.ult, taken, chunks)
                ir.Operation.create("scf.condition", operands=[is_left, taken])
            body = loop.regions[1].blocks.append(ir.IndexType.get())
            with ir.InsertionPoint(body):
                self._call(network_call, arith.addi(arith.muli(part, chunks), body.arguments[0]))
                scf.YieldOp([])

    def _call(self, network_call: NetworkCall, chunk: ir.Value) -> None:
        call = network_call.op
        operands = [*self._memory.operands(network_call.kernel, call, self._thread), chunk]
        again = func.CallOp([], call.attributes["callee"], operands)
        again.operation.attributes["qnn.label"] = call.attributes["qnn.label"]

    def _alone(self, call: ir.Operation, thread: int, number: int) -> None:
        """The call if this is the thread number `thread`, modulo the number of threads."""
        chosen = arith.remui(arith.constant(ir.IndexType.get(), thread), self._threads)
        here = arith.cmpi(arith.CmpIPredicate.eq, chosen, self._thread)
        with b.branch(here) as end:
            self._read_clock(2 * number)
            call.move_before(end)
            self._read_clock(2 * number + 1)


@dataclass(frozen=True)
class Clock:
    """Reads the cycle counter into an argument of `main`: [threads, calls, 2]."""

    ticks: ir.Value
    calls: int
    now: ir.Operation
    """An op that reads the counter, which is in no block."""

    def read(self, thread: ir.Value, slot: int) -> None:
        at = arith.addi(arith.muli(thread, b.index(2 * self.calls)), b.index(slot))
        memref.store(self.now.clone().results[0], self.ticks, [at])

    def read_around_all(self, main: ir.Operation) -> None:
        """Read it around each call of a `main` that runs on one thread."""
        calls = [op.operation for op in main.regions[0].blocks[0].operations if op.operation.name == "func.call"]
        for number, call in enumerate(calls):
            for slot, where in enumerate((ir.InsertionPoint(call), ir.InsertionPoint.after(call))):
                with where:
                    self.read(b.index(0), 2 * number + slot)


def clock_of(main: ir.Operation, threads: int) -> Clock | None:
    """Remove what reads the clock from a `main` of one thread; None where there is nothing of it."""
    block = main.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    is_clock = ir.StringAttr.get(CLOCK)
    reads = [op for op in operations if "intrin" in op.attributes and op.attributes["intrin"] == is_clock]
    readings = [op.results[0] for op in reads]
    stores = [op for op in operations if op.name == "memref.store" and op.operands[0] in readings]
    if not stores:
        return None
    ticks, calls = stores[0].operands[1], sum(op.name == "func.call" for op in operations)
    for op in (*stores, *reads[1:]):
        op.erase()
    ticks.set_type(ir.MemRefType.get([2 * calls * threads], ir.IntegerType.get_signless(64)))
    inputs = [argument.type for argument in block.arguments]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    reads[0].detach_from_parent()
    return Clock(ticks, calls, reads[0])


# Memory of the threads, at the end of the network's workspace: scratch memory for each, counters and a record.
#
# A counter counts the chunks of a part of a divided call that have been taken. All counters of a part lie together, in
# lines that its own thread keeps in its cache until another one looks for work.

_COUNTER_BYTES = 8


class ThreadMemory:
    """The memory of `threads` threads, which makes the last argument of `main` larger by `growth` bytes.

    Raises `CompileError` if that argument is not a memref of bytes.
    """

    def __init__(self, main: ir.Operation, kernels: Sequence[KernelFunction], threads: int, counters: int) -> None:
        arguments = list(main.regions[0].blocks[0].arguments)
        self._memory, self._threads, self._counters = arguments[-1], threads, counters
        self._offsets = {kernel.function: _offsets(kernel) for kernel in kernels}
        self._part = max(end for _, end in self._offsets.values())
        self._row = _aligned(counters * _COUNTER_BYTES)
        if not _is_bytes(self._memory):
            what = "must be bytes to be divided: threads have memory of their own there"
            raise error_at(main.location, f"last argument of main {what}, but got {self._memory.type}")
        before = ir.MemRefType(self._memory.type).shape[0]
        self._start = _aligned(before)
        self.record = self._start + (self._part + self._row) * threads
        """Where the record of the calls starts, in bytes."""
        self.growth = self.record + _aligned(RECORD_BYTES) - before
        self._memory.set_type(ir.MemRefType.get([before + self.growth], ir.IntegerType.get_signless(8)))
        inputs = [argument.type for argument in arguments]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))

    def operands(self, kernel: KernelFunction, call: ir.Operation, thread: ir.Value) -> list[ir.Value]:
        """The operands of `call` with `kernel`'s scratch in the memory of `thread`."""
        operands = list(call.operands)
        for argument, offset in self._offsets[kernel.function][0].items():
            start = arith.addi(arith.muli(thread, b.index(self._part)), b.index(self._start + offset))
            type_ = operands[argument].type
            operands[argument] = ir.Operation.create("memref.view", [type_], [self._memory, start]).result
        return operands

    def clear(self, part: ir.Value) -> None:
        """Set the counters of `part` to 0."""
        counters = self._view()
        with b.loop(0, self._counters) as counter:
            zero = arith.constant(ir.IntegerType.get_signless(64), 0)
            memref.store(zero, counters, [self._position(part, counter)])

    def take(self, part: ir.Value, counter: int) -> ir.Value:
        """How many chunks of `part` were taken before this one."""
        i64 = ir.IntegerType.get_signless(64)
        operands = [arith.constant(i64, 1), self._view(), self._position(part, b.index(counter))]
        taken = memref.atomic_rmw(arith.AtomicRMWKind.addi, operands[0], operands[1], operands[2:])
        return arith.index_cast(ir.IndexType.get(), taken)

    def _view(self) -> ir.Value:
        count = self._row * self._threads // _COUNTER_BYTES
        type_ = ir.MemRefType.get([count], ir.IntegerType.get_signless(64))
        start = b.index(self._start + self._part * self._threads)
        return ir.Operation.create("memref.view", [type_], [self._memory, start]).result

    def _position(self, part: ir.Value, counter: ir.Value) -> ir.Value:
        return arith.addi(arith.muli(part, b.index(self._row // _COUNTER_BYTES)), counter)


def has_counters(main: ir.Operation) -> bool:
    """Whether the working memory of `main` can have counters."""
    arguments = list(main.regions[0].blocks[0].arguments)
    return bool(arguments) and _is_bytes(arguments[-1])


def _is_bytes(memory: ir.Value) -> bool:
    return isinstance(memory.type, ir.MemRefType) and element_bytes(memory.type) == 1


def _offsets(kernel: KernelFunction) -> tuple[dict[int, int], int]:
    """Where in a thread's memory each scratch argument starts, and where the last one ends."""
    offsets: dict[int, int] = {}
    end = 0
    for argument in kernel.scratch:
        type_ = ir.MemRefType(kernel.function.regions[0].blocks[0].arguments[argument].type)
        offsets[argument] = end
        end += _aligned(type_.shape[0] * (element_bytes(type_) or 0) + EXTRA_BYTES)
    return offsets, end


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
