"""What executables of machine code have in common: how arrays become the addresses of a call."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from qdialect.diagnostics import CompileError
from qdialect.limits import exceeded_limit, memory_limit
from qdialect.runtime import memory
from qdialect.runtime.base import NATIVE, Array, Executable, Region, empty
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.call_arrays import CallArrays, address_of
from qdialect.runtime.call_lock import CallLock
from qdialect.runtime.workspace_pool import WorkspacePool


class NetworkCode(ABC):
    """The machine code of a network, which knows nothing of arrays; many threads may call it at the same time."""

    @abstractmethod
    def workspace(self) -> memory.Block:
        """Memory for one call; raises `CompileError` where the machine does not have it."""

    @abstractmethod
    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        """A call on the arrays that start there, those of all inputs and outputs; it keeps `keep` alive."""


class NativeExecutable(Executable):
    """A network as machine code, which is called with the addresses of arrays.

    As many threads may call one at the same time as it may have workspaces; more wait. A signal handler may call what
    it interrupts, and a forked process may call it whatever other threads were doing.
    """

    def _prepare(self, code: NetworkCode, workspaces: int) -> None:
        """Make ready for calls of `code`, so many at the same time; `inputs` and `outputs` are known."""
        self._code = code
        self._arrays = CallArrays(self.inputs, self.outputs)
        # What an executable holds must not hold it: its memory would stay until the next search for garbage.
        self._pool = WorkspacePool(partial(_Caller, code, len(self.inputs) + len(self.outputs)), workspaces)
        # That there is memory for one of them is told now.
        self._pool.give_back(self._pool.take())

    @property
    def workspaces(self) -> int:
        """How many calls may run at the same time."""
        return self._pool.limit

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        kept: list[Array] = []
        starts = self._arrays.starts_of_inputs(arrays, kept)
        outputs = tuple(map(empty, self.outputs))
        starts.extend(map(address_of, outputs))
        self.run_at(starts)
        return outputs

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        kept: list[Array] = []
        self.run_at(self._arrays.starts(inputs, outputs, kept))

    def run_at(self, starts: Sequence[int]) -> None:
        """Compute on the arrays that start there, those of all inputs and outputs, of which nothing is checked."""
        caller = None
        try:
            caller = self._pool.take()
            caller.point_to(*starts)
            caller.call()
        finally:
            self._pool.give_back(caller)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Binding:
        kept: list[Array] = []
        starts = self._arrays.starts(inputs, outputs, kept)
        arrays = self._arrays.views(inputs), self._arrays.views(outputs, len(inputs))
        self._arrays.check_bindable(arrays[0])
        return Binding(*arrays, self._code.bind(starts, self._code.workspace(), keep=arrays).call)


class Binding:
    """A network and the arrays of its calls: ``binding()`` computes on what the inputs hold and writes the outputs.

    Nothing is checked, converted or allocated. It has a workspace of its own. A second call in another thread waits for
    the first: it writes the same arrays.
    """

    __slots__ = ("_call", "_call_lock", "inputs", "outputs")

    def __init__(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], call: Callable[[], object]) -> None:
        self.inputs = inputs
        """The arrays that a call reads."""
        self.outputs = outputs
        """The arrays that a call writes."""
        self._call = call
        self._call_lock = CallLock()

    def __call__(self) -> None:
        """Compute."""
        with self._call_lock.lock:
            self._call()

    def __reduce__(self) -> str:
        raise TypeError("a bound call is of arrays of this process: copy or pickle its executable, and bind that")


class _Caller:
    """A workspace, and a call that works in it."""

    __slots__ = ("__weakref__", "call", "is_spare", "point_to")

    def __init__(self, code: NetworkCode, count: int) -> None:
        workspace = code.workspace()
        bound = code.bind([0] * count, workspace, keep=(workspace,))
        self.call = bound.call
        self.point_to = bound.writer(count)
        """Say where the arrays of the next call start."""
        self.is_spare = False


def compiled_region(executable: Executable) -> Region:
    """All of a compiled network; nodes are told by the names of the tensors that they compute."""
    names = dict.fromkeys(name for call in executable.calls for name in call.names)
    products = sum(call.macs for call in executable.calls)
    inputs, outputs = (tuple(port.name for port in ports) for ports in (executable.inputs, executable.outputs))
    return Region(NATIVE, tuple(names), products, inputs, outputs)


def allocated(what: str, size: int, allocate: memory.Allocate = memory.allocate) -> memory.Block:
    """A block of at least `size` bytes and of whole lines; raises `CompileError` where the machine cannot have it."""
    whole = _whole(size)
    exceeded = exceeded_limit(whole)
    if exceeded is None:
        with contextlib.suppress(MemoryError, OSError, ValueError, OverflowError):
            return allocate(whole)
    allowed = exceeded or memory_limit()
    raise CompileError(f"{what} of a compiled network must have at most {allowed} bytes here, but needs {whole}")


def _whole(size: int) -> int:
    """`size` rounded up to whole lines, at least one."""
    return max(-(-size // memory.ALIGNMENT), 1) * memory.ALIGNMENT
