"""One call of a network as a trace: when each kernel call begins and ends on each thread.

It is written as JSON of Chrome's trace event format, which Perfetto and ``chrome://tracing`` show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.driver.tuning import measured_calls
from qdialect.ir._mlir import ir
from qdialect.runtime import Executable
from qdialect.runtime.compiler import compile_module
from qdialect.runtime.external_calls import External
from qdialect.runtime.loaded import LoadedExecutable
from qdialect.runtime.native import Binding
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import KernelCall, kernel_names
from qdialect.targets import Target

_WARM_UP_CALLS = 3


@dataclass(frozen=True)
class Span:
    """A kernel call on a thread, in seconds from the start of the network's call."""

    thread: int
    number: int
    """Of the kernel call."""
    start: float
    seconds: float


@dataclass(frozen=True)
class Trace:
    """One call of a network, that of median length of `repetitions`."""

    calls: tuple[KernelCall, ...]
    spans: tuple[Span, ...]
    repetitions: int

    def text(self, title: str) -> str:
        """JSON of the trace event format; names of kernels are those of `kernel_names`, times are microseconds."""
        events = [*self._threads(title), *map(self._event, self.spans)]
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1)

    def _threads(self, title: str) -> Iterator[dict[str, Any]]:
        yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": title}}
        for thread in sorted({span.thread for span in self.spans}):
            name = {"name": f"thread {thread}"}
            yield {"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": name}

    def _event(self, span: Span) -> dict[str, Any]:
        call = self.calls[span.number]
        about = {"call": span.number, "nodes": call.names, "MMAC": call.macs * 1e-6, "bytes": call.bytes_moved}
        where = {"pid": 1, "tid": span.thread, "ts": span.start * 1e6, "dur": span.seconds * 1e6}
        return {"ph": "X", "name": kernel_names(self.calls)[span.number], "cat": call.label, **where, "args": about}


def trace(
    module: ir.Module,
    inputs: Sequence[NDArray[Any]],
    *,
    target: str | Target = "host",
    threads: int = 1,
    seconds: float = 0.5,
    externals: Mapping[str, External] = MappingProxyType({}),
) -> Trace:
    """Compile `module` with a clock for `threads` threads and call it on `inputs` for `seconds` seconds.

    Raises what `compile_module` and `Executable.bind` raise.
    """
    executable = compile_module(module, target=target, threads=threads, clocked=True, externals=externals)
    call = executable.bind(*_arrays(executable, inputs))
    return _traced(call, executable.ticks, executable.calls, seconds)


def trace_library(executable: Executable, inputs: Sequence[NDArray[Any]], *, seconds: float = 0.5) -> Trace:
    """Call a loaded network on `inputs` for `seconds` seconds.

    Raises `InputError` for one without a clock, and what `Executable.bind` raises.
    """
    is_single = isinstance(executable, LoadedExecutable)
    found = executable.bind_clocked(*_arrays(executable, inputs)) if is_single else None
    if found is None:
        raise InputError("library must be written by 'qdialect-compile --clock' to be traced")
    return _traced(*found, executable.calls, seconds)


def _traced(call: Binding, ticks: NDArray[np.int64], calls: tuple[KernelCall, ...], seconds: float) -> Trace:
    for _ in range(_WARM_UP_CALLS):
        call()
    readings, length = measured_calls(call, ticks, seconds)
    found = np.array([_pairs(one, len(calls)) for one in readings])
    starts = np.where(found[..., 0] > 0, found[..., 0], np.iinfo(np.int64).max).min((1, 2))
    chosen = int(np.argsort(found.max((1, 2, 3)) - starts)[len(found) // 2])
    spans = (
        Span(thread, number, float(begin - starts[chosen]) * length, float(end - begin) * length)
        for thread, pairs in enumerate(found[chosen])
        for number, (begin, end) in enumerate(pairs)
        if begin
    )
    return Trace(calls, tuple(spans), len(found))


def _arrays(executable: Executable, inputs: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    outputs: list[NDArray[Any]] = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    return [np.asarray(array, order="C") for array in inputs], outputs


def _pairs(readings: NDArray[np.int64], calls: int) -> NDArray[np.int64]:
    """[threads, calls, 2] from what clocked code has written."""
    if len(readings) == calls + 1:
        return np.stack([readings[:-1], readings[1:]], -1)[None]
    return readings.reshape(-1, calls, 2)
