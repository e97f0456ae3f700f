"""The user's values for extents that a model leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from qdialect.frontends.building.checks import Shape
from qdialect.support.diagnostics import ImportModelError, UnusedBatchError
from qdialect.support.options import ImportOptions

Dims = Mapping[str, int]
"""Sizes of open extents, by their name or by ``INPUT:AXIS``."""
NO_DIMS: Dims = MappingProxyType({})
OpenShape = Sequence[int | str]
"""Extents that are known, and names of those that are not; a name may be empty."""


@dataclass
class Extents:
    """Sizes of open extents, by their name or by ``INPUT:AXIS``.

    `batch` is that of a first one that has none, and of others that have its name.

    Raises `ImportModelError` for a batch below 1 and sizes below 0, `InputError` for what is no size.
    """

    batch: int = 1
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    assumed: list[str] = field(default_factory=list[str])
    """Inputs whose first extent is `batch`."""
    _used: set[str] = field(default_factory=set[str])
    _open: dict[str, str] = field(default_factory=dict[str, str])
    """Extents that nothing sets, where they are, and their names."""
    _shared: dict[str, int] = field(default_factory=dict[str, int])
    _batches: set[str] = field(default_factory=set[str])
    """Names of first extents that nothing sets: they are the batch wherever they occur."""
    _known: set[int] = field(default_factory=set[int])
    """First extents that the model or `dims` set."""

    def __post_init__(self) -> None:
        ImportOptions(self.batch, self.dims)
        for name, extent in self.dims.items():
            if extent < 0:
                raise ImportModelError(f"dim '{name}' must be at least 0, but got {extent}")

    def share(self, inputs: Mapping[str, OpenShape]) -> None:
        """Let the size given for an extent of one of `inputs` hold for all extents of its name.

        Raises `ImportModelError` where they are given different sizes.
        """
        for name, declared in inputs.items():
            first = declared[0] if declared else 0
            if isinstance(first, str) and not self.dims.keys() & {f"{name}:0", first}:
                self._batches.add(first)
            for axis, extent in enumerate(declared):
                size = self.dims.get(f"{name}:{axis}")
                if size is None or isinstance(extent, int) or not extent:
                    continue
                if self._shared.setdefault(extent, size) != size:
                    found = f"{self._shared[extent]} and {size}"
                    raise ImportModelError(f"extent '{extent}' must be one for all inputs, but got {found}")

    def shape(self, name: str, declared: OpenShape, known: Dims = NO_DIMS) -> Shape:
        """The shape of the input `name`; `check_used` raises where an extent stays open, which is 1 until then.

        `known` are the sizes of extents by their names, from other inputs.
        """
        return tuple(self._extents(name, declared, known))

    def _extents(self, name: str, declared: OpenShape, known: Mapping[str, int]) -> Iterator[int]:
        for axis, extent in enumerate(declared):
            location = f"{name}:{axis}"
            given = extent if isinstance(extent, int) else self._given(location, extent)
            if given is not None or isinstance(extent, int):
                self._known.update([given or 0] if axis == 0 else [])
                yield given or 0
            elif (size := known.get(extent, self._shared.get(extent))) is not None:
                yield size
            elif axis == 0 or (extent and extent in self._batches):
                self.assumed.extend([name] if axis == 0 else [])
                yield self.batch
            else:
                self._open[f"extent {axis} of input '{name}'"] = extent or location
                yield 1

    def _given(self, location: str, extent: str) -> int | None:
        """The size that `dims` give to an open extent."""
        key = next((key for key in (location, extent) if key in self.dims), None)
        if key is None:
            return None
        self._used.add(key)
        return self.dims[key]

    def check_used(self) -> None:
        """Raise `ImportModelError` for extents that stay open, all at once, and for names that no input has."""
        if self._open:
            names = list(dict.fromkeys(self._open.values()))
            are, be = ("is" if len(held) == 1 else "are" for held in (self._open, names))
            quoted = _listed([f"'{name}'" for name in names])
            how = f"dims must say how much {quoted} {be}"
            options = " ".join(f"--dim {name}=N" for name in names)
            raise ImportModelError(f"{_listed(list(self._open))} {are} open: {how}, as {options} does")
        unused = sorted(set(self.dims) - self._used)
        if unused:
            raise ImportModelError(f"dims must name open extents of inputs, but got {', '.join(unused)}")
        if self.batch not in {1, *self._known} and not self.assumed:
            known = sorted({1, *self._known})
            wanted = f"batch must be {' or '.join(map(str, known))} where inputs leave no first extent open"
            raise UnusedBatchError(f"{wanted}, but got {self.batch}")

    def hints(self) -> list[str]:
        """Hints for the user about a model that was rejected."""
        return [
            f"extent 0 of input '{name}' is open and was taken as {self.batch}: batch, as --batch N does, sets another"
            for name in self.assumed
        ]


def _listed(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
