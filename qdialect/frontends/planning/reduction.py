"""Reduces dimensions: sums, means, normalizations by them, and the extreme and largest numbers of a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.arithmetic.choices import Order
from qdialect.arithmetic.expressions import Input
from qdialect.dialect import CumSumOp, MeanOp, SumOp, TopKOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.building.checks import Shape
from qdialect.frontends.building.op_builder import OpBuilder, blocked_sum, reduced_numbers
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.elementwise import Arithmetic, Site, constant_of, ternary, unary, value_of_tensor
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.ir._mlir import ir


@dataclass(frozen=True, eq=False)
class Reduced(tensors.F32Tensor):
    """A sum or mean: of 8-bit values the exact one, scaled and rounded once by `rounding`, else in float32.

    Frameworks add float32 numbers, in an order of their own; a quantized value differs where that order's rounding
    takes the quotient over a tie. Of numbers whose sums no order rounds, float32 keeps the ties.
    """

    op_class: type[SumOp | MeanOp]
    source: tensors.F32Tensor
    axes: tuple[int, ...]
    keep_dims: bool
    rounding: Mapping[str, Any]

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        source = self.source
        if not isinstance(source, tensors.Quantized) or not source.is_eight_bit or to.element not in tensors.EIGHT_BIT:
            return super()._quantized(plan, name, to)
        count = math.prod(source.shape[axis] for axis in self.axes)
        if keeps_ties(source.scales[0], to.scale, count):
            return super()._quantized(plan, name, to)

        def emit(emitter: Emitter) -> Emitted:
            data, own, is_channels_last = over_axes(emitter, source.values, self.axes, self.keep_dims)
            attributes = {
                **tensors.mapping(source.parameters, to),
                **self.rounding,
                "axes": own,
                "keep_dims": self.keep_dims,
            }
            return emitter.build(self.op_class, data, element=to.element, **attributes), is_channels_last

        return tensors.limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        source = self.source.f32(plan, name)
        count = math.prod(self.source.shape[axis] for axis in self.axes)

        def emit(emitter: Emitter) -> Emitted:
            data, own, is_channels_last = over_axes(emitter, source, self.axes, self.keep_dims)
            total = blocked_sum(emitter, data, own, self.keep_dims)
            is_mean = self.op_class is MeanOp
            return emitter.expression(Input() / count, total) if is_mean else total, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def keeps_ties(source: float, result: float, count: int) -> bool:
    """Whether float32 holds all sums of `count` 8-bit values with the scale `source`, and not all factors to `result`.

    Powers of two scale integers with the same ties.
    """
    numerator = float(np.float32(source)).as_integer_ratio()[0]
    odd = numerator // (numerator & -numerator)
    is_exact = (odd * 255 * count).bit_length() <= np.finfo(np.float32).nmant + 1
    return is_exact and any(math.frexp(np.float32(one))[0] != 0.5 for one in (source, result, count))


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep_dims: bool) -> Shape:
    """`shape` with the extents of `axes` 1 or left out."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)


def over_axes(
    emitter: Emitter, value: Value, axes: Sequence[int], keep_dims: bool
) -> tuple[ir.Value, tuple[int, ...], bool]:
    """`value` to be reduced over `axes` of the model: as it is held, its own axes, and how the result is held."""
    held, is_channels_last = emitter.either(value)
    if not is_channels_last:
        return held, tuple(axes), False
    order = channels_last(len(value.shape))
    own = tuple(sorted(order.index(axis) for axis in axes))
    rest = [axis for axis in order if axis not in axes]
    if keep_dims or rest == sorted(rest):
        return held, own, keep_dims
    return emitter.to_channels_first(value), tuple(axes), False


def reduced_value(site: Site, value: Value, kind: str, axes: Shape, keep_dims: bool) -> Value:
    """The largest, smallest, product or sum (``"max"``) of integers or f32 values over `axes` of the model."""
    shape = reduced_shape(value.shape, axes, keep_dims)

    def build(emitter: Emitter, held: list[ir.Value]) -> ir.Value:
        return reduced_numbers(emitter, kind, held[0], axes, keep_dims)

    return site.plan.ordered(site.name, shape, value.element, [value], build)


def running_sum(site: Site, value: Value, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Value:
    """The sums of what stands before each element along `axis`, and of it unless they are exclusive."""
    how = {"axis": axis, "exclusive": exclusive, "reverse": reverse}

    def build(emitter: Emitter, held: list[ir.Value]) -> ir.Value:
        return emitter.build(CumSumOp, held[0], element=value.element, **how)

    return site.plan.ordered(site.name, value.shape, value.element, [value], build)


# Normalizations in float32, as ops: sums over dimensions, and what is element-wise around them.
#
# Sums are taken in float32 in blocks, and variances from centred numbers; a framework that adds in another order
# differs in the last places.


def mean_of(emitter: Emitter, value: ir.Value, axes: Shape) -> ir.Value:
    """The means of an f32 value over `axes`, which stay as extents of 1."""
    total = blocked_sum(emitter, value, axes)
    count = math.prod(shape_of(value.type)[axis] for axis in axes)
    return emitter.f32("divf", total, float(count))


def centred(emitter: Emitter, value: ir.Value, axes: Shape) -> ir.Value:
    """``x - mean(x)`` over `axes`."""
    return emitter.f32("subf", value, mean_of(emitter, value, axes))


def variance_of(emitter: Emitter, value: ir.Value, axes: Shape) -> ir.Value:
    """The means of the squares of ``x - mean(x)`` over `axes`, which stay as extents of 1."""
    source = centred(emitter, value, axes)
    return mean_of(emitter, emitter.f32("mulf", source, source), axes)


def normalized(emitter: Emitter, value: ir.Value, axes: Shape, epsilon: float, is_centred: bool = True) -> ir.Value:
    """``(x - mean) / sqrt(variance + epsilon)`` over `axes`; not centred ``x / sqrt(mean(x^2) + epsilon)``."""
    source = centred(emitter, value, axes) if is_centred else value
    s = emitter.f32
    variance = mean_of(emitter, s("mulf", source, source), axes)
    return s("divf", source, s("sqrt", s("addf", variance, epsilon)))


def affine(emitter: Emitter, value: ir.Value, scale: ir.Value | None, bias: ir.Value | None) -> ir.Value:
    """``x * scale + bias``, which broadcast to the value, each where it is given."""
    s = emitter.f32
    scaled = value if scale is None else s("mulf", value, scale)
    return scaled if bias is None else s("addf", scaled, bias)


def group_normalized(
    emitter: Emitter, value: ir.Value, groups: int, channels_axis: int, epsilon: float, parameters: Sequence[ir.Value]
) -> ir.Value:
    """``(x - mean) * factor + bias`` in each group of channels of each example, as ONNX Runtime does.

    The factor of a channel is ``scale / sqrt(variance + epsilon)``.  `parameters` are scale and bias, with an entry for
    each channel or for each group.
    """
    shape, s = shape_of(value.type), emitter.f32
    before, channels, after = shape[:channels_axis], shape[channels_axis], shape[channels_axis + 1 :]
    source = emitter.reshape(value, (*before, groups, channels // groups, *after))
    axes, ones = tuple(axis for axis in range(1, len(shape) + 1) if axis != channels_axis), (1,) * len(after)
    entries = [emitter.reshape(one, (groups, shape_of(one.type)[0] // groups, *ones)) for one in parameters]
    scale, bias = entries
    source = centred(emitter, source, axes)
    variance = mean_of(emitter, s("mulf", source, source), axes)
    factor = s("mulf", s("divf", 1.0, s("sqrt", s("addf", variance, epsilon))), scale)
    return emitter.reshape(affine(emitter, source, factor, bias), shape)


# The order of numbers: integers that are ordered as they are, and where the extreme one of a row stands.
#
# Zeros are equal whatever their sign, and a NaN is larger than every number.

_ALL_BUT_SIGN = 2**31 - 1
_NAN = 2**31 - 1
"""The key of a NaN, which no number has."""


def keys_of(site: Site, source: tensors.Tensor, is_largest: bool, nan_is_extreme: bool = False) -> Value:
    """Integers in the order of the numbers of `source`; in the opposite order unless `is_largest`.

    With `nan_is_extreme` the key of a NaN is the largest one in either order.
    """
    value = _ordered_value(site, source)
    element = "i64" if value.element == "i64" else "i32"

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        key = order_key(s, x, element)
        if is_largest:
            return key
        opposite = s.op("arith.xori", key, -1)
        has_nan = nan_is_extreme and value.element == "f32"
        return s.select(s.compare("ne", x, x), _NAN, opposite) if has_nan else opposite

    return unary(site, value, element, build)


def _ordered_value(site: Site, source: tensors.Tensor) -> Value:
    """A tensor as a value; of numbers with one scale their quantized values, which have their order."""
    if isinstance(source, tensors.Quantized) and len(source.scales) == 1:
        return source.values
    return value_of_tensor(site, source)


def order_key(s: Arithmetic, x: ir.Value, element: str) -> ir.Value:
    """Integers of type `element` in the order of `x`; plus zero makes minus zero plus zero.

    Of floats the bits, those of negative ones inverted; NaNs are equal, whatever their sign and payload.
    """
    if element_of(x.type) != "f32":
        return s.resize(x, element)
    bits = s.convert("arith.bitcast", s.op("arith.addf", x, 0.0), "i32")
    key = s.select(s.compare("lt", bits, 0), s.op("arith.xori", bits, _ALL_BUT_SIGN), bits)
    return s.select(s.compare("ne", x, x), _NAN, key)


def top_indices(
    site: Site, source: tensors.Tensor, axis: int, count: int, *, is_largest: bool, order: Order = Order.STABLE
) -> Value:
    """The indices along `axis` of the first `count` numbers in order, equal ones by `order`: i64."""
    keys = keys_of(site, source, is_largest)
    shape = (*keys.shape[:axis], count, *keys.shape[axis + 1 :])

    return site.plan.ordered(
        site.name, shape, "i64", [keys], lambda emitter, held: top_k(emitter, held[0], axis, count, order)
    )


_FEW_COMPARISONS = 1024
"""Up to so many for a row, comparing all with each largest one takes less than a heap."""
_PLACE_BITS = 32


def top_k(emitter: OpBuilder, keys: ir.Value, axis: int, count: int, order: Order = Order.STABLE) -> ir.Value:
    """The indices along `axis` of the `count` largest of `keys`, as `TopKOp` has them.

    In short rows one is found after the other, the largest of words with a key above its place from behind.
    """
    shape = shape_of(keys.type)
    extent = shape[axis]
    if element_of(keys.type) != "i32" or extent * count > _FEW_COMPARISONS or order is not Order.STABLE:
        return emitter.build(TopKOp, keys, element="i64", axis=axis, count=count, order=order)
    s, found = Arithmetic(emitter), list[ir.Value]()
    places = np.arange(extent)[::-1].reshape(-1, *(1,) * (len(shape) - axis - 1))
    words = s.op("arith.shli", s.resize(keys, "i64"), _PLACE_BITS)
    words = s.op("arith.ori", words, emitter.broadcast(emitter.constant(places), shape))
    for _ in range(count):
        largest = reduced_numbers(emitter, "max", words, (axis,))
        found.append(largest)
        words = s.select(s.compare("eq", words, emitter.broadcast(largest, shape)), -(2**63), words)
    from_behind = s.op("arith.andi", emitter.concatenate(found, axis), 2**_PLACE_BITS - 1)
    return s.op("arith.addi", s.op("arith.xori", from_behind, -1), extent)


def extreme_index(
    site: Site,
    source: tensors.Tensor,
    axis: int,
    *,
    keep_dims: bool,
    last: bool,
    is_largest: bool,
    nan_is_extreme: bool = False,
) -> Value:
    """The index along `axis` of the extreme number of `source`, the first or the last of equal ones.

    With `nan_is_extreme` that of a NaN, as in PyTorch.  Else nothing compares with one, as in ONNX Runtime: it is
    passed over, or stays where it comes first.
    """
    keys, value = keys_of(site, source, is_largest, nan_is_extreme), _ordered_value(site, source)
    shape = keys.shape
    along = np.arange(shape[axis], dtype=np.int64).reshape(-1, *[1] * (len(shape) - axis - 1))
    if value.element == "f32" and not nan_is_extreme:
        of_nan = np.where(along == 0, _NAN, -_NAN - 1).astype(np.int32)
        keys = ternary(
            site,
            [keys, value, constant_of(site, of_nan)],
            "i32",
            lambda s, key, x, nan: s.select(s.compare("ne", x, x), nan, key),
        )
    extreme = reduced_value(site, keys, "max", (axis,), keep_dims=True)
    outside = -1 if last else shape[axis]
    positions = ternary(
        site,
        [keys, extreme, constant_of(site, along)],
        "i64",
        lambda s, key, best, position: s.select(s.compare("eq", key, best), position, outside),
    )
    return reduced_value(site, positions, "max" if last else "min", (axis,), keep_dims)
