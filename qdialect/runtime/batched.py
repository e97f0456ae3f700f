"""A network of any batch size, computed by code for a few sizes, the largest first.

So no batch size needs compilation or padding, and the workspace is the same for every size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from qdialect.aot.record import Batch
from qdialect.runtime.base import Array, Executable, check_count, described, empty
from qdialect.runtime.call_arrays import CallArrays
from qdialect.runtime.memory import WorkspacePool
from qdialect.runtime.native import Binding, compiled_region
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import Port

_KNOWN_SIZES = 64
"""Number of batch sizes whose array descriptions are cached; making one takes microseconds."""


class BatchCaller(Protocol):
    """A workspace, and the calls in it."""

    is_spare: bool

    def call(self, starts: Sequence[int], batch: int) -> None:
        """Compute `batch` entries of all input and output arrays, whose addresses are `starts`."""
        ...


def tiles(batch: int, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The blocks of entries that are computed together, (first, number), with numbers from `rows`, descending to 1."""
    first = 0
    for count in rows:
        while batch - first >= count:
            yield first, count
            first += count


class BatchedExecutable(Executable):
    """A network of any batch size; the first extents of inputs and outputs with the batch are -1."""

    batch: Batch
    """Sizes of the batches that its code is for, and which arrays have the batch."""

    def _prepare(self, make: Callable[[], BatchCaller], workspaces: int) -> None:
        """Prepare for up to `workspaces` calls at the same time; `make` raises `CompileError` without memory."""
        self.regions = (compiled_region(self),)
        self._make = make
        self._open = CallArrays(self.inputs, self.outputs)
        self._known: dict[int, CallArrays] = {}
        self._pool = WorkspacePool(make, workspaces)
        self.workspaces = workspaces
        # Fail now if there is not enough memory even for one.
        self._pool.give_back(self._pool.take())

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        inputs, batch = self._inputs_of(arrays)
        outputs = tuple(map(empty, self.ports(batch)[1]))
        self._run(inputs, outputs, batch)
        return outputs

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        arrays, batch = self._inputs_of(inputs)
        self._run(arrays, outputs, batch)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Binding:
        read, batch = self._inputs_of(inputs)
        arrays = self._arrays(batch)
        kept: list[Array] = []
        starts = arrays.starts(read, outputs, kept)
        arrays.check_bindable(read)
        return Binding(read, arrays.views(outputs, len(read)), partial(self._make().call, starts, batch))

    def batch_of(self, inputs: Sequence[object]) -> int:
        """The batch size of `inputs`; raises `InputError` if the first input that has the batch does not fit."""
        return self._inputs_of(inputs)[1]

    def _run(self, inputs: Sequence[Array], outputs: Sequence[object], batch: int) -> None:
        kept: list[Array] = []
        starts = self._arrays(batch).starts(inputs, outputs, kept)
        caller = None
        try:
            caller = self._pool.take()
            caller.call(starts, batch)
        finally:
            self._pool.give_back(caller)

    def _inputs_of(self, given: Sequence[object]) -> tuple[tuple[Array, ...], int]:
        """`given` as arrays, and the batch size of the first that has the batch."""
        check_count("input", len(given), len(self.inputs))
        inputs = self._open.views(given)
        index = next(index for index, factor in enumerate(self.batch.factors[0]) if factor)
        port, factor, found = self.inputs[index], self.batch.factors[0][index], inputs[index]
        if found.ndim != len(port.shape) or found.shape[0] % factor:
            multiple = f", a multiple of {factor} for ?" if factor > 1 else ""
            wanted = f"{described(port.dtype, port.shape)}{multiple}"
            raise InputError(f"input '{port.name}' must be {wanted}, but got {described(found.dtype, found.shape)}")
        return inputs, found.shape[0] // factor

    def _arrays(self, batch: int) -> CallArrays:
        """The arrays of a call with a batch of this size."""
        found = self._known.get(batch)
        if found is None:
            if len(self._known) >= _KNOWN_SIZES:
                self._known = {}
            found = self._known[batch] = CallArrays(*self.ports(batch))
        return found

    def ports(self, batch: int) -> tuple[list[Port], list[Port]]:
        """The inputs and outputs of a batch of this size."""
        inputs, outputs = (
            [
                replace(port, shape=(batch * factor, *port.shape[1:])) if factor else port
                for port, factor in zip(ports, factors, strict=True)
            ]
            for ports, factors in zip((self.inputs, self.outputs), self.batch.factors, strict=True)
        )
        return inputs, outputs
