"""TopK, and ArgMax and ArgMin of what is not 8 bits wide: integers that are ordered as the numbers are.

Zeros are equal whatever their sign, and a NaN is larger than every number.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import IntMaxOp, IntMinOp, RankOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.indexing import constant_of, elements_along, scatter
from qdialect.frontends.onnx.operators.movements import Reshaping, Slicing, move_value
from qdialect.frontends.onnx.operators.plain import Arithmetic, binary, ternary, unary, value_of_tensor
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.slices import Slice

_ALL_BUT_SIGN = 2**31 - 1


def keys_of(call: Call, is_largest: bool) -> Value:
    """Integers in the order of the numbers of input 0; in the opposite order unless `is_largest`."""
    source = call.tensor(0)
    is_ordered = isinstance(source, Quantized) and len(source.scales) == 1
    value = source.values if is_ordered else value_of_tensor(call, source)
    element = "i64" if value.element == "i64" else "i32"

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        key = _float_key(s, x) if value.element == "f32" else s.resize(x, element)
        return key if is_largest else s.op("arith.xori", key, -1)

    return unary(call, value, element, build)


def _float_key(s: Arithmetic, x: ir.Value) -> ir.Value:
    """The bits of a float, those of negative ones turned around; plus zero makes minus zero plus zero."""
    bits = s.convert("arith.bitcast", s.op("arith.addf", x, 0.0), "i32")
    return s.select(s.compare("lt", bits, 0), s.op("arith.xori", bits, _ALL_BUT_SIGN), bits)


def extreme_index(call: Call, axis: int, keep_dims: bool, last: bool, is_largest: bool) -> Value:
    """The index along `axis` of the extreme number of input 0, the first or the last of equal ones."""
    keys = keys_of(call, is_largest)
    shape, plan, name = keys.shape, call.plan, call.name
    after = tuple(1 if i == axis else extent for i, extent in enumerate(shape))

    def largest(emitter: Emitter) -> Emitted:
        data = emitter.to_channels_first(keys)
        return emitter.build(IntMaxOp, data, element=keys.element, axes=(axis,), keep_dims=True), False

    extreme = plan.compute(name, after, keys.element, largest)
    along = np.arange(shape[axis], dtype=np.int64).reshape(-1, *[1] * (len(shape) - axis - 1))
    outside = -1 if last else shape[axis]
    places = ternary(
        call,
        [keys, extreme, constant_of(call, along)],
        "i64",
        lambda s, key, best, position: s.select(s.compare("eq", key, best), position, outside),
    )

    def index(emitter: Emitter) -> Emitted:
        op_class, data = IntMaxOp if last else IntMinOp, emitter.to_channels_first(places)
        return emitter.build(op_class, data, element="i64", axes=(axis,), keep_dims=keep_dims), False

    kept = after if keep_dims else (*shape[:axis], *shape[axis + 1 :])
    return plan.compute(name, kept, "i64", index)


@imports("TopK")
def _top_k(call: Call) -> tuple[Tensor, ...]:
    """In descending order, equal numbers in their own: the first k ranks say where to look."""
    call.count(1, 2)
    source = call.tensor(0)
    (axis,) = normalized_axes([call.attribute("axis", -1)], len(source.shape))
    count = int(call.number(1)) if call.optional(1) is not None else call.attribute("k", 0)
    extent = source.shape[axis]
    require(1 <= count <= extent, f"k must be in [1, {extent}], but got {count}")
    keys = keys_of(call, call.attribute("largest", 1) != 0)

    def rank(emitter: Emitter) -> Emitted:
        return emitter.build(RankOp, emitter.to_channels_first(keys), element="i64", axis=axis), False

    ranks = call.plan.compute(call.name, keys.shape, "i64", rank)
    indices = _first(call, _inverse(call, ranks, axis), axis, count)
    return elements_along(call, source, indices, axis), indices


def _inverse(call: Call, ranks: Value, axis: int) -> Value:
    """The index along `axis` of the element of each rank."""
    shape = ranks.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = np.arange(outer, dtype=np.int64).reshape(-1, 1, 1) * (shape[axis] * inner)
    start = constant_of(call, rows + np.arange(inner, dtype=np.int64))
    split = move_value(call.plan, call.name, ranks, Reshaping((outer, shape[axis], inner)), None)
    target = binary(
        call,
        [split, start],
        "i64",
        lambda s, rank, first: s.op("arith.addi", s.op("arith.muli", rank, inner), first),
    )
    zeros = constant_of(call, np.zeros(shape, np.int64))
    along = np.arange(shape[axis], dtype=np.int64).reshape(-1, *[1] * (len(shape) - axis - 1))
    positions = constant_of(call, np.broadcast_to(along, shape))
    return scatter(call, zeros, target, positions, (math.prod(shape),))


def _first(call: Call, value: Value, axis: int, count: int) -> Value:
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    slices = tuple(Slice(0, 1, extent) for extent in shape)
    return move_value(call.plan, call.name, value, Slicing(shape, slices), None)
