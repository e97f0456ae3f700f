"""The constant data in which a compiled file describes its network: `qdialect_network` of the C interface.

It holds offsets from its own start and no addresses, so that a loader has nothing to relocate and processes share its
pages. At its end stand details for tools as JSON: the reports of `Executable` need what no caller in C does.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from qdialect.support.diagnostics import InputError, LoadError
from qdialect.support.externals import ExternalCall
from qdialect.support.interface import TENSOR, KernelCall, Port, State, Tail, tensor

# The description of the network.

ALIGNMENT = 64
"""Alignment of a workspace in bytes."""

LONGEST_NAME = 200
"""Characters; C compilers and linkers take more, and file names do not."""

DESCRIPTION = "qdialect_network_of_file"
"""The symbol of a shared library whose function returns the record of its network, whatever that is called."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = "qdialect"
"""With it ``NAME_network`` would be the type that the function of this name returns."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class Version:
    """A network compiled for CPUs of one kind."""

    target: str
    features: tuple[str, ...]
    """The features that a CPU must have, by LLVM's names."""
    workspace_bytes: int
    constants_bytes: int
    calls: tuple[KernelCall, ...]
    clock: tuple[int, int] | None = None
    """Where in the workspace a version with a clock writes its readings, 64 bits each, and how many."""


@dataclass(frozen=True)
class Batch:
    """How a network takes batches of any size."""

    rows: tuple[int, ...]
    """Sizes of the batches that its code is for, which descend to 1."""
    factors: tuple[tuple[int, ...], tuple[int, ...]]
    """Elements of the first extent for an entry, of each input and each output; 0 for one without batch."""


@dataclass(frozen=True)
class Network:
    """A network as a file has it: one interface, and a version for each kind of CPU."""

    name: str
    """The prefix of the C functions."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    threads: int
    versions: tuple[Version, ...]
    """Those with the most features first."""
    batch: Batch | None = None
    """None for a network of one shape; otherwise first extents that have the batch are -1."""
    external_calls: tuple[ExternalCall, ...] = ()
    """The calls of functions of other libraries, in order."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """The notes of the model's author in its file: texts by names."""
    states: tuple[State, ...] = ()
    """The outputs that a call reads as well, which keep their content from call to call."""

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory that a call works in, whichever version runs; whole lines, at least one."""
        largest = max(version.workspace_bytes for version in self.versions)
        return max(-(-largest // ALIGNMENT), 1) * ALIGNMENT

    @property
    def factors(self) -> tuple[int, ...]:
        """Elements of the first extent for an entry of the batch, of each input and each output; 0 without batch."""
        return sum(self.batch.factors, ()) if self.batch else (0,) * (len(self.inputs) + len(self.outputs))

    @property
    def steps(self) -> tuple[int, ...]:
        """Bytes of each input and output for an entry of the batch, 0 for one without batch."""
        return steps_of((*self.inputs, *self.outputs), self.factors)

    @property
    def runs_everywhere(self) -> bool:
        """Whether a version runs on every x86-64 CPU."""
        return not self.versions[-1].features

    @property
    def is_chosen(self) -> bool:
        """Whether the CPU must be asked which version it can run."""
        return len(self.versions) > 1 or not self.runs_everywhere


def open_ports(ports: Sequence[Port], factors: Sequence[int]) -> tuple[Port, ...]:
    """The ports of any batch: first extents that have it, of which `factors` are not 0, are -1."""
    return tuple(
        replace(port, shape=(-1, *port.shape[1:])) if factor else port
        for port, factor in zip(ports, factors, strict=True)
    )


def steps_of(ports: Sequence[Port], factors: Sequence[int]) -> tuple[int, ...]:
    """Bytes of each array for an entry of the batch, of whose first extent it has `factors` elements."""
    pairs = zip(ports, factors, strict=True)
    return tuple(factor * math.prod(port.shape[1:]) * port.dtype.itemsize for port, factor in pairs)


def checked_name(name: str) -> str:
    """`name`, where C functions can begin with it; raises `InputError` where they cannot."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        wanted = f"a C identifier of at most {LONGEST_NAME} characters that begins with a letter"
        raise InputError(f"name of a network must be {wanted}, but got '{name}'")
    if name == _RESERVED:
        raise InputError(f"name of a network must not be '{name}', which the types of its header begin with")
    return name


def name_of_file(path: Path) -> str:
    """A name for the network in the file at `path`: its stem, with ``_`` for what C does not allow in a name."""
    found = _NO_NAME.sub("_", path.name.partition(".")[0]).strip("_")[:LONGEST_NAME]
    is_usable = _NAME.fullmatch(found) and found != _RESERVED
    return found if is_usable else f"network_{found}"[:LONGEST_NAME].rstrip("_")


def target_titles(versions: Sequence[Version]) -> str:
    """The versions in one line, as messages name them."""
    return ", ".join(version.target for version in versions)


MAGIC = b"qdialect"
ABI_VERSION = 3
"""Of the C interface. It grows where a caller that was compiled before would be wrong about it."""

# magic, abi_version, size, input_count, output_count, inputs, outputs, name, details, threads, versions, state_count,
# states, workspace_size
_NETWORK = struct.Struct("<8s12IQ")
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, struct.error)
"""The exceptions that reading a damaged record may raise."""


def written(network: Network) -> bytes:
    """The record of `network`, little-endian."""
    ports = [*network.inputs, *network.outputs]
    tail = Tail(_NETWORK.size + TENSOR.size * len(ports))
    tensors = b"".join(tensor(port, tail, factor) for port, factor in zip(ports, network.factors, strict=True))
    name = tail.text(network.name)
    counts = len(network.inputs), len(network.outputs)
    starts = _NETWORK.size, _NETWORK.size + TENSOR.size * counts[0]
    states = tail.add(struct.pack(f"<{len(network.states)}I", *(one.output for one in network.states)), alignment=4)
    # What is read up to the end of the record.
    details = tail.text(json.dumps(_tree(network), separators=(",", ":")))
    size = _NETWORK.size + len(tensors) + len(tail.content)
    lists = len(network.versions), len(network.states), states
    numbers = (ABI_VERSION, size, *counts, *starts, name, details, network.threads, *lists)
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
        **({"states": [[one.argument, one.output, one.start] for one in network.states]} if network.states else {}),
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
    states = tuple(_state(len(outputs), *state) for state in tree.get("states", ()))
    threads = _count(tree["threads"], 1)
    return Network(_text(tree["name"]), inputs, outputs, threads, versions, batch, calls, metadata, states)


def _state(outputs: int, argument: int, output: int, start: int) -> State:
    if _count(output) >= outputs:
        raise ValueError(f"state must be one of {outputs} outputs, but is {output}")
    return State(_count(argument), output, _count(start, -1))


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
