"""Executables of machine code: how arrays become the addresses of a call."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qdialect.aot.record import Network, Version
from qdialect.runtime import memory
from qdialect.runtime.base import NATIVE, Array, Executable, Region, empty
from qdialect.runtime.call_arrays import CallArrays, address_of
from qdialect.runtime.memory import CallLock, WorkspacePool
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import KernelCall, Port, State
from qdialect.support.limits import exceeded_limit, memory_limit


class NetworkCode(ABC):
    """The machine code of a network, below the level of arrays; many threads may call it at the same time."""

    is_short = False
    """Whether its calls keep the interpreter's lock, as `is_short` tells."""

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

    starts: Mapping[int, Array] = MappingProxyType({})
    """The outputs that a call reads as well, by number, and what they hold before the first call."""

    def _prepare(self, code: NetworkCode, workspaces: int) -> None:
        """Prepare for up to `workspaces` calls of `code` at the same time; `inputs` and `outputs` are set."""
        code.is_short = is_short(self.calls, self.threads)
        self._code = code
        self._arrays = CallArrays(self.inputs, self.outputs)
        # A reference cycle would keep the executable's memory until the cyclic garbage collector runs.
        self._pool = WorkspacePool(partial(_Caller, code, len(self.inputs) + len(self.outputs)), workspaces)
        self.workspaces = workspaces
        # Fail now if there is not enough memory even for one.
        self._pool.give_back(self._pool.take())

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
        bound = self._code.bind(starts, workspace, keep=arrays)
        return Binding(*arrays, bound.call, is_atomic=bound.is_atomic)


# The interpreter itself calls the function in a slot, without a frame of Python's.
_BOUND = "__call__", "inputs", "outputs"


class Binding:
    """A network and the arrays of its calls: ``binding()`` reads the inputs and writes the outputs.

    Nothing is checked, converted or allocated. It has a workspace of its own. A second call in another thread waits for
    the first: it writes the same arrays.
    """

    __slots__ = _BOUND

    if TYPE_CHECKING:

        def __call__(self) -> None:
            """Compute."""

    def __init__(
        self,
        inputs: tuple[Array, ...],
        outputs: tuple[Array, ...],
        call: Callable[[], object],
        *,
        is_atomic: bool = False,
    ) -> None:
        """No other call can begin during one that `is_atomic`."""
        self.inputs = inputs
        """The arrays that a call reads."""
        self.outputs = outputs
        """The arrays that a call writes."""
        object.__setattr__(self, "__call__", call if is_atomic else _one_at_a_time(call))

    def __reduce__(self) -> str:
        raise TypeError("a bound call is of arrays of this process: copy or pickle its executable, and bind that")


def _one_at_a_time(call: Callable[[], object]) -> Callable[[], object]:
    waiting = CallLock()

    def locked_call() -> None:
        with waiting.lock:
            call()

    return locked_call


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


def describe(executable: Executable, network: Network, version: Version) -> None:
    """Set the attributes of `executable` from the description of its network, of which it runs `version`."""
    executable.inputs, executable.outputs, executable.threads = network.inputs, network.outputs, network.threads
    executable.target, executable.calls, executable.metadata = version.target, version.calls, network.metadata
    executable.kernels = len({call.kernel for call in version.calls})
    executable.constants_bytes = version.constants_bytes
    executable.working_memory = version.workspace_bytes
    executable.regions = (compiled_region(executable),)


def starts_of(states: Sequence[State], outputs: Sequence[Port], constants: NDArray[np.uint8]) -> dict[int, Array]:
    """What states hold before the first call, by the numbers of the outputs; it stands among the constants."""
    return {one.output: _start_of(outputs[one.output], one.start, constants) for one in states}


def _start_of(port: Port, start: int, constants: NDArray[np.uint8]) -> Array:
    found = np.zeros(port.shape, port.dtype)
    if start >= 0:
        found.reshape(-1).view(np.uint8)[:] = constants[start : start + found.nbytes]
    return found


def compiled_region(executable: Executable) -> Region:
    """The region of a whole compiled network; its nodes are named by the tensors that they compute."""
    names = dict.fromkeys(name for call in executable.calls for name in call.names)
    products = sum(call.macs for call in executable.calls)
    inputs, outputs = (tuple(port.name for port in ports) for ports in (executable.inputs, executable.outputs))
    return Region(NATIVE, tuple(names), products, inputs, outputs)


def allocated(what: str, size: int, allocate: memory.Allocate = memory.allocate) -> memory.Block:
    """A block of at least `size` bytes, in whole cache lines; raises `CompileError` if there is not enough memory."""
    # `size` rounded up to whole lines, at least one.
    whole = max(-(-size // memory.ALIGNMENT), 1) * memory.ALIGNMENT
    exceeded = exceeded_limit(whole)
    if exceeded is None:
        with contextlib.suppress(MemoryError, OSError, ValueError, OverflowError):
            return allocate(whole)
    allowed = exceeded or memory_limit()
    raise CompileError(f"{what} of a compiled network must have at most {allowed} bytes here, but needs {whole}")


# Calls of machine code with known arguments, which need no conversion: that would cost as much as the call.
#
# A call of a few microseconds keeps the interpreter's lock, as NumPy's small operations do: no other thread, no signal
# handler and no fork comes in between, so that nothing else must be locked.  Other threads wait no longer than for the
# arguments of a call, which take 2 to 3 us.

_PACKED = ctypes.CFUNCTYPE(None), ctypes.PYFUNCTYPE(None)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.PYFUNCTYPE(ctypes.c_int)
_SHORT = 1 << 20
"""Products and bytes moved of a short call at most: 2 us where they are a dense layer's."""
_FUNCTIONS = 16
"""As how many a byte counts where there are no products: it may be of a sine, or sorted."""
# Python without the lock has this function.
_HAS_LOCK: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


def is_short(calls: Sequence[KernelCall], threads: int) -> bool:
    """Whether a network of these kernel calls takes so short that it keeps the interpreter's lock."""
    work = sum(call.macs + call.bytes_moved * (1 if call.macs else _FUNCTIONS) for call in calls)
    return _HAS_LOCK and threads == 1 and work <= _SHORT


class BoundCall:
    """A function and the values of its arguments in one block: calling it again costs no more than the call."""

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Sequence[object],
        values: ctypes.Array[ctypes.c_int64],
        keep: Sequence[object],
        *,
        is_atomic: bool,
    ) -> None:
        self._values = values
        self.is_atomic = is_atomic
        """Whether no other thread runs Python code during a call."""
        call = partial(function, *arguments)
        # It may outlive this object, so it keeps everything that it needs alive.
        call.__dict__["keep"] = (values, *keep)
        self.call: Callable[[], object] = call
        """Call the function; as an attribute, with no frame of Python's in between."""

    def writer(self, count: int) -> Callable[..., None]:
        """A function that replaces the first `count` values by its arguments."""
        return partial(struct.Struct(f"={count}q").pack_into, self._values, 0)


def packed_call(address: int, values: Sequence[int], keep: Sequence[object], *, is_short: bool = False) -> BoundCall:
    """A call of the function at `address`, which takes an array of pointers to its arguments, 64 bits each."""
    block = (ctypes.c_int64 * len(values))(*values)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(block) + 8 * i for i in range(len(values))))
    return BoundCall(_PACKED[is_short](address), [ctypes.byref(pointers)], block, keep, is_atomic=is_short)


def run_call(
    address: int,
    inputs: Sequence[int],
    outputs: Sequence[int],
    workspace: int,
    limits: Sequence[object],
    keep: Sequence[object],
    *,
    is_short: bool = False,
) -> BoundCall:
    """A call of the function at `address`, which takes lists of pointers, a workspace and `limits`, and returns an int.

    Its values are `inputs` and `outputs`; `limits` are read at each call.
    """
    block = (ctypes.c_int64 * max(len(inputs) + len(outputs), 1))(*inputs, *outputs)
    start = ctypes.addressof(block)
    lists = ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(ctypes.c_int64) * len(inputs))
    arguments = [*lists, ctypes.c_void_p(workspace), *limits]
    return BoundCall(_RUN[is_short](address), arguments, block, keep, is_atomic=is_short)
