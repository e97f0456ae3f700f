"""A network that is partly compiled and partly run by the model's framework."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.runtime.base import Bound, Executable, Region, empty
from qdialect.runtime.call_arrays import BoundArrays, check_outputs, fitting
from qdialect.runtime.memory import States
from qdialect.support.diagnostics import CompileError, Diagnostic, InputError, Severity
from qdialect.support.interface import Array, Port

Call = Callable[[Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True)
class RegionCall:
    """A region and its runner: compiled code, else the framework."""

    region: Region
    compiled: Executable | None
    framework: Call | None


class PartitionedExecutable(Executable):
    """Compiled regions and regions of a framework, one after the other; arrays go from one to the next as they are.

    Its `kernels`, `calls` and sizes of memory are those of the compiled regions together.
    """

    def __init__(
        self,
        calls: Sequence[RegionCall],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        constants: Mapping[str, Array],
        threads: int,
        states: States | None = None,
        *,
        hides_state: bool = False,
    ) -> None:
        """`constants` are outputs that are known; a framework `hides_state` where it keeps what is not in `states`."""
        compiled = [call.compiled for call in calls if call.compiled is not None]
        self.inputs, self.outputs, self.threads = tuple(inputs), tuple(outputs), threads
        self.regions = tuple(call.region for call in calls)
        self.target = ", ".join(dict.fromkeys(one.target for one in compiled))
        self._describe_parts(compiled)
        self.workspaces = min((one.workspaces for one in compiled), default=1)
        self._calls = tuple(calls)
        self._constants = dict(constants)
        self.held = None if hides_state else states or States({}, {})
        self._states = self.held or States({}, {})
        kept = [*(port.name for port in outputs), *self._states.results.values()]
        self._last_reads = _last_reads(self.regions, kept)

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        inputs = fitting("input", self.inputs, arrays)
        values = self._compute(inputs, {}, [])
        taken = [*inputs, *self._constants.values()]
        outputs: list[Array] = []
        for port in self.outputs:
            value = values[port.name]
            # No result shares memory with another array.
            outputs.append(np.array(value) if any(value is other for other in taken) else value)
            taken.append(value)
        return tuple(outputs)

    def share_state(self, other: Executable) -> None:
        if self.held is None or other.held is None:
            runners = " and ".join(dict.fromkeys(region.runner for region in self.regions if not region.is_compiled))
            raise InputError(f"inputs must have the shapes of the first call: {runners} keeps a state between calls")
        self._states.share(other.held)

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        self._write(*self._arrays_of(inputs, outputs))

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        arrays = self._arrays_of(inputs, outputs)
        for port, array in zip(self.inputs, arrays[0], strict=True):
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise InputError(f"input '{port.name}' must be a contiguous and aligned array to be bound")
        return BoundArrays(*arrays, self._write)

    def library(self, name: str) -> bytes:
        left = [region for region in self.regions if not region.is_compiled]
        reasons = {node: reason for region in left for node, reason in region.reasons.items()}
        runners = " and ".join(dict.fromkeys(region.runner for region in left))
        found = f"{runners} runs {len(reasons)} of its nodes" if left else "has results that are empty or inputs"
        message = f"network must be compiled as a whole to be saved, but {found}"
        notes = tuple(Diagnostic(Severity.NOTE, f"node {node}: {reason}") for node, reason in reasons.items())
        raise CompileError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))

    def times(self, inputs: Sequence[object]) -> list[float]:
        """The seconds that each region takes in one call; raises `InputError` where an array does not fit."""
        clock: list[float] = []
        self._compute(fitting("input", self.inputs, inputs), {}, clock)
        return clock

    def _write(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        given: dict[str, Array] = {}
        for port, array in zip(self.outputs, outputs, strict=True):
            given.setdefault(port.name, array)
        values = self._compute(inputs, given, [])
        for port, array in zip(self.outputs, outputs, strict=True):
            if values[port.name] is not array:
                np.copyto(array, values[port.name])

    def _compute(self, inputs: Sequence[Array], given: Mapping[str, Array], clock: list[float]) -> dict[str, Array]:
        """All outputs by name; compiled code writes into the arrays of `given`.  `clock` gets the seconds of each."""
        values = {port.name: array for port, array in zip(self.inputs, inputs, strict=True)}
        values.update(self._constants)
        with self._states.call():
            values.update(self._states.arrays)
            given = {**self._states.targets(), **given}
            for call, done in zip(self._calls, self._last_reads, strict=True):
                start = time.perf_counter()
                arrays = [values[name] for name in call.region.inputs]
                values.update(zip(call.region.outputs, _run(call, arrays, given), strict=True))
                clock.append(time.perf_counter() - start)
                for name in done:
                    del values[name]
            self._states.keep(values, [port.name for port in self.outputs])
        for port in self.outputs:
            if port.dtype.itemsize == 1 and values[port.name].dtype != port.dtype:
                # ONNX Runtime gives the bits of float8 numbers.
                values[port.name] = values[port.name].view(port.dtype)
        return values

    def _arrays_of(
        self, inputs: Sequence[object], outputs: Sequence[object]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Inputs and outputs as arrays; raises `InputError` where one does not fit."""
        read, written = fitting("input", self.inputs, inputs), fitting("output", self.outputs, outputs)
        check_outputs(self.outputs, written, read)
        return read, written


def _run(call: RegionCall, arrays: Sequence[Array], given: Mapping[str, Array]) -> Sequence[Array]:
    if call.framework is not None:
        return call.framework(arrays)
    assert call.compiled is not None
    outputs = [given[port.name] if port.name in given else empty(port) for port in call.compiled.outputs]
    call.compiled.run(arrays, outputs)
    return outputs


def _last_reads(regions: Sequence[Region], kept: Sequence[str]) -> list[tuple[str, ...]]:
    """By region, the names that are dead after it: their arrays are freed then."""
    seen = set(kept)
    found: list[tuple[str, ...]] = []
    for region in reversed(regions):
        found.append(tuple(name for name in dict.fromkeys((*region.inputs, *region.outputs)) if name not in seen))
        seen.update(region.inputs, region.outputs)
    return found[::-1]


# How long each region of a partitioned network takes.

_WARM_UP_CALLS = 3
_MIN_CALLS = 5


def region_times(executable: PartitionedExecutable, inputs: Sequence[Array], seconds: float = 0.5) -> tuple[float, ...]:
    """The median seconds of each region, in order, over calls during `seconds`.

    Raises `InputError` where `inputs` do not fit.
    """
    for _ in range(_WARM_UP_CALLS):
        executable.times(inputs)
    found: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(found) < _MIN_CALLS or time.perf_counter() < end:
        found.append(executable.times(inputs))
    return tuple(float(one) for one in np.median(found, axis=0))
