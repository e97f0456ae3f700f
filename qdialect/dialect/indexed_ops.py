"""Gather and scatter of rows at indices that are computed at run time.

Indices in [-n, n) name the n rows of a dimension, negative ones counted from its end.  An index outside of this range
selects the nearest row, the first or the last one, so that no memory outside of the tensor is accessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.attribute_kinds import I64, choice
from qdialect.dialect.constraints import check_axis
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import ANY, INDEX, INDEX_LIST, element_of
from qdialect.quant_math.choices import ScatterReduction

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
        found, wanted = element_of(self.output.type), element_of(self.data.type)
        require(found == wanted, "C1", f"result element type must be {wanted}, but got {found}")


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
