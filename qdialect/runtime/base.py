"""The interface of networks that can be called, however they are computed."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, SupportsIndex, cast, overload

import numpy as np

from qdialect.support.diagnostics import InputError, did_you_mean, printable
from qdialect.support.files import path_of, write_files
from qdialect.support.interface import BFLOAT16, Array, KernelCall, Port

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from qdialect.runtime.memory import States

# The forms in which an executable returns results.

NUMPY, _TORCH, _DICT = "numpy", "torch", "dict"


def converter(form: str) -> Callable[[Array], Any]:
    """The function that converts an array to another form than `NUMPY`, over the same memory.

    Raises `InputError` for an unknown form.
    """
    if form != _TORCH:
        raise InputError(f"returns must be {NUMPY}, {_TORCH} or {_DICT}, but got '{form}'")
    try:
        import_module("torch")
    except ImportError as error:
        raise InputError(f"returns='torch' needs PyTorch, which cannot be imported: {error}") from error
    return tensor_of


def tensor_of(array: Array) -> Any:
    """A tensor of PyTorch over the memory of an array."""
    torch: Any = import_module("torch")
    if array.dtype != BFLOAT16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


_PICKLED = "network.so"
_LONGEST = 100
"""Characters of a text about the model that are shown."""

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


class Ports(tuple[Port, ...]):
    """Inputs or outputs in their order, each found by its number or its name: ``executable.inputs["image"]``."""

    kind: ClassVar[str]

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Port: ...

    @overload
    def __getitem__(self, key: slice, /) -> tuple[Port, ...]: ...

    def __getitem__(self, key: SupportsIndex | slice | str, /) -> Port | tuple[Port, ...]:
        """The port of a number or name; raises `InputError` for a name that no port has, or several."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [port for port in self if port.name == key]
        if len(found) != 1:
            raise InputError(f"network must have one {self.kind} '{key}', but has {len(found)}{self._hint(key)}")
        return found[0]

    def in_order(self, given: Mapping[str, object], positional: Sequence[object] = ()) -> tuple[object, ...]:
        """The values of all ports: those that are `positional`, and the others by name.

        Raises `InputError` for a name that no port has, or several, and for a port with no value or two.
        """
        rest = self[len(positional) :]
        wanted = {port.name for port in rest}
        for name in given:
            if self[str(name)].name not in wanted:
                raise InputError(f"{self.kind} '{name}' must be given once, but is also among the arrays")
        missing = [port.name for port in rest if port.name not in given]
        if missing:
            raise InputError(f"network must be called with every {self.kind}, but lacks {', '.join(missing)}")
        return (*positional, *(given[port.name] for port in rest))

    def by_name(self, values: Iterable[object]) -> dict[str, Any]:
        """Values in the order of the ports, by their names; raises `InputError` where two have one name."""
        return {self[port.name].name: value for port, value in zip(self, values, strict=True)}

    def _hint(self, name: str) -> str:
        names = [port.name for port in self]
        return did_you_mean(name, names) or f"; its {self.kind}s are {', '.join(names)}"


class _Inputs(Ports):
    kind = "input"


class _Outputs(Ports):
    kind = "output"


@dataclass(frozen=True)
class CallTime:
    """A kernel call, and the seconds that it takes in a call of the network on one thread."""

    call: KernelCall
    seconds: float


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

    Inputs are given in their order or by name, ``executable(image=image)`` or ``executable({"image": image})``. Arrays
    may also be objects that have their memory: those with ``__array_interface__``, DLPack or the buffer protocol, and
    tensors of PyTorch on the CPU. Threads may share an executable and call it at the same time. A copy is
    the executable itself; pickled, it is the file that `save` writes.
    """

    target: str
    """The CPU that its code is for, by the name that `qdialect.targets.resolve` takes."""
    kernels: int
    """Number of distinct kernels."""
    calls: tuple[KernelCall, ...]
    """The kernel calls, in order."""
    threads: int
    """Number of threads that a call is divided among."""
    workspaces: int
    """How many calls may run at the same time; more wait."""
    constants_bytes: int
    """Bytes of packed weights, biases, multipliers and tables."""
    working_memory: int
    """Bytes of one workspace, in which all intermediate values of compiled code live, reused from call to call."""
    metadata: Mapping[str, str] = MappingProxyType({})
    """The notes of the model's author in its file: texts by names, such as ``metadata_props`` of ONNX."""
    regions: tuple[Region, ...]
    """The regions, in order; only one if the whole network is compiled."""
    tuning: TuningReport | None = None
    """The measurements of its kernels, if it was compiled with ``tune``."""
    is_float32: bool = False
    """Whether nothing in the network is quantized."""
    held: States | None = None
    """What it keeps from call to call."""
    time_calls: Callable[[], tuple[CallTime, ...]] | None = None
    """The work of `profile`, where its model is known."""
    _linked: bytes | None = None
    _submitted: tuple[int, ThreadPoolExecutor] | None = None
    """The threads of `submit`, and the process that has them."""

    @property
    def inputs(self) -> Ports:
        """Name, shape, dtype, scale and zero point of each input, by number or name; -1 is a batch of any size."""
        return self._inputs

    @inputs.setter
    def inputs(self, ports: Iterable[Port]) -> None:
        self._inputs = _Inputs(ports)

    @property
    def outputs(self) -> Ports:
        """The same of each output; an extent of -1 of a framework's output is known only after a call."""
        return self._outputs

    @outputs.setter
    def outputs(self, ports: Iterable[Port]) -> None:
        self._outputs = _Outputs(ports)

    @cached_property
    def _has_bfloat16(self) -> bool:
        return any(port.dtype == BFLOAT16 for port in (*self._inputs, *self._outputs))

    @overload
    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]: ...

    @overload
    def __call__(self, *arrays: object, out: object = None, returns: str = "numpy", **named: object) -> Any: ...

    def __call__(self, *arrays: object, out: object = None, returns: str = NUMPY, **named: object) -> Any:
        """The result for one array of each input: an array, or a tuple where the network has several outputs.

        Inputs are `arrays` in their order, `named` ones, or both; or one mapping, for names that are no identifiers or
        that are `out` or `returns`. The result is written into `out`, if that is given: an array, or a sequence or a
        mapping of several. Else it is returned in the form `returns`: ``numpy``, ``torch`` for tensors of PyTorch, or
        ``dict`` for arrays by the names of the outputs. New arrays share memory with nothing.

        NumPy itself lacks bfloat16, which the package `ml_dtypes` has. A float32 array may stand for such an input and
        is rounded; where all such inputs are given so, such outputs are float32 arrays, too.

        Raises `InputError` for arrays whose names, number, shape or dtype differ from `inputs`.
        """
        # The exact type first: the class of mappings is slow to ask.
        if named or (len(arrays) == 1 and type(arrays[0]) is not np.ndarray and isinstance(arrays[0], Mapping)):
            arrays = self._inputs.in_order(*_feeds(arrays, named))
        if out is not None:
            self.run(arrays, self._given_outputs(out))
            return out
        outputs = self._results_in_f32(arrays, returns) if self._has_bfloat16 else self.results(arrays)
        if returns == _DICT:
            return self._outputs.by_name(outputs)
        if returns != NUMPY:
            outputs = tuple(map(converter(returns), outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def _results_in_f32(self, arrays: Sequence[object], returns: str) -> tuple[Array, ...]:
        """As `results` of a network with bfloat16 tensors, of which callers may know nothing."""
        outputs = self.results(rounded(arrays, self._inputs))
        given = [one for one, port in zip(arrays, self._inputs, strict=True) if port.dtype == BFLOAT16]
        if returns == _TORCH or not given or not all(map(_is_float32, given)):
            return outputs
        return tuple(one.astype(np.float32) if one.dtype == BFLOAT16 else one for one in outputs)

    def _given_outputs(self, out: object) -> Sequence[object]:
        if isinstance(out, Mapping):
            return self._outputs.in_order(cast("Mapping[str, object]", out))
        return (out,) if len(self._outputs) == 1 else cast("Sequence[object]", out)

    def submit(self, *arrays: object, out: object = None, returns: str = NUMPY, **named: object) -> Future[Any]:
        """A call in a thread of its own, whose result the future has::

            future = executable.submit(image)
            scores = future.result()  # or, in a coroutine: await asyncio.wrap_future(executable.submit(image))

        As many calls run at the same time as there are `workspaces`; others wait in their order. The arrays must stay
        as they are until the call has ended. The future's ``result`` raises the error of the call.
        """
        if self._submitted is None or self._submitted[0] != os.getpid():
            # Few processes need it, and importing it takes longer than loading a network. A fork has no threads.
            from concurrent.futures import ThreadPoolExecutor

            self._submitted = os.getpid(), ThreadPoolExecutor(self.workspaces, "qdialect")
        return self._submitted[1].submit(self, *arrays, out=out, returns=returns, **named)

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
        file = path_of(path)
        write_files({file: self.library(file.name)})

    @abstractmethod
    def library(self, name: str) -> bytes:
        """The content that `save` writes into a file of this name; raises `CompileError` as `save` does."""

    def profile(self) -> tuple[CallTime, ...]:
        """The time of each kernel call, in the order of `calls`, with random inputs::

            for one in sorted(executable.profile(), key=lambda one: -one.seconds):
                print(f"{one.seconds * 1e6:8.1f} us  {one.call.label}  {', '.join(one.call.names)}")

        The file of the model is compiled once more, with a clock, for the shapes of `inputs` and one thread. Raises
        `InputError` for a network that was loaded, pickled, compiled in parts or of a model in memory, and where the
        file has changed since.
        """
        if self.time_calls is None:
            raise InputError("network must be compiled from a file, as a whole and for one batch size, to be profiled")
        found = self.time_calls()
        if [(one.call.label, one.call.names) for one in found] != [(one.label, one.names) for one in self.calls]:
            raise InputError("model must be as it was when it was compiled to be profiled, but has other kernel calls")
        return found

    def __repr__(self) -> str:
        lines = (f"  {kind:7}{name}{': ' * bool(name)}{fact}".rstrip() for kind, name, fact in _facts(self))
        return "\n".join([f"<{_title(self)}", *map(printable, lines)]) + ">"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = (
            "".join(f"<td style='text-align:left'>{escape(printable(cell))}</td>" for cell in row)
            for row in _facts(self)
        )
        return f"<table><caption>{escape(_title(self))}</caption><tr>{'</tr><tr>'.join(rows)}</tr></table>"

    def share_state(self, other: Executable) -> None:
        """Keep from call to call what `other` does, the same network for another shape of its inputs.

        Raises `InputError` where the model's framework keeps it.
        """
        # Most networks keep nothing.
        del other

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

    def _describe_parts(self, parts: Sequence[Executable]) -> None:
        """Set what is told of code and its memory to that of all `parts` together."""
        self.kernels = sum(one.kernels for one in parts)
        self.calls = tuple(call for one in parts for call in one.calls)
        self.constants_bytes = sum(one.constants_bytes for one in parts)
        self.working_memory = sum(one.working_memory for one in parts)
        self.tuning = joined(one.tuning for one in parts)

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


def rounded(arrays: Sequence[Any], ports: Sequence[Port]) -> list[Any]:
    """`arrays` with bfloat16 ones in place of the float32 ones that stand for them."""
    wanted = [port.dtype for port in ports]
    return [_rounded(one, dtype) for one, dtype in zip_longest(arrays, wanted[: len(arrays)])]


_IN_FILES = np.dtype("V2")
"""The type that NumPy reads from a file of bfloat16 numbers: their bits."""


def _rounded(array: object, dtype: np.dtype[Any] | None) -> object:
    if dtype != BFLOAT16 or not isinstance(array, np.ndarray):
        return array
    found = cast("Array", array)
    if found.dtype == _IN_FILES:
        return found.view(BFLOAT16)
    return found.astype(BFLOAT16) if _is_float32(found) else found


def _is_float32(array: object) -> bool:
    return isinstance(array, np.ndarray) and cast("Array", array).dtype == np.float32


def _feeds(arrays: Sequence[object], named: Mapping[str, object]) -> tuple[Mapping[str, object], Sequence[object]]:
    """The inputs by name and those in order of a call."""
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        return {**cast("Mapping[str, object]", arrays[0]), **named}, ()
    return named, arrays


def _title(executable: Executable) -> str:
    threads = executable.threads
    runner = f" for {executable.target}" if executable.target else ""
    return f"qdialect.Executable{runner}, {threads} thread{'s' * (threads != 1)}"


def _facts(executable: Executable) -> Iterable[tuple[str, str, str]]:
    """Rows on an executable: its ports, its code, and who runs how many nodes."""
    for port in (*executable.inputs, *executable.outputs):
        kind = "input" if any(port is one for one in executable.inputs) else "output"
        scale = "" if port.scale is None else f", scale {port.scale:.6g}, zero point {port.zero_point or 0}"
        yield kind, port.name, f"{described(port.dtype, port.shape)}{scale}"
    yield "code", "", f"{executable.kernels} kernels in {len(executable.calls)} calls"
    sizes = executable.constants_bytes, executable.working_memory
    yield "memory", "", f"{sizes[0]} bytes of constants, {sizes[1]} bytes of working memory"
    nodes = Counter[str]()
    for region in executable.regions:
        nodes[region.runner] += len(region.nodes)
    for name, text in executable.metadata.items():
        yield "model", name, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    yield "run by", "", ", ".join(f"{runner} ({count} nodes)" for runner, count in nodes.items())


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
    name: str = ""
    """The function of the first of them, as in `qdialect.support.interface.kernel_names`."""

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
