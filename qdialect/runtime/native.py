"""What executables of machine code have in common: how arrays become the addresses of a call."""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from typing import Any, NoReturn

import numpy as np

from qdialect.diagnostics import CompileError, InputError
from qdialect.interface import Port
from qdialect.limits import exceeded_limit, memory_limit
from qdialect.runtime import memory
from qdialect.runtime.base import NATIVE, Array, Executable, Region, check_array, check_count
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.call_lock import CallLock

_NDARRAY = np.ndarray
# The stubs of Python 3.11 do not know that an array is a buffer.
_CHAR_AT: Callable[[Any], c_char] = c_char.from_buffer


class NativeExecutable(Executable):
    """A network as machine code, which is called with the addresses of arrays.

    Threads may share one, but its working memory is one, so that a second call waits for the first: for calls at the
    same time compile or load once a thread. A signal handler may call what it interrupts, and a forked process may call
    it whatever other threads were doing.
    """

    def _prepare(self) -> None:
        """Make ready for calls: `inputs` and `outputs` are known, and `_bound` can be called."""
        self._slots = [
            *(_Slot("input", port) for port in self.inputs),
            *(_Slot("output", port) for port in self.outputs),
        ]
        self._own = self._bound([0] * len(self._slots))
        self._call, self._point_to = self._own.call, self._own.writer(len(self._slots))
        self._call_lock = CallLock()
        self._interrupted: list[int] = []
        # In the form in which a call takes the least time to go through them.
        self._counts = len(self.inputs), len(self.outputs)
        self._start_of = list(enumerate(slot.start for slot in self._slots))
        self._pairs = [
            (i, j, self._slots[i].size, self._slots[j].size)
            for j in range(len(self.inputs), len(self._slots))
            for i in range(j)
        ]

    @abstractmethod
    def _bound(self, starts: Sequence[int], keep: Sequence[object] = ()) -> BoundCall:
        """A call on the arrays that start there, those of all inputs and outputs; it keeps `keep` alive."""

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        copies: list[Array] = []
        starts = self._starts(inputs, outputs, copies)
        with self._call_lock.lock:
            # Not empty where a signal handler calls while its own thread is here.
            outer, self._interrupted = self._interrupted, starts
            try:
                self._point_to(*starts)
                self._call()
            finally:
                self._interrupted = outer
                if outer:
                    self._point_to(*outer)

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Binding:
        copies: list[Array] = []
        starts = self._starts(inputs, outputs, copies)
        if copies:
            self._refuse_copies(inputs)
        arrays = tuple(inputs), tuple(outputs)
        return Binding(*arrays, self._bound(starts, keep=arrays), self._call_lock)

    def _starts(self, inputs: Sequence[Array], outputs: Sequence[Array], copies: list[Array]) -> list[int]:
        """Where the arrays of a call start; inputs that cannot be read as they are get one in `copies`."""
        if len(inputs) != self._counts[0] or len(outputs) != self._counts[1]:
            check_count("input", len(inputs), self._counts[0])
            check_count("output", len(outputs), self._counts[1])
        arrays = (*inputs, *outputs)
        starts = [start(arrays[index], copies) for index, start in self._start_of]
        for i, j, size_i, size_j in self._pairs:
            if starts[i] < starts[j] + size_j and starts[j] < starts[i] + size_i:
                raise InputError(f"{self._slots[j].title} must not share memory with {self._slots[i].title}")
        return starts

    def _refuse_copies(self, inputs: Sequence[Array]) -> NoReturn:
        unsupported = (i for i, array in enumerate(inputs) if not (array.flags.c_contiguous and array.flags.aligned))
        raise InputError(f"{self._slots[next(unsupported)].title} must be a contiguous and aligned array to be bound")


class Binding:
    """A network and the arrays of its calls: ``binding()`` computes on what the inputs hold and writes the outputs.

    Nothing is checked, converted or allocated. It shares the working memory with its executable, so that a second call
    in another thread waits for the first.
    """

    __slots__ = ("_bound", "_call", "_call_lock", "inputs", "outputs")

    def __init__(
        self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], bound: BoundCall, call_lock: CallLock
    ) -> None:
        self.inputs = inputs
        """The arrays that a call reads."""
        self.outputs = outputs
        """The arrays that a call writes."""
        self._bound = bound
        self._call = bound.call
        self._call_lock = call_lock

    def __call__(self) -> None:
        """Compute."""
        with self._call_lock.lock:
            self._call()


class _Slot:
    """An argument of the compiled function, and what must be passed for it."""

    def __init__(self, kind: str, port: Port) -> None:
        self.title = f"{kind} '{port.name}'"
        self.size = math.prod(port.shape) * port.dtype.itemsize
        self._shape = port.shape
        self._dtype = port.dtype
        # Bits of an address that are not zero where it is not aligned.
        self._odd = port.dtype.alignment - 1
        self._is_output = kind == "output"

    def start(self, array: Array, copies: list[Array]) -> int:
        """Where `array` starts, or a copy of it, put into `copies`; raises `InputError` where it does not fit."""
        if type(array) is not _NDARRAY or array.shape != self._shape or array.dtype != self._dtype:
            check_array(self.title, array, self._shape, self._dtype)
        try:
            # Much faster than `array.ctypes`, and possible only where it is contiguous and writable.
            start = addressof(_CHAR_AT(array))
        except (TypeError, ValueError):
            return self._usable(array, copies).ctypes.data
        return start if not start & self._odd else self._usable(array, copies).ctypes.data

    def _usable(self, array: Array, copies: list[Array]) -> Array:
        # In NumPy's words: contiguous, aligned and writable; reading needs the first two.
        if array.flags.carray:
            return array
        if self._is_output:
            raise InputError(f"{self.title} must be a contiguous, aligned and writable array")
        usable = np.require(array, requirements=("C", "A"))
        if usable is not array:
            copies.append(usable)
        return usable


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
