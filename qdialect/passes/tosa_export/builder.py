"""Builds `tosa` ops at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.constants import elements_array
from qdialect.dialect.type_constraints import ELEMENT_NAMES, NUMPY_DTYPES, dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir

Array = NDArray[Any]
Number = int | float | bool

Attribute = str | bool | int | Sequence[int]
IDENTITY = (1 << 30, 30)
"""Multiplier and shift of RESCALE that change nothing but zero point and type."""
_COMPARISONS = ("equal", "greater", "greater_equal")


def create(
    name: str, operands: Sequence[ir.Value], shape: Sequence[int], element: str, **attributes: Attribute
) -> ir.Value:
    """``tosa.<name>`` with a result of this type; an attribute is MLIR text, an i32, a bool or an array of i64."""
    type_ = ir.RankedTensorType.get(list(shape), ir.Type.parse(element))
    parsed = {key: ir.Attribute.parse(_text(attribute)) for key, attribute in attributes.items()}
    return ir.Operation.create(f"tosa.{name}", results=[type_], operands=list(operands), attributes=parsed).results[0]


def _text(attribute: Attribute) -> str:
    if isinstance(attribute, str):
        return attribute
    if isinstance(attribute, Sequence):
        return f"array<i64: {', '.join(map(str, attribute))}>"
    return str(attribute).lower() if isinstance(attribute, bool) else f"{attribute} : i32"


def const(array: Array) -> ir.Value:
    """A ``tosa.const``; unsigned elements are not among those that it may have."""
    element = ir.Type.parse(ELEMENT_NAMES[array.dtype])
    values = ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=element, shape=list(array.shape))
    created = ir.Operation.create("tosa.const", results=[values.type], attributes={"values": values})
    return created.results[0]


def constant_array(value: ir.Value) -> Array | None:
    """The elements of a ``tosa.const``, of which data movement is done here; None for other values."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "tosa.const":
        return None
    return elements_array(ir.DenseElementsAttr(owner.attributes["values"]), dtype_of(value.type), shape_of(value.type))


def every_value(type_: ir.Type) -> Array:
    """All values of a tensor type of few bits, in ascending order."""
    low, high = range_of(type_)
    return np.arange(low, high + 1).astype(dtype_of(type_))


def entry(value: Number, element: str) -> ir.Value:
    """A constant of one entry, as zero points and shifts are."""
    return const(np.array([value], NUMPY_DTYPES[element]))


def lengths(values: Sequence[int]) -> ir.Value:
    """A ``tosa.const_shape``."""
    elements = ir.DenseElementsAttr.get(np.array(values, np.int64), type=ir.IndexType.get(), shape=[len(values)])
    type_ = ir.Type.parse(f"!tosa.shape<{len(values)}>")
    return ir.Operation.create("tosa.const_shape", results=[type_], attributes={"values": elements}).results[0]


def filled(value: Number | Array, like: ir.Value) -> ir.Value:
    """A constant of the rank and element type of `like`, with one entry or of an array that broadcasts to it."""
    array = np.asarray(value, NUMPY_DTYPES[element_of(like.type)])
    rank = len(shape_of(like.type))
    return const(array.reshape((1,) * rank if array.size == 1 else (1,) * (rank - array.ndim) + array.shape))


def apply(name: str, first: ir.Value, *others: ir.Value | Number | Array, **attributes: Attribute) -> ir.Value:
    """An element-wise op; numbers and arrays become constants, and the result has the broadcast shape."""
    operands = [first, *(one if isinstance(one, ir.Value) else filled(one, first) for one in others)]
    shape = np.broadcast_shapes(*(shape_of(one.type) for one in operands))
    element = "i1" if name in _COMPARISONS else element_of(first.type)
    if name == "mul":
        operands.append(entry(0, "i8"))
    if name == "negate":
        operands += [entry(0, element)] * 2
    return create(name, operands, shape, element, **attributes)


def select(condition: ir.Value, then: ir.Value, other: ir.Value) -> ir.Value:
    """`then` where `condition` holds, `other` elsewhere."""
    shape = np.broadcast_shapes(*(shape_of(one.type) for one in (condition, then, other)))
    return create("select", [condition, then, other], shape, element_of(then.type))


def cast(value: ir.Value, element: str) -> ir.Value:
    """`value` as another element type; itself where it has it."""
    return value if element_of(value.type) == element else create("cast", [value], shape_of(value.type), element)


def clamp(value: ir.Value, low: Number, high: Number) -> ir.Value:
    """`value` within [low, high]; attributes have floats by their bits."""
    element = element_of(value.type)
    is_float = element == "f32"
    texts = [f"0x{np.float32(one).view(np.uint32):08X}" if is_float else str(one) for one in (low, high)]
    minimum, maximum = (f"{text} : {element}" for text in texts)
    return create("clamp", [value], shape_of(value.type), element, min_val=minimum, max_val=maximum)


def shift_right(value: ir.Value, amounts: Array | int, *, rounds: bool) -> ir.Value:
    """An arithmetic shift; with `rounds` ties go up."""
    return apply("arithmetic_right_shift", value, amounts, round=rounds)


def reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` in another shape; itself where it has it."""
    if shape_of(value.type) == tuple(shape):
        return value
    array = constant_array(value)
    if array is not None:
        return const(array.reshape(shape))
    return create("reshape", [value, lengths(shape)], shape, element_of(value.type))


def transpose(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """`value` with its dimensions in another order; itself where they stay."""
    if list(order) == list(range(len(order))):
        return value
    array = constant_array(value)
    if array is not None:
        return const(array.transpose(order))
    shape, found = [shape_of(value.type)[i] for i in order], ", ".join(map(str, order))
    return create("transpose", [value], shape, element_of(value.type), perms=f"array<i32: {found}>")


def slice_of(value: ir.Value, begin: Sequence[int], size: Sequence[int]) -> ir.Value:
    """`size` elements of each dimension from `begin` on; itself where it is everything."""
    if shape_of(value.type) == tuple(size):
        return value
    array = constant_array(value)
    if array is not None:
        return const(array[tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))])
    return create("slice", [value, lengths(begin), lengths(size)], size, element_of(value.type))


def pad(value: ir.Value, low: Sequence[int], high: Sequence[int], fill: Number) -> ir.Value:
    """`value` with `fill` around it."""
    array = constant_array(value)
    if array is not None:
        return const(np.pad(array, list(zip(low, high, strict=True)), constant_values=fill))
    shape = [a + n + b for a, n, b in zip(low, shape_of(value.type), high, strict=True)]
    pairs = [count for pair in zip(low, high, strict=True) for count in pair]
    element = element_of(value.type)
    return create("pad", [value, lengths(pairs), entry(fill, element)], shape, element)


def of_rank(value: ir.Value, rank: int) -> ir.Value:
    """`value` with dimensions of extent 1 before its own."""
    shape = shape_of(value.type)
    return reshape(value, (1,) * (rank - len(shape)) + shape)


def tile(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` repeated up to `shape`, which may have dimensions before its own."""
    value = of_rank(value, len(shape))
    multiples = [extent // found for extent, found in zip(shape, shape_of(value.type), strict=True)]
    if set(multiples) <= {1}:
        return value
    return create("tile", [value, lengths(multiples)], shape, element_of(value.type))


def concatenate(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Values one after the other along `axis`; a single one is itself."""
    if len(values) == 1:
        return values[0]
    shape = list(shape_of(values[0].type))
    shape[axis] = sum(shape_of(value.type)[axis] for value in values)
    return create("concat", values, shape, element_of(values[0].type), axis=axis)


def reduce(name: str, value: ir.Value, axes: Sequence[int], *, keep_dims: bool) -> ir.Value:
    """``tosa.reduce_<name>`` along one axis after the other."""
    for axis in axes:
        shape = [1 if i == axis else extent for i, extent in enumerate(shape_of(value.type))]
        value = create(f"reduce_{name}", [value], shape, element_of(value.type), axis=axis)
    shape = shape_of(value.type)
    return value if keep_dims else reshape(value, [extent for i, extent in enumerate(shape) if i not in axes])


def rescale(
    value: ir.Value,
    element: str,
    pairs: Sequence[tuple[int, int]],
    zero_points: tuple[int, int] = (0, 0),
    *,
    rounds_twice: bool = False,
    unsigned: tuple[bool, bool] = (False, False),
) -> ir.Value:
    """RESCALE by one (multiplier, shift), or by one for each channel of the last dimension.

    A zero point of an unsigned tensor has its type; `element` may be ``"ui8"`` then.
    """
    found = element_of(value.type)
    multipliers = const(np.array([q for q, _ in pairs], np.int32))
    shifts = const(np.array([shift for _, shift in pairs], np.int8))
    points = [_zero_point(point, one) for point, one in zip(zero_points, (found, element), strict=True)]
    flags = {"per_channel": len(pairs) > 1, "input_unsigned": unsigned[0], "output_unsigned": unsigned[1]}
    mode = f"#tosa.rounding_mode<{'DOUBLE_ROUND' if rounds_twice else 'SINGLE_ROUND'}>"
    operands = [value, multipliers, shifts, *points]
    return create("rescale", operands, shape_of(value.type), element, rounding_mode=mode, scale32=True, **flags)


def _zero_point(point: int, element: str) -> ir.Value:
    type_ = ir.RankedTensorType.get([1], ir.Type.parse(element))
    number = ir.IntegerAttr.get(type_.element_type, point)
    values = ir.DenseElementsAttr.get_splat(type_, number)
    return ir.Operation.create("tosa.const", results=[type_], attributes={"values": values}).results[0]
