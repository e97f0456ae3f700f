"""Writes .tflite models: tensors and nodes in the order they are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray

_IDENTIFIER = b"TFL3"
_SCHEMA_VERSION = 3
# The oldest field for the operator's number is a byte; larger numbers say so by this value in it.
_LARGEST_OLD_CODE = 127
# Of operators that runtimes know from a later version on; all others are written as the first.
_VERSIONS = {tflite.BuiltinOperator.BROADCAST_TO: 2}

_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.bool_): tflite.TensorType.BOOL,
    np.dtype(np.float16): tflite.TensorType.FLOAT16,
    np.dtype(np.float32): tflite.TensorType.FLOAT32,
    np.dtype(np.float64): tflite.TensorType.FLOAT64,
    np.dtype(np.int8): tflite.TensorType.INT8,
    np.dtype(np.uint8): tflite.TensorType.UINT8,
    np.dtype(np.int16): tflite.TensorType.INT16,
    np.dtype(np.int32): tflite.TensorType.INT32,
    np.dtype(np.int64): tflite.TensorType.INT64,
}


@dataclass(frozen=True)
class Quantization:
    """Scales and zero points, one of each or one for each index of `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type: int
    quantization: Quantization | None
    data: NDArray[Any] | None
    signature: tuple[int, ...] = ()
    is_variable: bool = False


@dataclass(frozen=True)
class _Operator:
    code: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_type: int
    write_options: Callable[[Builder], int] | None
    intermediates: tuple[int, ...] = ()


class ModelWriter:
    """Collects a model; tensors are named by the index that adding them gives."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: type[np.generic],
        quantization: Quantization | None = None,
        signature: Sequence[int] = (),
    ) -> int:
        """Add a tensor that a node computes or the caller gives; `signature` has -1 for what `shape` leaves open."""
        entry = _Tensor(name, tuple(shape), _TYPES[np.dtype(dtype)], quantization, None, tuple(signature))
        self._tensors.append(entry)
        return len(self._tensors) - 1

    def variable(
        self, name: str, shape: Sequence[int], dtype: type[np.generic], quantization: Quantization | None = None
    ) -> int:
        """Add a tensor in which a node keeps its state."""
        kind = _TYPES[np.dtype(dtype)]
        self._tensors.append(_Tensor(name, tuple(shape), kind, quantization, None, is_variable=True))
        return len(self._tensors) - 1

    def constant(self, name: str, data: NDArray[Any], quantization: Quantization | None = None) -> int:
        """Add a tensor with content."""
        self._tensors.append(_Tensor(name, data.shape, _TYPES[data.dtype], quantization, data))
        return len(self._tensors) - 1

    def operator(
        self,
        code: int,
        inputs: Sequence[int],
        outputs: int | Sequence[int],
        options_type: int = tflite.BuiltinOptions.NONE,
        write_options: Callable[[Builder], int] | None = None,
        intermediates: Sequence[int] = (),
    ) -> None:
        """Add a node of the `BuiltinOperator` `code`; `write_options` writes its options and gives their offset.

        An input of -1 is one that the node leaves out.
        """
        results = (outputs,) if isinstance(outputs, int) else tuple(outputs)
        node = _Operator(code, tuple(inputs), results, options_type, write_options, tuple(intermediates))
        self._operators.append(node)

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The content of the model's file; `inputs` and `outputs` are those of the graph."""
        return write_model([Subgraph(self, inputs, outputs)])

    @property
    def description(self) -> str:
        """Of the model."""
        return self._description

    @property
    def operator_codes(self) -> set[int]:
        """The `BuiltinOperator`s of its nodes."""
        return {operator.code for operator in self._operators}

    @property
    def contents(self) -> list[bytes]:
        """The contents of its constants, in the order of tensors."""
        return [tensor.data.tobytes() for tensor in self._tensors if tensor.data is not None]

    def write(
        self,
        builder: Builder,
        operator_codes: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        buffers: int,
    ) -> int:
        """The offset of its subgraph, whose contents follow the first `buffers` buffers of the file."""
        offsets: list[int] = []
        buffer = buffers - 1
        for tensor in self._tensors:
            buffer += tensor.data is not None
            offsets.append(_write_tensor(builder, tensor, buffer if tensor.data is not None else 0))
        tensors = table_vector(builder, offsets)
        operators = table_vector(builder, [_write_operator(builder, o, operator_codes) for o in self._operators])
        fields = {"Tensors": tensors, "Inputs": _indices(builder, inputs), "Outputs": _indices(builder, outputs)}
        return table(builder, "SubGraph", **fields, Operators=operators, Name=builder.CreateString("main"))


@dataclass(frozen=True)
class Subgraph:
    """A subgraph of a model, and its inputs and outputs by the indices of tensors."""

    writer: ModelWriter
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(frozen=True)
class Signature:
    """A way to call a model: a subgraph, by its index, and names for the indices of its inputs and outputs."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


def write_model(subgraphs: Sequence[Subgraph], signatures: Sequence[Signature] = ()) -> bytes:
    """The content of a file with these subgraphs, the first of which runs by default; it describes the model."""
    builder = Builder(1 << 20)
    operator_codes = sorted(set[int]().union(*(subgraph.writer.operator_codes for subgraph in subgraphs)))
    # Buffer 0 is empty by convention and stands for "computed".
    contents, firsts = [b""], list[int]()
    for one in subgraphs:
        firsts.append(len(contents))
        contents += one.writer.contents
    buffers = table_vector(builder, [_write_buffer(builder, content) for content in contents])
    written = [
        one.writer.write(builder, operator_codes, one.inputs, one.outputs, first)
        for one, first in zip(subgraphs, firsts, strict=True)
    ]
    subgraph_vector = table_vector(builder, written)
    code_vector = table_vector(builder, [_write_code(builder, code) for code in operator_codes])
    written_signatures = [_write_signature(builder, signature) for signature in signatures]
    # An empty vector would take bytes of the file too.
    signature_vector = table_vector(builder, written_signatures) if written_signatures else None
    model = table(
        builder,
        "Model",
        Version=_SCHEMA_VERSION,
        OperatorCodes=code_vector,
        Subgraphs=subgraph_vector,
        Description=builder.CreateString(subgraphs[0].writer.description),
        Buffers=buffers,
        SignatureDefs=signature_vector,
    )
    builder.Finish(model, _IDENTIFIER)
    return bytes(builder.Output())


def options(name: str, **fields: float) -> tuple[int, Callable[[Builder], int]]:
    """The options table `name` of the schema with these fields, as `ModelWriter.operator` takes it."""
    return getattr(tflite.BuiltinOptions, name), lambda builder: table(builder, name, **fields)


def table(builder: Builder, name: str, **fields: float | None) -> int:
    """The table `name` of the schema with these fields, written in their order; None is left out."""
    getattr(tflite, f"{name}Start")(builder)
    for field, value in fields.items():
        if value is not None:
            getattr(tflite, f"{name}Add{field}")(builder, value)
    return getattr(tflite, f"{name}End")(builder)


def _write_signature(builder: Builder, signature: Signature) -> int:

    def named(tensors: Mapping[str, int]) -> int:
        pairs = tensors.items()
        maps = [table(builder, "TensorMap", Name=builder.CreateString(name), TensorIndex=at) for name, at in pairs]
        return table_vector(builder, maps)

    inputs, outputs = named(signature.inputs), named(signature.outputs)
    key = builder.CreateString(signature.key)
    fields = {"Inputs": inputs, "Outputs": outputs, "SignatureKey": key, "SubgraphIndex": signature.subgraph}
    return table(builder, "SignatureDef", **fields)


def table_vector(builder: Builder, offsets: Sequence[int]) -> int:
    """A vector of tables."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _indices(builder: Builder, values: Sequence[int]) -> int:
    return builder.CreateNumpyVector(np.array(values, dtype=np.int32))


def _write_buffer(builder: Builder, content: bytes) -> int:
    return table(builder, "Buffer", Data=_aligned_bytes(builder, content) if content else None)


def _aligned_bytes(builder: Builder, content: bytes) -> int:
    """A vector of bytes that starts at a multiple of 16, as the runtimes that map the file want it."""
    builder.StartVector(1, len(content), 16)
    builder.head -= len(content)
    builder.Bytes[builder.head : builder.head + len(content)] = content
    return builder.EndVector()


def _write_code(builder: Builder, code: int) -> int:
    fields = {"DeprecatedBuiltinCode": min(code, _LARGEST_OLD_CODE), "Version": _VERSIONS.get(code, 1)}
    return table(builder, "OperatorCode", **fields, BuiltinCode=code)


def _write_tensor(builder: Builder, tensor: _Tensor, buffer: int) -> int:
    name, shape = builder.CreateString(tensor.name), _indices(builder, tensor.shape)
    quantization = None if tensor.quantization is None else _write_quantization(builder, tensor.quantization)
    signature = _indices(builder, tensor.signature) if tensor.signature else None
    return table(
        builder,
        "Tensor",
        Shape=shape,
        Type=tensor.type,
        Buffer=buffer,
        Name=name,
        Quantization=quantization,
        ShapeSignature=signature,
        IsVariable=tensor.is_variable or None,
    )


def _write_quantization(builder: Builder, quantization: Quantization) -> int:
    scales = builder.CreateNumpyVector(np.array(quantization.scales, dtype=np.float32))
    zero_points = builder.CreateNumpyVector(np.array(quantization.zero_points, dtype=np.int64))
    fields = {"Scale": scales, "ZeroPoint": zero_points, "QuantizedDimension": quantization.axis}
    return table(builder, "QuantizationParameters", **fields)


def _write_operator(builder: Builder, operator: _Operator, operator_codes: Sequence[int]) -> int:
    inputs, outputs = _indices(builder, operator.inputs), _indices(builder, operator.outputs)
    between = _indices(builder, operator.intermediates) if operator.intermediates else None
    held = None if operator.write_options is None else operator.write_options(builder)
    return table(
        builder,
        "Operator",
        OpcodeIndex=operator_codes.index(operator.code),
        Inputs=inputs,
        Outputs=outputs,
        BuiltinOptionsType=None if held is None else operator.options_type,
        BuiltinOptions=held,
        Intermediates=between,
    )
