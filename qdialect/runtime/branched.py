"""A network whose If nodes choose at run time: one network for each value of their condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from qdialect.runtime.base import Array, Bound, CallTime, Executable, check_count
from qdialect.runtime.call_arrays import as_array
from qdialect.support.diagnostics import InputError, LoadError
from qdialect.support.interface import Port

ARCHIVE = b"PK\3\4"
"""The first bytes of a saved network with branches."""
_FORM, _CONDITION, _BRANCHES = "branches.json", "condition", ("false", "true")
# Before everything else in an archive, so that the same network gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


class BranchedExecutable(Executable):
    """Two networks, one of which computes a call.

    What it tells of its code is that of all its networks together.
    """

    def __init__(self, condition: str | Executable, branches: Sequence[Executable]) -> None:
        """`condition` is the name of an input, or what computes it; `branches` are for false and true.

        Their outputs must have the same ranks.
        """
        first, second = branches
        computed = [] if isinstance(condition, str) else [condition]
        parts = (*computed, *branches)
        self.inputs = first.inputs
        self.outputs = tuple(map(_merged, first.outputs, second.outputs))
        self.target, self.threads, self.metadata = first.target, first.threads, first.metadata
        self._describe_parts(parts)
        self.regions = tuple(region for one in parts for region in one.regions)
        self.is_float32 = all(one.is_float32 for one in branches)
        self._condition = condition
        self.branches: tuple[Executable, Executable] = (first, second)
        """The networks for a condition that is false, and for one that is true."""
        self._index = next((i for i, port in enumerate(self.inputs) if port.name == condition), 0)
        self.workspaces = min(one.workspaces for one in parts)

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        return self._chosen(arrays).results(arrays)

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        self._chosen(inputs).run(inputs, outputs)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        return _BranchedCall(self._chosen, inputs, outputs)

    def library(self, name: str) -> bytes:
        """An archive of the libraries of all networks, which only `qdialect.load` reads."""
        condition = self._condition
        content = BytesIO()
        with ZipFile(content, "w") as archive:
            form = {"input": condition} if isinstance(condition, str) else {}
            parts = {} if isinstance(condition, str) else {_CONDITION: condition}
            archive.writestr(_entry(_FORM), json.dumps(form))
            for part, one in (parts | dict(zip(_BRANCHES, self.branches, strict=True))).items():
                archive.writestr(_entry(part), one.library(name))
        return content.getvalue()

    def for_shape(self, extents: Any) -> Executable:
        condition = self._condition
        known = condition if isinstance(condition, str) else condition.for_shape(extents)
        return BranchedExecutable(known, [one.for_shape(extents) for one in self.branches])

    def profile(self) -> tuple[CallTime, ...]:
        raise InputError("network must be compiled for one branch, by the option 'branches', to be profiled")

    def _chosen(self, arrays: Sequence[object]) -> Executable:
        """The network of the branch for these inputs; raises `InputError` for a condition that does not fit."""
        check_count("input", len(arrays), len(self.inputs))
        if isinstance(self._condition, str):
            port = self.inputs[self._index]
            value = as_array(f"input '{port.name}'", port, arrays[self._index])
        else:
            (value,) = self._condition.results(arrays)
        # Another shape than that of one condition is refused by the network.
        return self.branches[bool(value.ravel()[:1].any())]

    def __reduce__(self) -> tuple[Any, ...]:
        return BranchedExecutable, (self._condition, self.branches)


def _merged(first: Port, second: Port) -> Port:
    """An output of both branches; -1 is an extent in which they differ."""
    shape = tuple(own if own == other else -1 for own, other in zip(first.shape, second.shape, strict=True))
    return replace(first, shape=shape)


class _BranchedCall:
    """A call on arrays that are known, which are bound to each branch when it is first taken."""

    def __init__(
        self, choose: Callable[[Sequence[object]], Executable], inputs: Sequence[object], outputs: Sequence[object]
    ) -> None:
        self._choose, self._given, self._bound = choose, (inputs, outputs), dict[Executable, Bound]()
        first = self._of()
        self.inputs, self.outputs = first.inputs, first.outputs

    def __call__(self) -> None:
        self._of()()

    def _of(self) -> Bound:
        chosen = self._choose(self._given[0])
        if chosen not in self._bound:
            self._bound[chosen] = chosen.bind(*self._given)
        return self._bound[chosen]


# Saved networks.


def from_archive(content: bytes, load: Callable[[bytes], Executable]) -> BranchedExecutable:
    """A network of `BranchedExecutable.library`; `load` loads its parts.  Raises `LoadError` for anything else."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            form: dict[str, str] = json.loads(archive.read(_FORM))
            branches = [load(archive.read(name)) for name in _BRANCHES]
            condition = form["input"] if "input" in form else load(archive.read(_CONDITION))
        return BranchedExecutable(condition, branches)
    except (BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise LoadError(f"file is damaged: it is no archive of a network with branches: {error}") from error


def _entry(name: str) -> Any:
    from zipfile import ZipInfo

    return ZipInfo(name, _DATE)
