"""What patterns on vectors of float32 numbers share: constants, bits, and whether all lanes are in a range."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b

LANES = 16
"""Of a vector that the patterns take."""


def splat(type_: ir.VectorType, value: float) -> ir.Value:
    """A constant that is `value` in all lanes."""
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


def bits_of(numbers: ir.Value) -> ir.Value:
    """The i32 values with the bits of `numbers`."""
    return arith.bitcast(ir.VectorType.get(b.shape_of(numbers), ir.IntegerType.get_signless(32)), numbers)


def as_integer(number: float) -> int:
    """The bits of a float32 number: those of positive numbers are ordered as the numbers are."""
    return int(np.float32(number).view(np.int32))


def folded(fold: Callable[[ir.Value, ir.Value], ir.Value], values: ir.Value) -> ir.Value:
    """One vector of `LANES` lanes of all."""
    type_ = ir.VectorType(values.type)
    count = int(np.prod(type_.shape)) // LANES
    rows = vector.shape_cast(ir.VectorType.get([count, LANES], type_.element_type), values)
    return reduce(fold, (b.extract(rows, (row,)) for row in range(count)))


def every(lanes: ir.Value) -> ir.Value:
    """Whether all of a vector of bits are set."""
    count = int(np.prod(b.shape_of(lanes)))
    bit = ir.IntegerType.get_signless(1)
    flat = vector.shape_cast(ir.VectorType.get([count], bit), lanes)
    return vector.reduction(bit, vector.CombiningKind.AND, flat)
