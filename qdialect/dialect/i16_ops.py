"""Ops of 16-bit networks: contractions, functions of fixed-point numbers, and tables with linear interpolation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic import Multiplier, real_multiplier
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction
from qdialect.dialect.contraction_ops import conv2d_shape, dense_shape, matmul_shape
from qdialect.dialect.fields import I64, INTEGERS, SCALE, SCALES, attribute, choice, operand, optional_operand, result
from qdialect.dialect.op_base import (
    QnnOp,
    Shape,
    channel_count,
    check_bounds,
    check_channel_parameters,
    check_zero_points,
    require,
)
from qdialect.dialect.type_constraints import ACCUMULATOR, BIAS, INDEX, TypeConstraint, element_of, shape_of

# Contractions of 16-bit activations with zero point 0: the products of 16x8 networks.
#
# All zero points are 0, so scales do not matter: these ops are sums of products of integers, and the ops that read them
# state the scales of the sums. An i32 result is the sum modulo 2^32, an i64 result the sum itself.

_DATA = TypeConstraint(("i16",))
_IMAGE = TypeConstraint(("i16",), rank=4)
_WEIGHT = TypeConstraint(("i8", "i16"))
_WEIGHT_2D = TypeConstraint(("i8", "i16"), rank=2)
_WEIGHT_4D = TypeConstraint(("i8", "i16"), rank=4)
_BIAS = TypeConstraint(("i32", "i64"), rank=1)


class I16ContractionOp(QnnOp):
    """Sums of products that start at the bias.

    Constraints:
      C4: bias must have the result's element type
      C5: bias must have one entry for each output channel
    """

    output = result(INDEX)

    def check(self) -> None:
        _, weight, *biases = self.operation.operands
        channels, wanted = shape_of(weight.type)[0], element_of(self.output.type)
        for bias in biases:
            found, entries = element_of(bias.type), shape_of(bias.type)[0]
            require(found == wanted, "C4", f"bias element type must be {wanted}, but got {found}")
            require(entries == channels, "C5", f"bias must have {channels} entries, but got {entries}")


class I16Conv2DOp(I16ContractionOp, name="i16_conv2d", shape=conv2d_shape):
    """Convolution of NHWC data with OHWI weights; depthwise is ``groups`` = input channels.

    ``output[n,y,x,o] = bias[o] + sum data[n, y*s+i*d-p, x*s+j*d-p, c] * weight[o,i,j,c]``; outside of the data is 0.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1, padding 4 (top, left, bottom, right) of at least 0
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: the dilated kernel must fit into the padded data
    """

    data = operand(_IMAGE)
    weight = operand(_WEIGHT_4D)
    bias = optional_operand(_BIAS)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)


class I16DenseOp(I16ContractionOp, name="i16_dense", shape=dense_shape):
    """Matrix product ``[..., K] x [N, K] -> [..., N]``: ``output[..., n] = bias[n] + sum data[..., k] * weight[n, k]``.

    Constraints:
      C1: the weight's depth must be the data's last dimension
    """

    data = operand(_DATA)
    weight = operand(_WEIGHT_2D)
    bias = optional_operand(_BIAS)


class I16MatmulOp(QnnOp, name="i16_matmul", shape=matmul_shape):
    """Matrix products ``[..., M, K] x [..., K, N] -> [..., M, N]``, both operands any tensors.

    ``output[..., m, n] = sum data[..., m, k] * weight[..., k, n]``; leading dimensions broadcast.

    Constraints:
      C1: data and weight must have at least 2 dimensions
      C2: the weight's second to last dimension must be the data's last one
      C3: the dimensions before the last two must broadcast against each other
    """

    data = operand(_DATA)
    weight = operand(_WEIGHT)
    output = result(INDEX)


_LARGEST_FACTOR = 2.0**14


class I16RequantizeOp(QnnOp, name="i16_requantize"):
    """Accumulators to 16-bit quantized values, clamped to [output_min, output_max].

    The real multiplier of channel c, an index of the last dimension, is
    ``input_scale * weight_scales[c] / output_scale``; `rounding` states how the product with it becomes an integer, to
    which the zero point is added.

    Constraints:
      C1: weight_scales must have 1 entry or one for each channel
      C2: output_min and output_max must be ordered and lie in the result's range
      C3: ``fixed32_double`` must have an i32 input
      C4: multipliers must be below 2^14
      C5: output_zero_point must lie in the result's range
    """

    input = operand(INDEX)
    input_scale = attribute(SCALE)
    weight_scales = attribute(SCALES, (1.0,))
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64, 0)
    output_min = attribute(I64, -(2**15))
    output_max = attribute(I64, 2**15 - 1)
    rounding = attribute(choice(I16Rounding))
    multiplier = attribute(choice(Multiplier), Multiplier.F64)
    output = result(_DATA)

    def check(self) -> None:
        shape = shape_of(self.input.type)
        channels = channel_count("C1", max(len(shape) - 1, 0), shape)
        check_channel_parameters("C1", channels, weight_scales=self.weight_scales)
        check_bounds("C2", ("output_min", "output_max"), self.output_min, self.output_max, self.output.type)
        found = element_of(self.input.type)
        holds = self.rounding is not I16Rounding.FIXED32_DOUBLE or found == "i32"
        require(holds, "C3", f"input of {self.rounding} must have element type i32, but got {found}")
        largest = max(real_multiplier(self.input_scale, self.weight_scales, self.output_scale, self.multiplier))
        require(largest < _LARGEST_FACTOR, "C4", f"multipliers must be below 2^14, but got {largest}")
        check_zero_points("C5", "output_zero_point", (self.output_zero_point,), self.output.type)


AnyI16Contraction = I16Conv2DOp | I16DenseOp


_WORD_VECTOR = TypeConstraint(("i16",), rank=1)
_LARGEST_GUARD = 2**29 - 1


class FixedPointFunctionOp(QnnOp, name="fixed_point_function"):
    """A function of 16-bit fixed-point numbers with `integer_bits` integer bits, whose results have 15 fractional bits.

    An input x represents ``x * 2^(integer_bits - 15)`` and a result y ``y * 2^-15``; the results equal those of
    gemmlowp.

    Constraints:
      C1: integer_bits must be in [0, 6]
    """

    input = operand(_DATA)
    function = attribute(choice(FixedPointFunction))
    integer_bits = attribute(I64)
    output = result(_DATA)

    def check(self) -> None:
        found = self.integer_bits
        holds = 0 <= found <= MAX_INTEGER_BITS
        require(holds, "C1", f"integer_bits must be in [0, {MAX_INTEGER_BITS}], but got {found}")


class I16LayerNormOp(QnnOp, name="i16_layer_norm"):
    """Each row of 16-bit numbers normalized, times weights, plus biases: gates of Q3.12, as TFLite's kernel has them.

    The mean has 10 fractional bits and the variance none; a variance below one counts as `variance_guard`.  With the
    fixed-point inverse root r of the variance, a result is ``((x - mean) * r * weight + bias) * scale`` in steps of
    2^-12, saturated; every product is rounded by itself, the one with the weight to 10 bits fewer.  The input's scale
    cancels.

    Constraints:
      C1: the input must have a last dimension of at least 1 element
      C2: weight and bias must have one entry for each element of the last dimension
      C3: variance_guard must be in [1, 536870911]
    """

    input = operand(_DATA)
    weight = operand(_WORD_VECTOR)
    bias = operand(BIAS)
    scale = attribute(SCALE)
    variance_guard = attribute(I64)
    output = result(_DATA)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        data, weight, bias = shapes
        require(len(data) >= 1, "C1", "input must have a last dimension, but got 0 dimensions")
        wanted, found = [data[-1]] * 2, [*weight, *bias]
        message = f"weight and bias must have {data[-1]} entries, but got {found[0]} and {found[1]}"
        require(wanted == found, "C2", message)
        return data

    def check(self) -> None:
        found = self.variance_guard
        holds = 1 <= found <= _LARGEST_GUARD
        require(holds, "C3", f"variance_guard must be in [1, {_LARGEST_GUARD}], but got {found}")


_LARGEST_FRACTION = 16
_INT32 = (-(2**31), 2**31 - 1)


class InterpolatedLutOp(QnnOp, name="interpolated_lut"):
    """A function that is linear between multiples of ``2^fraction``, with `fraction` fractional bits in its result.

    With x clamped to [0, n * 2^fraction) for n entries, ``i = x >> fraction`` and ``r = x - (i << fraction)``:
    ``output = (bases[i] << fraction) + r * slopes[i]``, modulo 2^32.  If the function is continuous, the slope of an
    entry is the difference to the next base; TFLite's tables of int16 have 513 entries, the last of which only ends a
    segment.

    Constraints:
      C1: fraction must be in [0, 16]
      C2: slopes must have as many entries as bases, at least 1
      C3: bases and slopes must fit 32 bits, and the clamped input 31 bits
    """

    input = operand(ACCUMULATOR)
    bases = attribute(INTEGERS)
    slopes = attribute(INTEGERS)
    fraction = attribute(I64)
    output = result(ACCUMULATOR)

    def check(self) -> None:
        holds = 0 <= self.fraction <= _LARGEST_FRACTION
        require(holds, "C1", f"fraction must be in [0, {_LARGEST_FRACTION}], but got {self.fraction}")
        entries, slopes = len(self.bases), len(self.slopes)
        holds = entries == slopes and entries >= 1
        require(holds, "C2", f"slopes must have as many entries as bases, at least 1, but got {slopes} and {entries}")
        outside = [number for number in (*self.bases, *self.slopes) if not _INT32[0] <= number <= _INT32[1]]
        require(not outside, "C3", f"bases and slopes must fit 32 bits, but got {', '.join(map(str, outside[:1]))}")
        largest = entries << self.fraction
        require(largest <= 2**31, "C3", f"entries must end within 2^31, but got {largest}")
