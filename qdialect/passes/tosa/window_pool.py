"""Pools of what no 8-bit pool takes, f32 values and 16-bit integers: along height, then along width.

The elements of a window along a dimension are gathered side by side and reduced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32SumOp, GatherOp, IntMaxOp, IntSumOp, PadOp, QnnOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.passes.tosa.conversion import Array
from qdialect.passes.tosa.upstream import apply, compare, convert, reshaped, resized, select, spread


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
        return resized(_maximum(resized(value, "i32"), windows, IntMaxOp), element)
    if not ignores_nan:
        return _maximum(value, windows, F32MaxOp)
    is_number = compare("eq", value, value)
    largest = _maximum(select(is_number, value, -np.inf), windows, F32MaxOp)
    has_number = _maximum(convert("arith.extui", is_number, "i32"), windows, IntMaxOp)
    return select(compare("ne", has_number, 0), largest, np.nan)


def _maximum(value: ir.Value, windows: Windows, op_class: type[QnnOp]) -> ir.Value:
    for dimension in (0, 1):
        taps, extent = windows.taps(dimension), shape_of(value.type)[1 + dimension]
        # What lies outside becomes the nearest element, which is one of the window: it counts twice, unnoticed.
        value = _folded(value, 1 + dimension, taps.clip(0, extent - 1), op_class)
    return value


def _sum(value: ir.Value, windows: Windows, op_class: type[QnnOp]) -> ir.Value:
    for dimension in (0, 1):
        taps, extent = windows.taps(dimension), shape_of(value.type)[1 + dimension]
        low, high = max(0, -int(taps.min())), max(0, int(taps.max()) + 1 - extent)
        pads = [tuple(count if i == 1 + dimension else 0 for i in range(4)) for count in (low, high)]
        padded = build(PadOp, value, element=element_of(value.type), low=pads[0], high=pads[1], value=0).output
        value = _folded(padded, 1 + dimension, taps + low, op_class)
    return value


def _folded(value: ir.Value, axis: int, taps: Array, op_class: type[QnnOp]) -> ir.Value:
    element, shape = element_of(value.type), shape_of(value.type)
    beside = build(GatherOp, value, element=element, axis=axis, indices=tuple(taps.ravel().tolist())).output
    split = reshaped(beside, (*shape[:axis], *taps.shape, *shape[axis + 1 :]))
    return build(op_class, split, element=element, axes=(axis + 1,), keep_dims=False).operation.results[0]


def average_floats(value: ir.Value, windows: Windows) -> ir.Value:
    """The sum of each window over the number of its elements, in float32."""
    counts = windows.elements(shape_of(value.type)[1:3]).astype(np.float32)
    total = _sum(value, windows, F32SumOp)
    return apply("arith.divf", total, spread(constant(counts), shape_of(total.type)))


def average_integers(value: ir.Value, windows: Windows, input_zp: int, output_zp: int) -> ir.Value:
    """The mean of the integers less `input_zp`, plus `output_zp`, by TOSA's multiplication with a reciprocal."""
    element = element_of(value.type)
    counts = windows.elements(shape_of(value.type)[1:3])
    # 2^k is the smallest power of two that is not less than the count, ((2^30 + 1) << k) / count the multiplier.
    powers = np.ceil(np.log2(counts)).astype(np.int64)
    multipliers, shifts = (((1 << 30) + 1) << powers) // counts, 30 + powers
    total = resized(_sum(apply("arith.subi", resized(value, "i32"), input_zp), windows, IntSumOp), "i64")
    q, shift, nudge = (_tensor(array, total) for array in (multipliers, shifts, np.left_shift(1, shifts - 1)))
    product = apply("arith.addi", apply("arith.muli", total, q), nudge)
    mean = apply("arith.addi", apply("arith.shrsi", product, shift), output_zp)
    low, high = ELEMENT_RANGES[element]
    return resized(apply("arith.minsi", apply("arith.maxsi", mean, low), high), element)


def _tensor(array: Array, like: ir.Value) -> ir.Value:
    return spread(constant(array.astype(np.int64)), shape_of(like.type))
