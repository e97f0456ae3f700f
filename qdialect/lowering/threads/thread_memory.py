"""What threads need beside the network's working memory, at its end: scratch memory for each, counters and a record.

A counter says how many chunks of a part of a divided call have been taken. All of a part lie together, in lines that
its own thread keeps in its cache until another one looks for work.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import arith, ir, memref, scf
from qdialect.lowering.errors import error_at
from qdialect.lowering.memory.storage import SLACK, element_bytes
from qdialect.lowering.program import ALIGNMENT
from qdialect.lowering.threads.loop_nests import KernelFunction
from qdialect.lowering.threads.team import RECORD_BYTES

_COUNTER_BYTES = 8


class ThreadMemory:
    """The memory of `threads` threads; makes the last argument of `main` larger by `growth` bytes.

    Raises `CompileError` where that argument is not bytes.
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
            start = arith.addi(arith.muli(thread, _index(self._part)), _index(self._start + offset))
            type_ = operands[argument].type
            operands[argument] = ir.Operation.create("memref.view", [type_], [self._memory, start]).result
        return operands

    def clear(self, part: ir.Value) -> None:
        """Set the counters of `part` to 0."""
        counters = self._view()
        loop = scf.ForOp(_index(0), _index(self._counters), _index(1))
        with ir.InsertionPoint(loop.body):
            zero = arith.constant(ir.IntegerType.get_signless(64), 0)
            memref.store(zero, counters, [self._position(part, loop.induction_variable)])
            scf.YieldOp([])

    def take(self, part: ir.Value, counter: int) -> ir.Value:
        """How many chunks of `part` were taken before this one."""
        i64 = ir.IntegerType.get_signless(64)
        operands = [arith.constant(i64, 1), self._view(), self._position(part, _index(counter))]
        taken = memref.atomic_rmw(arith.AtomicRMWKind.addi, operands[0], operands[1], operands[2:])
        return arith.index_cast(ir.IndexType.get(), taken)

    def _view(self) -> ir.Value:
        count = self._row * self._threads // _COUNTER_BYTES
        type_ = ir.MemRefType.get([count], ir.IntegerType.get_signless(64))
        start = _index(self._start + self._part * self._threads)
        return ir.Operation.create("memref.view", [type_], [self._memory, start]).result

    def _position(self, part: ir.Value, counter: ir.Value) -> ir.Value:
        return arith.addi(arith.muli(part, _index(self._row // _COUNTER_BYTES)), counter)


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
        end += _aligned(type_.shape[0] * (element_bytes(type_) or 0) + SLACK)
    return offsets, end


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)
