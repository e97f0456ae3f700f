"""A network of the largest extents, called for smaller ones: inputs get padding, and outputs lose it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from qdialect.runtime.base import Array, Bound, Executable, empty
from qdialect.runtime.call_arrays import BoundArrays, check_outputs, fitting
from qdialect.support.diagnostics import CompileError
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
        return tuple([_smaller(port, own, count) if own else port for port, own in zip(ports, axes, strict=True)])

    def entries(self, array: Array, axes: Axes, count: int) -> Array:
        """The part of an array that is no padding, of which `axes` have `count` entries."""
        kept = slice(count, None) if self.is_in_front else slice(None, -count or None)
        return array[tuple(kept if axis in axes else slice(None) for axis in range(array.ndim))]

    def fill(self, whole: Array, axes: Axes, count: int, array: Array) -> Array:
        """`whole`, with `array` and 0 in `count` entries of padding."""
        padding = slice(None, count) if self.is_in_front else slice(-count, None)
        for axis in axes:
            whole[(slice(None),) * axis + (padding,)] = 0
        self.entries(whole, axes, count)[...] = array
        return whole


def _smaller(port: Port, axes: Axes, count: int) -> Port:
    shape = tuple([extent - count if axis in axes else extent for axis, extent in enumerate(port.shape)])
    # Each step of a decoder makes all of them, and `dataclasses.replace` is slow.
    return Port(port.name, shape, port.dtype, port.scale, port.zero_point)


@dataclass(frozen=True)
class Buffers:
    """Arrays of the largest extents, for inputs and outputs that have padding."""

    inputs: Sequence[Array | None]
    outputs: Sequence[Array | None]


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
    spare: list[Buffers] = field(default_factory=list["Buffers"], repr=False)
    """Memory of earlier calls."""

    def __reduce__(self) -> tuple[type[PaddedNetwork], tuple[object, ...]]:
        return PaddedNetwork, (self.code, self.padding, self.extents, self.varying, self.most)

    def buffers(self) -> Buffers:
        """Memory for one call, which is given back to `spare` after it."""
        try:
            return self.spare.pop()
        except IndexError:
            ports = (self.code.inputs[:-1], self.code.outputs)
            axes = (self.padding.inputs, self.padding.outputs)
            inputs, outputs = (
                [empty(port) if own else None for port, own in zip(*one, strict=True)]
                for one in zip(ports, axes, strict=True)
            )
            return Buffers(inputs, outputs)

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
        return PaddedExecutable(self, count)


def best(networks: Iterable[PaddedNetwork], extents: Mapping[str, int]) -> PaddedNetwork | None:
    """The network that computes these extents with the least padding; None where none of `networks` does."""
    counts = [(count, one) for one in networks if (count := one.count(extents)) is not None]
    return min(counts, key=lambda one: one[0])[1] if counts else None


class PaddedExecutable(Executable):
    """A network of fixed extents in the code of a larger one."""

    def __init__(self, network: PaddedNetwork, count: int) -> None:
        """The network with `count` entries of padding."""
        self._network, self._count = network, count
        self._code, self._padding = network.code, network.padding
        code, padding = network.code, network.padding
        self.inputs = padding.ports(code.inputs[:-1], padding.inputs, count)
        self.outputs = padding.ports(code.outputs, padding.outputs, count)
        self.regions, self.kernels, self.calls, self.threads = code.regions, code.kernels, code.calls, code.threads
        self.constants_bytes, self.working_memory = code.constants_bytes, code.working_memory
        self.workspaces = code.workspaces
        self.target, self.metadata, self.is_float32 = code.target, code.metadata, code.is_float32

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        outputs = tuple(map(empty, self.outputs))
        self.write(fitting("input", self.inputs, arrays), outputs)
        return outputs

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        read, written = fitting("input", self.inputs, inputs), fitting("output", self.outputs, outputs)
        check_outputs(self.outputs, written, read)
        self.write(read, written)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        read, written = fitting("input", self.inputs, inputs), fitting("output", self.outputs, outputs)
        return BoundArrays(read, written, self.write)

    def library(self, name: str) -> bytes:
        raise CompileError(
            "network must be compiled for extents of its own to be saved, but it computes behind padding"
        )

    def write(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute on `inputs` and write into `outputs`, arrays of the ports' shapes and dtypes."""
        number = np.array([self._count], np.int32)
        if not self._count:
            self._code.run([*inputs, number], outputs)
            return
        padding, buffers = self._padding, self._network.buffers()
        given = [
            array if whole is None else padding.fill(whole, axes, self._count, array)
            for array, whole, axes in zip(inputs, buffers.inputs, padding.inputs, strict=True)
        ]
        pairs = list(zip(outputs, buffers.outputs, strict=True))
        self._code.run([*given, number], [array if whole is None else whole for array, whole in pairs])
        for (array, whole), axes in zip(pairs, padding.outputs, strict=True):
            if whole is not None:
                np.copyto(array, padding.entries(whole, axes, self._count))
        self._network.spare.append(buffers)

    def __reduce__(self) -> tuple[type[PaddedExecutable], tuple[PaddedNetwork, int]]:
        return PaddedExecutable, (self._network, self._count)
