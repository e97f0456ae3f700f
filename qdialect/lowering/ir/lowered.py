"""A network at some phase, and the data that its `main` needs at run time: all of it is in the module's attributes.

From phase `linalg` on a module is a self-contained program. Its attributes are:

- `qnn.phase` and `qnn.target`: its phase, and the CPU that it is lowered for;
- `qnn.program`: inputs, outputs, memory and kernel calls, as `Lowered` has them;
- `qnn.constants`: the bytes of packed weights, biases and tables.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.constants import elements_array
from qdialect.dialect.type_constraints import ELEMENT_NAMES, dtype_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import error_at
from qdialect.support import externals
from qdialect.support.diagnostics import CompileError
from qdialect.support.externals import ExternalFunction
from qdialect.support.interface import Array, KernelCall, Port, State, Tunable

PHASE = "qnn.phase"
TARGET = "qnn.target"
PROGRAM = "qnn.program"
CONSTANTS = "qnn.constants"


@dataclass(frozen=True)
class Lowered:
    """A network at some phase, and the data that its `main` needs at run time."""

    module: ir.Module
    constants: NDArray[np.uint8]
    arena_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    live_bytes: int = 0
    """Peak size of the intermediate values that are live at once, without padding."""
    weights_bytes: int = 0
    """Size of the packed weights among the constants."""
    calls: tuple[KernelCall, ...] = ()
    """The kernel calls, in order."""
    buffers: tuple[tuple[str, int], ...] = ()
    """Element type and bytes of every intermediate value that is stored."""
    kernels: int = 0
    """Number of distinct kernels."""
    clocked: bool = False
    """Whether `main` takes an array of `readings` int64 for the cycle counter: before each call and at the end.

    On several threads it is read before and behind each call on each: [threads, calls, 2].
    """
    threads: int = 1
    """Number of threads that `main` is divided among."""
    states: tuple[State, ...] = ()
    """The outputs that `main` reads as well, which keep their content from call to call; no input is one of them."""
    externals: tuple[tuple[int, int], ...] = ()
    """Offset and bytes, among the constants, of the record of each function of another library that is called."""

    @property
    def readings(self) -> int:
        """How often a run of clocked code reads the cycle counter."""
        return len(self.calls) + 1 if self.threads == 1 else 2 * len(self.calls) * self.threads

    def external_functions(self) -> tuple[ExternalFunction, ...]:
        """The functions of other libraries that are called; raises `CompileError` where a record is damaged."""
        try:
            records = [self.constants[start : start + size].tobytes() for start, size in self.externals]
            return tuple(map(externals.read, records))
        except (ValueError, IndexError, struct.error) as error:
            raise error_at_module(self.module, f"record of an external function is damaged: {error}") from error

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(call.label for call in self.calls)


def error_at_module(module: ir.Module, message: str) -> CompileError:
    """An error about the module as a whole."""
    return error_at(module.operation.location, message)


def phase_of(module: ir.Module) -> Phase:
    """The phase attribute of `module`, `qnn` if there is none; raises `CompileError` if it is not a phase."""
    name = _text(module, PHASE)
    if name is None:
        return Phase.QNN
    if name not in list(Phase):
        raise error_at_module(module, f"{PHASE} must be one of {', '.join(Phase)}, but got '{name}'")
    return Phase(name)


def target_name_of(module: ir.Module) -> str | None:
    """The name of the CPU that `module` was lowered for; None before phase `linalg`."""
    return _text(module, TARGET)


def set_phase(module: ir.Module, phase: Phase) -> None:
    """Set the phase attribute of `module`."""
    with module.context:
        module.operation.attributes[PHASE] = ir.StringAttr.get(phase)


def write(lowered: Lowered, target: str) -> None:
    """Set the attributes of the module of `lowered`, which is at phase `linalg`."""
    with lowered.module.context:
        attributes = lowered.module.operation.attributes
        attributes[PHASE] = ir.StringAttr.get(Phase.LINALG)
        attributes[TARGET] = ir.StringAttr.get(target)
        attributes[PROGRAM] = attribute_of(_tree(lowered))
        if lowered.constants.size:
            attributes[CONSTANTS] = ir.DenseElementsAttr.get(lowered.constants.view(np.int8))


def divide(module: ir.Module, threads: int, growth: int) -> None:
    """Set in the attributes of `module` that it is divided among `threads`, and that its workspace has grown."""
    program = ir.DictAttr(module.operation.attributes[PROGRAM])
    with module.context:
        known: dict[str, ir.Attribute] = {entry.name: entry.attr for entry in (program[i] for i in range(len(program)))}
        if growth:
            # A network that needs no working memory takes an array of one byte.
            before = max(ir.IntegerAttr(known["arena_bytes"]).value, 1)
            known["arena_bytes"] = attribute_of(before + growth)
        known["threads"] = attribute_of(threads)
        module.operation.attributes[PROGRAM] = ir.DictAttr.get(known)


def read(module: ir.Module) -> Lowered:
    """Read the attributes of a module from phase `linalg` on; raises `CompileError` if they are damaged."""
    attributes = module.operation.attributes
    if PROGRAM not in attributes:
        phase = phase_of(module)
        raise error_at_module(module, f"a module at phase {phase} must describe the arguments of main in {PROGRAM}")
    try:
        return _lowered(module, tree_of(attributes[PROGRAM]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"{PROGRAM} is damaged: {type(error).__name__}: {error}"
        raise error_at_module(module, message) from error


def ports(function: ir.Operation, kind: str) -> tuple[Port, ...]:
    """Name, shape and quantization of arguments (``arg``) or results (``res``), from their `qnn.*` attributes."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    types = type_.inputs if kind == "arg" else type_.results
    dictionaries = _attributes(function, kind)
    found: list[Port] = []
    for index, tensor in enumerate(types):
        own = dictionaries[index] if dictionaries else ir.DictAttr.get({}, function.context)
        name = ir.StringAttr(own["qnn.name"]).value if "qnn.name" in own else f"{kind}{index}"
        scale = ir.FloatAttr(own["qnn.scale"]).value if "qnn.scale" in own else None
        zero_point = ir.IntegerAttr(own["qnn.zero_point"]).value if "qnn.zero_point" in own else None
        found.append(Port(name, shape_of(tensor), dtype_of(tensor), scale, zero_point))
    return tuple(found)


STATE, START = "qnn.state", "qnn.start"
"""Attributes of an argument: the result that is this argument in the next call, and its content in the first one."""


def results_of_states(function: ir.Operation) -> dict[int, int]:
    """The arguments that are states, by number, and their results; raises `CompileError` where one cannot be."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    given = enumerate(_attributes(function, "arg"))
    states = {index: own[STATE] for index, own in given if STATE in own}
    for index, own in states.items():
        if not isinstance(own, ir.IntegerAttr):
            raise error_at(function.location, f"{STATE} of argument {index} must be an integer, but got {own}")
    found = {index: ir.IntegerAttr(own).value for index, own in states.items()}
    for index, result in found.items():
        fits = 0 <= result < len(type_.results) and type_.results[result] == type_.inputs[index]
        if not fits or list(found.values()).count(result) > 1:
            message = f"{STATE} of argument {index} must be a result of its own and of its type, but got {result}"
            raise error_at(function.location, message)
    return found


def start_of(function: ir.Operation, argument: int) -> Array | None:
    """What a state holds before the first call; None for zeros."""
    own = _attributes(function, "arg")[argument]
    if START not in own:
        return None
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs[argument]
    if not isinstance(own[START], ir.DenseElementsAttr) or ir.DenseElementsAttr(own[START]).type != type_:
        raise error_at(function.location, f"{START} of argument {argument} must be elements of its type")
    return elements_array(ir.DenseElementsAttr(own[START]), dtype_of(type_), shape_of(type_))


def refuse_states(module: ir.Module, function: ir.Operation) -> None:
    """Raise `CompileError` for a network with states, where it is compiled for more than one size."""
    if results_of_states(function):
        raise error_at_module(module, "a network that keeps a state must have inputs of known shapes")


def _attributes(function: ir.Operation, kind: str) -> list[ir.DictAttr]:
    """Those of each argument (``arg``) or result (``res``); none where no one has any."""
    name = f"{kind}_attrs"
    return [ir.DictAttr(one) for one in ir.ArrayAttr(function.attributes[name])] if name in function.attributes else []


def _text(module: ir.Module, name: str) -> str | None:
    attributes = module.operation.attributes
    if name not in attributes:
        return None
    attribute = attributes[name]
    if not isinstance(attribute, ir.StringAttr):
        raise error_at_module(module, f"{name} must be a string, but got {attribute}")
    return attribute.value


def _tree(lowered: Lowered) -> Tree:
    return {
        "arena_bytes": lowered.arena_bytes,
        "buffers": lowered.buffers,
        "clocked": lowered.clocked,
        **({"externals": lowered.externals} if lowered.externals else {}),
        "inputs": [_port_tree(port) for port in lowered.inputs],
        "live_bytes": lowered.live_bytes,
        "outputs": [_port_tree(port) for port in lowered.outputs],
        **({"states": [(one.argument, one.output, one.start) for one in lowered.states]} if lowered.states else {}),
        "calls": [_call_tree(call) for call in lowered.calls],
        "threads": lowered.threads,
        "weights_bytes": lowered.weights_bytes,
    }


def _port_tree(port: Port) -> Tree:
    type_ = ir.RankedTensorType.get(
        list(port.shape), ir.Type.parse(ELEMENT_NAMES[port.dtype]), loc=ir.Location.unknown()
    )
    quantization: dict[str, Tree] = {}
    if port.scale is not None:
        quantization["scale"] = port.scale
    if port.zero_point is not None:
        quantization["zero_point"] = port.zero_point
    return {"name": port.name, "type": type_, **quantization}


def _call_tree(call: KernelCall) -> Tree:
    return {
        "bytes_moved": call.bytes_moved,
        "kernel": call.kernel,
        "label": call.label,
        "macs": call.macs,
        "nodes": call.names,
        **({"tunable": vars(call.tunable)} if call.tunable else {}),
    }


def _tunable(tree: Mapping[str, Any]) -> Tunable:
    candidates = tuple(map(str, tree["candidates"]))
    return Tunable(str(tree["kernel"]), str(tree["own"]), candidates, str(tree["variant"]))


def _lowered(module: ir.Module, tree: Mapping[str, Any]) -> Lowered:
    calls = tuple(
        KernelCall(
            str(call["label"]),
            int(call["kernel"]),
            tuple(map(str, call["nodes"])),
            int(call["macs"]),
            int(call["bytes_moved"]),
            _tunable(call["tunable"]) if "tunable" in call else None,
        )
        for call in tree["calls"]
    )
    return Lowered(
        module,
        _constants(module),
        _size(tree["arena_bytes"]),
        tuple(map(_port, tree["inputs"])),
        tuple(map(_port, tree["outputs"])),
        live_bytes=_size(tree["live_bytes"]),
        weights_bytes=_size(tree["weights_bytes"]),
        calls=calls,
        buffers=tuple((str(element), int(size)) for element, size in tree["buffers"]),
        kernels=len({call.kernel for call in calls}),
        clocked=bool(tree["clocked"]),
        threads=_size(tree["threads"]),
        states=tuple(State(*map(int, numbers)) for numbers in tree.get("states", ())),
        externals=tuple((_size(start), _size(size)) for start, size in tree.get("externals", ())),
    )


def _size(value: int) -> int:
    if value < 0:
        raise ValueError(f"expected a number of at least 0, but got {value}")
    return int(value)


def _port(tree: Mapping[str, Any]) -> Port:
    scale, zero_point = tree.get("scale"), tree.get("zero_point")
    return Port(str(tree["name"]), shape_of(tree["type"]), dtype_of(tree["type"]), scale, zero_point)


def _constants(module: ir.Module) -> NDArray[np.uint8]:
    if CONSTANTS not in module.operation.attributes:
        return np.empty(0, np.uint8)
    attribute = module.operation.attributes[CONSTANTS]
    if not isinstance(attribute, ir.DenseElementsAttr):
        raise error_at_module(module, f"{CONSTANTS} must come with its data, but {attribute} has none")
    type_ = ir.RankedTensorType(attribute.type)
    return elements_array(attribute, np.dtype(np.int8), tuple(type_.shape)).view(np.uint8)


# The levels that a module passes through.


class Phase(StrEnum):
    """Levels a module passes through, in order; each can be printed, stopped at, and started from."""

    QNN = "qnn"
    """The quantized graph as it was imported."""
    FUSED = "fused"
    """One op per kernel."""
    LINALG = "linalg"
    """Kernels on strided views, calls over planned memory."""
    VECTOR = "vector"
    """Kernels as loops over vectors: `vector.contract`, `vector.gather`."""
    X86 = "x86"
    """The target's instructions in place."""
    LLVM = "llvm"
    """The LLVM dialect."""

    @property
    def number(self) -> int:
        """Its position in the order."""
        return list(Phase).index(self)

    def up_to(self, last: Phase) -> list[Phase]:
        """The phases after this one, as far as `last`."""
        return list(Phase)[self.number + 1 : last.number + 1]


# Plain Python values as MLIR attributes and back: dictionaries, sequences, strings, numbers and types.

Tree = Mapping[str, "Tree"] | Sequence["Tree"] | str | bool | int | float | ir.Type
"""The types that can be written: an `int` has 64 bits, a `float` is `f64`."""


def attribute_of(value: Tree) -> ir.Attribute:
    """`value` as an attribute of the current context; raises `TypeError` for a value of another kind."""
    if isinstance(value, Mapping):
        return ir.DictAttr.get({name: attribute_of(entry) for name, entry in value.items()})
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, ir.Type):
        return ir.TypeAttr.get(value)
    return ir.ArrayAttr.get([attribute_of(entry) for entry in value])


def tree_of(attribute: ir.Attribute) -> Any:
    """The inverse of `attribute_of`; tuples for sequences. Raises `ValueError` for another kind of attribute."""
    if isinstance(attribute, ir.DictAttr):
        entries = [attribute[i] for i in range(len(attribute))]
        return {entry.name: tree_of(entry.attr) for entry in entries}
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(map(tree_of, attribute))
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.TypeAttr):
        return attribute.value
    raise ValueError(f"expected a dictionary, array, string, number or type, but got {attribute}")
