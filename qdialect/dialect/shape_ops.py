"""Constants and data movement: the codes stay what they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import ELEMENTS, I64, INTEGERS
from qdialect.dialect.constraints import check_positive
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import ANY, INTEGER, element_of, range_of


class ConstantOp(QnnOp, name="constant"):
    """A constant tensor; unlike `arith.constant` it may have unsigned elements.

    Constraints:
      C1: value must be a tensor of the result's type
    """

    value = attribute(ELEMENTS)
    output = result(ANY)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return tuple(ir.ShapedType(attributes["value"].type).shape)

    def check(self) -> None:
        found, wanted = self.value.type, self.output.type
        require(found == wanted, "C1", f"value must be of type {wanted}, but got {found}")


class SameElementOp(QnnOp):
    """Input and result have the same element type."""

    input = operand(INTEGER)
    output = result(INTEGER)

    def check(self) -> None:
        found, wanted = element_of(self.output.type), element_of(self.input.type)
        require(found == wanted, "C1", f"result element type must be {wanted}, but got {found}")


class PadOp(SameElementOp, name="pad"):
    """Add `low` cells before and `high` cells after each dimension, filled with the code `value`.

    Constraints:
      C1: input and result must have the same element type
      C2: low and high must have one entry of at least 0 for each dimension
      C3: value must lie in the tensor's range
    """

    low = attribute(INTEGERS)
    high = attribute(INTEGERS)
    value = attribute(I64)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        rank = len(shapes[0])
        check_positive("C2", "low", attributes["low"], rank, least=0)
        check_positive("C2", "high", attributes["high"], rank, least=0)
        return tuple(map(sum, zip(shapes[0], attributes["low"], attributes["high"], strict=True)))

    def check(self) -> None:
        super().check()
        low, high = range_of(self.input.type)
        require(low <= self.value <= high, "C3", f"value must be in [{low}, {high}], but got {self.value}")


class ReshapeOp(SameElementOp, name="reshape"):
    """The same codes in the same order under the shape `shape`.

    Constraints:
      C1: input and result must have the same element type
      C2: shape must have as many elements as the input
    """

    shape = attribute(INTEGERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        shape: Sequence[int] = attributes["shape"]
        holds = all(extent >= 1 for extent in shape) and math.prod(shape) == math.prod(shapes[0])
        require(holds, "C2", f"shape must have {math.prod(shapes[0])} elements, but got {list(shape)}")
        return tuple(shape)


class TransposeOp(SameElementOp, name="transpose"):
    """Dimension i of the result is dimension ``permutation[i]`` of the input.

    Constraints:
      C1: input and result must have the same element type
      C2: permutation must be one of the input's dimensions
    """

    permutation = attribute(INTEGERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        permutation: Sequence[int] = attributes["permutation"]
        shape = shapes[0]
        holds = sorted(permutation) == list(range(len(shape)))
        require(holds, "C2", f"permutation must order {len(shape)} dimensions, but got {list(permutation)}")
        return tuple(shape[i] for i in permutation)


class BroadcastOp(SameElementOp, name="broadcast"):
    """The input repeated along its dimensions of extent 1, and along new dimensions before them, up to `shape`.

    Constraints:
      C1: input and result must have the same element type
      C2: shape must be one that the input broadcasts to by NumPy's rules: aligned at the last dimension, each extent
          of the input is 1 or that of shape
    """

    input = operand(ANY)
    shape = attribute(INTEGERS)
    output = result(ANY)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        found, shape = shapes[0], tuple[int, ...](attributes["shape"])
        aligned = shape[len(shape) - len(found) :] if len(shape) >= len(found) else None
        holds = aligned is not None and all(own in (1, wanted) for own, wanted in zip(found, aligned, strict=True))
        message = f"shape must be one to which {list(found)} broadcasts, but got {list(shape)}"
        require(holds and all(extent >= 1 for extent in shape), "C2", message)
        return shape
