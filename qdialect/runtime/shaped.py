"""A network whose inputs leave extents open: compiled for each shape that it is called with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from qdialect.runtime.base import Array, Bound, Executable, check_count, empty
from qdialect.runtime.call_arrays import BoundArrays, as_array, check_outputs, fitting
from qdialect.runtime.memory import CallLock
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.support.interface import Port

if TYPE_CHECKING:
    from qdialect.frontends.model_files import OpenShapes

# A network of the largest extents, called for smaller ones: inputs get padding, and outputs lose it.

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


T = TypeVar("T")
Compile = Callable[[Mapping[str, int]], Executable]
"""Compiles for extents by their names or as ``INPUT:AXIS``."""

Ranges = Mapping[str, tuple[int, int]]
"""The minimum and the maximum of extents, by their names or as ``INPUT:AXIS``."""


class Lengths:
    """Networks that compute several extents each; here those that were compiled before, and no more."""

    def __init__(self, networks: Sequence[PaddedNetwork] = ()) -> None:
        self.networks = networks

    def prepare(self) -> Executable | None:
        """The network of the first extents, compiled for others too; None where that is impossible."""

    def missing(self) -> Mapping[str, int] | None:
        """Extents to compile for before they are needed, after `prepare`."""

    def executable(self, extents: Mapping[str, int], first: Mapping[str, int]) -> Executable | None:
        """The network of these extents, compiled for more than them if that is possible; None where it is not."""
        found = best(self.networks, extents)
        return found.executable(extents) if found else None


class ShapedExecutable(Executable):
    """The network of one shape, which compiles itself for others when it is called with them.

    What it tells of itself, such as `inputs`, is that of the first shape. Threads may share it.
    """

    def __init__(
        self, first: Executable, declared: OpenShapes, compile_: Compile, ranges: Ranges, lengths: Lengths | None = None
    ) -> None:
        """`first` is the network for the default extents; `ranges` bound some of them.

        A call takes a network of `lengths`, if there is one.
        """
        self.inputs, self.outputs, self.regions = first.inputs, first.outputs, first.regions
        self.kernels, self.calls, self.threads = first.kernels, first.calls, first.threads
        self.constants_bytes, self.working_memory = first.constants_bytes, first.working_memory
        self.target, self.metadata, self.tuning = first.target, first.metadata, first.tuning
        self.workspaces = first.workspaces
        self._first = first
        self._declared = declared
        self._compile_ = compile_
        self._first_shapes = tuple(port.shape for port in first.inputs)
        self._takes_any = any(-1 in shape for shape in self._first_shapes)
        self._ranges = ranges
        self._lengths = lengths or Lengths()
        self._others: KeptShapes[Executable] = KeptShapes()
        self._called: KeptShapes[Executable] = KeptShapes()

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        inputs = self._inputs_of(arrays)
        return self._of(inputs).results(inputs)

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        arrays = self._inputs_of(inputs)
        self._of(arrays).run(arrays, outputs)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        arrays = self._inputs_of(inputs)
        return self._of(arrays).bind(arrays, outputs)

    def library(self, name: str) -> bytes:
        extents = self._extents(self._first_shapes)
        first = self._first
        if isinstance(first, PaddedExecutable) and extents is not None:
            first = self._others.of(self._first_shapes, lambda: self._compile(extents))
        return first.library(name)

    def for_shape(self, extents: Mapping[str, int]) -> Executable:
        known = {port.name: port.shape for port in self.inputs}
        # An extent given for one input holds for all inputs that have its name.
        given = {**named_extents(self._declared, extents), **extents}
        shapes: dict[str, tuple[int, ...]] = {}
        used: set[str] = set()
        for name, declared in self._declared.items():
            keys = [_keys(name, axis, extent) for axis, extent in enumerate(declared)]
            for options in keys:
                used.update([key for key in options if key in extents][:1])
            shapes[name] = tuple(
                next((given[key] for key in options if key in given), extent)
                for options, extent in zip(keys, known[name], strict=True)
            )
        unused = sorted(extents.keys() - used)
        if unused:
            raise InputError(f"extents must be open extents of inputs, but got {', '.join(unused)}")
        return self._for([shapes[port.name] for port in self.inputs])

    def keep(self, shapes: Shapes, executable: Executable) -> None:
        """Know `executable` as the network for inputs of `shapes`."""
        self._others.of(shapes, lambda: executable)

    def __reduce__(self) -> tuple[Any, ...]:
        known = [*self._called.items(), *self._others.items()]
        others = {shapes: one for shapes, one in known if not isinstance(one, PaddedExecutable)}
        return _unpickled, (self._first, self._declared, others, self._ranges, tuple(self._lengths.networks))

    def _compile(self, extents: Mapping[str, int]) -> Executable:
        found = self._compile_(extents)
        found.share_state(self._first)
        return found

    def _inputs_of(self, given: Sequence[object]) -> tuple[Array, ...]:
        check_count("input", len(given), len(self._inputs))
        pairs = zip(self._inputs, given, strict=True)
        return tuple([one if type(one) is np.ndarray else _converted(port, one) for port, one in pairs])

    def _of(self, arrays: Sequence[Array]) -> Executable:
        """The network for arrays of these shapes."""
        shapes = tuple([array.shape for array in arrays])
        if self._takes_any:
            # Of a batch of any size the executable takes all.
            shapes = tuple(map(_known, self._first_shapes, shapes))
        if shapes == self._first_shapes:
            return self._first
        # Most calls have shapes that were checked and compiled before.
        return self._others.find(shapes) or self._called.find(shapes) or self._for(shapes, is_called=True)

    def _for(self, shapes: Sequence[tuple[int, ...]], *, is_called: bool = False) -> Executable:
        """The network for these input shapes; if they do not fit, the first, which raises the error when called."""
        key = tuple(shapes)
        extents = self._extents(key)
        if extents is None or key == self._first_shapes:
            return self._first
        self._check_ranges(key)
        if not is_called or self._others.find(key):
            return self._others.of(key, lambda: self._compile(extents))
        first = self._extents(self._first_shapes) or {}
        return self._called.of(key, lambda: self._lengths.executable(extents, first) or self._compile(extents))

    def _check_ranges(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise `InputError` for an extent that is outside of its range."""
        for port, shape in zip(self.inputs, shapes, strict=True):
            for axis, (extent, declared) in enumerate(zip(shape, self._declared[port.name], strict=True)):
                for key in _keys(port.name, axis, declared):
                    low, high = self._ranges.get(key, (extent, extent))
                    if not low <= extent <= high:
                        raise InputError(f"extent '{key}' must be from {low} to {high}, but got {extent}")

    def _extents(self, shapes: Sequence[tuple[int, ...]]) -> Mapping[str, int] | None:
        """The open extents that arrays of `shapes` have; None where another extent differs.

        Raises `InputError` where an extent that inputs share differs between them.
        """
        found: dict[str, int] = {}
        for port, shape in zip(self.inputs, shapes, strict=True):
            declared = self._declared[port.name]
            if len(shape) != len(declared):
                return None
            for axis, (extent, wanted) in enumerate(zip(shape, declared, strict=True)):
                key = _keys(port.name, axis, wanted)[-1] if isinstance(wanted, str) else ""
                if not key and extent != wanted:
                    return None
                if key and found.setdefault(key, extent) != extent:
                    raise InputError(f"extent '{key}' must be one for all inputs, but got {found[key]} and {extent}")
        return found


def named_extents(declared: OpenShapes, extents: Mapping[str, T]) -> dict[str, T]:
    """The given sizes of inputs' open extents, by the extents' names where they have one."""
    keys = [_keys(name, axis, own) for name, shape in declared.items() for axis, own in enumerate(shape)]
    return {options[-1]: extents[key] for options in keys for key in options if key in extents}


def given_extents(declared: OpenShapes, dims: Mapping[str, int], batch: int) -> Mapping[str, int] | None:
    """Open extents of inputs by their names, from `dims` or, for a first one, `batch`; None where one is missing."""
    found = named_extents(declared, dims)
    for name, shape in declared.items():
        for axis, own in enumerate(shape):
            if isinstance(own, str) and _keys(name, axis, own)[-1] not in found:
                if axis:
                    return None
                found[_keys(name, axis, own)[-1]] = batch
    return found


class BatchShapedExecutable(ShapedExecutable):
    """A network that may compute something else for each batch: which code is for a batch is found when it comes.

    What it tells of itself is that of `first`, but for extents that are not known before a call.
    """

    def __init__(self, first: Executable, declared: OpenShapes, compile_: Compile, check: Callable[[], None]) -> None:
        """`check` raises where it cannot be saved, as a file compiles nothing."""
        super().__init__(first, declared, compile_, {})
        self.inputs = tuple(replace(port, shape=_open(port.shape, declared[port.name])) for port in first.inputs)
        if first.inputs != self.inputs:
            self.outputs = tuple(replace(port, shape=(-1,) * len(port.shape)) for port in first.outputs)
        self._check = check
        self._takes_any = False

    def library(self, name: str) -> bytes:
        self._check()
        return super().library(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Executable.__reduce__(self)


def _converted(port: Port, given: object) -> Array:
    return as_array(f"input '{port.name}'", port, given)


def _known(shape: Sequence[int], found: tuple[int, ...]) -> tuple[int, ...]:
    """`found`, but -1 where `shape` is that."""
    if -1 not in shape or len(found) != len(shape):
        return found
    return tuple(-1 if own == -1 else extent for own, extent in zip(shape, found, strict=True))


def _open(shape: Sequence[int], declared: Sequence[int | str]) -> tuple[int, ...]:
    """`shape` with -1 for extents that are open."""
    return tuple(-1 if isinstance(extent, str) else own for own, extent in zip(shape, declared, strict=True))


def _unpickled(
    first: Executable,
    declared: OpenShapes,
    others: Mapping[Shapes, Executable],
    ranges: Ranges,
    networks: Sequence[PaddedNetwork],
) -> ShapedExecutable:
    """The network of the shapes that were compiled when it was pickled: the model's file may be elsewhere."""

    def refuse(extents: Mapping[str, int]) -> Executable:
        asked = ", ".join(f"{name}={extent}" for name, extent in extents.items())
        raise InputError(f"network must be compiled for {asked} before it is pickled: a copy compiles nothing")

    found = ShapedExecutable(first, declared, refuse, ranges, Lengths(networks))
    for shapes, executable in others.items():
        found.keep(shapes, executable)
    return found


def _keys(name: str, axis: int, extent: int | str) -> tuple[str, ...]:
    """The keys of an open extent: its position and, last, its name if it has one."""
    location = f"{name}:{axis}"
    if isinstance(extent, int):
        return ()
    return (location, extent) if extent else (location,)


# A bounded cache of networks compiled for shapes of inputs; one thread compiles one while the others go on.

Shapes = tuple[tuple[int, ...], ...]

KEPT = 8
"""Number of shapes that are kept; the least recently used one is evicted."""


class KeptShapes(Generic[T]):
    """Compiled networks by the shapes of their inputs.

    Two threads that need the same shape compile it once. A thread that needs a known one does not wait, a signal
    handler may call the executable that it interrupts, and a forked process has everything that was compiled before.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Shapes, T] = OrderedDict()
        self._making: dict[Shapes, CallLock] = {}
        self._lock = CallLock()

    def of(self, shapes: Shapes, make: Callable[[], T]) -> T:
        """The network for `shapes`, made by `make` if it is not known; an exception of `make` is not kept."""
        found = self.find(shapes)
        if found is not None:
            return found
        with self._lock.lock:
            making = self._making.setdefault(shapes, CallLock())
        try:
            with making.lock:
                return self.find(shapes) or self._keep(shapes, make())
        finally:
            with self._lock.lock:
                self._making.pop(shapes, None)

    def items(self) -> Sequence[tuple[Shapes, T]]:
        """All known networks, the most recently used last."""
        with self._lock.lock:
            return tuple(self._known.items())

    def find(self, shapes: Shapes) -> T | None:
        """The network for `shapes`, None where it is not known."""
        with self._lock.lock:
            if shapes in self._known:
                self._known.move_to_end(shapes)
            return self._known.get(shapes)

    def _keep(self, shapes: Shapes, made: T) -> T:
        with self._lock.lock:
            self._known[shapes] = made
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return made
