"""Reductions and contractions of f32 values, for the parts of a network that are not quantized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic.float32.machine import partial_sums
from qdialect.dialect.contraction_ops import conv2d_shape
from qdialect.dialect.fields import BOOL, I64, INTEGERS, attribute, operand, optional_operand, result
from qdialect.dialect.op_base import QnnOp, ReduceOp, Shape, require
from qdialect.dialect.type_constraints import FLOAT, FLOAT_1D, FLOAT_4D, shape_of
from qdialect.ir._mlir import ir

# Element-wise functions of f32 values are upstream ops.  Sums are taken in float32: the order is part of the
# definition, and so is that a product is added by a fused multiply-add, which rounds once.


class F32ReduceOp(ReduceOp):
    """A reduction over `axes`, which stay as extents of 1 with `keep_dims`.

    Constraints:
      C1: axes must be distinct, ascending dimensions of the input, at least one
    """

    input = operand(FLOAT)
    output = result(FLOAT)


class F32SumOp(F32ReduceOp, name="f32_sum"):
    """Sum over `axes`, from zero: in row-major order or, along rows of 32 and more, in 16 partial sums.

    Term i of a row of n joins partial sum i modulo 16 while i < n - n mod 16; the partial sums are added in order, the
    other terms too, then both sums. With `in_order` rows of any length are added in row-major order.
    """

    in_order = attribute(BOOL, False)

    @property
    def partial_sums(self) -> int:
        """How many partial sums a row has; 1 where all terms are added in order."""
        return 1 if self.in_order else partial_sums(shape_of(self.input.type), self.axes)


class F32ExtremeOp(F32ReduceOp):
    """Shared definition: the extreme of numbers over `axes`, or with `from_zero` of these and zero.

    With `nan_as_zero` a NaN counts as zero, and with both a zero has no sign.
    """

    from_zero = attribute(BOOL, False)
    nan_as_zero = attribute(BOOL, False)


class F32MaxOp(F32ExtremeOp, name="f32_max"):
    """Largest number over `axes`; NaN if one of them is NaN.

    With `from_zero` the largest of the numbers and 0: the number whose bits are the largest signed integer. Then a NaN
    counts as larger than infinity if its sign is plus, and as smaller than 0 if it is minus.
    """


class F32MinOp(F32ExtremeOp, name="f32_min"):
    """Smallest number over `axes`; NaN if one of them is NaN.

    With `from_zero` the smallest of the numbers and 0: the number whose bits are the largest unsigned integer if one
    has a minus sign, else 0. Then a NaN counts as smaller than minus infinity if its sign is minus, and as larger than
    0 if it is plus.
    """


class F32ProdOp(F32ReduceOp, name="f32_prod"):
    """Product over `axes` in row-major order, from one."""


class F32ProductOp(QnnOp):
    """Shared definition: sums of products that start from zero, or from the `bias` of the output channel.

    Each step is one fused multiply-add; with `rounded_products` a product is rounded before it is added.

    Constraints:
      C4: bias must have one entry for each output channel
    """

    bias = optional_operand(FLOAT_1D)
    rounded_products = attribute(BOOL, False)

    def check(self) -> None:
        channels = shape_of(self.operation.results[0].type)[-1]
        entries = channels if self.bias is None else shape_of(self.bias.type)[0]
        require(entries == channels, "C4", f"bias must have {channels} entries, but got {entries}")


class F32MatmulOp(F32ProductOp, name="f32_matmul"):
    """Product of matrices: ``output[..., m, n] = sum over k of data[..., m, k] * matrix[..., k, n]``, k ascending.

    `matrix` is one matrix for all matrices of `data`, or as many matrices as `data`.

    Constraints:
      C1: data must have at least 2 dimensions, matrix 2 or the leading dimensions of data and 2
      C2: matrix must have as many rows as data has columns
    """

    data = operand(FLOAT)
    matrix = operand(FLOAT)
    output = result(FLOAT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        data, matrix, *_ = shapes
        require(len(data) >= 2, "C1", f"data must have at least 2 dimensions, but got {len(data)}")
        rank = len(matrix)
        holds = rank >= 2 and (rank == 2 or matrix[: rank - 2] == data[:-2])
        wanted = f"matrix must have 2 dimensions, or {list(data[:-2])} and 2"
        require(holds, "C1", f"{wanted}, but got {list(matrix)}")
        rows, columns = matrix[rank - 2], matrix[rank - 1]
        require(rows == data[-1], "C2", f"matrix must have {data[-1]} rows, but got {rows}")
        return (*data[:-1], columns)


class F32Conv2DOp(F32ProductOp, name="f32_conv2d"):
    """Convolution of NHWC data with OHWI weights, window rows, columns and channels in this order, without padding.

    ``output[n,y,x,o] = sum data[n, y*s+i*d, x*s+j*d, c] * weight[o,i,j,c]``; depthwise is ``groups`` = input channels.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: the dilated kernel must fit into the data
      C5: bias must go with one group
    """

    data = operand(FLOAT_4D)
    weight = operand(FLOAT_4D)
    strides = attribute(INTEGERS, (1, 1))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(FLOAT_4D)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return conv2d_shape(shapes, {**attributes, "padding": (0, 0, 0, 0)})

    def check(self) -> None:
        super().check()
        require(self.bias is None or self.groups == 1, "C5", f"bias must go with one group, but got {self.groups}")


# In which precision an upstream op of the dialect `math` evaluates a transcendental function of f32 values.
#
# Without the attribute it is a sequence of float32 operations (`qdialect.arithmetic.float32`), at most one unit of the
# last place from the truth.  With it the function is evaluated in float64 and rounded to float32 once, for operators
# whose framework gives the nearest float32 number; of e^x it is the one that glibc's `expf` gives:
#
#     %y = math.exp %x {qnn.in_float64} : tensor<4xf32>

IN_FLOAT64 = "qnn.in_float64"
"""Name of the unit attribute."""


def is_in_float64(op: ir.Operation | ir.OpView) -> bool:
    """Whether `op` evaluates its function in float64."""
    return IN_FLOAT64 in op.operation.attributes
