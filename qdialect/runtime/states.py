"""Networks that keep arrays from call to call, such as the caches of a decoder."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.runtime.base import Executable, check_count
from qdialect.runtime.call_arrays import BoundArrays, check_outputs, fitting
from qdialect.runtime.memory import States
from qdialect.runtime.native import NativeExecutable, compiled_region
from qdialect.support.diagnostics import InputError


class StatefulExecutable(Executable):
    """A compiled network and its states, which a call reads and writes where they are."""

    workspaces = 1
    """One call after the other."""

    def __init__(self, code: NativeExecutable) -> None:
        """`code` takes the states among its outputs."""
        self.code = code
        self._names = [port.name if index in code.starts else "" for index, port in enumerate(code.outputs)]
        """Of states, in the order of the outputs of `code`."""
        self.inputs = code.inputs
        self.outputs = (port for port, name in zip(code.outputs, self._names, strict=True) if not name)
        self.target, self.threads, self.metadata = code.target, code.threads, code.metadata
        self._describe_parts([code])
        self.regions = (compiled_region(self),)
        self._states = States({self._names[index]: start for index, start in code.starts.items()}, {})
        self.held = self._states

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        check_count("output", len(outputs), len(self.outputs))
        given = iter(outputs)
        with self._states.call():
            self.code.run(inputs, [self._states.arrays[name] if name else next(given) for name in self._names])

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> BoundArrays:
        read, written = fitting("input", self.inputs, inputs), fitting("output", self.outputs, outputs)
        check_outputs(self.outputs, written, read)
        for port, array in zip(self.inputs, read, strict=True):
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise InputError(f"input '{port.name}' must be a contiguous and aligned array to be bound")
        return BoundArrays(read, written, self.run)

    def library(self, name: str) -> bytes:
        """With what the states hold before the first call."""
        return self.code.library(name)

    def share_state(self, other: Executable) -> None:
        if other.held is None or other.held.arrays.keys() != self._states.arrays.keys():
            raise InputError("inputs must have the shapes of the first call: a framework keeps a state between calls")
        self._states.share(other.held)


def with_states(code: Executable) -> Executable:
    """`code` with the states that it has, if there are any."""
    return StatefulExecutable(code) if isinstance(code, NativeExecutable) and code.starts else code
