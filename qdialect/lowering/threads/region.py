"""The parallel region of `main`: every thread runs through all calls and computes its parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect._mlir import arith, func, ir, scf
from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall
from qdialect.lowering.threads.team import RECORD
from qdialect.lowering.threads.thread_memory import ThreadMemory


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
    ) -> None:
        """Chunks of the calls in `counters` are taken by whoever is free, each counted there."""
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
                self._clear()

    def fill(self, calls: Sequence[ScheduledCall]) -> None:
        """Move all of `main` into the region, its calls as `calls` say."""
        scheduled_of = {scheduled.call.op: scheduled for scheduled in calls}
        # Looked up before any is erased: another op may then have its address.
        found = [(op, scheduled_of.get(op), self._counters.get(op)) for op in self._body]
        for op, scheduled, counter in found:
            op.move_before(self._end)
            if scheduled:
                self._schedule(scheduled, counter)

    def _number(self, name: str, type_: ir.Type) -> ir.Value:
        found = func.CallOp([type_], ir.FlatSymbolRefAttr.get(name), []).results[0]
        return arith.index_cast(ir.IndexType.get(), found)

    def _clear(self) -> None:
        loop = scf.ForOp(self._thread, self._parts, self._threads)
        with ir.InsertionPoint(loop.body):
            self._memory.clear(loop.induction_variable)
            scf.YieldOp([])

    def _schedule(self, scheduled: ScheduledCall, counter: int | None) -> None:
        call = scheduled.call.op
        with ir.InsertionPoint(call), call.location:
            if scheduled.waits:
                ir.Operation.create("omp.barrier")
            if scheduled.thread is not None:
                self._alone(call, scheduled.thread)
            elif counter is not None:
                self._taken(scheduled.call, counter)
            else:
                self._divided(scheduled.call)

    def _divided(self, network_call: NetworkCall) -> None:
        """All chunks of each part that is this thread's."""
        chunks = self._divisions[network_call.kernel.name].chunks
        parts = scf.ForOp(self._thread, self._parts, self._threads)
        with ir.InsertionPoint(parts.body):
            if chunks == 1:
                self._call(network_call, parts.induction_variable)
            else:
                self._run_of(network_call, parts.induction_variable, chunks)
            scf.YieldOp([])
        network_call.op.erase()

    def _run_of(self, network_call: NetworkCall, part: ir.Value, chunks: int) -> None:
        """The chunks of `part`, one after the other."""
        first = arith.muli(part, _index(chunks))
        loop = scf.ForOp(first, arith.addi(first, _index(chunks)), _index(1))
        with ir.InsertionPoint(loop.body):
            self._call(network_call, loop.induction_variable)
            scf.YieldOp([])

    def _taken(self, network_call: NetworkCall, counter: int) -> None:
        """The chunks of this thread's part, one after the other, then those that are left of the parts behind it."""
        chunks = _index(self._divisions[network_call.kernel.name].chunks)
        parts = scf.ForOp(_index(0), self._parts, _index(1))
        with ir.InsertionPoint(parts.body):
            part = arith.remui(arith.addi(self._thread, parts.induction_variable), self._parts)
            loop = ir.Operation.create("scf.while", results=[ir.IndexType.get()], regions=2)
            with ir.InsertionPoint(loop.regions[0].blocks.append()):
                taken = self._memory.take(part, counter)
                is_left = arith.cmpi(arith.CmpIPredicate.ult, taken, chunks)
                ir.Operation.create("scf.condition", operands=[is_left, taken])
            body = loop.regions[1].blocks.append(ir.IndexType.get())
            with ir.InsertionPoint(body):
                self._call(network_call, arith.addi(arith.muli(part, chunks), body.arguments[0]))
                scf.YieldOp([])
            scf.YieldOp([])
        network_call.op.erase()

    def _call(self, network_call: NetworkCall, chunk: ir.Value) -> None:
        call = network_call.op
        operands = [*self._memory.operands(network_call.kernel, call, self._thread), chunk]
        again = func.CallOp([], call.attributes["callee"], operands)
        again.operation.attributes["qnn.label"] = call.attributes["qnn.label"]

    def _alone(self, call: ir.Operation, thread: int) -> None:
        """The call where this thread is the one; threads are counted from the start again where there are fewer."""
        chosen = arith.remui(arith.constant(ir.IndexType.get(), thread), self._threads)
        here = arith.cmpi(arith.CmpIPredicate.eq, chosen, self._thread)
        branch = scf.IfOp(here)
        with ir.InsertionPoint(branch.then_block):
            end = scf.YieldOp([])
        call.move_before(end)


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)
