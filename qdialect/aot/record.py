"""The constant data in which a compiled file describes its network: `qdialect_network` of the C interface.

It holds offsets from its own start and no addresses, so that a loader has nothing to relocate and processes share its
pages. At its end stand details for tools as JSON: the reports of `Executable` need what no caller in C does.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qdialect.aot.network import Batch, Network, Version
from qdialect.diagnostics import LoadError
from qdialect.interface import KernelCall, Port

MAGIC = b"qdialect"
ABI_VERSION = 2
"""Of the C interface. It grows where a caller that was compiled before would be wrong about it."""

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float32")
"""NumPy's names of the element types, in the order of their numbers, which start at 1."""

HAS_SCALE, HAS_ZERO_POINT = 1, 2
"""Bits of `quantization` of a tensor."""

# magic, abi_version, size, input_count, output_count, inputs, outputs, name, details, threads, versions, workspace_size
_NETWORK = struct.Struct("<8s10IQ")
# size, scale, zero_point, quantization, dtype, rank, shape, name, batch
_TENSOR = struct.Struct("<Qdq6I")


class _Tail:
    """What stands behind the tensors: shapes and texts, by their offsets."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.content = bytearray()

    def add(self, data: bytes, alignment: int = 1) -> int:
        """The offset of `data` from the start of the record."""
        self.content.extend(bytes(-len(self.content) % alignment))
        self.content.extend(data)
        return self._start + len(self.content) - len(data)

    def text(self, text: str) -> int:
        """The offset of `text` as UTF-8 that ends with a zero byte."""
        # A name is anything: one that is not Unicode, or has a zero, must not break a caller that reads it.
        return self.add(text.encode(errors="backslashreplace").replace(b"\0", b"\\x00") + b"\0")


def written(network: Network) -> bytes:
    """The record of `network`, little-endian."""
    ports = [*network.inputs, *network.outputs]
    tail = _Tail(_NETWORK.size + _TENSOR.size * len(ports))
    tensors = b"".join(_tensor(port, factor, tail) for port, factor in zip(ports, network.factors, strict=True))
    name, details = tail.text(network.name), tail.text(json.dumps(_tree(network), separators=(",", ":")))
    counts = len(network.inputs), len(network.outputs)
    starts = _NETWORK.size, _NETWORK.size + _TENSOR.size * counts[0]
    size = _NETWORK.size + len(tensors) + len(tail.content)
    numbers = (ABI_VERSION, size, *counts, *starts, name, details, network.threads, len(network.versions))
    return _NETWORK.pack(MAGIC, *numbers, network.workspace_bytes) + tensors + bytes(tail.content)


def size_of(start: bytes) -> int:
    """The bytes of the record that begins with `start`, which are `START_SIZE`; raises `LoadError` for another one."""
    magic, version, size, *_ = _NETWORK.unpack(start)
    if magic != MAGIC:
        raise LoadError("file must describe its network, but what stands there is something else")
    if version != ABI_VERSION:
        raise LoadError(f"file must have version {ABI_VERSION} of the interface, but has version {version}")
    return int(size)


START_SIZE = _NETWORK.size
"""Bytes at the start of a record that tell its size."""


def read(record: bytes) -> Network:
    """The network that a record describes; raises `LoadError` where it is damaged."""
    details = _NETWORK.unpack_from(record)[8]
    try:
        return _network(json.loads(record[details:].rstrip(b"\0")))
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError(f"description of the network is damaged: {type(error).__name__}: {error}") from error


def _tensor(port: Port, factor: int, tail: _Tail) -> bytes:
    shape = tail.add(struct.pack(f"<{len(port.shape)}q", *port.shape), alignment=8)
    quantization = HAS_SCALE * (port.scale is not None) | HAS_ZERO_POINT * (port.zero_point is not None)
    size = math.prod((factor, *port.shape[1:]) if factor else port.shape) * port.dtype.itemsize
    numbers = (quantization, DTYPES.index(port.dtype.name) + 1, len(port.shape), shape, tail.text(port.name), factor)
    return _TENSOR.pack(size, port.scale or 0.0, port.zero_point or 0, *numbers)


def _tree(network: Network) -> Mapping[str, Any]:
    return {
        "name": network.name,
        "threads": network.threads,
        "inputs": [_port_tree(port) for port in network.inputs],
        "outputs": [_port_tree(port) for port in network.outputs],
        "versions": [_version_tree(version) for version in network.versions],
        **({"batch": [network.batch.rows, *network.batch.factors]} if network.batch else {}),
    }


def _port_tree(port: Port) -> Sequence[Any]:
    return [port.name, port.shape, port.dtype.name, port.scale, port.zero_point]


def _version_tree(version: Version) -> Mapping[str, Any]:
    calls = [[call.label, call.kernel, call.names, call.macs, call.bytes_moved] for call in version.calls]
    return {
        "target": version.target,
        "features": version.features,
        "workspace": version.workspace_bytes,
        "constants": version.constants_bytes,
        "calls": calls,
    }


def _network(tree: Mapping[str, Any]) -> Network:
    inputs, outputs = (tuple(_port(*port) for port in tree[kind]) for kind in ("inputs", "outputs"))
    rows, *factors = (tuple(numbers) for numbers in tree.get("batch", [()]))
    batch = Batch(rows, (factors[0], factors[1])) if rows else None
    return Network(tree["name"], inputs, outputs, tree["threads"], tuple(map(_version, tree["versions"])), batch)


def _port(name: str, shape: Sequence[int], dtype: str, scale: float | None, zero_point: int | None) -> Port:
    return Port(name, tuple(shape), np.dtype(dtype), scale, zero_point)


def _version(tree: Mapping[str, Any]) -> Version:
    calls = tuple(KernelCall(label, kernel, tuple(names), *rest) for label, kernel, names, *rest in tree["calls"])
    return Version(tree["target"], tuple(tree["features"]), tree["workspace"], tree["constants"], calls)
