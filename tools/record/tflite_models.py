"""Models of one .tflite operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import tflite
from flatbuffers import Builder

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from tools.record.drawing import Draw, Type
from tools.record.family import Array, Case

Options = Callable[[Builder], int]


@dataclass(frozen=True, eq=False)
class Tensor:
    """An input with its values, a constant or, without values, an output."""

    shape: tuple[int, ...]
    dtype: Type
    quantization: Quantization | None = None
    values: Array | None = None
    is_constant: bool = False


def given(values: Array, quantization: Quantization | None = None) -> Tensor:
    """What the caller passes."""
    return Tensor(values.shape, values.dtype.type, quantization, values)


def constant(values: Array, quantization: Quantization | None = None) -> Tensor:
    """Part of the model."""
    return Tensor(values.shape, values.dtype.type, quantization, values, is_constant=True)


def integers(*values: int | Sequence[int]) -> Tensor:
    """Axes, sizes and the like."""
    return constant(np.array(values, dtype=np.int32))


def per_tensor(scale: float, zero_point: int) -> Quantization:
    return Quantization((scale,), (zero_point,))


def bits(value: float) -> int:
    """An option that is a float32 number, as the 32-bit field that `tflite_graphs.options` writes."""
    return int(np.float32(value).view(np.int32))


def one_operator(
    name: str,
    code: int,
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    options_type: int = tflite.BuiltinOptions.NONE,
    options: Options | None = None,
) -> Case:
    """None is an input that is left out; a tensor named twice is one input of the model."""
    writer = ModelWriter(name)
    indices: dict[int, int] = {}
    for tensor in (*inputs, *outputs):
        if tensor is not None and id(tensor) not in indices:
            indices[id(tensor)] = _add(writer, tensor, f"t{len(indices)}")
    operands = [-1 if tensor is None else indices[id(tensor)] for tensor in inputs]
    results = [indices[id(tensor)] for tensor in outputs]
    writer.operator(code, operands, results, options_type, options)
    passed = {id(tensor): tensor for tensor in inputs if tensor is not None and not tensor.is_constant}
    model = writer.finish([indices[key] for key in passed], results)
    return Case(name, model, tuple(tensor.values for tensor in passed.values() if tensor.values is not None))


def _add(writer: ModelWriter, tensor: Tensor, name: str) -> int:
    if tensor.is_constant and tensor.values is not None:
        return writer.constant(name, tensor.values, tensor.quantization)
    return writer.tensor(name, tensor.shape, tensor.dtype, tensor.quantization)


def drawn(draw: Draw, shape: Sequence[int], dtype: Type, scale: float) -> Tensor:
    """An input: quantized values of the whole range, with a zero point in its middle half or anywhere."""
    point = draw.one_of(draw.inner_point(dtype), int(draw.values((), dtype)))
    return given(draw.values(shape, dtype), per_tensor(scale, point))


def result(draw: Draw, shape: Sequence[int], dtype: Type, scale: float) -> Tensor:
    """An output with a drawn zero point."""
    return Tensor(tuple(shape), dtype, per_tensor(scale, draw.inner_point(dtype)))


def bias(draw: Draw, count: int, bound: int, data_scale: float, weight_scales: Sequence[float]) -> Tensor:
    """i32, by the products of the scales."""
    scales = tuple(data_scale * scale for scale in weight_scales)
    return constant(draw.bias(count, bound), Quantization(scales, (0,) * len(scales)))


def activation(draw: Draw, output: Tensor) -> int:
    """One that an operator may fuse; RELU6 and RELU_N1_TO_1 only where an output has values between their bounds."""
    assert output.quantization is not None
    scale = output.quantization.scales[0]
    bounded = ((tflite.ActivationFunctionType.RELU_N1_TO_1, 1 / 16), (tflite.ActivationFunctionType.RELU6, 6 / 32))
    choices = [code for code, largest in bounded if scale < largest]
    return draw.one_of(tflite.ActivationFunctionType.NONE, tflite.ActivationFunctionType.RELU, *choices)
