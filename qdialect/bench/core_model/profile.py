"""Where the time goes: each kernel call of a network measured in place, and the bare dot-product instruction."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import targets
from qdialect.bench import throughput
from qdialect.bench.core_model.kernel_cycles import MUCH, KernelCycles, kernel_cycles, kernels_of_kinds
from qdialect.bench.core_model.memory_traffic import CallReuse, Reuse, call_reuses
from qdialect.driver.tuning import measured_calls, middle
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase, phase_of
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime import Executable
from qdialect.runtime.compiler import compile_module
from qdialect.runtime.external_calls import External
from qdialect.runtime.loaded import LoadedExecutable
from qdialect.runtime.native import Binding
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import Array, KernelCall, kernel_names
from qdialect.targets import Target
from qdialect.targets.cpus import host_machine
from qdialect.targets.machine import Machine

_SHORTEST = 50e-9
_WARM_UP_CALLS = 3
_ROUNDS = 5


@dataclass(frozen=True)
class CallProfile:
    """One kernel call of a network, and how long it takes there."""

    call: KernelCall
    seconds: float
    """Mean of the middle half of many calls."""
    peak: float | None
    """Multiply-accumulates per second of the bare instructions that it multiplies by; None where the CPU has none."""
    bound: float | None = None
    """Seconds that its instructions need at least on the busiest port, or its bytes from where they lie, whichever are
    more; None where the core's speed is not known."""
    predicted: float | None = None
    """Seconds that the cost model predicts; None where the core's speed is not known."""
    limit: str = ""
    """The limit of its speed by that model: a port of the core, latency or memory; empty where that is not known."""

    @property
    def rate(self) -> float:
        """Multiply-accumulates per second."""
        return self.call.macs / self.seconds if self.seconds else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes per second that it reads and writes, wherever they lie."""
        return self.call.bytes_moved / self.seconds if self.seconds else 0.0

    @property
    def share_of_peak(self) -> float | None:
        """The rate as a share of the bare instruction's, at most 1; None for a call without products."""
        return min(self.rate / self.peak, 1.0) if self.peak and self.call.macs else None

    @property
    def share_of_bound(self) -> float | None:
        """The bound as a share of the time, at most 1: where a call is faster, its time bounds it."""
        return min(self.bound / self.seconds, 1.0) if self.bound is not None and self.seconds else None


@dataclass(frozen=True)
class ModelError:
    """How far the predictions of the cost model are from the times of the kernel calls, as shares of these."""

    median: float
    """Of the calls, half are no further."""
    weighted: float
    """The mean, each call weighted by its time."""


@dataclass(frozen=True)
class Profile:
    """The kernel calls of a network, in their order, and what each takes."""

    calls: tuple[CallProfile, ...]
    repetitions: int
    """How many calls of the network were measured."""
    peak: float | None
    """Most multiply-accumulates per second of bare dot products, measured in between; None where the CPU has none."""
    loop: str | None = "vpdpbusd"
    """The instructions of that loop."""
    frequency: float | None = None
    """Cycles a second of the core while the loop of vectors ran; None where the core is not known."""
    other_loops: Mapping[str, float] = field(default_factory=dict[str, float])
    """Loops and rates that kernels are compared with which multiply by other instructions than the fastest."""

    @property
    def model_error(self) -> ModelError | None:
        """How far the cost model is from what was measured; None where it predicts nothing.

        Calls of less than 0.05 us, which the clock tells roughly, are left out.
        """
        found = [one for one in self.calls if one.seconds >= _SHORTEST]
        pairs = [(one.seconds, one.predicted) for one in found if one.predicted is not None]
        if not pairs:
            return None
        errors = [abs(predicted - seconds) for seconds, predicted in pairs]
        shares = [error / seconds for error, (seconds, _) in zip(errors, pairs, strict=True)]
        return ModelError(statistics.median(shares), sum(errors) / sum(seconds for seconds, _ in pairs))

    def loop_of(self, one: CallProfile) -> str:
        """The bare instructions that a call is compared with."""
        return next((loop for loop, rate in self.other_loops.items() if rate == one.peak), self.loop or "")

    @property
    def beyond_bound(self) -> float:
        """How much faster calls are than their bounds, at most, as a share: the table of this core is off by that."""
        found = [one.bound / one.seconds for one in self.calls if one.bound and one.seconds >= _SHORTEST]
        return max(0.0, max(found, default=1.0) - 1)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.calls)

    @property
    def bound(self) -> float | None:
        """Seconds that the instructions or the bytes of all calls need at least; None where that is not known."""
        found = [min(one.bound, one.seconds) for one in self.calls if one.bound is not None]
        return sum(found) if found else None

    @property
    def macs(self) -> int:
        return sum(one.call.macs for one in self.calls)

    @property
    def bytes_moved(self) -> int:
        return sum(one.call.bytes_moved for one in self.calls)


def profile_ops(
    module: ir.Module,
    inputs: Sequence[Array],
    *,
    target: str | Target = "host",
    seconds: float = 1.0,
    externals: Mapping[str, External] = MappingProxyType({}),
) -> Profile:
    """Compile `module` with a clock and call it on `inputs` for `seconds` seconds, in turns with the bare instruction.

    Calls of `externals`, which have the names of their C functions, have a time and no bound. The clock costs some
    10 ns a kernel call, which it measures too. Raises what `compile_module` and `Executable.bind` raise.
    """
    executable = compile_module(module, target=target, clocked=True, externals=externals)
    outputs = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    call = executable.bind([np.asarray(array, order="C") for array in inputs], outputs)
    for _ in range(_WARM_UP_CALLS):
        call()
    chosen = throughput.with_dot_products(targets.resolve(target))
    loops = {dots: title for dots in throughput.Dots if (title := throughput.loop_title(chosen, dots))}
    rates: dict[str, list[float]] = {}
    cycles: list[NDArray[np.int64]] = []
    lengths: list[float] = []
    for _ in range(_ROUNDS):
        for title, dots in {title: dots for dots, title in loops.items()}.items():
            rates.setdefault(title, []).append(throughput.dot_product_rate(chosen, dots))
        found, length = measured_calls(call, executable.ticks, seconds / _ROUNDS)
        cycles += found
        lengths.append(length)
    # A loop is never faster than the core, but slower where others compute too.
    peaks = {title: max(found) for title, found in rates.items()}
    title = loops.get(throughput.Dots.FASTEST)
    peak = peaks[title] if title else None
    times = middle(np.diff(np.array(cycles), axis=1)) * statistics.median(lengths)
    pairs = [(call, float(one)) for call, one in zip(executable.calls, times, strict=True)]
    model = _model(module, targets.resolve(target), peaks.get(loops.get(throughput.Dots.VECTORS, "")))
    if model is None:
        return Profile(tuple(CallProfile(call, one, peak) for call, one in pairs), len(cycles), peak, title)
    used = [loops[model.dots_of(call)] for call, _ in pairs]
    calls = tuple(
        CallProfile(call, one, peaks[loop], *model.seconds(call, uses))
        for (call, one), loop, uses in zip(pairs, used, model.uses_of([call for call, _ in pairs]), strict=True)
    )
    others = {loop: peaks[loop] for call, loop in zip(calls, used, strict=True) if call.call.macs and loop != title}
    return Profile(calls, len(cycles), peak, title, model.frequency, others)


@dataclass(frozen=True)
class _Model:
    """The predicted cycles of a network's kernels on this machine's core."""

    machine: Machine
    frequency: float
    kernels: Mapping[int, KernelCycles]
    of_pairs: Collection[int]
    """Numbers of the kernels that sum products of bytes in pairs."""
    of_tiles: Collection[int]
    """Numbers of the kernels that multiply matrix tiles."""
    reuses: Sequence[CallReuse]
    """Of the calls in the code of the network."""
    externals: Collection[str]
    """The labels of calls of other libraries, whose code is not known."""

    def uses_of(self, calls: Sequence[KernelCall]) -> list[Sequence[Reuse]]:
        """How far back each call finds what it uses; nothing where the code does not have these calls."""
        if [one.kernel for one in self.reuses] != [call.kernel for call in calls]:
            return [()] * len(calls)
        return [one.parts for one in self.reuses]

    def dots_of(self, call: KernelCall) -> throughput.Dots:
        """The instruction that a kernel multiplies by."""
        if call.kernel in self.of_pairs:
            return throughput.Dots.PAIRS
        return throughput.Dots.FASTEST if call.kernel in self.of_tiles else throughput.Dots.VECTORS

    def seconds(self, call: KernelCall, uses: Sequence[Reuse]) -> tuple[float | None, float | None, str]:
        """At least, and as predicted, and what limits it; None for code that is not known."""
        if call.label in self.externals:
            return None, None, ""
        found = self.kernels.get(call.kernel, KernelCycles(0.0, 0.0))
        bound, cycles = found.in_a_network(call.bytes_moved, uses, self.machine)
        limit = "memory" if cycles > MUCH * found.predicted else found.limit
        return bound / self.frequency, cycles / self.frequency, limit


def core_of(target: Target) -> Machine | None:
    """This machine's core as code for `target` uses it; None where what it does in a cycle is not known."""
    features = targets.host_features()
    is_known = not (target.is_generic or target.is_portable) and target.features <= features
    if not is_known or throughput.loop_title(target, throughput.Dots.VECTORS) is None:
        return None
    machine = host_machine(features)
    return machine.narrowed(throughput.bare_vector_bits(target), machine.vector_registers)


def _model(module: ir.Module, target: Target, vector_rate: float | None) -> _Model | None:
    """The predicted time of the kernels; None if the clock's rate or the code is not known."""
    machine = core_of(target)
    if vector_rate is None or machine is None or phase_of(module).number > Phase.X86.number:
        return None
    lowered = lower(module, target, Phase.X86)
    code, externals = lowered.module, {function.symbol for function in lowered.external_functions()}
    rate = vector_rate / throughput.products_per_cycle(target, machine)
    return _Model(machine, rate, kernel_cycles(code, machine), *kernels_of_kinds(code), call_reuses(code), externals)


# One call of a network as a trace: when each kernel call begins and ends on each thread.
#
# It is written as JSON of Chrome's trace event format, which Perfetto and ``chrome://tracing`` show.


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
