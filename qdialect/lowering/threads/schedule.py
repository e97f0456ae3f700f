"""Static schedule of a network's calls: the threads of each call, and the barriers between calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.accesses import Run
from qdialect.lowering.ir.functions import MAIN, constant, error_at, op_error
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.qnn_to_linalg.program.program import element_bytes
from qdialect.lowering.threads.loop_nests import KernelFunction

# A divided call runs on all threads, a part each; any other runs on one. A barrier precedes a call that conflicts with
# a call since the last barrier (both access the same bytes, and one writes them), unless both run on the same one
# thread. So chains of small calls stay on one thread, and independent calls run in parallel.


@dataclass(frozen=True)
class Touch:
    """The bytes of argument `block` of the network that a call reads or writes."""

    block: int
    argument: int
    """Of the kernel."""
    is_write: bool
    bytes: Run

    def conflicts(self, other: Touch) -> bool:
        """Whether the order of both matters."""
        return (self.is_write or other.is_write) and self.block == other.block and self.bytes.overlaps(other.bytes)


@dataclass(frozen=True)
class NetworkCall:
    """A call of the network."""

    op: ir.Operation
    kernel: KernelFunction
    touches: tuple[Touch, ...]

    def conflicts(self, other: NetworkCall) -> bool:
        return any(one.conflicts(two) for one in self.touches for two in other.touches)

    def moved(self, block: int) -> int:
        """About how many bytes of argument `block` of the network the call reads and writes."""
        found = {
            (touch.argument, touch.is_write): touch.bytes.end - touch.bytes.start
            for touch in sorted(self.touches, key=lambda touch: touch.bytes.end - touch.bytes.start)
            if touch.block == block
        }
        return sum(found.values())

    @property
    def is_aliased(self) -> bool:
        """Whether two arguments alias, and the call writes one of them."""
        return any(
            one.argument != two.argument and one.conflicts(two)
            for i, one in enumerate(self.touches)
            for two in self.touches[:i]
        )


def network_calls(main: ir.Operation, kernels: Mapping[str, KernelFunction]) -> list[NetworkCall]:
    """The calls of `main` and the bytes they touch."""
    calls = [op.operation for op in main.regions[0].blocks[0].operations if op.operation.name == "func.call"]
    return [_network_call(call, kernels) for call in calls]


@dataclass(frozen=True)
class ScheduledCall:
    """When a call runs."""

    call: NetworkCall
    thread: int | None
    """The one thread that it runs on; None where all do, a part each."""
    waits: bool
    """Whether threads wait for each other before it."""


@dataclass
class _Open:
    """The calls since the last barrier."""

    calls: list[ScheduledCall] = field(default_factory=list[ScheduledCall])
    load: dict[int, float] = field(default_factory=dict[int, float])

    def needs_barrier(self, call: NetworkCall, divided: bool) -> int | None:
        """The thread of the calls that `call` conflicts with; -1 if there are none, None if they are on several."""
        threads = {scheduled.thread for scheduled in self.calls if scheduled.call.conflicts(call)}
        if not threads:
            return -1
        return threads.pop() if len(threads) == 1 and not divided else None


def schedule(found: Sequence[NetworkCall], divided: frozenset[str], threads: int) -> Iterator[ScheduledCall]:
    """The schedule of the calls `found`, in order; kernels in `divided` run on all threads."""
    now = _Open()
    for call in found:
        is_divided = call.kernel.name in divided
        thread = now.needs_barrier(call, is_divided)
        waits = thread is None
        if waits:
            now = _Open()
        if thread is None or thread < 0:
            thread = min(range(threads), key=lambda t: now.load.get(t, 0.0))
        scheduled = ScheduledCall(call, None if is_divided else thread, waits)
        if scheduled.thread is not None:
            now.load[scheduled.thread] = now.load.get(scheduled.thread, 0.0) + call.kernel.cost
        now.calls.append(scheduled)
        yield scheduled


def _network_call(call: ir.Operation, kernels: Mapping[str, KernelFunction]) -> NetworkCall:
    kernel = kernels[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
    touches: list[Touch] = []
    for access in kernel.accesses:
        value = call.operands[access.argument]
        block, offset = origin(value)
        type_ = ir.MemRefType(value.type)
        run = access.run or Run(0, ((1, type_.shape[0]),))
        size = element_bytes(type_) or 0
        touches.append(Touch(block, access.argument, access.is_write, run.scaled(size, offset)))
    return NetworkCall(call, kernel, tuple(dict.fromkeys(touches)))


def origin(value: ir.Value) -> tuple[int, int]:
    """The argument of the network that `value` is a view of, and its offset in bytes."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return ir.BlockArgument(value).arg_number, 0
    offset = constant(owner.operands[1])
    if owner.name != "memref.view" or offset is None:
        raise ValueError(f"'{owner.name}' op is no view at a constant offset")
    return ir.BlockArgument(owner.operands[0]).arg_number, offset


# Checks that `main` can be divided among threads: it must only call kernels on its buffers and on views of them.

_SUFFIX = "to be divided"


def check_network(main: ir.Operation, kernels: Mapping[str, ir.Operation]) -> None:
    """Raise `CompileError` where `main` does more than call `kernels`, all of them functions of the module."""
    blocks = len(main.regions[0].blocks)
    if blocks != 1:
        raise error_at(main.location, f"function {MAIN} must have one block {_SUFFIX}, but got {blocks}")
    block = main.regions[0].blocks[0]
    for argument in block.arguments:
        if not _is_flat(argument.type) and not isinstance(argument.type, ir.IntegerType | ir.IndexType | ir.FloatType):
            what = f"must be a flat buffer or a number {_SUFFIX}, but got {argument.type}"
            raise error_at(main.location, f"argument {argument.arg_number} of {MAIN} {what}")
    for op in block.operations:
        reason = _reason(op.operation, block, kernels)
        if reason:
            raise op_error(op.operation, reason)


def _reason(op: ir.Operation, block: ir.Block, kernels: Mapping[str, ir.Operation]) -> str | None:
    """Why `op` may not stand in `main`."""
    match op.name:
        case "arith.constant" | "func.return":
            return None
        case "memref.view":
            is_known = op.operands[0].owner == block and constant(op.operands[1]) is not None
            known = is_known and _is_flat(op.results[0].type)
            return None if known else f"must be of an argument of {MAIN}, at a constant offset, {_SUFFIX}"
        case "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            found = kernels.get(callee)
            is_body = found is not None and len(found.regions[0].blocks) == 1
            return None if is_body else f"must call a function with one block {_SUFFIX}, but got {callee}"
        case _:
            return f"must be a call, a constant or a view {_SUFFIX}"


def _is_flat(type_: ir.Type) -> bool:
    """Whether a type is a contiguous memref of static shape."""
    if not isinstance(type_, ir.MemRefType) or type_.rank != 1 or not type_.has_static_shape:
        return False
    return static_strides(type_) == (1,) and element_bytes(type_) is not None
