"""The order of numbers: integers that are ordered as they are, and where the extreme one of a row stands.

Zeros are equal whatever their sign, and a NaN is larger than every number.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import IntMaxOp, IntMinOp, TopKOp
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.plain import Arithmetic, Site, constant_of, ternary, unary, value_of_tensor
from qdialect.frontends.planning.tensors import Quantized, Tensor

_ALL_BUT_SIGN = 2**31 - 1


def keys_of(site: Site, source: Tensor, is_largest: bool) -> Value:
    """Integers in the order of the numbers of `source`; in the opposite order unless `is_largest`."""
    value = _ordered_value(site, source)
    element = "i64" if value.element == "i64" else "i32"

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        key = _float_key(s, x) if value.element == "f32" else s.resize(x, element)
        return key if is_largest else s.op("arith.xori", key, -1)

    return unary(site, value, element, build)


def _ordered_value(site: Site, source: Tensor) -> Value:
    """A tensor as a value; of numbers with one scale their quantized values, which have their order."""
    if isinstance(source, Quantized) and len(source.scales) == 1:
        return source.values
    return value_of_tensor(site, source)


def _float_key(s: Arithmetic, x: ir.Value) -> ir.Value:
    """The bits of a float, those of negative ones inverted; plus zero makes minus zero plus zero."""
    bits = s.convert("arith.bitcast", s.op("arith.addf", x, 0.0), "i32")
    return s.select(s.compare("lt", bits, 0), s.op("arith.xori", bits, _ALL_BUT_SIGN), bits)


def top_indices(site: Site, source: Tensor, axis: int, count: int, *, is_largest: bool) -> Value:
    """The indices along `axis` of the first `count` numbers in order, equal ones in their own: i64."""
    keys = keys_of(site, source, is_largest)
    shape = (*keys.shape[:axis], count, *keys.shape[axis + 1 :])

    def top_k(emitter: Emitter) -> Emitted:
        return emitter.build(TopKOp, emitter.to_channels_first(keys), element="i64", axis=axis, count=count), False

    return site.plan.compute(site.name, shape, "i64", top_k)


def extreme_index(site: Site, source: Tensor, axis: int, *, keep_dims: bool, last: bool, is_largest: bool) -> Value:
    """The index along `axis` of the extreme number of `source`, the first or the last of equal ones."""
    keys = keys_of(site, source, is_largest)
    shape, plan, name = keys.shape, site.plan, site.name
    after = tuple(1 if i == axis else extent for i, extent in enumerate(shape))

    def largest(emitter: Emitter) -> Emitted:
        data = emitter.to_channels_first(keys)
        return emitter.build(IntMaxOp, data, element=keys.element, axes=(axis,), keep_dims=True), False

    extreme = plan.compute(name, after, keys.element, largest)
    along = np.arange(shape[axis], dtype=np.int64).reshape(-1, *[1] * (len(shape) - axis - 1))
    outside = -1 if last else shape[axis]
    positions = ternary(
        site,
        [keys, extreme, constant_of(site, along)],
        "i64",
        lambda s, key, best, position: s.select(s.compare("eq", key, best), position, outside),
    )

    def index(emitter: Emitter) -> Emitted:
        op_class, data = IntMaxOp if last else IntMinOp, emitter.to_channels_first(positions)
        return emitter.build(op_class, data, element="i64", axes=(axis,), keep_dims=keep_dims), False

    kept = after if keep_dims else (*shape[:axis], *shape[axis + 1 :])
    return plan.compute(name, kept, "i64", index)
