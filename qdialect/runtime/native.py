"""Executables of machine code: how arrays become the addresses of a call."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from qdialect.runtime import memory
from qdialect.runtime.base import NATIVE, Array, Executable, Region, empty
from qdialect.runtime.call_arrays import CallArrays, address_of
from qdialect.runtime.memory import CallLock, WorkspacePool
from qdialect.support.diagnostics import CompileError
from qdialect.support.limits import exceeded_limit, memory_limit


class NetworkCode(ABC):
    """The machine code of a network, below the level of arrays; many threads may call it at the same time."""

    @abstractmethod
    def workspace(self) -> memory.Block:
        """Memory for one call; raises `CompileError` if there is not enough."""

    @abstractmethod
    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        """A call on all input and output arrays, whose addresses are `starts`; it keeps `keep` alive."""


class NativeExecutable(Executable):
    """A network as machine code, which is called with the addresses of arrays.

    One thread for each workspace may call it at the same time; more wait. A signal handler may call the executable that
    it interrupts, and a forked process may call it whatever other threads were doing.
    """

    def _prepare(self, code: NetworkCode, workspaces: int) -> None:
        """Prepare for up to `workspaces` calls of `code` at the same time; `inputs` and `outputs` are set."""
        self._code = code
        self._arrays = CallArrays(self.inputs, self.outputs)
        # A reference cycle would keep the executable's memory until the cyclic garbage collector runs.
        self._pool = WorkspacePool(partial(_Caller, code, len(self.inputs) + len(self.outputs)), workspaces)
        # Fail now if there is not enough memory even for one.
        self._pool.give_back(self._pool.take())

    @property
    def workspaces(self) -> int:
        """The number of calls that may run at the same time."""
        return self._pool.limit

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        kept: list[Array] = []
        starts = self._arrays.starts_of_inputs(arrays, kept)
        outputs = tuple(map(empty, self._outputs))
        starts.extend(map(address_of, outputs))
        self.run_at(starts)
        return outputs

    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        kept: list[Array] = []
        self.run_at(self._arrays.starts(inputs, outputs, kept))

    def run_at(self, starts: Sequence[int]) -> None:
        """Compute on all input and output arrays, whose addresses are `starts`, without checks."""
        caller = None
        try:
            caller = self._pool.take()
            caller.point_to(*starts)
            caller.call()
        finally:
            self._pool.give_back(caller)

    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Binding:
        return self._bind_in(self._code.workspace(), inputs, outputs)

    def _bind_in(self, workspace: memory.Block, inputs: Sequence[object], outputs: Sequence[object]) -> Binding:
        kept: list[Array] = []
        starts = self._arrays.starts(inputs, outputs, kept)
        arrays = self._arrays.views(inputs), self._arrays.views(outputs, len(inputs))
        self._arrays.check_bindable(arrays[0])
        return Binding(*arrays, self._code.bind(starts, workspace, keep=arrays).call)


class Binding:
    """A network and the arrays of its calls: ``binding()`` reads the inputs and writes the outputs.

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
    """A workspace, and a call in it."""

    __slots__ = ("__weakref__", "call", "is_spare", "point_to")

    def __init__(self, code: NetworkCode, count: int) -> None:
        workspace = code.workspace()
        bound = code.bind([0] * count, workspace, keep=(workspace,))
        self.call = bound.call
        self.point_to = bound.writer(count)
        """Set the addresses of the arrays of the next call."""
        self.is_spare = False


def compiled_region(executable: Executable) -> Region:
    """The region of a whole compiled network; its nodes are named by the tensors that they compute."""
    names = dict.fromkeys(name for call in executable.calls for name in call.names)
    products = sum(call.macs for call in executable.calls)
    inputs, outputs = (tuple(port.name for port in ports) for ports in (executable.inputs, executable.outputs))
    return Region(NATIVE, tuple(names), products, inputs, outputs)


def allocated(what: str, size: int, allocate: memory.Allocate = memory.allocate) -> memory.Block:
    """A block of at least `size` bytes, in whole cache lines; raises `CompileError` if there is not enough memory."""
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


# Calls of machine code with known arguments, which need no conversion: that would cost as much as the call.

_PACKED = ctypes.CFUNCTYPE(None)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int)


class BoundCall:
    """A function and the values of its arguments in one block: calling it again costs no more than the call."""

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Sequence[object],
        values: ctypes.Array[ctypes.c_int64],
        keep: Sequence[object],
    ) -> None:
        self._values = values
        call = partial(function, *arguments)
        # It may outlive this object, so it keeps everything that it needs alive.
        call.__dict__["keep"] = (values, *keep)
        self.call: Callable[[], object] = call
        """Call the function, without the interpreter's lock; as an attribute, with no frame of Python's in between."""

    def writer(self, count: int) -> Callable[..., None]:
        """A function that replaces the first `count` values by its arguments."""
        return partial(struct.Struct(f"={count}q").pack_into, self._values, 0)


def packed_call(address: int, values: Sequence[int], keep: Sequence[object]) -> BoundCall:
    """A call of the function at `address`, which takes an array of pointers to its arguments, 64 bits each."""
    block = (ctypes.c_int64 * len(values))(*values)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(block) + 8 * i for i in range(len(values))))
    return BoundCall(_PACKED(address), [ctypes.byref(pointers)], block, keep)


def run_call(
    address: int,
    inputs: Sequence[int],
    outputs: Sequence[int],
    workspace: int,
    limits: Sequence[object],
    keep: Sequence[object],
) -> BoundCall:
    """A call of the function at `address`, which takes lists of pointers, a workspace and `limits`, and returns an int.

    Its values are `inputs` and `outputs`; `limits` are read at each call.
    """
    block = (ctypes.c_int64 * max(len(inputs) + len(outputs), 1))(*inputs, *outputs)
    start = ctypes.addressof(block)
    lists = ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(ctypes.c_int64) * len(inputs))
    return BoundCall(_RUN(address), [*lists, ctypes.c_void_p(workspace), *limits], block, keep)
