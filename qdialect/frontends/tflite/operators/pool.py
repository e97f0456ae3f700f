"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from typing import Any

import tflite

from qdialect._mlir import ir
from qdialect.dialect import AvgPool2DOp, MaxPool2DOp
from qdialect.dialect.pool_ops import PoolOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.activation_range import activation_range
from qdialect.frontends.tflite.operators.checks import (
    eight_bit,
    operands,
    same_quantization,
)
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.window import explicit_padding
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import Division

Pair = tuple[int, int]


@imports("AVERAGE_POOL_2D")
def _average_pool_2d(operator: Operator) -> Emission:
    """The quantized values of the elements inside are averaged, ties away from zero; padding does not count."""
    zero_point = eight_bit(operator.outputs[0], "output").zero_point if operator.outputs else 0
    attributes = {"zero_point": zero_point, "division": Division.HALF_AWAY, "count_include_pad": False}
    return _of_bytes(operator, AvgPool2DOp, attributes)


@imports("MAX_POOL_2D")
def _max_pool_2d(operator: Operator) -> Emission:
    return _of_bytes(operator, MaxPool2DOp, {})


def _of_bytes(operator: Operator, op_class: type[PoolOp], attributes: dict[str, Any]) -> Emission:
    (data,) = operands(operator, 1)
    same_quantization(operator, data)
    return pool(operator, op_class, attributes)


def pool(operator: Operator, op_class: type[PoolOp], attributes: dict[str, Any]) -> Emission:
    """A pool whose input and output have the same parameters, which the caller has checked."""

    def read(options: tflite.Pool2DOptions) -> tuple[int, int, Pair, Pair]:
        kernel = (options.FilterHeight(), options.FilterWidth())
        strides = (options.StrideH(), options.StrideW())
        return options.Padding(), options.FusedActivationFunction(), kernel, strides

    padding, activation, kernel, strides = read_options(operator, tflite.Pool2DOptions, read)
    (data,) = operands(operator, 1)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    explicit = explicit_padding(padding, (data.shape[1], data.shape[2]), kernel, strides, (1, 1))
    low, high = activation_range(activation, operator.outputs[0])

    def emit(emitter: Emitter) -> ir.Value:
        window = {"kernel": kernel, "strides": strides, "padding": explicit, "output_min": low, "output_max": high}
        return emitter.build(op_class, emitter.value(data), element=data.element, **window, **attributes)

    return emit
