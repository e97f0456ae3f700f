"""The constant data in which a compiled file describes its network: `qdialect_network` of the C interface.

It holds offsets from its own start and no addresses, so that a loader has nothing to relocate and processes share its
pages. At its end stand details for tools as JSON: the reports of `Executable` need what no caller in C does.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from qdialect.aot.network import Batch, Network, Version
from qdialect.support.diagnostics import LoadError
from qdialect.support.externals import ExternalCall
from qdialect.support.interface import TENSOR, KernelCall, Port, Tail, tensor

MAGIC = b"qdialect"
ABI_VERSION = 2
"""Of the C interface. It grows where a caller that was compiled before would be wrong about it."""

# magic, abi_version, size, input_count, output_count, inputs, outputs, name, details, threads, versions, workspace_size
_NETWORK = struct.Struct("<8s10IQ")
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, struct.error)
"""The exceptions that reading a damaged record may raise."""


def written(network: Network) -> bytes:
    """The record of `network`, little-endian."""
    ports = [*network.inputs, *network.outputs]
    tail = Tail(_NETWORK.size + TENSOR.size * len(ports))
    tensors = b"".join(tensor(port, tail, factor) for port, factor in zip(ports, network.factors, strict=True))
    name, details = tail.text(network.name), tail.text(json.dumps(_tree(network), separators=(",", ":")))
    counts = len(network.inputs), len(network.outputs)
    starts = _NETWORK.size, _NETWORK.size + TENSOR.size * counts[0]
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
    try:
        details = _NETWORK.unpack_from(record)[8]
        return _network(json.loads(record[details:].rstrip(b"\0")))
    except _DAMAGE as error:
        raise LoadError(f"description of the network is damaged: {type(error).__name__}: {error}") from error


def _tree(network: Network) -> Mapping[str, Any]:
    return {
        "name": network.name,
        "threads": network.threads,
        "inputs": [_port_tree(port) for port in network.inputs],
        "outputs": [_port_tree(port) for port in network.outputs],
        "versions": [_version_tree(version) for version in network.versions],
        "externals": [[call.title, call.target, call.symbol, call.location] for call in network.external_calls],
        **({"metadata": dict(network.metadata)} if network.metadata else {}),
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
        **({"clock": version.clock} if version.clock else {}),
    }


def _network(tree: Mapping[str, Any]) -> Network:
    inputs, outputs = (tuple(_port(*port) for port in tree[kind]) for kind in ("inputs", "outputs"))
    versions = tuple(map(_version, tree["versions"]))
    if not versions:
        raise ValueError("there must be a version, but there is none")
    calls = tuple(ExternalCall(*map(_text, call)) for call in tree["externals"])
    batch = _batch(*tree["batch"], ports=(inputs, outputs)) if "batch" in tree else None
    metadata = {_text(name): _text(text) for name, text in tree.get("metadata", {}).items()}
    return Network(_text(tree["name"]), inputs, outputs, _count(tree["threads"], 1), versions, batch, calls, metadata)


def _batch(rows: Sequence[int], *factors: Sequence[int], ports: tuple[Sequence[Port], Sequence[Port]]) -> Batch:
    sizes = tuple(_count(row, 1) for row in rows)
    if sizes[-1] != 1 or list(sizes) != sorted(set(sizes), reverse=True):
        raise ValueError(f"sizes of batches must descend to 1, but are {sizes}")
    first, second = (tuple(map(_count, numbers)) for numbers in factors)
    if (len(first), len(second)) != (len(ports[0]), len(ports[1])) or not any(first):
        raise ValueError("each input and output must have a factor of the batch, and that of an input be above 0")
    return Batch(sizes, (first, second))


def _port(name: str, shape: Sequence[int], dtype: str, scale: float | None, zero_point: int | None) -> Port:
    found = np.dtype(_text(dtype))
    if found.hasobject or not found.itemsize:
        raise ValueError(f"dtype must be one of numbers, but is '{found}'")
    # -1 is the batch.
    extents = tuple(_count(extent, -1) for extent in shape)
    number = None if zero_point is None else _count(zero_point, -(1 << 63))
    return Port(_text(name), extents, found, None if scale is None else float(scale), number)


def _version(tree: Mapping[str, Any]) -> Version:
    calls = tuple(_call(*call) for call in tree["calls"])
    features = tuple(map(_text, tree["features"]))
    workspace, constants = _count(tree["workspace"]), _count(tree["constants"])
    clock = _clock(*tree["clock"]) if "clock" in tree else None
    if clock and clock[0] + 8 * clock[1] > workspace:
        raise ValueError(f"readings of the clock must be in {workspace} bytes, but are {clock}")
    return Version(_text(tree["target"]), features, workspace, constants, calls, clock)


def _clock(offset: int, count: int) -> tuple[int, int]:
    return _count(offset), _count(count)


def _call(label: str, kernel: int, names: Sequence[str], macs: int = 0, bytes_moved: int = 0) -> KernelCall:
    return KernelCall(_text(label), _count(kernel), tuple(map(_text, names)), _count(macs), _count(bytes_moved))


def _count(value: object, low: int = 0) -> int:
    if type(value) is not int or not low <= value < 1 << 63:
        raise ValueError(f"number must be an integer of at least {low}, but is {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text must be a string, but is {value!r}")
    return value


# A checksum at the end of a library: a file that was damaged on its way is told before anything of it runs.
#
# Loaders and linkers do not read what stands after the sections. A library that was stripped or linked by other tools
# lacks the checksum, and is loaded as it is: it guards against damage, not against an author.

_MAGIC = b"qdialect crc-32 "
_SEAL = struct.Struct("<Q16s")


def sealed(content: bytes) -> bytes:
    """`content` with its checksum."""
    return content + _SEAL.pack(crc32(content), _MAGIC)


def is_damaged(content: bytes) -> bool:
    """Whether the content of a file has a checksum that is not its own."""
    size = len(content) - _SEAL.size
    if size < 0:
        return False
    checksum, magic = _SEAL.unpack_from(content, size)
    return magic == _MAGIC and checksum != crc32(memoryview(content)[:size])
