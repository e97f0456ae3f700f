"""Reads a .tflite file; a damaged one ends in `ImportModelError`.

The schema's accessors trust the file: a wrong offset makes them raise whatever the broken bytes lead to, a wrong length
makes them loop.  So they are called under `reading`, and every length is held against the file's size.
Tables may share what they point to, so what is read of them is added up, and all of it is held against the size too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal, TypeVar

import numpy as np
import tflite
from flatbuffers import Table
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import packed_bytes, unpack
from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.building.checks import Array, Budget, Shape, is_shape
from qdialect.frontends.tflite.flatbuffer.model import MAX_DIMENSIONS, Graph, Operator, Tensor, reading
from qdialect.support.diagnostics import ImportModelError

T = TypeVar("T")

_IDENTIFIER = b"TFL3"
_IDENTIFIER_END = 8
_SCHEMA_VERSION = 3
LOOP, COMPOSITE = "WHILE", "STABLEHLO_COMPOSITE"
"""The operators that run other subgraphs."""
_MAX_SUBGRAPHS = 64
# The converter's files share next to nothing; where tables name one vector again and again, reading multiplies it.
_MAX_READ = 8
# Offsets of strings in the tables' lists of fields, as the schema orders these.
_NAME, _CUSTOM_CODE, _SIGNATURE_KEY, _MAP_NAME = 10, 6, 8, 4
_BUILTIN_CODE = 10
_BLOCK_SCALES, _BLOCK_ZERO_POINTS, _BLOCK_SIZE = 4, 6, 8
_DESCRIPTION = b"M001"
_DESCRIPTIVE = {"name": 4, "description": 6, "version": 8, "author": 12, "license": 14}
"""The identifier of a model's description, and the offsets of its texts in the list of its fields."""
_MAX_METADATA, _MAX_METADATA_BYTES = 64, 1 << 20
# Of quantization details, newer than the schema's classes here.
_BLOCKWISE, _BLOCK_BITS = 2, 4
# Where the schema's classes keep what they read.
_table_of = attrgetter("_tab")

_ELEMENTS = {
    tflite.TensorType.BOOL: "i1",
    tflite.TensorType.FLOAT16: "f16",
    tflite.TensorType.FLOAT32: "f32",
    tflite.TensorType.INT8: "i8",
    tflite.TensorType.UINT8: "ui8",
    tflite.TensorType.INT16: "i16",
    tflite.TensorType.INT32: "i32",
    tflite.TensorType.INT64: "i64",
}
_NARROW = {tflite.TensorType.INT4: 4, 19: 2}
"""Bits of integers that are packed, the first of a byte in its lowest bits; the package does not name those of 2."""
_DTYPES = {"i1": "?", "f16": "<f2", "f32": "<f4", "i8": "i1", "ui8": "u1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}


def _names_of(enumeration: type) -> dict[int, str]:
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}


_OPERATOR_NAMES = _names_of(tflite.BuiltinOperator)
_TYPE_NAMES = {**_names_of(tflite.TensorType), 19: "INT2"}


def read_graph(content: bytes, signature: str = "") -> Graph:
    """The graph of a model file; every index, shape and constant in it is checked.

    A file of several subgraphs gives that of `signature`, or its first as an interpreter runs it.

    Raises `ImportModelError`, also for a signature that the file lacks.
    """
    return _reader(content).graph(signature)


def read_inputs(content: bytes, signature: str = "") -> Graph:
    """The inputs of the graph that `read_graph` gives, without their contents and without the rest of the file.

    Raises `ImportModelError` as `read_graph` does for what of the file is read.
    """
    return _reader(content).inputs(signature)


def metadata(content: bytes) -> dict[str, str]:
    """The texts about itself of a model file that was read before, by names; what is damaged or no text is left out.

    Those of the format's own description of a model have the names that they have there.
    """
    found: dict[str, str] = {}
    with suppress(ImportModelError), reading("the metadata"):
        model = tflite.Model.GetRootAs(content, 0)
        for index in range(min(model.MetadataLength(), _MAX_METADATA)):
            entry: Any = model.Metadata(index)
            buffer: Any = model.Buffers(entry.Buffer())
            if 0 < buffer.DataLength() <= _MAX_METADATA_BYTES:
                raw = buffer.DataAsNumpy().tobytes()
                own = _described(raw) if raw[4:8] == _DESCRIPTION else {entry.Name(): raw}
                found |= dict(_texts(own))
    return found


def _described(raw: bytes) -> dict[bytes | None, bytes]:
    """The texts of a table `ModelMetadata`, whose schema is no part of that of models."""
    table: Any = Table(raw, int.from_bytes(raw[:4], "little"))
    slots = {name: table.Offset(slot) for name, slot in _DESCRIPTIVE.items()}
    return {name.encode(): table.String(table.Pos + slot) for name, slot in slots.items() if slot}


def _texts(found: Mapping[bytes | None, bytes]) -> Iterator[tuple[str, str]]:
    for name, raw in found.items():
        with suppress(UnicodeDecodeError):
            text = raw.rstrip(b"\0").decode()
            if name and "\0" not in text:
                yield name.decode(), text


def _reader(content: bytes) -> _Reader:
    if content[4:_IDENTIFIER_END] != _IDENTIFIER:
        raise ImportModelError("file is no .tflite model: it must have the identifier 'TFL3'")
    with reading("the model"):
        model = tflite.Model.GetRootAs(content, 0)
        version, subgraphs = model.Version(), model.SubgraphsLength()
    _require(version == _SCHEMA_VERSION, f"schema version must be {_SCHEMA_VERSION}, but got {version}")
    _require(subgraphs >= 1, "model must have a subgraph, but got 0")
    return _Reader(content, model)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ImportModelError(message)


def _present(value: T | None, what: str) -> T:
    if value is None:
        raise ImportModelError(f"file is damaged: it has no {what}")
    return value


_Buffers = tuple[NDArray[np.uint8] | None, ...]
_Named = tflite.Tensor | tflite.OperatorCode | tflite.SignatureDef | tflite.TensorMap


class _Reader:
    def __init__(self, content: bytes, model: tflite.Model) -> None:
        self._content = content
        self._size = len(content)
        self._left = _MAX_READ * len(content)
        self._budget = Budget.of_file(len(content))
        self._model = model

    def graph(self, signature: str) -> Graph:
        index, names = self._signature(signature) if signature else (0, {})
        buffers = self._all("buffers", self._model.BuffersLength, self._buffer)
        main = self._subgraph(index, names, buffers)
        if all(operator.kind not in (LOOP, COMPOSITE) for operator in main.operators):
            return main
        with reading("the subgraphs"):
            count = self._model.SubgraphsLength()
        _require(count <= _MAX_SUBGRAPHS, f"model must have at most {_MAX_SUBGRAPHS} subgraphs, but got {count}")
        return replace(main, others={i: self._subgraph(i, {}, buffers) for i in range(count) if i != index})

    def inputs(self, signature: str) -> Graph:
        index, names = self._signature(signature) if signature else (0, {})
        with reading("the subgraph"):
            subgraph = _present(self._model.Subgraphs(index), f"subgraph {index}")
            count = subgraph.TensorsLength()
        with reading("the inputs and outputs"):
            found = self._integers(subgraph.InputsAsNumpy())
            _check_indices(found, count, "the graph's inputs")
            inputs = tuple(self._tensor(subgraph, i, None) for i in found)
        return Graph(inputs, (), inputs, (), self._budget, names, index)

    def _subgraph(self, index: int, names: dict[int, str], buffers: _Buffers) -> Graph:
        with reading("the subgraph"):
            subgraph = _present(self._model.Subgraphs(index), f"subgraph {index}")
        kinds = self._all("operator codes", self._model.OperatorCodesLength, self._kind)
        tensors = self._all("tensors", subgraph.TensorsLength, lambda i: self._tensor(subgraph, i, buffers))
        operators = self._all(
            "operators", subgraph.OperatorsLength, lambda i: self._operator(subgraph, i, kinds, tensors)
        )
        with reading("the inputs and outputs"):
            inputs = self._integers(subgraph.InputsAsNumpy())
            outputs = self._integers(subgraph.OutputsAsNumpy())
        graph_inputs = _tensors_at(inputs, tensors, "the graph's inputs")
        graph_outputs = _tensors_at(outputs, tensors, "the graph's outputs")
        return Graph(tensors, operators, graph_inputs, graph_outputs, self._budget, names, index)

    def _signature(self, wanted: str) -> tuple[int, dict[int, str]]:
        """The index of a signature's subgraph, and its names for tensors."""
        entries = self._all("signatures", self._model.SignatureDefsLength, self._model.SignatureDefs)
        present = [_present(entry, f"signature {index}") for index, entry in enumerate(entries)]
        with reading("the signatures"):
            keys = [self._text(entry, _SIGNATURE_KEY, f"signature {index}") for index, entry in enumerate(present)]
        listed = ", ".join(f"'{key}'" for key in keys)
        known = f"one of the model's [{listed}]" if keys else "left out, since the model has none"
        _require(wanted in keys, f"signature must be {known}, but got '{wanted}'")
        entry = present[keys.index(wanted)]
        with reading(f"signature '{wanted}'"):
            index, count = entry.SubgraphIndex(), self._model.SubgraphsLength()
        _require(index < count, f"file is damaged: signature '{wanted}' has no subgraph {index}")
        names: dict[int, str] = {}
        for length, read in ((entry.InputsLength, entry.Inputs), (entry.OutputsLength, entry.Outputs)):
            for one in self._all(f"names of signature '{wanted}'", length, read):
                mapped = _present(one, f"entry in the names of signature '{wanted}'")
                with reading(f"signature '{wanted}'"):
                    names[mapped.TensorIndex()] = self._text(mapped, _MAP_NAME, f"signature '{wanted}'")
        return index, names

    def _all(self, what: str, length: Callable[[], int], read: Callable[[int], T]) -> tuple[T, ...]:
        with reading(f"the list of {what}"):
            count = length()
            # Four bytes are the least that an entry takes.
            _require(count * 4 <= self._size, f"file is damaged: it cannot hold {count} {what}")
            return tuple(read(index) for index in range(count))

    def _spend(self, count: int) -> None:
        self._left -= count
        allowed = f"tables must have their contents to themselves: {_MAX_READ * self._size} bytes may be read"
        _require(self._left >= 0, f"{allowed} of a file of {self._size}, but its tables hold more")

    def _integers(self, values: Array | Literal[0]) -> Shape:
        if isinstance(values, int):
            return ()
        self._spend(values.nbytes)
        return tuple(values.tolist())

    def _text(self, entry: _Named, field: int, what: str) -> str:
        """The string in a field of a table, empty where it is left out; the accessors would end it with the file."""
        table: Any = _table_of(entry)
        offset = int(table.Offset(field))
        if not offset:
            return ""
        begin = int(table.Indirect(table.Pos + offset))
        length = int(struct.unpack_from("<I", self._content, begin)[0])
        begin += 4
        holds = begin + length <= self._size
        _require(holds, f"file is damaged: {what} has a name of {length} bytes, but the file has {self._size}")
        self._spend(length)
        return self._content[begin : begin + length].decode("utf-8", errors="replace")

    def _buffer(self, index: int) -> NDArray[np.uint8] | None:
        buffer = _present(self._model.Buffers(index), f"buffer {index}")
        offset, size = buffer.Offset(), buffer.Size()
        if offset > 1 or size > 1:
            # It lies behind the tables.
            _require(
                offset + size <= self._size,
                f"file is damaged: buffer {index} must end within {self._size} bytes, but ends at {offset + size}",
            )
            return np.frombuffer(self._content, np.uint8, size, offset) if size else None
        data = buffer.DataAsNumpy()
        # An empty buffer stands for what is computed, as buffer 0 does.
        return None if isinstance(data, int) or data.size == 0 else data

    def _kind(self, index: int) -> str:
        code = _present(self._model.OperatorCodes(index), f"operator code {index}")
        # Files have a small number in either field, or in both; the accessor believes the old one.
        table: Any = _table_of(code)
        offset = int(table.Offset(_BUILTIN_CODE))
        recent = struct.unpack_from("<i", self._content, table.Pos + offset)[0] if offset else 0
        builtin = max(recent, code.DeprecatedBuiltinCode())
        custom = self._text(code, _CUSTOM_CODE, f"operator code {index}")
        if builtin == tflite.BuiltinOperator.CUSTOM and custom:
            return f"CUSTOM:{custom}"
        return _OPERATOR_NAMES.get(builtin, f"operator code {builtin}")

    def _tensor(self, subgraph: tflite.SubGraph, index: int, buffers: _Buffers | None) -> Tensor:
        """A tensor with its content, or without it where there are no `buffers`."""
        tensor = _present(subgraph.Tensors(index), f"tensor {index}")
        name = self._text(tensor, _NAME, f"tensor {index}") or f"tensor_{index}"
        element = _ELEMENTS.get(tensor.Type(), _TYPE_NAMES.get(tensor.Type(), f"type {tensor.Type()}").lower())
        shape = self._shape(tensor, name)
        content = None if buffers is None else _content(buffers, tensor, name)
        block, bits = self._block(tensor), _NARROW.get(tensor.Type(), 0)
        if content is None or tensor.Sparsity() is not None:
            bits = 0
        block_scales = self._block_scales(subgraph, tensor, shape, buffers) if block and bits == _BLOCK_BITS else None
        # LiteRT may read types that no operator here reads.
        divided = f"{'sparse ' * (tensor.Sparsity() is not None)}{'blockwise ' * (block > 0)}"
        stored = element = divided + element
        if content is not None and (block_scales is not None if block else bits):
            content, stored = self._widened(content, name, shape, bits), "i8"
            element, bits = (element, 0) if block else (stored, bits)
        data = None if content is None else _constant(content, name, stored, shape)
        scales, zero_points, axis = self._quantization(tensor, name, shape) if not block else ((), (), 0)
        signature = self._integers(tensor.ShapeSignatureAsNumpy())
        known = (name, shape, element, scales, zero_points, axis, data, signature)
        return Tensor(index, *known, block, block_scales, bits * (not block))

    def _widened(self, packed: NDArray[np.uint8], name: str, shape: Shape, bits: int) -> NDArray[np.uint8]:
        """The bytes of integers of 8 bits that are equal to those of a constant of fewer."""
        count = math.prod(shape)
        wanted = packed_bytes(count, bits)
        found = f"constant '{name}' must have {wanted} bytes, but got {packed.size}"
        _require(packed.size == wanted, f"file is damaged: {found}")
        self._spend(count)
        high = unpack(packed, bits, count) << (8 - bits)
        return (high.view(np.int8) >> (8 - bits)).view(np.uint8)

    def _block(self, tensor: tflite.Tensor) -> int:
        """How many elements share a scale where these lie in a tensor of their own, else 0."""
        parameters = tensor.Quantization()
        if parameters is None or parameters.DetailsType() != _BLOCKWISE:
            return 0
        return max(1, self._of_blocks(tensor, _BLOCK_SIZE))

    def _of_blocks(self, tensor: tflite.Tensor, field: int) -> int:
        """A field of the table that divides a tensor's rows into blocks."""
        table: Any = _present(_present(tensor.Quantization(), "quantization").Details(), "size of blocks")
        offset = int(table.Offset(field))
        return int(struct.unpack_from("<i", self._content, table.Pos + offset)[0]) if offset else 0

    def _block_scales(
        self, subgraph: tflite.SubGraph, tensor: tflite.Tensor, shape: Shape, buffers: _Buffers | None
    ) -> Array | None:
        """The constant f16 scales of rows that are divided; None where there are zero points, or a part of a block."""
        index, block = self._of_blocks(tensor, _BLOCK_SCALES), self._block(tensor)
        _check_indices((index,), subgraph.TensorsLength(), "scales of blocks")
        is_f16 = _present(subgraph.Tensors(index), f"tensor {index}").Type() == tflite.TensorType.FLOAT16
        if not is_f16 or self._of_blocks(tensor, _BLOCK_ZERO_POINTS) != -1 or len(shape) != 2 or shape[1] % block:
            return None
        scales = self._tensor(subgraph, index, buffers).data
        return scales if scales is not None and scales.shape == (shape[0], shape[1] // block) else None

    def _shape(self, tensor: tflite.Tensor, name: str) -> Shape:
        rank = tensor.ShapeLength()
        _require(rank <= MAX_DIMENSIONS, f"tensor '{name}' must have at most 8 dimensions, but got {rank}")
        shape = self._integers(tensor.ShapeAsNumpy())
        holds = all(extent >= 0 for extent in shape)
        _require(holds, f"file is damaged: tensor '{name}' must have extents of at least 0, but got {list(shape)}")
        maximum = f"tensor '{name}' must have at most {MAX_ELEMENTS} elements"
        _require(is_shape(shape), f"{maximum}, but has the shape {list(shape)}")
        return shape

    def _operator(
        self, subgraph: tflite.SubGraph, index: int, kinds: tuple[str, ...], tensors: tuple[Tensor, ...]
    ) -> Operator:
        operator = _present(subgraph.Operators(index), f"operator {index}")
        code = operator.OpcodeIndex()
        _require(code < len(kinds), f"file is damaged: node {index} has no operator code {code}")
        inputs, outputs = self._integers(operator.InputsAsNumpy()), self._integers(operator.OutputsAsNumpy())
        sources = tuple(None if i == -1 else _tensors_at((i,), tensors, f"node {index}")[0] for i in inputs)
        results = _tensors_at(outputs, tensors, f"node {index}")
        between = _tensors_at(self._integers(operator.IntermediatesAsNumpy()), tensors, f"node {index}")
        options = operator.BuiltinOptionsType(), operator.BuiltinOptions()
        body = _decomposition(operator) if kinds[code] == COMPOSITE else None
        return Operator(index, kinds[code], sources, results, *options, self._budget, between, body)

    def _quantization(self, tensor: tflite.Tensor, name: str, shape: Shape) -> tuple[tuple[float, ...], Shape, int]:
        parameters = tensor.Quantization()
        if parameters is None or parameters.ScaleLength() == 0:
            return (), (), 0
        none = tflite.QuantizationDetails.NONE
        _require(parameters.DetailsType() == none, f"tensor '{name}' must be quantized by scale and zero point")
        axis, count = parameters.QuantizedDimension(), parameters.ScaleLength()
        if len(shape) == 1:
            # Converters leave a bias the axis of its weights.
            axis = 0
        fits = count == 1 or (0 <= axis < len(shape) and count == shape[axis])
        _require(fits, f"file is damaged: tensor '{name}' of shape {list(shape)} has {count} scales along axis {axis}")
        scales = np.atleast_1d(parameters.ScaleAsNumpy())
        self._spend(scales.nbytes)
        zero_points = self._integers(parameters.ZeroPointAsNumpy()) or (0,)
        if len(zero_points) == 1:
            zero_points *= count
        found = len(zero_points)
        _require(found == count, f"file is damaged: tensor '{name}' must have {count} zero points, but got {found}")
        return tuple(scales.tolist()), zero_points, axis


def _decomposition(operator: tflite.Operator) -> int | None:
    """The subgraph that a composite stands for; None where its options are of another kind."""
    table = operator.BuiltinOptions2()
    if table is None or operator.BuiltinOptions2Type() != tflite.BuiltinOptions2.StableHLOCompositeOptions:
        return None
    options = tflite.StableHLOCompositeOptions()
    options.Init(table.Bytes, table.Pos)
    return options.DecompositionSubgraphIndex()


def _content(buffers: _Buffers, tensor: tflite.Tensor, name: str) -> NDArray[np.uint8] | None:
    _require(tensor.Buffer() < len(buffers), f"file is damaged: tensor '{name}' has no buffer {tensor.Buffer()}")
    return buffers[tensor.Buffer()]


def _tensors_at(indices: Shape, tensors: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
    _check_indices(indices, len(tensors), what)
    return tuple(tensors[index] for index in indices)


def _check_indices(indices: Shape, count: int, what: str) -> None:
    for index in indices:
        _require(0 <= index < count, f"file is damaged: {what} must name existing tensors, but got {index}")


def _constant(content: NDArray[np.uint8], name: str, element: str, shape: Shape) -> Array | None:
    if element not in _DTYPES:
        return None
    dtype = np.dtype(_DTYPES[element])
    wanted = math.prod(shape) * dtype.itemsize
    _require(
        content.size == wanted, f"file is damaged: constant '{name}' must have {wanted} bytes, but got {content.size}"
    )
    # A view: however many tensors have this buffer, it is there once.
    return content.view(dtype).reshape(shape)
