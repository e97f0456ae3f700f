"""A network of the largest extents, called for smaller ones: inputs get padding, and outputs lose it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.runtime.base import Array, Bound, Executable, check_array, check_count, check_writable, empty
from qdialect.runtime.call_arrays import as_array
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.support.interface import Port

Axes = frozenset[int]


@dataclass(frozen=True)
class Padding:
    """Which dimensions of inputs and outputs have entries of padding, and on which side."""

    inputs: tuple[Axes, ...]
    outputs: tuple[Axes, ...]
    is_in_front: bool

    def ports(self, ports: Sequence[Port], axes: Sequence[Axes], count: int) -> tuple[Port, ...]:
        """`ports` with `count` entries less in their `axes`."""
        return tuple(
            replace(port, shape=tuple(extent - count * (axis in own) for axis, extent in enumerate(port.shape)))
            for port, own in zip(ports, axes, strict=True)
        )

    def entries(self, array: Array, axes: Axes, count: int) -> Array:
        """The part of an array that is no padding, of which `axes` have `count` entries."""
        kept = slice(count, None) if self.is_in_front else slice(None, -count or None)
        return array[tuple(kept if axis in axes else slice(None) for axis in range(array.ndim))]


@dataclass(frozen=True)
class PaddedNetwork:
    """The code of the largest extents for all that are smaller by one number of entries."""

    code: Executable
    """It has an input more than the network, the last: the number of entries of padding."""
    padding: Padding
    extents: Mapping[str, int]
    """The largest ones, by their names."""
    varying: frozenset[str]
    most: int
    """The largest number of entries of padding."""

    def count(self, extents: Mapping[str, int]) -> int | None:
        """How many entries of padding a network of these extents has; None where it is not computed here."""
        counts = {self.extents[name] - extents[name] for name in self.varying}
        is_alike = all(extents[name] == own for name, own in self.extents.items() if name not in self.varying)
        found = counts.pop()
        return found if is_alike and not counts and 0 <= found <= self.most else None

    def executable(self, extents: Mapping[str, int]) -> PaddedExecutable:
        """The network of these extents, which it computes."""
        count = self.count(extents)
        assert count is not None, "it computes them"
        return PaddedExecutable(self.code, self.padding, count)


def best(networks: Iterable[PaddedNetwork], extents: Mapping[str, int]) -> PaddedNetwork | None:
    """The network that computes these extents with the least padding; None where none of `networks` does."""
    counts = [(count, one) for one in networks if (count := one.count(extents)) is not None]
    return min(counts, key=lambda one: one[0])[1] if counts else None


class PaddedExecutable(Executable):
    """A network of fixed extents in the code of a larger one."""

    def __init__(self, code: Executable, padding: Padding, count: int) -> None:
        """`code` is that of a `PaddedNetwork`, and `count` the number of entries of padding."""
        self._code, self._padding, self._count = code, padding, count
        self._ports = code.inputs[:-1]
        self.inputs = padding.ports(self._ports, padding.inputs, count)
        self.outputs = padding.ports(code.outputs, padding.outputs, count)
        self.regions, self.kernels, self.calls, self.threads = code.regions, code.kernels, code.calls, code.threads
        self.constants_bytes, self.working_memory = code.constants_bytes, code.working_memory
        self.target, self.metadata, self.is_float32 = code.target, code.metadata, code.is_float32

    @property
    def workspaces(self) -> int:
        return self._code.workspaces

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        found = self._code.results([*self._padded(self._arrays("input", self.inputs, arrays)), self._number()])
        return tuple(map(np.ascontiguousarray, self._entries(found)))

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        read, written = self._arrays("input", self.inputs, inputs), self._arrays("output", self.outputs, outputs)
        for index, (port, array) in enumerate(zip(self.outputs, written, strict=True)):
            check_writable(f"output '{port.name}'", array)
            if any(np.may_share_memory(array, other) for other in (*read, *written[:index])):
                raise InputError(f"output '{port.name}' must not share memory with another array of the call")
        self.write(read, written)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        read, written = self._arrays("input", self.inputs, inputs), self._arrays("output", self.outputs, outputs)
        return _Binding(read, written, self)

    def library(self, name: str) -> bytes:
        raise CompileError(
            "network must be compiled for extents of its own to be saved, but it computes behind padding"
        )

    def write(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute on `inputs` and write into `outputs`, arrays of the ports' shapes and dtypes."""
        has_padding = [bool(self._count and axes) for axes in self._padding.outputs]
        whole = [
            empty(port) if has else array
            for port, array, has in zip(self._code.outputs, outputs, has_padding, strict=True)
        ]
        self._code.run([*self._padded(inputs), self._number()], whole)
        for array, found, has in zip(outputs, self._entries(whole), has_padding, strict=True):
            if has:
                np.copyto(array, found)

    def _number(self) -> Array:
        return np.array([self._count], np.int32)

    def _entries(self, arrays: Sequence[Array]) -> list[Array]:
        pairs = zip(arrays, self._padding.outputs, strict=True)
        return [self._padding.entries(array, axes, self._count) for array, axes in pairs]

    def _padded(self, arrays: Sequence[Array]) -> list[Array]:
        found: list[Array] = []
        for port, array, axes in zip(self._ports, arrays, self._padding.inputs, strict=True):
            if not axes or not self._count:
                found.append(array)
                continue
            whole = np.zeros(port.shape, port.dtype)
            self._padding.entries(whole, axes, self._count)[...] = array
            found.append(whole)
        return found

    def _arrays(self, kind: str, ports: Sequence[Port], given: Sequence[object]) -> tuple[Array, ...]:
        check_count(kind, len(given), len(ports))
        arrays = [as_array(f"{kind} '{port.name}'", port, one) for port, one in zip(ports, given, strict=True)]
        for port, array in zip(ports, arrays, strict=True):
            check_array(f"{kind} '{port.name}'", array, port.shape, port.dtype)
        return tuple(arrays)

    def __reduce__(self) -> tuple[type[PaddedExecutable], tuple[Executable, Padding, int]]:
        return PaddedExecutable, (self._code, self._padding, self._count)


@dataclass(frozen=True)
class _Binding:
    """A network and the arrays of its calls."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    network: PaddedExecutable

    def __call__(self) -> None:
        self.network.write(self.inputs, self.outputs)
