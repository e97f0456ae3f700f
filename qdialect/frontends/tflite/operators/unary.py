"""Activations as nodes of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import EluOp, ExpOp, HardswishOp, LeakyReluOp, LogOp, LutOp, SigmoidOp, TanhOp, UnaryOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.activation_range import activation_range, quantized_bounds
from qdialect.frontends.tflite.operators.checks import check_rescale, eight_bit, operands, quantized_range, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier, QuantizedDtype, Table, hard_swish_bound
from qdialect.quant_math.choices import HardswishMode, LeakyMode
from qdialect.quant_math.tflite_unary import (
    tflite_abs_table,
    tflite_gelu_table,
    tflite_negate_table,
    tflite_rsqrt_table,
    tflite_sqrt_table,
)

_CLAMPS = {
    "RELU": tflite.ActivationFunctionType.RELU,
    "RELU6": tflite.ActivationFunctionType.RELU6,
    "RELU_N1_TO_1": tflite.ActivationFunctionType.RELU_N1_TO_1,
}
_TABLES = {"ABS": tflite_abs_table, "SQRT": tflite_sqrt_table, "RSQRT": tflite_rsqrt_table}


def _input_of(operator: Operator) -> Tensor:
    (data,) = operands(operator, 1)
    eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(data, "input"))
    return data


@imports(*_CLAMPS)
def _clamp(operator: Operator) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]
    return _rescaled(data, output, activation_range(_CLAMPS[operator.kind], output))


@imports("RELU_0_TO_1")
def _unit_clamp(operator: Operator) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]
    return _rescaled(data, output, quantized_bounds(0.0, 1.0, output))


def _rescaled(data: Tensor, output: Tensor, bounds: tuple[int, int]) -> Emission:
    """A rescale whose factor is evaluated in float32, and a clamp."""
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F32)

    def emit(emitter: Emitter) -> ir.Value:
        zero_points = [data.zero_point]
        value = emitter.value(data)
        rescaled = emitter.requantize(value, output, data.scale, Multiplier.F32, input_zero_points=zero_points)
        return emitter.clip(rescaled, bounds)

    return emit


def _tabulated(data: Tensor, output: Tensor, table: Table) -> Emission:
    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            LutOp,
            emitter.value(data),
            element=output.element,
            table=table,
            input_scale=data.scale,
            input_zero_point=data.zero_point,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
        )

    return emit


@imports(*_TABLES)
def _integer_function(operator: Operator) -> Emission:
    """Each in integers of its own; for i8 alone."""
    data, output = _input_of(operator), operator.outputs[0]
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    if operator.kind == "ABS":
        check_rescale(data.scale, [1.0], output.scale, Multiplier.F32)
    if operator.kind == "RSQRT":
        check_rescale(1.0, [1.0], math.sqrt(data.scale) * output.scale, Multiplier.F64)
    return _tabulated(data, output, _TABLES[operator.kind](_quantization(data), _quantization(output)))


@imports("NEG")
def _negate(operator: Operator) -> Emission:
    """The kernel negates quantized values, which negates numbers where both zero points are opposite."""
    data, output = _input_of(operator), operator.outputs[0]
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    found, wanted = (output.scale, output.zero_point), (data.scale, -data.zero_point)
    require(found == wanted, f"output scale and zero point must be {wanted}, but got {found}")
    return _tabulated(data, output, tflite_negate_table(np.int8))


@imports("GELU")
def _gelu(operator: Operator) -> Emission:
    is_approximate = read_options(operator, tflite.GeluOptions, lambda options: options.Approximate())
    data, output = _input_of(operator), operator.outputs[0]
    return _tabulated(data, output, tflite_gelu_table(is_approximate, _quantization(data), _quantization(output)))


def _quantization(tensor: Tensor) -> QuantizedDtype:
    return QuantizedDtype(tensor.scale, tensor.zero_point, NUMPY_DTYPES[tensor.element])


def _unary(operator: Operator, op_class: type[UnaryOp], attributes: Mapping[str, Any]) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            op_class,
            emitter.value(data),
            element=output.element,
            input_scale=data.scale,
            input_zero_point=data.zero_point,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
            entries=TFLITE.entries,
            **attributes,
        )

    return emit


@imports("LOGISTIC")
def _logistic(operator: Operator) -> Emission:
    _input_of(operator)
    _check_output(operator, 1 / 256, quantized_range(operator.outputs[0])[0])
    return _unary(operator, SigmoidOp, {})


@imports("TANH")
def _tanh(operator: Operator) -> Emission:
    _input_of(operator)
    _check_output(operator, 1 / 128, 0 if operator.outputs[0].element == "i8" else 128)
    return _unary(operator, TanhOp, {})


def _check_output(operator: Operator, scale: float, zero_point: int) -> None:
    output = operator.outputs[0]
    found, wanted = (output.scale, output.zero_point), (scale, zero_point)
    require(found == wanted, f"output scale and zero point must be {wanted}, but got {found}")


@imports("ELU", "EXP", "LOG")
def _table_function(operator: Operator) -> Emission:
    """Tables exist for i8 alone; the logarithm of a negative number becomes the smallest quantized value."""
    data = _input_of(operator)
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    return _unary(operator, {"ELU": EluOp, "EXP": ExpOp, "LOG": LogOp}[operator.kind], {"nan": TFLITE.nan})


@imports("HARD_SWISH")
def _hard_swish(operator: Operator) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]
    minimum = hard_swish_bound(data.scale)
    require(output.scale > minimum, f"output scale must be greater than {minimum}, but got {output.scale}")
    return _unary(operator, HardswishOp, {"mode": HardswishMode.TFLITE})


@imports("LEAKY_RELU")
def _leaky_relu(operator: Operator) -> Emission:
    alpha = read_options(operator, tflite.LeakyReluOptions, lambda options: options.Alpha())
    data, output = _input_of(operator), operator.outputs[0]
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F32)
    check_rescale(data.scale, [alpha], output.scale, Multiplier.F32)
    return _unary(operator, LeakyReluOp, {"alpha": alpha, "mode": LeakyMode.TFLITE})
