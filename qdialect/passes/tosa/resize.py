"""RESIZE: every element of the result lies between two of the input along height and width.

Element i stands at ``i * denominator + offset`` in units of 1 / numerator: the element below it is the quotient by the
numerator, the remainder r its weight.  Nearest neighbours and sums of integers are exact; the latter are not divided,
which a RESCALE does where a network wants it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import GatherOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import Array, Conversion, converts, mode, require
from qdialect.passes.tosa.upstream import apply, resized, spread


@dataclass(frozen=True)
class Positions:
    """Where the elements of the result stand along one dimension."""

    below: Array
    above: Array
    rest: Array
    numerator: int

    def nearest(self) -> Array:
        """The element that is nearer, from the middle on the upper one."""
        return np.where(2 * self.rest >= self.numerator, self.above, self.below)

    def weights(self, element: str) -> tuple[Array, Array]:
        """Those of the elements below and above: integers with the sum `numerator`, or floats with the sum 1."""
        if element != "f32":
            return (self.numerator - self.rest).astype(np.int32), self.rest.astype(np.int32)
        above = self.rest.astype(np.float32) / np.float32(self.numerator)
        return np.float32(1) - above, above


@converts("tosa.resize")
def _resize(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    scale, offset = (conversion.integers(op.operands[1 + i], name) for i, name in enumerate(("scale", "offset")))
    positions = [_positions(op, scale, offset, i) for i in range(2)]
    if mode(op, "mode") == "NEAREST_NEIGHBOR":
        return _taken(_taken(value, 1, positions[0].nearest()), 2, positions[1].nearest())
    element = element_of(value.type)
    require(element in ("i8", "f32"), f"must interpolate i8 or f32, but got {element}")
    wide = value if element == "f32" else resized(value, "i32")
    return _interpolated(wide, *positions)


def _positions(op: ir.Operation, scale: tuple[int, ...], offset: tuple[int, ...], dimension: int) -> Positions:
    numerator, denominator = scale[2 * dimension : 2 * dimension + 2]
    require(numerator > 0 and denominator > 0, f"scale must be positive, but got {list(scale)}")
    extents = [shape_of(value.type)[1 + dimension] for value in (op.operands[0], op.results[0])]
    at = np.arange(extents[1]) * denominator + offset[dimension]
    first, last = at // numerator, extents[0] - 1
    return Positions(first.clip(0, last), (first + 1).clip(0, last), at - first * numerator, numerator)


def _taken(value: ir.Value, axis: int, indices: Array) -> ir.Value:
    return build(GatherOp, value, element=element_of(value.type), axis=axis, indices=tuple(indices.tolist())).output


def _interpolated(value: ir.Value, rows: Positions, columns: Positions) -> ir.Value:
    """The sum of four neighbours, each times the weights of its row and its column, in the specification's order."""
    element = element_of(value.type)
    suffix = "f" if element == "f32" else "i"
    total = None
    for taken_rows, row_weights in zip((rows.below, rows.above), rows.weights(element), strict=True):
        line = _taken(value, 1, taken_rows)
        for taken_columns, column_weights in zip((columns.below, columns.above), columns.weights(element), strict=True):
            found = _taken(line, 2, taken_columns)
            shape = shape_of(found.type)
            for weights, lanes in ((row_weights, (1, -1, 1, 1)), (column_weights, (1, 1, -1, 1))):
                found = apply(f"arith.mul{suffix}", found, spread(constant(weights.reshape(lanes)), shape))
            total = found if total is None else apply(f"arith.add{suffix}", total, found)
    assert total is not None
    return total
