"""The constant data in which a compiled file describes its network: `qdialect_network` of the C interface.

It holds offsets from its own start and no addresses, so that a loader has nothing to relocate and processes share its
pages. At its end stand details for tools as JSON: the reports of `Executable` need what no caller in C does.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qdialect.aot.network import Batch, Network, Version
from qdialect.diagnostics import LoadError
from qdialect.externals.external_call import ExternalCall
from qdialect.interface import KernelCall, Port
from qdialect.records import TENSOR, Tail, tensor

MAGIC = b"qdialect"
ABI_VERSION = 2
"""Of the C interface. It grows where a caller that was compiled before would be wrong about it."""

# magic, abi_version, size, input_count, output_count, inputs, outputs, name, details, threads, versions, workspace_size
_NETWORK = struct.Struct("<8s10IQ")


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
    details = _NETWORK.unpack_from(record)[8]
    try:
        return _network(json.loads(record[details:].rstrip(b"\0")))
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError(f"description of the network is damaged: {type(error).__name__}: {error}") from error


def _tree(network: Network) -> Mapping[str, Any]:
    return {
        "name": network.name,
        "threads": network.threads,
        "inputs": [_port_tree(port) for port in network.inputs],
        "outputs": [_port_tree(port) for port in network.outputs],
        "versions": [_version_tree(version) for version in network.versions],
        "externals": [[call.title, call.target, call.symbol, call.location] for call in network.external_calls],
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
    versions = tuple(map(_version, tree["versions"]))
    calls = tuple(ExternalCall(*call) for call in tree["externals"])
    return Network(tree["name"], inputs, outputs, tree["threads"], versions, batch, calls)


def _port(name: str, shape: Sequence[int], dtype: str, scale: float | None, zero_point: int | None) -> Port:
    return Port(name, tuple(shape), np.dtype(dtype), scale, zero_point)


def _version(tree: Mapping[str, Any]) -> Version:
    calls = tuple(KernelCall(label, kernel, tuple(names), *rest) for label, kernel, names, *rest in tree["calls"])
    return Version(tree["target"], tuple(tree["features"]), tree["workspace"], tree["constants"], calls)
