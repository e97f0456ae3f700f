"""Converts data movement, also at indices known at run time, means and maxima over windows, and RESIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import Division, Rounding
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import Array, Budget, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import gather
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.tosa.operators.conversion import Conversion, converts, integer, mode, window
from qdialect.ir._mlir import ir

# A float32 holds every whole number up to there.
_MAX_WHOLE = 2**24


def _moved(conversion: Conversion, op: ir.Operation, op_class: type[qnn.QnnOp], **attributes: Any) -> ir.Value:
    value = conversion.value(op.operands[0])
    return conversion.build(op_class, value, element=element_of(value.type), **attributes)


@converts("tosa.reshape")
def _reshape(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return _moved(conversion, op, qnn.ReshapeOp, shape=shape_of(op.results[0].type))


@converts("tosa.transpose")
def _transpose(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return _moved(conversion, op, qnn.TransposeOp, permutation=tuple(ir.DenseI32ArrayAttr(op.attributes["perms"])))


@converts("tosa.pad")
def _pad(conversion: Conversion, op: ir.Operation) -> ir.Value:
    pairs = conversion.integers(op.operands[1], "padding")
    if not conversion.is_constant(op.operands[2]):
        return _pad_with(conversion, op, pairs, conversion.value(op.operands[2]))
    fill = conversion.array(op.operands[2], "pad_const")
    number = fill.astype(np.float64).item()
    if not number.is_integer() or (fill.dtype == np.float32 and abs(number) > _MAX_WHOLE):
        return _pad_with(conversion, op, pairs, conversion.value(op.operands[2]))
    return _moved(conversion, op, qnn.PadOp, low=pairs[::2], high=pairs[1::2], value=int(number))


def _pad_with(conversion: Conversion, op: ir.Operation, pairs: tuple[int, ...], fill: ir.Value) -> ir.Value:
    """With the one element of `fill`, which no attribute holds: concatenated parts."""
    value = conversion.value(op.operands[0])
    for axis, counts in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        shape = list(shape_of(value.type))
        low, high = (_filled(conversion, fill, [*shape[:axis], count, *shape[axis + 1 :]]) for count in counts)
        parts = [*low, value, *high]
        value = conversion.concatenate(parts, axis) if len(parts) > 1 else value
    return value


def _filled(conversion: Conversion, fill: ir.Value, shape: list[int]) -> list[ir.Value]:
    """A tensor of one element repeated; nothing where it would be empty."""
    return [conversion.broadcast(conversion.reshape(fill, (1,) * len(shape)), tuple(shape))] if 0 not in shape else []


@converts("tosa.slice")
def _slice(conversion: Conversion, op: ir.Operation) -> ir.Value:
    begin, size = (conversion.integers(op.operands[1 + i], name) for i, name in enumerate(("start", "size")))
    return _moved(conversion, op, qnn.SliceOp, begin=begin, size=size, strides=(1,) * len(size))


@converts("tosa.reverse")
def _reverse(conversion: Conversion, op: ir.Operation) -> ir.Value:
    axis = integer(op, "axis")
    return gather(conversion, conversion.value(op.operands[0]), axis, range(shape_of(op.results[0].type)[axis])[::-1])


@converts("tosa.tile")
def _tile(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Each dimension gets one before it, along which it is repeated."""
    shape, multiples = shape_of(op.operands[0].type), conversion.integers(op.operands[1], "multiples")
    spread = tuple(extent for pair in zip(multiples, shape, strict=True) for extent in pair)
    value = conversion.reshape(conversion.value(op.operands[0]), tuple(extent for own in shape for extent in (1, own)))
    return conversion.reshape(conversion.broadcast(value, spread), shape_of(op.results[0].type))


@converts("tosa.concat")
def _concat(conversion: Conversion, op: ir.Operation) -> ir.Value:
    values = [conversion.value(operand) for operand in op.operands]
    axis = integer(op, "axis")
    if element_of(values[0].type) not in ("i8", "ui8") or len(values) > MAX_VARIADIC:
        return conversion.concatenate(values, axis)
    scale = conversion.scale(op.operands[0])
    return conversion.build(
        qnn.ConcatOp,
        *values,
        element=element_of(values[0].type),
        axis=axis,
        input_scales=(scale,) * len(values),
        input_zero_points=(0,) * len(values),
        output_scale=scale,
        output_zero_point=0,
    )


def _rows(conversion: Conversion, data: ir.Value, indices: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The rows of all batches as one table, and where each index [N, W] points to in it."""
    batches, rows, depth = shape_of(data.type)
    table = conversion.reshape(conversion.value(data), (batches * rows, depth))
    positions = conversion.value(indices)
    if batches > 1:
        first = conversion.constant(np.arange(batches, dtype=np.int32).reshape(-1, 1) * np.int32(rows))
        positions = conversion.upstream("arith.addi", positions, conversion.broadcast(first, shape_of(positions.type)))
    return table, conversion.reshape(positions, (batches * shape_of(indices.type)[1],))


@converts("tosa.gather")
def _gather(conversion: Conversion, op: ir.Operation) -> ir.Value:
    table, positions = _rows(conversion, *list(op.operands)[:2])
    found = conversion.build(qnn.DynamicGatherOp, table, positions, element=element_of(table.type), axis=0)
    return conversion.reshape(found, shape_of(op.results[0].type))


@converts("tosa.scatter")
def _scatter(conversion: Conversion, op: ir.Operation) -> ir.Value:
    data, indices, updates = op.operands
    table, positions = _rows(conversion, data, indices)
    rows = conversion.reshape(conversion.value(updates), (shape_of(positions.type)[0], shape_of(table.type)[1]))
    written = conversion.build(qnn.DynamicScatterOp, table, positions, rows, element=element_of(table.type))
    return conversion.reshape(written, shape_of(op.results[0].type))


# Means and maxima over windows.


def _maximum(conversion: Conversion, value: ir.Value, pool: Pool, *, ignores_nan: bool) -> ir.Value:
    """The largest element of each window; NaN where there is one, or, if those are ignored, nothing else."""
    s, element = Arithmetic(conversion), element_of(value.type)
    if element != "f32":
        return s.resize(pool.maxima(conversion, s.resize(value, "i32")), element)
    if not ignores_nan:
        return pool.maxima(conversion, value)
    is_number = s.compare("eq", value, value)
    largest = pool.maxima(conversion, s.select(is_number, value, -np.inf))
    has_number = pool.maxima(conversion, s.resize(is_number, "i32"))
    return s.select(s.compare("ne", has_number, 0), largest, np.nan)


def _average_integers(
    conversion: Conversion, value: ir.Value, pool: Pool, counts: Array, zero_points: Sequence[int]
) -> ir.Value:
    """The mean of the integers less a zero point, plus the other, by TOSA's multiplication with a reciprocal."""
    s, element, (before, after) = Arithmetic(conversion), element_of(value.type), zero_points
    # 2^k is the smallest power of two that is not less than the count, ((2^30 + 1) << k) / count the multiplier.
    powers = np.ceil(np.log2(counts)).astype(np.int64)
    multipliers, shifts = (((1 << 30) + 1) << powers) // counts, 30 + powers
    total = s.resize(pool.sums(conversion, s.op("arith.subi", s.resize(value, "i32"), before)), "i64")
    q, shift, nudge = (
        conversion.broadcast(conversion.constant(array), shape_of(total.type))
        for array in (multipliers, shifts, np.left_shift(1, shifts - 1))
    )
    product = s.op("arith.addi", s.op("arith.muli", total, q), nudge)
    mean = s.op("arith.addi", s.op("arith.shrsi", product, shift), after)
    low, high = ELEMENT_RANGES[element]
    return s.resize(s.op("arith.minsi", s.op("arith.maxsi", mean, low), high), element)


# Up to there TOSA's reciprocal is exact, see `qdialect.reference.qnn_evaluators`.
_MAX_KERNEL_ELEMENTS = 2**20
_WINDOW = ("kernel", "stride", "pad")


@converts("tosa.max_pool2d", "tosa.max_pool2d_adaptive")
def _max_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=1)
    element = element_of(value.type)
    if element not in ("i8", "ui8"):
        pool, _ = _pool(op, kernel, strides, pad)
        return _maximum(conversion, value, pool, ignores_nan=mode(op, "nan_mode") == "IGNORE")
    return conversion.build(qnn.MaxPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad))


@converts("tosa.avg_pool2d", "tosa.avg_pool2d_adaptive")
def _avg_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The mean lies within the range of the data; another zero point of the result moves it, and clamps."""
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=3)
    element = element_of(value.type)
    if element == "f32":
        pool, counts = _pool(op, kernel, strides, pad)
        return conversion.f32("divf", pool.sums(conversion, value), conversion.constant(counts.astype(np.float32)))
    before, after = (
        conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input_zp", "output_zp"))
    )
    if element == "i16":
        return _average_integers(conversion, value, *_pool(op, kernel, strides, pad), (before, after))
    elements = f"kernel must have at most {_MAX_KERNEL_ELEMENTS} elements, but got {kernel[0] * kernel[1]}"
    require(kernel[0] * kernel[1] <= _MAX_KERNEL_ELEMENTS, elements)
    how: dict[str, Any] = {"division": Division.HALF_AWAY_CENTERED, "zero_point": before}
    mean = conversion.build(
        qnn.AvgPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad), **how
    )
    if before == after:
        return mean
    scale = conversion.scale(op.results[0])
    moved: dict[str, Any] = {"input_scale": scale, "output_scale": scale, "rounding": Rounding.FIXED64_UP}
    moved |= {"input_zero_points": (before,), "output_zero_point": after}
    return conversion.build(qnn.RequantizeOp, mean, element=element, **moved)


def _lengths(conversion: Conversion, op: ir.Operation, first_operand: int) -> list[Shape]:
    """Kernel, strides and padding: attributes, or the last operands of a pool that is called adaptive."""
    if "kernel" in op.attributes:
        return [window(op, name) for name in _WINDOW]
    return [conversion.integers(op.operands[first_operand + i], name) for i, name in enumerate(_WINDOW)]


def _pool(op: ir.Operation, kernel: Shape, strides: Shape, pad: Shape) -> tuple[Pool, Array]:
    """The windows, and how many elements of the image each has: [OH, OW, 1]."""
    size, output = (shape_of(value.type)[1:3] for value in (op.operands[0], op.results[0]))
    top, bottom, left, right = pad
    windows = Window(kernel, strides, (1, 1), (top, left), (bottom, right), output)
    return Pool.of(windows, size, Budget()), windows.counts(size)[..., np.newaxis]


def _attributes(element: str, kernel: Shape, strides: Shape, pad: Shape) -> Any:
    low, high = ELEMENT_RANGES[element]
    top, bottom, left, right = pad
    shape = {"kernel": kernel, "strides": strides, "padding": (top, left, bottom, right)}
    return {**shape, "output_min": low, "output_max": high}


# RESIZE: every element of the result lies between two of the input along height and width.
#
# Element i stands at ``i * denominator + offset`` in units of 1 / numerator: the element below it is the quotient by
# the numerator, the remainder r its weight.  Nearest neighbours and sums of integers are exact; the latter are not
# divided, which a RESCALE does where a network wants it.


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
        rows = gather(conversion, value, 1, positions[0].nearest().tolist())
        return gather(conversion, rows, 2, positions[1].nearest().tolist())
    element = element_of(value.type)
    require(element in ("i8", "f32"), f"must interpolate i8 or f32, but got {element}")
    wide = value if element == "f32" else Arithmetic(conversion).resize(value, "i32")
    return _interpolated(conversion, wide, *positions)


def _positions(op: ir.Operation, scale: tuple[int, ...], offset: tuple[int, ...], dimension: int) -> Positions:
    numerator, denominator = scale[2 * dimension : 2 * dimension + 2]
    require(numerator > 0 and denominator > 0, f"scale must be positive, but got {list(scale)}")
    extents = [shape_of(value.type)[1 + dimension] for value in (op.operands[0], op.results[0])]
    at = np.arange(extents[1]) * denominator + offset[dimension]
    first, last = at // numerator, extents[0] - 1
    return Positions(first.clip(0, last), (first + 1).clip(0, last), at - first * numerator, numerator)


def _interpolated(conversion: Conversion, value: ir.Value, rows: Positions, columns: Positions) -> ir.Value:
    """The sum of four neighbours, each times the weights of its row and its column, in the specification's order."""
    s = Arithmetic(conversion)
    element = element_of(value.type)
    suffix = "f" if element == "f32" else "i"
    total = None
    for taken_rows, row_weights in zip((rows.below, rows.above), rows.weights(element), strict=True):
        line = gather(conversion, value, 1, taken_rows.tolist())
        for taken_columns, column_weights in zip((columns.below, columns.above), columns.weights(element), strict=True):
            found = gather(conversion, line, 2, taken_columns.tolist())
            shape = shape_of(found.type)
            for weights, lanes in ((row_weights, (1, -1, 1, 1)), (column_weights, (1, 1, -1, 1))):
                factors = conversion.broadcast(conversion.constant(weights.reshape(lanes)), shape)
                found = s.op(f"arith.mul{suffix}", found, factors)
            total = found if total is None else s.op(f"arith.add{suffix}", total, found)
    assert total is not None
    return total
