"""What every network that can be called has in common, however it is computed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import InputError
from qdialect.interface import KernelCall, Port

Array = NDArray[Any]

NATIVE = "qdialect"
"""Who runs a region that is compiled."""


@dataclass(frozen=True)
class Region:
    """A part of a network that is run as a whole.

    `nodes` are the titles of the model's nodes; a DequantizeLinear may be one of several regions. `reasons` says, by
    title, why the framework runs nodes that are not compiled.
    """

    runner: str
    """`NATIVE`, or the name of the framework."""
    nodes: tuple[str, ...]
    products: int
    """Products that it sums up in a call, as far as the shapes tell."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_compiled(self) -> bool:
        """Whether it runs as machine code of this package."""
        return self.runner == NATIVE


class Bound(Protocol):
    """A call on arrays that are known: `inputs` are read, `outputs` written."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The arrays that a call reads."""
        ...

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that a call writes."""
        ...

    def __call__(self) -> None: ...


class Executable(ABC):
    """A network that is called with NumPy arrays: ``executable(image)`` returns the result.

    Threads may share one.
    """

    inputs: tuple[Port, ...]
    """What the network takes: name, shape, dtype, scale and zero point of each."""
    outputs: tuple[Port, ...]
    """What it returns, likewise; an extent of -1, which only a framework can give, is known after a call."""
    kernels: int
    """Number of distinct kernels."""
    calls: tuple[KernelCall, ...]
    """The kernel calls, in order."""
    threads: int
    """Number of threads that a call is divided among."""
    constants_bytes: int
    """Bytes of packed weights, biases, multipliers and tables."""
    working_memory: int
    """Bytes in which all intermediate values of compiled code live, reused from call to call."""
    regions: tuple[Region, ...]
    """What is run as a whole, in order: one region where all of the network is compiled."""

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """The result for `arrays`, one for each input: an array, or a tuple where the network has several outputs.

        Raises `InputError` for arrays of another number, shape or dtype than `inputs` says.
        """
        outputs = tuple(map(empty, self.outputs))
        self.run(arrays, outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @abstractmethod
    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute on `inputs` and write into `outputs`, arrays of the shapes and dtypes that the ports say.

        An input that is not contiguous is copied; an output must be contiguous and writable, and share no memory with
        another array of the call. Raises `InputError` where an array does not fit; then nothing is written.
        """

    @abstractmethod
    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Bound:
        """A call on these arrays, to be made again and again: it reads what `inputs` hold then, and writes `outputs`.

        The arrays are kept alive, and must not be given other memory, as `resize` of NumPy does. Raises `InputError`
        as `run` does, and for an input that is not contiguous.
        """

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the network into a shared library, as ``qdialect-compile`` does, which `qdialect.load` loads.

        It is for CPUs with the instruction sets of the network's target. A C compiler links it. The file is written as
        a whole or not at all. Raises `CompileError` where there is no C compiler, and for a network of which a
        framework runs a part; `QDialectError` where the file cannot be written.
        """

    def for_shape(self, extents: Mapping[str, int]) -> Executable:
        """The network for other extents, by their names or as ``INPUT:AXIS``, where its inputs leave them open.

        It is compiled when it is first asked for. Raises `InputError` for extents that are not open.
        """
        raise InputError(f"network has one shape, but was asked for {', '.join(extents) or 'another'}")


def empty(port: Port) -> Array:
    """An array for an output; raises `InputError` where there is no memory for it."""
    try:
        return np.empty(port.shape, port.dtype)
    except MemoryError as error:
        size = math.prod(port.shape) * port.dtype.itemsize
        raise InputError(f"output '{port.name}' needs {size} bytes, which cannot be allocated") from error


def check_count(kind: str, found: int, wanted: int) -> None:
    """Raise `InputError` unless `found` arrays of a `kind` are as many as the network has."""
    if found != wanted:
        raise InputError(f"network must be called with {wanted} {kind}{'s' * (wanted != 1)}, but got {found}")


def check_array(title: str, array: Array, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raise `InputError` unless `array`, which messages call `title`, is one of `shape` and `dtype`."""
    if not isinstance(cast("object", array), np.ndarray):
        found = type(array).__name__
        raise InputError(f"{title} must be an array {described(dtype, shape)}, but got {found}")
    if array.shape != tuple(shape) or array.dtype != dtype:
        found = described(array.dtype, array.shape)
        raise InputError(f"{title} must be {described(dtype, shape)}, but got {found}")


def described(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    """``uint8[4, 64]``; a name does not tell byte orders apart."""
    return f"{dtype.name if dtype.isnative else dtype.str}[{', '.join(map(str, shape))}]"
