"""The interface of a compiled network for its callers, and its encoding as constant data for callers in C."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Port:
    """An input or output of a network; scale and zero point where it is quantized."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class State:
    """What a network keeps from call to call: an array that a call reads and writes, one of the outputs of `main`."""

    argument: int
    """Which argument of the module's function it is."""
    output: int
    """Which output."""
    start: int
    """Where it stands among the constants what it holds before the first call, or -1 for zeros."""


@dataclass(frozen=True)
class Tunable:
    """A kernel whose code can be written in several ways, all with the same results."""

    kernel: str
    """A description by everything that its speed depends on: kernels of equal descriptions are tuned as one."""
    own: str
    """The cost model's choice."""
    candidates: tuple[str, ...]
    """The variants that the model ranks next, the best first."""
    variant: str = ""
    """The one of `candidates` that this code is; empty for what the model chose."""


@dataclass(frozen=True)
class KernelCall:
    """A call as it is reported: what it computes, by which kernel, and the names of the model's nodes."""

    label: str
    kernel: int
    """The number of the first call that runs its kernel."""
    names: tuple[str, ...]
    macs: int = 0
    """Products that it sums up, those with padding included."""
    bytes_moved: int = 0
    """Size of what it reads and of what it writes, constants included."""
    tunable: Tunable | None = None
    """How its kernel can be written, where the network was lowered to be tuned."""


KERNEL = "kernel_"
"""How the names of the functions of kernels begin."""

_NO_SYMBOL = re.compile(r"[^A-Za-z0-9]+")
# Of a node's name in that of a function.
_LONGEST_NODE = 60


def kernel_names(calls: Sequence[KernelCall]) -> tuple[str, ...]:
    """The function of the kernel of each of a network's calls, by which all tools call it, as in ``kernel_3_conv1``.

    It is named after the first call that runs it: by its number, and its node where that has a name.
    """
    nodes = [_NO_SYMBOL.sub("_", _node(call)).strip("_")[-_LONGEST_NODE:].strip("_") for call in calls]
    return tuple(f"{KERNEL}{call.kernel}{nodes[call.kernel] and f'_{nodes[call.kernel]}'}" for call in calls)


def node_names(calls: Sequence[KernelCall]) -> tuple[str, ...]:
    """The first node of each call, without the folders of names that all have in common; else what it computes."""
    nodes = [_node(call) for call in calls]
    named = [node for node in nodes if node] or [""]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(named), max(named), strict=False))
    start = "".join(one for one, _ in same).rfind("/") + 1
    return tuple(node[start:] or call.label for node, call in zip(nodes, calls, strict=True))


def _node(call: KernelCall) -> str:
    # Converters join the names of nodes that they have fused.
    return call.names[0].split(";", 1)[0] if call.names else ""


# Constant data that describes something to callers in C: structures with offsets from their own start.
#
# It holds no addresses, so that a loader has nothing to relocate and processes share its pages.

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "float16", "bfloat16")
"""NumPy's names of the element types, in the order of their numbers, which start at 1."""

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
"""That of arrays, which NumPy itself lacks."""

HAS_SCALE, HAS_ZERO_POINT = 1, 2
"""Bits of `quantization` of a tensor."""

TENSOR = struct.Struct("<Qdq6I")
"""Size, scale, zero point, quantization, dtype, rank, shape, name, batch: `qdialect_tensor` of the C interface."""

_EXTENT = struct.Struct("<q")


class Tail:
    """The data after the structures: arrays and texts, by their offsets."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.content = bytearray()

    def add(self, data: bytes, alignment: int = 1) -> int:
        """The offset of `data` from the start of the record."""
        self.content.extend(bytes(-(self._start + len(self.content)) % alignment))
        self.content.extend(data)
        return self._start + len(self.content) - len(data)

    def text(self, text: str) -> int:
        """The offset of `text` as UTF-8 that ends with a zero byte."""
        # A name is anything: one that is not Unicode, or has a zero, must not break a caller that reads it.
        return self.add(text.encode(errors="backslashreplace").replace(b"\0", b"\\x00") + b"\0")


def tensor(port: Port, tail: Tail, factor: int = 0) -> bytes:
    """An input or output as a structure; its shape and name stand in `tail`.

    With a batch, `factor` elements of the first dimension belong to an entry, and the size is that of an entry.
    """
    shape = tail.add(struct.pack(f"<{len(port.shape)}q", *port.shape), alignment=8)
    quantization = HAS_SCALE * (port.scale is not None) | HAS_ZERO_POINT * (port.zero_point is not None)
    size = math.prod((factor, *port.shape[1:]) if factor else port.shape) * port.dtype.itemsize
    numbers = (quantization, DTYPES.index(port.dtype.name) + 1, len(port.shape), shape, tail.text(port.name), factor)
    return TENSOR.pack(size, port.scale or 0.0, port.zero_point or 0, *numbers)


def port_at(record: bytes, offset: int) -> Port:
    """The input or output whose structure stands at `offset`; raises `struct.error` and `ValueError` for damage."""
    _, scale, zero_point, quantization, dtype, rank, shape, name, _ = TENSOR.unpack_from(record, offset)
    extents = tuple(int(_EXTENT.unpack_from(record, shape + 8 * axis)[0]) for axis in range(rank))
    return Port(
        text_at(record, name),
        extents,
        np.dtype(DTYPES[int(dtype) - 1]),
        scale if quantization & HAS_SCALE else None,
        zero_point if quantization & HAS_ZERO_POINT else None,
    )


def text_at(record: bytes, offset: int) -> str:
    """The text that `Tail.text` put at `offset`; raises `ValueError` where it has no end."""
    return record[offset : record.index(b"\0", offset)].decode(errors="replace")
