"""Arrays in the forms that other packages have them in, as NumPy arrays over the same memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np

from qdialect.diagnostics import InputError
from qdialect.interface import Port
from qdialect.runtime.base import Array, described

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
