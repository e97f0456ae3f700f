"""Images of another height and width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic.choices import Coordinates, Interpolation
from qdialect.arithmetic.resize import Taps, interpolation_taps
from qdialect.dialect.fields import INTEGERS, attribute, choice, operand, result
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.op_base import Shape, check_positive, require
from qdialect.dialect.type_constraints import TypeConstraint, element_of, shape_of

_IMAGE = TypeConstraint(("i8", "ui8", "f32"), rank=4)
_FIXED_COORDINATES = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
_ELEMENTS = {
    Interpolation.TFLITE_FIXED: ("i8", "ui8"),
    Interpolation.XNNPACK_FIXED: ("i8", "ui8"),
    Interpolation.TFLITE_FLOAT: ("ui8", "f32"),
    Interpolation.ONNX_FLOAT: ("i8", "ui8", "f32"),
}


class ResizeBilinearOp(SameElementOp, name="resize_bilinear"):
    """An image [N, H, W, C] of height and width `size`, interpolated between four elements of the input.

    The weights of the four add up to 1, so that the result has the input's scale and zero point. `arithmetic` says how
    coordinates, weights and sums are computed.

    Constraints:
      C2: size must be 2 integers of at least 1
      C3: arithmetic tflite_fixed and xnnpack_fixed take i8 and ui8, tflite_float ui8 and f32, onnx_float all three
      C4: arithmetic tflite_fixed and xnnpack_fixed take the coordinates asymmetric, half_pixel and align_corners
    """

    input = operand(_IMAGE)
    size = attribute(INTEGERS)
    coordinates = attribute(choice(Coordinates))
    arithmetic = attribute(choice(Interpolation))
    output = result(_IMAGE)

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
        element, elements = element_of(self.input.type), _ELEMENTS[Interpolation(self.arithmetic)]
        wanted = f"input of arithmetic {self.arithmetic} must be {' or '.join(elements)}"
        require(element in elements, "C3", f"{wanted}, but got {element}")
        is_fixed = self.arithmetic in (Interpolation.TFLITE_FIXED, Interpolation.XNNPACK_FIXED)
        holds = not is_fixed or self.coordinates in _FIXED_COORDINATES
        wanted = f"coordinates of arithmetic {self.arithmetic} must be one of {', '.join(_FIXED_COORDINATES)}"
        require(holds, "C4", f"{wanted}, but got {self.coordinates}")
