"""REDUCE_PROD of quantized values: one factor after another, each product rescaled so that it stays small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as every

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import eight_bit, operands, quantized_range, same_type
from qdialect.frontends.tflite.operators.i16.checks import output_of, sixteen_bit
from qdialect.frontends.tflite.operators.i16.fixed_point import clamped
from qdialect.frontends.tflite.operators.reduction import reduced_axes
from qdialect.frontends.tflite.operators.registry import Emission, imports, imports_i16
from qdialect.quant_math import quantize_multiplier

_MAX_FACTORS = 256
_LARGEST_WORD, _LARGEST_SHIFT = 0x7FFF, 7


@imports("REDUCE_PROD")
def _of_bytes(operator: Operator) -> Emission:
    data, _ = operands(operator, 2)
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(data, "input"))
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    return _reduction(operator, data, output)


@imports_i16("REDUCE_PROD")
def _of_words(operator: Operator) -> Emission:
    data, _ = operands(operator, 2)
    return _reduction(operator, sixteen_bit(data, "input"), output_of(operator))


def _reduction(operator: Operator, data: Tensor, output: Tensor) -> Emission:
    """Every factor is a number over the root of the output's scale, so that the whole has that scale at the end."""
    axes, _ = reduced_axes(operator)
    ranges = [range(extent) if axis in axes else range(1) for axis, extent in enumerate(data.shape)]
    count = math.prod(map(len, ranges))
    require(count <= _MAX_FACTORS, f"product must have at most {_MAX_FACTORS} factors, but got {count}")
    factor = _factor(data.scale / output.scale ** (1.0 / count))

    def emit(emitter: Emitter) -> ir.Value:
        s, value = Arithmetic(emitter), emitter.value(data)
        parts = (_at(emitter, value, data, axes, at) for at in every(*ranges))
        first, *others = (s.op("arith.addi", s.resize(part, "i64"), -data.zero_point) for part in parts)
        for other in others:
            first = _scaled(s, s.op("arith.muli", first, other), factor)
        result = s.op("arith.addi", _scaled(s, first, factor), output.zero_point)
        narrow = s.resize(clamped(s, result, quantized_range(output)), output.element)
        return emitter.reshape(narrow, output.shape)

    return emit


def _factor(real: float) -> tuple[int, int]:
    """A multiplier of 16 bits and by how much its products are shifted right (TFLite MultiplyByQuantizedMultiplier)."""
    q, e = quantize_multiplier(real)
    require(e <= _LARGEST_SHIFT, f"rescale factor must be below 2^{_LARGEST_SHIFT}, but got {real}")
    return min((q + (1 << 15)) >> 16, _LARGEST_WORD), 15 - e


def _scaled(s: Arithmetic, value: ir.Value, factor: tuple[int, int]) -> ir.Value:
    """An i64 tensor rescaled to 32 bits, ties up."""
    word, shift = factor
    nudged = s.op("arith.addi", s.op("arith.muli", value, word), 1 << (shift - 1))
    return s.resize(s.resize(s.op("arith.shrsi", nudged, shift), "i32"), "i64")


def _at(emitter: Emitter, value: ir.Value, data: Tensor, axes: Sequence[int], at: Sequence[int]) -> ir.Value:
    """The elements at one index of the reduced dimensions."""
    slices = [Slice(at[axis], 1, 1) if axis in axes else Slice(0, 1, extent) for axis, extent in enumerate(data.shape)]
    return take_slices(emitter, value, slices)
