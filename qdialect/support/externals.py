"""An extern function: its record, which describes the ops that it computes, and how a network calls it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.support.interface import TENSOR, Array, Port, Tail, port_at, tensor, text_at

# The record of an extern function: the ops that it computes, with all their attributes and constants.

Value = int | float | str | tuple[int, ...] | tuple[float, ...] | NDArray[np.uint8]
"""An attribute: a number, several, a text, or the 256 entries of a table. A bool is 0 or 1."""


class Source(IntEnum):
    """Where the values of an operand come from."""

    CONSTANT = 1
    INPUT = 2
    OPERATION = 3


@dataclass(frozen=True)
class ExternalOperand:
    """An operand of an op; `tensor` is its shape and dtype, with scale and zero point where the op tells them."""

    tensor: Port
    source: Source
    index: int = 0
    """Of the function's input, or of the earlier op whose result it is."""
    data: NDArray[Any] | None = None
    """The elements of a constant, read-only."""


@dataclass(frozen=True)
class ExternalStage:
    """A stage of a fused op's epilogue, such as ``requantize``, with the defaults that its text may leave out."""

    name: str
    attributes: Mapping[str, Value]


@dataclass(frozen=True)
class ExternalOperation:
    """An op: `operands` by their names, the attributes but the epilogue, and the stages of that."""

    name: str
    """Such as ``qnn.fused_conv2d``."""
    operands: Mapping[str, ExternalOperand]
    attributes: Mapping[str, Value]
    stages: tuple[ExternalStage, ...]
    result: Port


@dataclass(frozen=True)
class ExternalFunction:
    """A function that another library computes: its ops in order, of which the last computes the output."""

    name: str
    """Of the outlined function."""
    target: str
    symbol: str
    """The C function that is called."""
    nodes: str
    """Names of the model's nodes, with commas between them."""
    location: str
    """``file:line:column``; empty where it is unknown."""
    inputs: tuple[Port, ...]
    output: Port
    operations: tuple[ExternalOperation, ...]

    @property
    def call(self) -> ExternalCall:
        """Its description in messages."""
        node = f" at node '{self.nodes}'" if self.nodes else ""
        kind = f"'{self.operations[0].name}' op" if len(self.operations) == 1 else "region"
        return ExternalCall(f"{kind} '{self.name}'{node}", self.target, self.symbol, self.location)


# A call of a function of another library: all that a process knows of it which loads a compiled network.


@dataclass(frozen=True)
class ExternalCall:
    """A call of a C function of another library, as messages tell of it."""

    title: str
    target: str
    symbol: str
    location: str
    """``file:line:column``; empty where it is unknown."""

    @property
    def position(self) -> tuple[str, int, int]:
        """File, line and column; empty and zeros where they are unknown."""
        file, *numbers = self.location.rsplit(":", 2)
        return (file, int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else ("", 0, 0)


# The words at the start of the working memory by which external functions are called, 64 bits each.

WORD_BYTES = 8

STATUS = 0
"""The status of the first function that failed; 0 if all succeeded."""

NUMBER = 1
"""The number of the function that was called last, which is the one that failed."""

FIRST_ADDRESS = 2
"""Where the addresses of inputs begin; those of outputs follow."""


# An extern function as constant data: `qdialect_external` of the C interface, its first argument.
#
# All that it has offsets of stands behind it, the elements of constants too, at multiples of 64.


EXTERNAL_ABI_VERSION = 1
"""Of the records and of how external functions are called. It grows where a library would be wrong about them."""

_ALIGNMENT = 64

# version, size, name, target, symbol, nodes, location, counts and offsets of inputs, outputs and operations, reserved
_FUNCTION = struct.Struct("<14I")
# A tensor for the result, then name, counts and offsets of operands, attributes and stages, reserved.
_OPERATION = struct.Struct("<8I")
# A tensor, then source, index, data, reserved.
_OPERAND = struct.Struct("<4I")
# name, count and offset of attributes, reserved
_STAGE = struct.Struct("<4I")
# name, kind, rank, count, data, reserved
_ATTRIBUTE = struct.Struct("<6I")


class AttributeForm(IntEnum):
    """How an attribute is written: int64_t, double, text that ends with a zero byte, or bytes."""

    INTEGER = 1
    NUMBER = 2
    TEXT = 3
    BYTES = 4


def written(function: ExternalFunction) -> bytes:
    """The record of `function`, little-endian; raises `TypeError` for an attribute that is no `Value`."""
    tail = Tail(_FUNCTION.size)
    texts = [
        tail.text(text) for text in (function.name, function.target, function.symbol, function.nodes, function.location)
    ]
    inputs = _array([tensor(port, tail) for port in function.inputs], tail)
    outputs = _array([tensor(function.output, tail)], tail)
    operations = _array([_operation(operation, tail) for operation in function.operations], tail)
    content = bytes(tail.content)
    size = _FUNCTION.size + len(content)
    counted = (len(function.inputs), inputs, 1, outputs, len(function.operations), operations)
    return _FUNCTION.pack(EXTERNAL_ABI_VERSION, size, *texts, *counted, 0) + content


def read(record: bytes) -> ExternalFunction:
    """The function that a record describes; raises `ValueError`, `IndexError` or `struct.error` where it is damaged."""
    version, size, *offsets, input_count, inputs, _, output, operation_count, operations, _ = _FUNCTION.unpack_from(
        record
    )
    if version != EXTERNAL_ABI_VERSION or size > len(record):
        raise ValueError(f"version {EXTERNAL_ABI_VERSION} and {size} bytes are expected, but got version {version}")
    name, target, symbol, nodes, location = (text_at(record, offset) for offset in offsets)
    step = TENSOR.size + _OPERATION.size
    return ExternalFunction(
        name,
        target,
        symbol,
        nodes,
        location,
        tuple(port_at(record, inputs + TENSOR.size * index) for index in range(input_count)),
        port_at(record, output),
        tuple(_read_operation(record, operations + step * index) for index in range(operation_count)),
    )


def _array(structures: Sequence[bytes], tail: Tail) -> int:
    return tail.add(b"".join(structures), alignment=8)


def _operation(operation: ExternalOperation, tail: Tail) -> bytes:
    operands = _array([_operand(name, operand, tail) for name, operand in operation.operands.items()], tail)
    attributes = _attributes(operation.attributes, tail)
    stages = [_STAGE.pack(tail.text(stage.name), *_attributes(stage.attributes, tail), 0) for stage in operation.stages]
    numbers = (len(operation.operands), operands, *attributes, len(stages), _array(stages, tail))
    return tensor(operation.result, tail) + _OPERATION.pack(tail.text(operation.name), *numbers, 0)


def _operand(name: str, operand: ExternalOperand, tail: Tail) -> bytes:
    port = operand.tensor
    named = Port(name, port.shape, port.dtype, port.scale, port.zero_point)
    data = 0 if operand.data is None else tail.add(np.ascontiguousarray(operand.data).tobytes(), _ALIGNMENT)
    return tensor(named, tail) + _OPERAND.pack(operand.source, operand.index, data, 0)


def _attributes(attributes: Mapping[str, Value], tail: Tail) -> tuple[int, int]:
    """How many there are, and where they stand."""
    structures = [_ATTRIBUTE.pack(tail.text(name), *_value(value, tail), 0) for name, value in attributes.items()]
    return len(structures), _array(structures, tail)


def _value(value: Value, tail: Tail) -> tuple[int, int, int, int]:
    """Form, rank, count and offset."""
    if isinstance(value, str):
        return AttributeForm.TEXT, 0, len(value.encode(errors="backslashreplace")), tail.text(value)
    if isinstance(value, np.ndarray):
        return AttributeForm.BYTES, 1, value.size, tail.add(value.tobytes(), _ALIGNMENT)
    rank = int(isinstance(value, tuple))
    numbers = np.array(value)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"attribute must be numbers, a text or a table, but got {value!r}")
    form, dtype = (AttributeForm.NUMBER, "<f8") if numbers.dtype.kind == "f" else (AttributeForm.INTEGER, "<i8")
    return form, rank, numbers.size, tail.add(numbers.astype(dtype).tobytes(), alignment=8)


def _read_operation(record: bytes, offset: int) -> ExternalOperation:
    name, operand_count, operands, attribute_count, attributes, stage_count, stages, _ = _OPERATION.unpack_from(
        record, offset + TENSOR.size
    )
    step = TENSOR.size + _OPERAND.size
    return ExternalOperation(
        text_at(record, name),
        dict(_read_operand(record, operands + step * index) for index in range(operand_count)),
        _read_attributes(record, attribute_count, attributes),
        tuple(_read_stage(record, stages + _STAGE.size * index) for index in range(stage_count)),
        port_at(record, offset),
    )


def _read_operand(record: bytes, offset: int) -> tuple[str, ExternalOperand]:
    port = port_at(record, offset)
    source, index, data, _ = _OPERAND.unpack_from(record, offset + TENSOR.size)
    elements = None
    if source == Source.CONSTANT:
        elements = _elements(record, data, int(np.prod(port.shape)), port.dtype).reshape(port.shape)
    return port.name, ExternalOperand(port, Source(source), index, elements)


def _read_stage(record: bytes, offset: int) -> ExternalStage:
    name, count, attributes, _ = _STAGE.unpack_from(record, offset)
    return ExternalStage(text_at(record, name), _read_attributes(record, count, attributes))


def _read_attributes(record: bytes, count: int, offset: int) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for index in range(count):
        name, form, rank, size, data, _ = _ATTRIBUTE.unpack_from(record, offset + _ATTRIBUTE.size * index)
        found[text_at(record, name)] = _read_value(record, AttributeForm(form), rank, size, data)
    return found


def _read_value(record: bytes, form: AttributeForm, rank: int, size: int, data: int) -> Value:
    if form is AttributeForm.TEXT:
        return text_at(record, data)
    if form is AttributeForm.BYTES:
        return _elements(record, data, size, np.dtype(np.uint8))
    dtype = np.dtype("<f8") if form is AttributeForm.NUMBER else np.dtype("<i8")
    numbers = tuple(_elements(record, data, size, dtype).tolist())
    return numbers if rank else numbers[0]


def _elements(record: bytes, offset: int, count: int, dtype: np.dtype[Any]) -> Array:
    return np.frombuffer(record, dtype, count, offset)
