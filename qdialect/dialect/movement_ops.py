"""Constants and data movement: elements of any type do not change, also at indices known at run time alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect.fields import ELEMENTS, I64, INTEGERS, attribute, choice, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, check_axis, check_element, check_positive, require
from qdialect.dialect.type_constraints import ANY, ANY_OR_EMPTY, ELEMENT_RANGES, INDEX, INDEX_LIST, element_of
from qdialect.ir._mlir import ir


class ConstantOp(QnnOp, name="constant"):
    """A constant tensor; unlike `arith.constant` it may have unsigned elements.

    Constraints:
      C1: value must be a tensor of the result's type
    """

    value = attribute(ELEMENTS)
    output = result(ANY_OR_EMPTY)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return tuple(ir.ShapedType(attributes["value"].type).shape)

    def check(self) -> None:
        found, wanted = self.value.type, self.output.type
        require(found == wanted, "C1", f"value must be of type {wanted}, but got {found}")


class SameElementOp(QnnOp):
    """Input and result have the same element type.

    Constraints:
      C1: input and result must have the same element type
    """

    input = operand(ANY)
    output = result(ANY)

    def check(self) -> None:
        check_element("C1", self.output, self.input)


_WHOLE = {"f32": 24, "f16": 11, "bf16": 8}
_FILLS = {
    **ELEMENT_RANGES,
    **{element: (-(2**bits), 2**bits) for element, bits in _WHOLE.items()},
    "i1": (0, 1),
    "i64": (-(2**63), 2**63 - 1),
}
"""The range of padding values; up to 2^24 every whole number is an f32, and so on."""


class PadOp(SameElementOp, name="pad"):
    """Add `low` elements before and `high` elements after each dimension, filled with the integer `value`.

    A tensor of floats is filled with the same number.

    Constraints:
      C2: low and high must have one entry of at least 0 for each dimension
      C3: value must lie in the tensor's range, or for f32, f16 and bf16 be at most 2^24, 2^11 and 2^8 in magnitude
    """

    low = attribute(INTEGERS)
    high = attribute(INTEGERS)
    value = attribute(I64)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        rank = len(shapes[0])
        check_positive("C2", "low", attributes["low"], rank, minimum=0)
        check_positive("C2", "high", attributes["high"], rank, minimum=0)
        return tuple(map(sum, zip(shapes[0], attributes["low"], attributes["high"], strict=True)))

    def check(self) -> None:
        super().check()
        low, high = _FILLS[element_of(self.input.type)]
        require(low <= self.value <= high, "C3", f"value must be in [{low}, {high}], but got {self.value}")


class SliceOp(SameElementOp, name="slice"):
    """`size` elements of each dimension from `begin` on, `strides` apart.

    Constraints:
      C2: begin must have one entry of at least 0 for each dimension, size and strides one of at least 1
      C3: the last element, begin + (size - 1) * strides, must lie in the input
    """

    begin = attribute(INTEGERS)
    size = attribute(INTEGERS)
    strides = attribute(INTEGERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        begin, size, strides = (attributes[name] for name in ("begin", "size", "strides"))
        rank = len(shapes[0])
        check_positive("C2", "begin", begin, rank, minimum=0)
        check_positive("C2", "size", size, rank)
        check_positive("C2", "strides", strides, rank)
        last = [first + (count - 1) * step for first, count, step in zip(begin, size, strides, strict=True)]
        holds = all(index < extent for index, extent in zip(last, shapes[0], strict=True))
        require(holds, "C3", f"last element must lie in a tensor of shape {list(shapes[0])}, but got {last}")
        return tuple(size)


class GatherOp(SameElementOp, name="gather"):
    """Element i along `axis` is the input's element ``indices[i]``.

    Constraints:
      C2: axis must be a dimension of the input
      C3: indices must have at least one entry, all in [0, n) for the input's extent n along axis
    """

    axis = attribute(I64)
    indices = attribute(INTEGERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        shape, axis, indices = shapes[0], attributes["axis"], attributes["indices"]
        check_axis("C2", axis, shape)
        require(len(indices) >= 1, "C3", "indices must have at least one entry, but got none")
        outside = [index for index in indices if not 0 <= index < shape[axis]]
        message = f"indices must be in [0, {shape[axis]}), but got {', '.join(map(str, outside[:1]))}"
        require(not outside, "C3", message)
        return (*shape[:axis], len(indices), *shape[axis + 1 :])


class ReshapeOp(SameElementOp, name="reshape"):
    """The same quantized values in the same order under the shape `shape`.

    Constraints:
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
      C2: shape must be one that the input broadcasts to by NumPy's rules: aligned at the last dimension, each extent
          of the input is 1 or that of shape
    """

    shape = attribute(INTEGERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        found, shape = shapes[0], tuple[int, ...](attributes["shape"])
        aligned = shape[len(shape) - len(found) :] if len(shape) >= len(found) else None
        holds = aligned is not None and all(own in (1, wanted) for own, wanted in zip(found, aligned, strict=True))
        message = f"shape must be one to which {list(found)} broadcasts, but got {list(shape)}"
        require(holds and all(extent >= 1 for extent in shape), "C2", message)
        return shape


# Gather and scatter of rows at indices that are computed at run time.
#
# Indices in [-n, n) name the n rows of a dimension, negative ones counted from its end.  An index outside of this range
# selects the nearest row, the first or the last one, so that no memory outside of the tensor is accessed.

_REDUCED = ("i16", "i32", "i64", "f32")


class DynamicGatherOp(QnnOp, name="dynamic_gather"):
    """The elements of `data` at `indices` along `axis`, as ``numpy.take``; the dimensions of `indices` replace it.

    An index below -n or above n - 1, for the extent n of `data` along `axis`, is taken as the nearest of these.

    Constraints:
      C1: data and result must have the same element type
      C2: axis must be a dimension of data
    """

    data = operand(ANY)
    indices = operand(INDEX)
    axis = attribute(I64, 0)
    output = result(ANY)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        (data, indices), axis = shapes, attributes["axis"]
        check_axis("C2", axis, data)
        return (*data[:axis], *indices, *data[axis + 1 :])

    def check(self) -> None:
        check_element("C1", self.output, self.data)


class DynamicScatterOp(QnnOp, name="dynamic_scatter"):
    """`data` with row ``indices[i]`` of its first dimension replaced by row i of `updates`; of equal indices the last.

    With a `reduction`, the row becomes the sum, product, minimum or maximum of itself and the update, one update after
    the other in the order of the indices.  An index below -n or above n - 1, for the n rows of `data`, is taken as the
    nearest of these.

    Constraints:
      C1: data, updates and result must have the same element type
      C2: data must have at least 1 dimension
      C3: updates must have a row of data's shape for each index
      C4: with a reduction, elements must be i16, i32, i64 or f32
    """

    data = operand(ANY)
    indices = operand(INDEX_LIST)
    updates = operand(ANY)
    reduction = attribute(choice(ScatterReduction), ScatterReduction.NONE)
    output = result(ANY)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        data, indices, updates = shapes
        require(len(data) >= 1, "C2", "data must have at least 1 dimension, but got 0")
        wanted = (*indices, *data[1:])
        require(updates == wanted, "C3", f"updates must have the shape {list(wanted)}, but got {list(updates)}")
        return data

    def check(self) -> None:
        wanted = element_of(self.data.type)
        found = {element_of(self.updates.type), element_of(self.output.type)} - {wanted}
        require(not found, "C1", f"updates and result must have elements of type {wanted}, but got {', '.join(found)}")
        if self.reduction != ScatterReduction.NONE:
            require(wanted in _REDUCED, "C4", f"elements to reduce must be i16, i32, i64 or f32, but got {wanted}")
