"""Reductions over windows and axes, and images of another height and width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic import Division
from qdialect.arithmetic.choices import Coordinates, Interpolation, SoftmaxArithmetic
from qdialect.arithmetic.resize import Taps, interpolation_taps
from qdialect.dialect.fields import BOOL, I64, INTEGERS, SCALE, attribute, choice, operand, result
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.op_base import (
    QnnOp,
    Shape,
    check_axis,
    check_bounds,
    check_element,
    check_positive,
    check_zero_points,
    require,
    window_extent,
)
from qdialect.dialect.reduction_ops import RescaledReductionOp
from qdialect.dialect.type_constraints import EIGHT_BIT, TypeConstraint, element_of, range_of, shape_of

_IMAGE = TypeConstraint(("i8", "ui8", "i16"), rank=4)
_MAX_WINDOW = 2**16
"""Elements of 16 bits whose sum int32 holds."""


class PoolOp(QnnOp):
    """A window over NHWC data; input and result have the same parameters.

    Constraints:
      C1: kernel and strides must be 2 integers of at least 1, padding 4 of at least 0
      C2: the window must fit into the padded data, and the padding be smaller than the window
      C3: input and result must have the same element type
      C4: output_min and output_max must be ordered and lie in the result's range
    """

    data = operand(_IMAGE)
    kernel = attribute(INTEGERS)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    output_min = attribute(I64)
    output_max = attribute(I64)
    output = result(_IMAGE)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        kernel, strides, padding = attributes["kernel"], attributes["strides"], attributes["padding"]
        check_positive("C1", "kernel", kernel, 2)
        check_positive("C1", "strides", strides, 2)
        check_positive("C1", "padding", padding, 4, minimum=0)
        # A window that lies in the padding alone would have no element to look at.
        holds = max(padding[0], padding[2]) < kernel[0] and max(padding[1], padding[3]) < kernel[1]
        require(holds, "C2", f"padding must be smaller than the kernel {list(kernel)}, but got {list(padding)}")
        data = shapes[0]
        height = window_extent("C2", "input height", data[1], padding[0] + padding[2], kernel[0], strides[0])
        width = window_extent("C2", "input width", data[2], padding[1] + padding[3], kernel[1], strides[1])
        return data[0], height, width, data[3]

    def check(self) -> None:
        check_element("C3", self.output, self.data)
        check_bounds("C4", ("output_min", "output_max"), self.output_min, self.output_max, self.output.type)


class MaxPool2DOp(PoolOp, name="max_pool2d"):
    """Largest quantized value of each window, clamped; elements of the padding do not take part."""


class AvgPool2DOp(PoolOp, name="avg_pool2d"):
    """Sum of the quantized values of each window divided by their number, clamped.

    With `count_include_pad` the padding's elements count, as `zero_point`; without it they do not take part.

    Constraints:
      C5: zero_point must lie in the tensor's range
      C6: a window of i16 must have at most 2^16 elements
    """

    zero_point = attribute(I64)
    division = attribute(choice(Division), Division.HALF_AWAY)
    count_include_pad = attribute(BOOL, False)

    def check(self) -> None:
        super().check()
        check_zero_points("C5", "zero_point", (self.zero_point,), self.data.type)
        elements = math.prod(self.kernel)
        holds = elements <= _MAX_WINDOW or element_of(self.data.type) != "i16"
        require(holds, "C6", f"window of i16 must have at most {_MAX_WINDOW} elements, but got {elements}")


class MeanOp(RescaledReductionOp, name="mean"):
    """Mean over `axes`, requantized; the number of elements is part of the multiplier."""


class SoftmaxOp(QnnOp, name="softmax"):
    """Softmax of ``beta * x`` over `axis`; `arithmetic` states how exponentials and their ratio are formed.

    The input's zero point cancels in ``x - max(x)``, so it is not an attribute.

    Constraints:
      C1: axis must name a dimension of the input
      C2: output_zero_point must lie in the result's range
      C3: ``tflite_fixed`` has the input's element type, output_scale 1/256 and its smallest value as
        output_zero_point
      C4: ``tflite_fixed`` needs input_scale * beta above 2^-26, the last bit of its fixed point
    """

    input = operand(EIGHT_BIT)
    axis = attribute(I64)
    input_scale = attribute(SCALE)
    beta = attribute(SCALE, 1.0)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    arithmetic = attribute(choice(SoftmaxArithmetic))
    output = result(EIGHT_BIT)

    def check(self) -> None:
        check_axis("C1", self.axis, shape_of(self.input.type))
        check_zero_points("C2", "output_zero_point", (self.output_zero_point,), self.output.type)
        if self.arithmetic is SoftmaxArithmetic.TFLITE_FIXED:
            self._check_fixed()

    def _check_fixed(self) -> None:
        check_element("C3", self.output, self.input)
        parameters, fixed = (self.output_scale, self.output_zero_point), (1 / 256, range_of(self.output.type)[0])
        names = "output_scale and output_zero_point"
        found = f"{parameters[0]} and {parameters[1]}"
        require(parameters == fixed, "C3", f"{names} must be {fixed[0]} and {fixed[1]}, but got {found}")
        product = self.input_scale * self.beta
        require(product > 2.0**-26, "C4", f"input_scale * beta must be greater than 2^-26, but got {product}")


_SMOOTH_IMAGE = TypeConstraint(("i8", "ui8", "f32"), rank=4)
_FIXED_COORDINATES = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
_INTERPOLATED = {
    Interpolation.TFLITE_FIXED: ("i8", "ui8"),
    Interpolation.XNNPACK_FIXED: ("i8", "ui8"),
    Interpolation.TFLITE_FLOAT: ("ui8", "f32"),
    Interpolation.ONNX_FLOAT: ("i8", "ui8", "f32"),
}


class ResizeBilinearOp(SameElementOp, name="resize_bilinear"):
    """An image [N, H, W, C] of height and width `size`, interpolated between four elements of the input.

    The weights of the four add up to 1, so that the result has the input's scale and zero point. `arithmetic` states
    how coordinates, weights and sums are computed.

    Constraints:
      C2: size must be 2 integers of at least 1
      C3: arithmetic tflite_fixed and xnnpack_fixed take i8 and ui8, tflite_float ui8 and f32, onnx_float all three
      C4: arithmetic tflite_fixed and xnnpack_fixed take the coordinates asymmetric, half_pixel and align_corners
    """

    input = operand(_SMOOTH_IMAGE)
    size = attribute(INTEGERS)
    coordinates = attribute(choice(Coordinates))
    arithmetic = attribute(choice(Interpolation))
    output = result(_SMOOTH_IMAGE)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        size = attributes["size"]
        check_positive("C2", "size", size, 2)
        batch, _, _, channels = shapes[0]
        return batch, size[0], size[1], channels

    @property
    def taps(self) -> tuple[Taps, Taps]:
        """The rows and the columns of the input that the result is made of, and their weights."""
        rows, columns = (
            interpolation_taps(self.arithmetic, self.coordinates, extent, size)
            for extent, size in zip(shape_of(self.input.type)[1:3], self.size, strict=True)
        )
        return rows, columns

    def check(self) -> None:
        super().check()
        element, elements = element_of(self.input.type), _INTERPOLATED[Interpolation(self.arithmetic)]
        wanted = f"input of arithmetic {self.arithmetic} must be {' or '.join(elements)}"
        require(element in elements, "C3", f"{wanted}, but got {element}")
        is_fixed = self.arithmetic in (Interpolation.TFLITE_FIXED, Interpolation.XNNPACK_FIXED)
        holds = not is_fixed or self.coordinates in _FIXED_COORDINATES
        wanted = f"coordinates of arithmetic {self.arithmetic} must be one of {', '.join(_FIXED_COORDINATES)}"
        require(holds, "C4", f"{wanted}, but got {self.coordinates}")
