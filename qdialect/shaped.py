"""A network whose inputs leave extents open: compiled for each shape that it is called with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from qdialect.diagnostics import InputError
from qdialect.runtime.base import Bound, Executable, check_count

if TYPE_CHECKING:
    from qdialect.model_files import OpenShapes

Array = NDArray[Any]
Compile = Callable[[Mapping[str, int]], Executable]
"""Compiles for extents by their names or as ``INPUT:AXIS``."""

KEPT = 8
"""So many shapes are kept beside the first; the one that was not used for the longest time goes."""


class ShapedExecutable(Executable):
    """The network of one shape, which compiles itself for others when it is called with them.

    What it tells of itself, such as `inputs`, is that of the first shape. Threads may share it.
    """

    def __init__(self, first: Executable, declared: OpenShapes, compile_: Compile) -> None:
        """`first` is for the extents that are taken where nobody says others."""
        self.inputs, self.outputs, self.regions = first.inputs, first.outputs, first.regions
        self.kernels, self.calls, self.threads = first.kernels, first.calls, first.threads
        self.constants_bytes, self.working_memory = first.constants_bytes, first.working_memory
        self._first = first
        self._declared = declared
        self._compile = compile_
        self._first_shapes = tuple(port.shape for port in first.inputs)
        self._others: OrderedDict[tuple[tuple[int, ...], ...], Executable] = OrderedDict()
        self._lock = Lock()

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        return self._of(arrays)(*arrays)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._of(inputs).run(inputs, outputs)

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Bound:
        return self._of(inputs).bind(inputs, outputs)

    def save(self, path: str | Path) -> None:
        self._first.save(path)

    def for_shape(self, extents: Mapping[str, int]) -> Executable:
        known = {port.name: port.shape for port in self.inputs}
        shared = self._shared(extents)
        shapes: dict[str, tuple[int, ...]] = {}
        used: set[str] = set()
        for name, declared in self._declared.items():
            keys = [_keys(name, axis, extent) for axis, extent in enumerate(declared)]
            found = [next((key for key in options if key in extents), None) for options in keys]
            used.update(key for key in found if key is not None)
            own = zip(keys, found, known[name], strict=True)
            shapes[name] = tuple(_extent(options, key, extent, extents, shared) for options, key, extent in own)
        unused = sorted(extents.keys() - used)
        if unused:
            raise InputError(f"extents must be open extents of inputs, but got {', '.join(unused)}")
        return self._for([shapes[port.name] for port in self.inputs])

    def _shared(self, extents: Mapping[str, int]) -> Mapping[str, int]:
        """What is said of an extent of one input, by its name: it holds for all inputs that have it."""
        keys = [
            _keys(name, axis, extent)
            for name, declared in self._declared.items()
            for axis, extent in enumerate(declared)
        ]
        return {options[-1]: extents[options[0]] for options in keys if options and options[0] in extents}

    def _of(self, arrays: Sequence[Array]) -> Executable:
        check_count("input", len(arrays), len(self.inputs))
        shapes = tuple(getattr(array, "shape", ()) for array in arrays)
        return self._first if shapes == self._first_shapes else self._for(shapes)

    def _for(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The network for these shapes of inputs; the first where they do not fit, which says so when it is called."""
        key = tuple(shapes)
        extents = self._extents(key)
        if extents is None or key == self._first_shapes:
            return self._first
        with self._lock:
            found = self._others.pop(key, None) or self._compile(extents)
            self._others[key] = found
            if len(self._others) > KEPT:
                self._others.popitem(last=False)
        return found

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


def _extent(
    options: Sequence[str], key: str | None, extent: int, extents: Mapping[str, int], shared: Mapping[str, int]
) -> int:
    """What is said of an extent by `key`, or of another of the same name; `extent` where nothing is."""
    if key is not None:
        return extents[key]
    return shared.get(options[-1], extent) if options else extent


def _keys(name: str, axis: int, extent: int | str) -> tuple[str, ...]:
    """What an open extent can be called: where it is and, where it has one, its own name; the latter comes last."""
    location = f"{name}:{axis}"
    if isinstance(extent, int):
        return ()
    return (location, extent) if extent else (location,)
