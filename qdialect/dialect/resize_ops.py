"""Images of another height and width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import Coordinates, Interpolation, Nearest, Ratio
from qdialect.arithmetic.resize import Taps, interpolation_taps, nearest_indices, source_coordinates
from qdialect.dialect.fields import INTEGERS, attribute, choice, operand, result
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.op_base import Shape, check_positive, require
from qdialect.dialect.type_constraints import NUMPY_DTYPES, TypeConstraint, element_of, shape_of

_ANY_IMAGE = TypeConstraint(tuple(NUMPY_DTYPES), rank=4)
_SMOOTH_IMAGE = TypeConstraint(("i8", "ui8", "f32"), rank=4)
_FIXED_COORDINATES = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
_ELEMENTS = {
    Interpolation.TFLITE_FIXED: ("i8", "ui8"),
    Interpolation.XNNPACK_FIXED: ("i8", "ui8"),
    Interpolation.TFLITE_FLOAT: ("ui8", "f32"),
    Interpolation.ONNX_FLOAT: ("i8", "ui8", "f32"),
}


class ResizeOp(SameElementOp):
    """Height and width become `size`.

    Constraints:
      C2: size must be 2 integers of at least 1
    """

    size = attribute(INTEGERS)
    coordinates = attribute(choice(Coordinates))

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        size = attributes["size"]
        check_positive("C2", "size", size, 2)
        batch, _, _, channels = shapes[0]
        return batch, size[0], size[1], channels


class ResizeNearestOp(ResizeOp, name="resize_nearest"):
    """An image [N, H, W, C] of height and width `size`: every element is the input's nearest one.

    `coordinates` and `ratio` define the coordinate, `nearest` its rounding; coordinates outside of the image give the
    element at the edge.
    """

    input = operand(_ANY_IMAGE)
    nearest = attribute(choice(Nearest))
    ratio = attribute(choice(Ratio))
    output = result(_ANY_IMAGE)

    @property
    def nearest_indices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows and the columns of the input that the result is made of."""
        rows, columns = (
            nearest_indices(
                source_coordinates(self.coordinates, self.ratio, extent, size), self.nearest, extent, self.ratio
            )
            for extent, size in zip(shape_of(self.input.type)[1:3], self.size, strict=True)
        )
        return rows, columns


class ResizeBilinearOp(ResizeOp, name="resize_bilinear"):
    """An image [N, H, W, C] of height and width `size`, interpolated between four elements of the input.

    The weights of the four add up to 1, so that the result has the input's scale and zero point. `arithmetic` says how
    coordinates, weights and sums are computed.

    Constraints:
      C3: arithmetic tflite_fixed and xnnpack_fixed take i8 and ui8, tflite_float ui8 and f32, onnx_float all three
      C4: arithmetic tflite_fixed and xnnpack_fixed take the coordinates asymmetric, half_pixel and align_corners
    """

    input = operand(_SMOOTH_IMAGE)
    arithmetic = attribute(choice(Interpolation))
    output = result(_SMOOTH_IMAGE)

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
        element, elements = element_of(self.input.type), _ELEMENTS[Interpolation(self.arithmetic)]
        wanted = f"input of arithmetic {self.arithmetic} must be {' or '.join(elements)}"
        require(element in elements, "C3", f"{wanted}, but got {element}")
        is_fixed = self.arithmetic in (Interpolation.TFLITE_FIXED, Interpolation.XNNPACK_FIXED)
        holds = not is_fixed or self.coordinates in _FIXED_COORDINATES
        wanted = f"coordinates of arithmetic {self.arithmetic} must be one of {', '.join(_FIXED_COORDINATES)}"
        require(holds, "C4", f"{wanted}, but got {self.coordinates}")
