"""A compiled network that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import InputError
from qdialect.lowering.pipeline import Lowered, Port
from qdialect.runtime import memory
from qdialect.runtime.jit import Descriptor, MachineCode

Array = NDArray[Any]

_ENTRY = "_mlir_ciface_main"


class Executable:
    """A network as machine code, with its constants and working memory.

    ``executable(image)`` returns the result; `run` writes into arrays of the caller's. Threads may share one, but its
    working memory is one, so that a second call waits for the first: for calls at the same time compile once a thread.
    """

    def __init__(self, lowered: Lowered, allocate: memory.Allocate = memory.allocate) -> None:
        """`lowered` is at phase `llvm`; `allocate` gives the memory for the constants and the working memory."""
        self.inputs: tuple[Port, ...] = lowered.inputs
        """What the network takes: name, shape, dtype, scale and zero point of each."""
        self.outputs: tuple[Port, ...] = lowered.outputs
        """What it returns, likewise."""
        self.kernels: int = lowered.kernels
        """Number of distinct kernels."""
        self.labels: tuple[str, ...] = lowered.labels
        """What each kernel call computes, in order."""
        self.constants_bytes: int = lowered.constants.size
        """Bytes of packed weights, biases, multipliers and tables."""
        self.working_memory: int = lowered.arena_bytes
        """Bytes in which all intermediate values of a call live, reused from call to call."""
        self._slots = [
            *(_Slot("input", port) for port in self.inputs),
            *(_Slot("output", port) for port in self.outputs),
        ]
        self._memory = _filled(lowered.constants, allocate), allocate(_whole(lowered.arena_bytes))
        descriptors = [
            *(slot.descriptor for slot in self._slots),
            *(Descriptor(block.size, block.ctypes.data) for block in self._memory),
        ]
        pointers = [ctypes.c_int64(ctypes.addressof(descriptor)) for descriptor in descriptors]
        self._call = MachineCode(lowered.module).function(_ENTRY).bind(pointers, keep=descriptors)
        self._lock = Lock()

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """The result for `arrays`, one for each input: an array, or a tuple where the network has several outputs.

        Raises `InputError` for arrays of another number, shape or dtype than `inputs` says.
        """
        outputs = tuple(np.empty(port.shape, port.dtype) for port in self.outputs)
        self.run(arrays, outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute on `inputs` and write into `outputs`, arrays of the shapes and dtypes that the ports say.

        An input that is not contiguous is copied; an output must be contiguous and writable, and share no memory with
        another array of the call. Raises `InputError` where an array does not fit; then nothing is written.
        """
        _check_count("input", len(inputs), len(self.inputs))
        _check_count("output", len(outputs), len(self.outputs))
        # Copies must live as long as the call.
        held = [slot.usable(array) for slot, array in zip(self._slots, (*inputs, *outputs), strict=True)]
        starts = [_address(array) for array in held]
        self._check_overlap(starts)
        with self._lock:
            for slot, start in zip(self._slots, starts, strict=True):
                slot.descriptor.point_to(start)
            self._call()

    def _check_overlap(self, starts: Sequence[int]) -> None:
        slots = self._slots
        for j in range(len(self.inputs), len(slots)):
            start, end = starts[j], starts[j] + slots[j].size
            for i in range(j):
                if starts[i] < end and start < starts[i] + slots[i].size:
                    raise InputError(f"{slots[j].title} must not share memory with {slots[i].title}")


class _Slot:
    """An argument of the compiled function: what must be passed, and the descriptor that says where it is."""

    def __init__(self, kind: str, port: Port) -> None:
        self.title = f"{kind} '{port.name}'"
        self.descriptor = Descriptor(math.prod(port.shape))
        self.size = math.prod(port.shape) * port.dtype.itemsize
        self._port = port
        self._is_output = kind == "output"

    def usable(self, array: Array) -> Array:
        """`array`, or a copy of an input that is not contiguous or not aligned.

        Raises `InputError` where it does not fit.
        """
        port = self._port
        if type(array) is not np.ndarray or array.shape != port.shape or array.dtype != port.dtype:
            self._check(array)
        # In NumPy's words: contiguous, aligned and writable; reading needs the first two.
        if array.flags.carray:
            return array
        if self._is_output:
            raise InputError(f"{self.title} must be a contiguous, aligned and writable array")
        return np.require(array, requirements=("C", "A"))

    def _check(self, array: Array) -> None:
        port = self._port
        if not isinstance(cast("object", array), np.ndarray):
            found = type(array).__name__
            raise InputError(f"{self.title} must be an array {_text(port.dtype, port.shape)}, but got {found}")
        if array.shape != port.shape or array.dtype != port.dtype:
            found = _text(array.dtype, array.shape)
            raise InputError(f"{self.title} must be {_text(port.dtype, port.shape)}, but got {found}")


def _filled(content: NDArray[np.uint8], allocate: memory.Allocate) -> NDArray[np.uint8]:
    block = allocate(_whole(content.size))
    block[: content.size] = content
    return block


def _whole(size: int) -> int:
    """`size` rounded up to whole lines, at least one."""
    return max(-(-size // memory.ALIGNMENT), 1) * memory.ALIGNMENT


def _address(array: Array) -> int:
    try:
        # Much faster than `array.ctypes`, but not for a read-only array.
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError):
        return array.ctypes.data


def _check_count(kind: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise InputError(f"network must be called with {wanted} {kind}{'s' * (wanted != 1)}, but got {found}")


def _text(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    # A name does not tell byte orders apart.
    return f"{dtype.name if dtype.isnative else dtype.str}[{', '.join(map(str, shape))}]"
