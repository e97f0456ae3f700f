"""Parts of small .tflite models: options tables without their schema, and integer constants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import tflite
from compiled_ops import check_compiled
from flatbuffers import Builder
from numpy.typing import NDArray
from tolerances import assert_bits

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

HALF = Quantization((0.5,), (3,))
Option = tuple[int, Callable[[Builder], int]]
Entries = Sequence[int] | Sequence[Sequence[int]] | NDArray[Any]


def options(*entries: float) -> Callable[[Builder], int]:
    """An options table with these fields, 32-bit integers, floats or booleans, in the order of the schema."""

    def write(builder: Builder) -> int:
        builder.StartObject(len(entries))
        for slot, entry in enumerate(entries):
            if isinstance(entry, float):
                builder.PrependFloat32Slot(slot, entry, 0)
            else:
                builder.PrependInt32Slot(slot, entry, 0)
        return builder.EndObject()

    return write


def options_of(name: str, *entries: float) -> Option:
    """The options table of this name, without "Options", with these fields."""
    return getattr(tflite.BuiltinOptions, f"{name}Options"), options(*entries)


def node_of(name: str) -> tuple[int, int]:
    """The numbers of an operator and of its options by the name of these, such as ``StridedSlice``."""
    kind = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_").upper()
    known_as = {"PAD_V2": "PADV2", "TOP_K_V2": "TOPK_V2"}.get(kind, kind)
    options_type = getattr(tflite.BuiltinOptions, f"{name}Options", tflite.BuiltinOptions.NONE)
    return getattr(tflite.BuiltinOperator, known_as), options_type


def i32(entries: Entries | int) -> NDArray[np.int32]:
    return np.array(entries, dtype=np.int32)


def small_network() -> bytes:
    """A convolution, a sum and a softmax of int8 tensors of 1x2x2x2 elements, in less than 2 KB."""

    writer, code, kind = ModelWriter("small"), tflite.BuiltinOperator, tflite.BuiltinOptions
    shape = 1, 2, 2, 2
    x, y, z = (writer.tensor(name, shape, np.int8, HALF) for name in "xyz")
    p = writer.tensor("p", shape, np.int8, Quantization((1 / 256,), (-128,)))
    weight = np.arange(4, dtype=np.int8).reshape(2, 1, 1, 2)
    w = writer.constant("w", weight, Quantization((0.5, 0.25), (0, 0)))
    b = writer.constant("b", np.array([7, -7], dtype=np.int32), Quantization((0.25, 0.125), (0, 0)))
    writer.operator(code.CONV_2D, [x, w, b], y, kind.Conv2DOptions, options(0, 1, 1))
    writer.operator(code.ADD, [y, x], z, kind.AddOptions, options())
    writer.operator(code.SOFTMAX, [z], p, kind.SoftmaxOptions, options(1.0))
    return writer.finish([x], [p])


Array = NDArray[Any]

# Models of one .tflite operator, compared with LiteRT's reference kernels.


@dataclass(frozen=True)
class Given:
    """An input: its elements, whether the file has them, and what they stand for."""

    data: Array
    is_constant: bool = False
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Result:
    """An output."""

    shape: tuple[int, ...]
    dtype: type[np.generic]
    quantization: Quantization | None = None


def one_operator(kind: int, inputs: Sequence[Given], outputs: Sequence[Result], option: Option | None = None) -> bytes:
    """The file of an operator with these tensors."""
    writer = ModelWriter("one operator")
    names = [
        writer.constant(f"c{i}", one.data, one.quantization)
        if one.is_constant
        else writer.tensor(f"x{i}", one.data.shape, one.data.dtype.type, one.quantization)
        for i, one in enumerate(inputs)
    ]
    results = [writer.tensor(f"y{i}", one.shape, one.dtype, one.quantization) for i, one in enumerate(outputs)]
    options_type, write_options = option or (tflite.BuiltinOptions.NONE, None)
    writer.operator(kind, names, results, options_type, write_options)
    free = [name for name, one in zip(names, inputs, strict=True) if not one.is_constant]
    return writer.finish(free, results)


def check_operator(
    kind: int, inputs: Sequence[Given], outputs: Sequence[Result], option: Option | None = None
) -> Sequence[Array]:
    """Interpreted and compiled, the operator gives LiteRT's elements; what they are."""
    content = one_operator(kind, inputs, outputs, option)
    arrays = [one.data for one in inputs if not one.is_constant]
    wanted = reference(content, arrays)
    module = import_tflite(content)
    for value, one in zip(interpreter.run(module, arrays), wanted, strict=True):
        assert_bits(value, one)
    check_compiled(module, "host", [arrays], [wanted])
    return wanted


# What LiteRT's reference kernels make of a model.


def reference(content: bytes, inputs: Sequence[Array]) -> Sequence[Array]:
    """Its outputs, by the reference kernels alone."""
    return frameworks.load_litert(content, 1, is_reference=True)(inputs)


def refused(content: bytes, **options: Any) -> str:
    """Why a model is not imported."""
    with pytest.raises(ImportModelError) as caught:
        import_tflite(content, **options)
    return caught.value.render()


# Models of the schema's own objects, for what the package's writer does not write.

SCHEMA: Any = import_module("ai_edge_litert.schema_py_generated")


def opened(content: bytes) -> Any:
    return SCHEMA.ModelT.InitFromObj(SCHEMA.Model.GetRootAs(content, 0))


def packed(model: Any) -> bytes:
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def table(kind: str, /, **fields: Any) -> Any:
    made = getattr(SCHEMA, f"{kind}T")()
    for name, value in fields.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def model_of(*held: Array, graphs: int = 1) -> Any:
    """Without operators; the arrays are its buffers, from the second one on."""
    empty = [table("SubGraph", tensors=[], operators=[], inputs=[], outputs=[]) for _ in range(graphs)]
    buffers = [table("Buffer"), *(table("Buffer", data=memoryview(one.tobytes())) for one in held)]
    return table("Model", version=3, operatorCodes=[], buffers=buffers, subgraphs=empty)


def added(graph: Any, name: str, shape: Sequence[int], element: str, quantization: Any = None, buffer: int = 0) -> int:
    kind = getattr(SCHEMA.TensorType, element)
    fields = {"shape": list(shape), "type": kind, "quantization": quantization, "buffer": buffer}
    graph.tensors.append(table("Tensor", name=name, **fields))
    return len(graph.tensors) - 1


def add_operator(
    model: Any, kind: str, inputs: list[int], outputs: list[int], options: str = "", graph: int = 0, **fields: Any
) -> Any:
    number, custom = getattr(SCHEMA.BuiltinOperator, kind), "TFLite_Detection_PostProcess" if kind == "CUSTOM" else None
    code = {"builtinCode": number, "deprecatedBuiltinCode": min(number, 127), "version": 1, "customCode": custom}
    model.operatorCodes.append(table("OperatorCode", **code))
    made = table("Operator", opcodeIndex=len(model.operatorCodes) - 1, inputs=inputs, outputs=outputs)
    if options:
        made.builtinOptionsType = getattr(SCHEMA.BuiltinOptions, f"{options}Options")
        made.builtinOptions = table(f"{options}Options", **fields)
    model.subgraphs[graph].operators.append(made)
    return made
