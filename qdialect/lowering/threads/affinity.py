"""How much of what the calls of a kernel write is read on another core.

Both are taken as cut into two halves of their outermost loops: a half reads from the other core what the other half
wrote. Other numbers of threads share as much or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qdialect._mlir import ir
from qdialect.lowering.memory.storage import element_bytes
from qdialect.lowering.threads.accesses import Access, Run
from qdialect.lowering.threads.loop_nests import KernelFunction
from qdialect.lowering.threads.schedule import NetworkCall, Touch, origin

_HALVES = (0, 1)


def crossing_bytes(kernel: KernelFunction, calls: Sequence[NetworkCall]) -> int:
    """Bytes that calls of `kernel`, cut at its loops, write on one core and those after them read on another."""
    return sum(
        _crossing(kernel, call, reader, read)
        for i, call in enumerate(calls)
        if call.kernel.name == kernel.name
        for reader, read in _readers(call, calls[i + 1 :])
    )


def _readers(call: NetworkCall, after: Sequence[NetworkCall]) -> Iterator[tuple[NetworkCall, Access]]:
    """The reads of what `call` writes, up to the call that writes there again."""
    written = [touch for touch in call.touches if touch.is_write]
    for other in after:
        arguments = {touch.argument for touch in other.touches if not touch.is_write and _overlaps(touch, written)}
        yield from ((other, access) for access in other.kernel.shared if _is_read_of(access, arguments))
        if any(touch.is_write and _overlaps(touch, written) for touch in other.touches):
            return


def _is_read_of(access: Access, arguments: set[int]) -> bool:
    return not access.is_write and access.argument in arguments


def _overlaps(touch: Touch, others: Sequence[Touch]) -> bool:
    return any(
        touch.block == other.block and touch.bytes.start < other.bytes.end and other.bytes.start < touch.bytes.end
        for other in others
    )


def _crossing(kernel: KernelFunction, call: NetworkCall, reader: NetworkCall, read: Access) -> int:
    writes = [access for access in kernel.shared if access.is_write]
    return sum(
        _half(kernel, call, write, half).count_in_common(_half(reader.kernel, reader, read, 1 - half))
        for write in writes
        for half in _HALVES
        if _block(call, write) == _block(reader, read)
    )


def _block(call: NetworkCall, access: Access) -> int:
    return origin(call.op.operands[access.argument])[0]


def _half(kernel: KernelFunction, call: NetworkCall, access: Access, half: int) -> Run:
    """The bytes that `access` touches in one half of the iterations."""
    value = call.op.operands[access.argument]
    run = access.run or Run(0, ((1, access.extent),))
    number = kernel.loop_nest_of(access)
    loops = kernel.loop_nests[number].loops[:1] if number is not None else ()
    stride = dict(access.loops).get(loops[0]) if loops else None
    if number is not None and stride is not None:
        run = _cut(run, stride, kernel.loop_nests[number].work.trips[0], half)
    return run.scaled(element_bytes(ir.MemRefType(value.type)) or 0, origin(value)[1])


def _cut(run: Run, stride: int, trips: int, half: int) -> Run:
    """The elements of `run` in one half of the `trips` iterations of a loop that moves it by `stride`."""
    if trips < 2:
        return run
    dims, middle = list(run.dims), trips // 2
    at = dims.index((stride, trips))
    dims[at] = (stride, trips - middle if half else middle)
    return replace(run, start=run.start + half * middle * stride, dims=tuple(dims))
