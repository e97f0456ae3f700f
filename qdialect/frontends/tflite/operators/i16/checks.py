"""What the planners of 16-bit operators ask of their tensors."""

from __future__ import annotations

import math

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_scales, operands

# Of a logarithm to base 2 (TFLite CheckedLog2).
_TOLERANCE = 1e-3


def sixteen_bit(tensor: Tensor, what: str) -> Tensor:
    """`tensor`, which has to be i16 with one scale and zero point 0, the only one that the kernels know."""
    require(tensor.element == "i16", f"{what} must be i16, but got {tensor.element}")
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    require(tensor.zero_point == 0, f"{what} zero point must be 0, but got {tensor.zero_point}")
    return tensor


def output_of(operator: Operator) -> Tensor:
    """The 16-bit output of a node."""
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return sixteen_bit(operator.outputs[0], "output")


def one_input(operator: Operator) -> tuple[Tensor, Tensor]:
    """The input and the output of a node with one input."""
    (data,) = operands(operator, 1)
    return sixteen_bit(data, "input"), output_of(operator)


def two_inputs(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Both inputs and the output of a node."""
    lhs, rhs = operands(operator, 2)
    return sixteen_bit(lhs, "input"), sixteen_bit(rhs, "input"), output_of(operator)


def log2_of(scale: float) -> int | None:
    """The logarithm of a power of two, to the thousandth that the kernels allow for; None for another scale."""
    exact = math.log2(scale)
    return round(exact) if abs(exact - round(exact)) < _TOLERANCE else None


def same_scale(tensor: Tensor, output: Tensor) -> None:
    """`tensor` has the scale of `output`: its values stay what they are."""
    require(tensor.scale == output.scale, f"input must have the output's scale {output.scale}, but got {tensor.scale}")
