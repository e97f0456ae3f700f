"""The arrays of a call: their forms, which are rejected, which are copied, and the addresses of the others."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from qdialect.runtime.base import Array, check_array, check_count, check_writable, described
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import BFLOAT16, Port

_NDARRAY = np.ndarray
_FEW = 8
# The stubs of Python 3.11 do not know that an array is a buffer.
_CHAR_AT: Callable[[Any], c_char] = c_char.from_buffer


_Form = tuple[tuple[int, ...], np.dtype[Any], int, Callable[[Any, list[Array]], int]]
"""Shape and dtype of an array, the bits of its address that alignment makes zero, and its address otherwise."""


class CallArrays:
    """Checks and addresses of the arrays of a call: those of `inputs` and, after them, those of `outputs`."""

    def __init__(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        slots = [*(_Slot("input", port) for port in inputs), *(_Slot("output", port) for port in outputs)]
        self._counts = len(inputs), len(outputs)
        self._slots = slots
        # In the form that a call iterates fastest.
        self._forms = [slot.form for slot in slots]
        self._input_forms = self._forms[: len(inputs)]
        self._sizes = sizes = [slot.size for slot in slots]
        # Of few arrays each output is compared with all before it, which is faster than an order.
        is_few = len(slots) <= _FEW
        found = ((i, j) for j in range(len(inputs), len(slots)) for i in range(j) if is_few and sizes[i] and sizes[j])
        self._pairs = [(i, j, sizes[i], sizes[j]) for i, j in found] if is_few else None

    def starts(self, inputs: Sequence[object], outputs: Sequence[object], kept: list[Array]) -> list[int]:
        """The addresses of the arrays of a call; those that must live until its end are put into `kept`.

        These are copies of inputs that cannot be read in place, and arrays over the memory of other objects.
        Raises `InputError` for arrays that do not fit, and for an output that shares memory with another array.
        """
        try:
            is_right = len(inputs) == self._counts[0] and len(outputs) == self._counts[1]
        except TypeError as error:
            raise InputError(f"inputs and outputs must be sequences of arrays: {error}") from error
        if not is_right:
            check_count("input", len(inputs), self._counts[0])
            check_count("output", len(outputs), self._counts[1])
        starts = _starts((*inputs, *outputs), self._forms, kept)
        if self._pairs is None:
            self._check_apart(starts)
            return starts
        for i, j, size_i, size_j in self._pairs:
            if starts[i] < starts[j] + size_j and starts[j] < starts[i] + size_i:
                raise self._shared(i, j)
        return starts

    def _shared(self, first: int, second: int) -> InputError:
        return InputError(f"{self._slots[second].title} must not share memory with {self._slots[first].title}")

    def _check_apart(self, starts: Sequence[int]) -> None:
        """Raise `InputError` for an output that begins before the end of another array, in the order of addresses."""
        sizes, first = self._sizes, self._counts[0]
        # The end, and the number, of the array that reaches furthest so far, and of such an output.
        end = output_end = last = last_output = -1
        for index in sorted(range(len(starts)), key=starts.__getitem__):
            start = starts[index]
            if start < (end if index >= first else output_end) and sizes[index]:
                raise self._shared(*sorted((index, last if index >= first else last_output)))
            reach = start + sizes[index]
            if reach > end:
                end, last = reach, index
            if index >= first and reach > output_end:
                output_end, last_output = reach, index

    def starts_of_inputs(self, inputs: Sequence[object], kept: list[Array]) -> list[int]:
        """The same for the inputs of a call whose outputs are new arrays."""
        if len(inputs) != self._counts[0]:
            check_count("input", len(inputs), self._counts[0])
        return _starts(inputs, self._input_forms, kept)

    def check_bindable(self, inputs: Sequence[Array]) -> None:
        """Raise `InputError` where one of `inputs` would be copied: the copy would not show later changes."""
        for slot, array in zip(self._slots, inputs, strict=False):
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise InputError(f"{slot.title} must be a contiguous and aligned array to be bound")

    def views(self, arrays: Sequence[object], first: int = 0) -> tuple[Array, ...]:
        """Arrays over the memory of objects, which are those from number `first` on."""
        return tuple(slot.view(one) for slot, one in zip(self._slots[first:], arrays, strict=False))


def _starts(arrays: Sequence[object], forms: Sequence[_Form], kept: list[Array]) -> list[int]:
    """The addresses of arrays: of those of the usual form at once, without a call for each."""
    starts: list[int] = []
    for array, (shape, dtype, odd, start) in zip(arrays, forms, strict=True):
        if type(array) is _NDARRAY and array.shape == shape and array.dtype is dtype:
            try:
                # Much faster than `array.ctypes`, and possible only where it is contiguous and writable.
                found = addressof(_CHAR_AT(array))
            except (TypeError, ValueError):
                found = None
            if found is not None and not found & odd:
                starts.append(found)
                continue
        starts.append(start(array, kept))
    return starts


def address_of(array: Array) -> int:
    """The address of a new array's memory, by the fastest way."""
    try:
        return addressof(_CHAR_AT(array))
    except ValueError:
        # An array without elements has no buffer.
        return array.ctypes.data


class _Slot:
    """An argument of the compiled function, and the arrays that it takes."""

    def __init__(self, kind: str, port: Port) -> None:
        self.title = f"{kind} '{port.name}'"
        self.size = math.prod(port.shape) * port.dtype.itemsize
        self._port = port
        self._shape = port.shape
        self._dtype = port.dtype
        self._is_output = kind == "output"

    @property
    def form(self) -> _Form:
        """What `_starts` takes at once, and `start` for everything else."""
        return self._shape, self._dtype, self._dtype.alignment - 1, self.start

    def start(self, array: Any, kept: list[Array]) -> int:
        """The address of `array`, or of a copy, put into `kept`; raises `InputError` if the array does not fit."""
        if type(array) is not _NDARRAY:
            array = self.view(array)
            kept.append(array)
        if array.shape != self._shape or array.dtype != self._dtype:
            check_array(self.title, array, self._shape, self._dtype)
        return self._usable(array, kept).ctypes.data

    def view(self, array: object) -> Array:
        """An array over the memory of an object."""
        return as_array(self.title, self._port, array)

    def _usable(self, array: Array, kept: list[Array]) -> Array:
        # In NumPy's words: contiguous, aligned and writable; reading needs the first two.
        if array.flags.carray:
            return array
        if self._is_output:
            check_writable(self.title, array)
        usable = np.require(array, requirements=("C", "A"))
        if usable is not array:
            kept.append(usable)
        return usable


# The arrays of a call that is no single function of machine code.


@dataclass(frozen=True)
class BoundArrays:
    """A network and the arrays of its calls."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    write: Callable[[Sequence[Array], Sequence[Array]], None]
    """Computes on the first and writes into the second."""

    def __call__(self) -> None:
        self.write(self.inputs, self.outputs)


def fitting(kind: str, ports: Sequence[Port], given: Sequence[object]) -> tuple[Array, ...]:
    """`given` as arrays of `ports`, which are of a `kind`; raises `InputError` where one does not fit."""
    check_count(kind, len(given), len(ports))
    titles = [f"{kind} '{port.name}'" for port in ports]
    arrays = tuple(as_array(title, port, one) for title, port, one in zip(titles, ports, given, strict=True))
    for title, port, array in zip(titles, ports, arrays, strict=True):
        if kind == "output" and min(port.shape, default=0) < 0:
            raise InputError(f"{title} has a shape that is known after a call alone: call the network instead")
        check_array(title, array, port.shape, port.dtype)
    return arrays


def check_outputs(ports: Sequence[Port], outputs: Sequence[Array], inputs: Sequence[Array]) -> None:
    """Raise `InputError` for an output that cannot be written as it is, or shares memory with another array."""
    for index, (port, array) in enumerate(zip(ports, outputs, strict=True)):
        check_writable(f"output '{port.name}'", array)
        if any(np.may_share_memory(array, other) for other in (*inputs, *outputs[:index])):
            raise InputError(f"output '{port.name}' must not share memory with another array of the call")


# Converts arrays of other packages to NumPy arrays over the same memory.

_CPU_DEVICES = (1, 3)
"""Of DLPack, ``DLDeviceType``: memory of the CPU, and memory that is pinned for a GPU."""
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed memory", 14: "oneAPI"}


class _Exporter(Protocol):
    def __dlpack_device__(self) -> tuple[int, int]: ...


def as_array(title: str, port: Port, found: object) -> Array:
    """`found`, which messages call `title`, as an array of its own memory, for `port`.

    It is a NumPy array, a tensor of PyTorch on the CPU, or an object with ``__array_interface__``, DLPack or the buffer
    protocol, tried in this order. Shape and dtype are not checked. Raises `InputError` for anything else and for memory
    of another device.
    """
    if isinstance(found, np.ndarray):
        return cast("Array", found)
    wanted = f"{title} must be an array {described(port.dtype, port.shape)}"
    if is_tensor(found):
        return _of_tensor(wanted, found)
    try:
        return _reader(wanted, found)(found)
    except (TypeError, ValueError, BufferError, RuntimeError, AttributeError) as error:
        raise InputError(f"{wanted}, but got {_named(found)} that NumPy cannot read: {error}") from error


def is_tensor(found: object) -> bool:
    """Whether `found` is a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(found, torch.Tensor)


def _of_tensor(wanted: str, tensor: Any) -> Array:
    if tensor.device.type != "cpu":
        raise InputError(f"{wanted} on the CPU, but got a tensor on {tensor.device}")
    if str(tensor.dtype) == "torch.bfloat16":
        return tensor.detach().contiguous().view(sys.modules["torch"].int16).numpy().view(BFLOAT16)
    try:
        return tensor.detach().numpy()
    except (TypeError, RuntimeError) as error:
        what = f"a tensor of {tensor.dtype} and {tensor.layout}"
        raise InputError(f"{wanted}, but got {what} that NumPy cannot read: {error}") from error


def _reader(wanted: str, found: object) -> Callable[[Any], Array]:
    if hasattr(found, "__array_interface__"):
        return np.asarray
    if hasattr(found, "__dlpack__") and hasattr(found, "__dlpack_device__"):
        kind, number = cast("_Exporter", found).__dlpack_device__()
        if kind not in _CPU_DEVICES:
            raise InputError(f"{wanted} on the CPU, but got {_named(found)} on {_device(kind, number)}")
        return np.from_dlpack
    try:
        memoryview(cast("Any", found)).release()
    except TypeError:
        raise InputError(f"{wanted}, but got {type(found).__name__}") from None
    return _of_buffer


def _of_buffer(found: Any) -> Array:
    # NumPy takes bytes for one string.
    return np.asarray(memoryview(found))


def _device(kind: int, number: int) -> str:
    return f"{_DEVICES.get(kind, f'device type {kind} of DLPack')}:{number}"


def _named(found: object) -> str:
    return f"an object of {type(found).__name__}"
