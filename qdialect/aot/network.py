"""The description of the network in a compiled file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from qdialect.support.diagnostics import InputError
from qdialect.support.externals import ExternalCall
from qdialect.support.interface import KernelCall, Port

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
