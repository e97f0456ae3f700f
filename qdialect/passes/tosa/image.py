"""Converts ops on images: means and maxima over windows, and RESIZE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import Division, Rounding
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa.conversion import Array, Conversion, converts, mode, require, window
from qdialect.passes.tosa.elementwise import apply, compare, convert, reshaped, resized, select, spread

# Pools of what no 8-bit pool takes, f32 values and 16-bit integers: along height, then along width.
#
# The elements of a window along a dimension are gathered side by side and reduced.


@dataclass(frozen=True)
class Windows:
    """Kernel, strides, top and left padding, and the number of windows along height and width."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, int]
    count: tuple[int, int]

    def taps(self, dimension: int) -> Array:
        """[windows, kernel]: where the elements stand, perhaps outside of the image."""
        starts = np.arange(self.count[dimension]) * self.strides[dimension] - self.before[dimension]
        return starts[:, np.newaxis] + np.arange(self.kernel[dimension])

    def elements(self, size: tuple[int, ...]) -> Array:
        """[1, OH, OW, 1]: how many elements of an image of height and width `size` each window has."""
        counts = [((self.taps(i) >= 0) & (self.taps(i) < size[i])).sum(axis=1) for i in (0, 1)]
        return np.multiply.outer(*counts)[np.newaxis, :, :, np.newaxis]


def maximum(value: ir.Value, windows: Windows, *, ignores_nan: bool) -> ir.Value:
    """The largest element of each window; NaN where there is one, or, if those are ignored, nothing else."""
    element = element_of(value.type)
    if element != "f32":
        return resized(_maximum(resized(value, "i32"), windows, qnn.IntMaxOp), element)
    if not ignores_nan:
        return _maximum(value, windows, qnn.F32MaxOp)
    is_number = compare("eq", value, value)
    largest = _maximum(select(is_number, value, -np.inf), windows, qnn.F32MaxOp)
    has_number = _maximum(convert("arith.extui", is_number, "i32"), windows, qnn.IntMaxOp)
    return select(compare("ne", has_number, 0), largest, np.nan)


def _maximum(value: ir.Value, windows: Windows, op_class: type[qnn.QnnOp]) -> ir.Value:
    for dimension in (0, 1):
        taps, extent = windows.taps(dimension), shape_of(value.type)[1 + dimension]
        # A tap outside becomes the nearest element, which the window has too: counting it twice changes no maximum.
        value = _folded(value, 1 + dimension, taps.clip(0, extent - 1), op_class)
    return value


def _sum(value: ir.Value, windows: Windows, op_class: type[qnn.QnnOp]) -> ir.Value:
    for dimension in (0, 1):
        taps, extent = windows.taps(dimension), shape_of(value.type)[1 + dimension]
        low, high = max(0, -int(taps.min())), max(0, int(taps.max()) + 1 - extent)
        pads = [tuple(count if i == 1 + dimension else 0 for i in range(4)) for count in (low, high)]
        padded = qnn.build(qnn.PadOp, value, element=element_of(value.type), low=pads[0], high=pads[1], value=0).output
        value = _folded(padded, 1 + dimension, taps + low, op_class)
    return value


def _folded(value: ir.Value, axis: int, taps: Array, op_class: type[qnn.QnnOp]) -> ir.Value:
    element, shape = element_of(value.type), shape_of(value.type)
    gathered = qnn.build(qnn.GatherOp, value, element=element, axis=axis, indices=tuple(taps.ravel().tolist())).output
    split = reshaped(gathered, (*shape[:axis], *taps.shape, *shape[axis + 1 :]))
    return qnn.build(op_class, split, element=element, axes=(axis + 1,), keep_dims=False).operation.results[0]


def average_floats(value: ir.Value, windows: Windows) -> ir.Value:
    """The sum of each window over the number of its elements, in float32."""
    counts = windows.elements(shape_of(value.type)[1:3]).astype(np.float32)
    total = _sum(value, windows, qnn.F32SumOp)
    return apply("arith.divf", total, spread(constant(counts), shape_of(total.type)))


def average_integers(value: ir.Value, windows: Windows, input_zp: int, output_zp: int) -> ir.Value:
    """The mean of the integers less `input_zp`, plus `output_zp`, by TOSA's multiplication with a reciprocal."""
    element = element_of(value.type)
    counts = windows.elements(shape_of(value.type)[1:3])
    # 2^k is the smallest power of two that is not less than the count, ((2^30 + 1) << k) / count the multiplier.
    powers = np.ceil(np.log2(counts)).astype(np.int64)
    multipliers, shifts = (((1 << 30) + 1) << powers) // counts, 30 + powers
    total = resized(_sum(apply("arith.subi", resized(value, "i32"), input_zp), windows, qnn.IntSumOp), "i64")
    q, shift, nudge = (_tensor(array, total) for array in (multipliers, shifts, np.left_shift(1, shifts - 1)))
    product = apply("arith.addi", apply("arith.muli", total, q), nudge)
    mean = apply("arith.addi", apply("arith.shrsi", product, shift), output_zp)
    low, high = ELEMENT_RANGES[element]
    return resized(apply("arith.minsi", apply("arith.maxsi", mean, low), high), element)


def _tensor(array: Array, like: ir.Value) -> ir.Value:
    return spread(constant(array.astype(np.int64)), shape_of(like.type))


# Windows: means and maxima.

# Up to there TOSA's reciprocal is exact, see `qdialect.reference.qnn_evaluators`.
_MAX_KERNEL_ELEMENTS = 2**20
_WINDOW = ("kernel", "stride", "pad")


@converts("tosa.max_pool2d", "tosa.max_pool2d_adaptive")
def _max_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=1)
    element = element_of(value.type)
    if element not in ("i8", "ui8"):
        windows = _windows(op, kernel, strides, pad)
        return maximum(value, windows, ignores_nan=mode(op, "nan_mode") == "IGNORE")
    return qnn.build(qnn.MaxPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad)).output


@converts("tosa.avg_pool2d", "tosa.avg_pool2d_adaptive")
def _avg_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The mean lies within the range of the data; another zero point of the result moves it, and clamps."""
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=3)
    element = element_of(value.type)
    if element == "f32":
        return average_floats(value, _windows(op, kernel, strides, pad))
    before, after = (
        conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input_zp", "output_zp"))
    )
    if element == "i16":
        return average_integers(value, _windows(op, kernel, strides, pad), before, after)
    elements = f"kernel must have at most {_MAX_KERNEL_ELEMENTS} elements, but got {kernel[0] * kernel[1]}"
    require(kernel[0] * kernel[1] <= _MAX_KERNEL_ELEMENTS, elements)
    how: dict[str, Any] = {"division": Division.HALF_AWAY_CENTERED, "zero_point": before}
    mean = qnn.build(
        qnn.AvgPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad), **how
    ).output
    if before == after:
        return mean
    scale = conversion.scale(op.results[0])
    moved: dict[str, Any] = {"input_scale": scale, "output_scale": scale, "rounding": Rounding.FIXED64_UP}
    moved |= {"input_zero_points": (before,), "output_zero_point": after}
    return qnn.build(qnn.RequantizeOp, mean, element=element, **moved).output


def _lengths(conversion: Conversion, op: ir.Operation, first_operand: int) -> list[tuple[int, ...]]:
    """Kernel, strides and padding: attributes, or the last operands of a pool that is called adaptive."""
    if "kernel" in op.attributes:
        return [window(op, name) for name in _WINDOW]
    return [conversion.integers(op.operands[first_operand + i], name) for i, name in enumerate(_WINDOW)]


def _windows(op: ir.Operation, kernel: tuple[int, ...], strides: tuple[int, ...], pad: tuple[int, ...]) -> Windows:
    _, height, width, _ = shape_of(op.results[0].type)
    return Windows(kernel, strides, (pad[0], pad[2]), (height, width))


def _attributes(element: str, kernel: tuple[int, ...], strides: tuple[int, ...], pad: tuple[int, ...]) -> Any:
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
    return qnn.build(
        qnn.GatherOp, value, element=element_of(value.type), axis=axis, indices=tuple(indices.tolist())
    ).output


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
