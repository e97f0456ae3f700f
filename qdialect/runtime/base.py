"""The interface of networks that can be called, however they are computed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from qdialect.support.diagnostics import InputError
from qdialect.support.files import write_files
from qdialect.support.interface import KernelCall, Port

# The forms in which an executable returns results.

NUMPY, _TORCH = "numpy", "torch"


def converter(form: str) -> Callable[[NDArray[Any]], Any]:
    """The function that converts an array to another form than `NUMPY`, over the same memory.

    Raises `InputError` for an unknown form.
    """
    if form != _TORCH:
        raise InputError(f"returns must be {NUMPY} or {_TORCH}, but got '{form}'")
    try:
        return import_module("torch").from_numpy
    except ImportError as error:
        raise InputError(f"returns='torch' needs PyTorch, which cannot be imported: {error}") from error


Array = NDArray[Any]

_PICKLED = "network.so"

NATIVE = "qdialect"
"""The runner of a compiled region."""


@dataclass(frozen=True)
class Region:
    """A part of a network that runs as a unit: compiled code, or the framework.

    `nodes` are the titles of the model's nodes; a DequantizeLinear may be one of several regions. `reasons` gives, by
    title, why the framework runs nodes that are not compiled.
    """

    runner: str
    """`NATIVE`, or the name of the framework."""
    nodes: tuple[str, ...]
    products: int
    """Multiply-accumulates of a call, as far as the shapes are known."""
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
    """A network that is called with NumPy arrays::

        executable = qdialect.compile("model.tflite")
        image = np.zeros(executable.inputs[0].shape, executable.inputs[0].dtype)
        scores = executable(image)

    Arrays may also be objects that have their memory: those with ``__array_interface__``, DLPack or the buffer
    protocol, and tensors of PyTorch on the CPU. Threads may share an executable and call it at the same time. A copy is
    the executable itself; pickled, it is the file that `save` writes.
    """

    inputs: tuple[Port, ...]
    """Name, shape, dtype, scale and zero point of each input; -1 is a batch of any size."""
    outputs: tuple[Port, ...]
    """The same of each output; an extent of -1 of a framework's output is known only after a call."""
    kernels: int
    """Number of distinct kernels."""
    calls: tuple[KernelCall, ...]
    """The kernel calls, in order."""
    threads: int
    """Number of threads that a call is divided among."""
    constants_bytes: int
    """Bytes of packed weights, biases, multipliers and tables."""
    working_memory: int
    """Bytes of one workspace, in which all intermediate values of compiled code live, reused from call to call."""
    regions: tuple[Region, ...]
    """The regions, in order; only one if the whole network is compiled."""
    tuning: TuningReport | None = None
    """The measurements of its kernels, if it was compiled with ``tune``."""
    is_float32: bool = False
    """Whether nothing in the network is quantized."""
    _linked: bytes | None = None

    @overload
    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]: ...

    @overload
    def __call__(self, *arrays: object, out: object = None, returns: str = "numpy") -> Any: ...

    def __call__(self, *arrays: object, out: object = None, returns: str = NUMPY) -> Any:
        """The result for `arrays`, one for each input: an array, or a tuple where the network has several outputs.

        The result is written into `out`, an array or a sequence of several, if that is given; else it is returned in
        the form `returns`: ``numpy`` or, for tensors of PyTorch, ``torch``. New arrays share memory with nothing.
        Raises `InputError` for arrays whose number, shape or dtype differs from `inputs`.
        """
        if out is not None:
            self.run(arrays, (out,) if len(self.outputs) == 1 else cast("Sequence[object]", out))
            return out
        outputs = self.results(arrays)
        if returns != NUMPY:
            outputs = tuple(map(converter(returns), outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def results(self, arrays: Sequence[object]) -> tuple[Array, ...]:
        """A new array for each output; `arrays` are those of a call."""
        outputs = tuple(map(empty, self.outputs))
        self.run(arrays, outputs)
        return outputs

    @abstractmethod
    def run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        """Compute on `inputs` and write into `outputs`, arrays of the ports' shapes and dtypes.

        An input that is not contiguous is copied; an output must be contiguous and writable, and share no memory with
        another array of the call. Raises `InputError` where an array does not fit; then nothing is written.
        """

    @abstractmethod
    def bind(self, inputs: Sequence[object], outputs: Sequence[object]) -> Bound:
        """A call on these arrays, to be made again and again: it reads what `inputs` hold then, and writes `outputs`.

        The arrays are kept alive, and must not be given other memory, as `resize` of NumPy does. The call has working
        memory of its own. Raises `InputError` as `run` does, and for an input that is not contiguous.
        """

    def save(self, path: str | Path) -> None:
        """Write the network into a shared library, as ``qdialect-compile`` does, which `qdialect.load` loads.

        It is for CPUs with the instruction sets of the network's target. A C compiler links it. The file is written as
        a whole or not at all. Raises `CompileError` where there is no C compiler, and for a network of which a
        framework runs a part; `QDialectError` where the file cannot be written.
        """
        file = Path(path)
        write_files({file: self.library(file.name)})

    @abstractmethod
    def library(self, name: str) -> bytes:
        """The content that `save` writes into a file of this name; raises `CompileError` as `save` does."""

    @property
    @abstractmethod
    def workspaces(self) -> int:
        """How many calls may run at the same time; more wait."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return loaded_from, (self._portable(), self.workspaces)

    def _portable(self) -> bytes:
        """The content of a saved file, linked once: a pool of processes pickles the network for each of its tasks."""
        if self._linked is None:
            self._linked = self.library(_PICKLED)
        return self._linked

    def for_shape(self, extents: Mapping[str, int]) -> Executable:
        """The network for other extents, by their names or as ``INPUT:AXIS``, where its inputs leave them open.

        It is compiled when it is first asked for. Raises `InputError` for extents that are not open.
        """
        raise InputError(f"network has one shape, but was asked for {', '.join(extents) or 'another'}")


def loaded_from(content: bytes, workspaces: int) -> Executable:
    """The executable of a network that was pickled."""
    # Most processes never unpickle one.
    from qdialect.runtime.loaded import load_content

    return load_content(content, workspaces)


def empty(port: Port) -> Array:
    """An array for an output; raises `InputError` where there is no memory for it."""
    try:
        return np.empty(port.shape, port.dtype)
    except MemoryError as error:
        size = math.prod(port.shape) * port.dtype.itemsize
        raise InputError(f"output '{port.name}' needs {size} bytes, which cannot be allocated") from error


def check_count(kind: str, found: int, wanted: int) -> None:
    """Raise `InputError` unless `found`, the number of arrays of a `kind`, equals `wanted`."""
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


def check_writable(title: str, array: Array) -> None:
    """Raise `InputError` unless `array`, which messages call `title`, can be an output as it is."""
    flags = array.flags
    flaws = {"not contiguous": flags.c_contiguous, "not aligned": flags.aligned, "read-only": flags.writeable}
    found = " and ".join(flaw for flaw, is_fine in flaws.items() if not is_fine)
    if found:
        raise InputError(f"{title} must be a contiguous, aligned and writable array, but got one that is {found}")


def described(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    """``uint8[4, 64]``, with ``?`` for an open extent; a name does not tell byte orders apart."""
    extents = ", ".join("?" if extent < 0 else str(extent) for extent in shape)
    return f"{dtype.name if dtype.isnative else dtype.str}[{extents}]"


# The tuning report: the variants measured of each kernel, and the time saved.


@dataclass(frozen=True)
class Trial:
    """A variant of a kernel, and the seconds that all calls of the kernel took with it: the median of several runs."""

    variant: str
    seconds: float


@dataclass(frozen=True)
class TunedKernel:
    """A kernel that was measured in several variants."""

    kernel: str
    """The name of the kernel, as in `qdialect.support.interface.Tunable`."""
    trials: tuple[Trial, ...]
    """The measured variants, that of the cost model first."""
    chosen: str
    """The variant of one of `trials`."""
    gain: float
    """The share of time that the chosen variant saves compared with the cost model's; 0 if they are the same."""
    was_kept: bool
    """Whether the measurements came from the cache."""

    @property
    def seconds(self) -> float:
        """The time of the cost model's choice."""
        return self.trials[0].seconds


@dataclass(frozen=True)
class TuningReport:
    """All kernels of a network that have variants."""

    target: str
    kernels: tuple[TunedKernel, ...]

    @property
    def gain(self) -> float:
        """The share of these kernels' time that tuning saves."""
        total = sum(one.seconds for one in self.kernels)
        return sum(one.seconds * one.gain for one in self.kernels) / total if total else 0.0

    @property
    def changed(self) -> tuple[TunedKernel, ...]:
        """The kernels whose chosen variant is not the cost model's."""
        return tuple(one for one in self.kernels if one.gain)


def joined(reports: Iterable[TuningReport | None]) -> TuningReport | None:
    """The report of several networks together, each kernel once; None where none was tuned."""
    found = [report for report in reports if report is not None]
    kernels = {one.kernel: one for report in reversed(found) for one in reversed(report.kernels)}
    return TuningReport(found[0].target, tuple(reversed(kernels.values()))) if found else None
