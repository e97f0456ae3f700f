"""Models of one ONNX operator: on f32 numbers between quantizations, on what is given, or in its QLinear form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx_graphs import ModelBuilder

from tools.record.drawing import Draw, Type
from tools.record.family import Array, Case

Constant = Array | float


@dataclass(frozen=True)
class Operand:
    """An input of an operator: quantized values with a scale, or without one whatever the operator takes as it is.

    Scales and zero points are one or one for each index of `axis`.  A constant is part of the model.
    """

    values: Array
    scale: Array | float | None = None
    zero_point: Array | int = 0
    axis: int = 0
    is_constant: bool = False


@dataclass(frozen=True)
class Result:
    """The quantization of an output."""

    dtype: Type
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Node:
    """An operator, with ``domain.`` before its name where it is not ONNX's own.

    `constants` are its inputs behind the operands, None for one that is left out; `version` is the operator set's.
    """

    kind: str
    constants: Sequence[Constant | None] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    version: int = 17


def operand(draw: Draw, shape: Sequence[int], dtype: Type, scale: float, *, is_constant: bool = False) -> Operand:
    """Drawn quantized values with a drawn zero point."""
    return Operand(draw.values(shape, dtype), scale, draw.zero_point(dtype), is_constant=is_constant)


def between(name: str, node: Node, operands: Sequence[Operand], result: Result | Type) -> Case:
    """The operator on dequantized operands; outputs are quantized, or of the type that the operator gives."""
    builder = ModelBuilder()
    sources = [dequantized(builder, operand, f"x{k}") for k, operand in enumerate(operands)]
    found = _add(builder, node, sources)
    if not isinstance(result, Result):
        return _case(name, builder, node, operands, found, result)
    parameters = builder.parameters((result.scale, result.zero_point), result.dtype)
    outputs = [builder.node("QuantizeLinear", value, *parameters) for value in found]
    return _case(name, builder, node, operands, outputs, result.dtype)


def chain(name: str, add: Callable[[ModelBuilder, str], str], data: Operand, result: Result) -> Case:
    """Several operators between quantizations; `add` writes them and gives the name of the last one's output."""
    builder = ModelBuilder()
    value = add(builder, dequantized(builder, data, "x0"))
    output = builder.quantize(value, (result.scale, result.zero_point), result.dtype)
    return Case(name, builder.finish(output, dtype=result.dtype), (data.values,))


def alone(name: str, node: Node, operands: Sequence[Operand], dtype: Type) -> Case:
    """The operator on its operands as they are; its outputs have type `dtype`."""
    builder = ModelBuilder()
    sources = [_named(builder, operand, f"x{k}") for k, operand in enumerate(operands)]
    return _case(name, builder, node, operands, _add(builder, node, sources), dtype)


def qlinear(name: str, node: Node, arguments: Sequence[Operand | Result | Array | None], dtype: Type) -> Case:
    """The operator in its QLinear form; an operand is followed by its scale and zero point, a result is these alone."""
    builder = ModelBuilder()
    names: list[str] = []
    for argument in arguments:
        if isinstance(argument, Operand):
            names += [_named(builder, argument, f"x{len(builder.inputs)}"), *_parameters(builder, argument)]
        elif isinstance(argument, Result):
            names += builder.parameters((argument.scale, argument.zero_point), argument.dtype)
        else:
            names.append("" if argument is None else builder.constant(argument))
    operands = [argument for argument in arguments if isinstance(argument, Operand)]
    return _case(name, builder, node, operands, _add(builder, node, names), dtype)


def _add(builder: ModelBuilder, node: Node, sources: Sequence[str]) -> list[str]:
    constants = ["" if constant is None else builder.constant(constant) for constant in node.constants]
    outputs = [f"r{k}" for k in range(node.outputs)]
    builder.node_of_many(node.kind, [*sources, *constants], outputs, **node.attributes)
    return outputs


def dequantized(builder: ModelBuilder, operand: Operand, name: str) -> str:
    """Write an operand, as the input `name` or as a constant, and dequantize it; gives the name of the f32 value."""
    source = _named(builder, operand, name)
    if operand.scale is None:
        return source
    attributes = {"axis": operand.axis} if np.ndim(operand.scale) else {}
    return builder.node("DequantizeLinear", source, *_parameters(builder, operand), **attributes)


def _named(builder: ModelBuilder, operand: Operand, name: str) -> str:
    if operand.is_constant:
        return builder.constant(operand.values)
    return builder.input(name, operand.values.shape, operand.values.dtype.type)


def _parameters(builder: ModelBuilder, operand: Operand) -> list[str]:
    if operand.scale is None:
        return []
    scale = np.asarray(operand.scale, dtype=np.float32)
    points = np.broadcast_to(np.asarray(operand.zero_point, dtype=operand.values.dtype), scale.shape)
    return [builder.constant(scale), builder.constant(points)]


def _case(
    name: str, builder: ModelBuilder, node: Node, operands: Sequence[Operand], outputs: Sequence[str], dtype: Type
) -> Case:
    model = builder.finish(*outputs, dtype=dtype, version=node.version)
    return Case(name, model, tuple(operand.values for operand in operands if not operand.is_constant))
