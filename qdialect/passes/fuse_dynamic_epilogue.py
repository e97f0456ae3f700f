"""`qnn-fuse-dynamic-epilogue`: accumulators that are scaled by a number known at run time become one product's f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic.activations import ACTIVATIONS, Activation
from qdialect.arithmetic.expressions import Node
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.fields import LARGEST_SCALE
from qdialect.dialect.type_constraints import dtype_of, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.float_chains import match_function
from qdialect.passes.fused_stages import channel_values
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, refuse, require
from qdialect.passes.registry import register

Contraction = qnn.Conv2DOp | qnn.DenseOp
_Activated = tuple[qnn.AnyDynamic, Activation, float]
_FUNCTIONS = {one: tree for one, tree in ACTIVATIONS.items() if isinstance(tree, Node)}


_Factor = tuple[ir.Value, tuple[float, ...]]
"""Of the dequantized accumulators: a scale, times scales of the channels."""


@dataclass(frozen=True)
class _Match:
    contraction: Contraction
    zero_point: ir.Value | None
    """The zero point if it is known only at run time; None if it is the contraction's attribute."""
    factor: _Factor


class FuseDynamicScale(Replacement[_Match]):
    """``dequantize(contraction - zero_point * sums) * scale`` becomes a product with operands for both.

    `sums` are those of each channel's weights, less their zero points; the zero point may also be the contraction's
    own.  A scale is one number or one for each row, perhaps times constants of the channels.
    """

    roots = ("arith.mulf",)

    def check(self, op: ir.OpView) -> _Match | None:
        for value, factor in _either_way(op):
            dequantize = pattern.produced_by(value, qnn.DequantizeOp)
            if dequantize is not None and _behind(dequantize.input) is not None:
                return self._match(dequantize, factor)
        return None

    def _match(self, dequantize: qnn.DequantizeOp, factor: ir.Value) -> _Match:
        contraction, point = _behind(dequantize.input) or (None, None)
        assert contraction is not None, "the caller has seen it"
        require(constant_value(factor) is None, "must multiply by what is known at run time")
        is_bare = dequantize.scales == (1.0,) and not any(dequantize.zero_points)
        require(is_bare, "must dequantize accumulators with scale 1 and zero point 0")
        _require_scaled_alone(contraction, point, dequantize)
        # Those of a convolution have one scale.
        is_dense = isinstance(contraction, qnn.DenseOp)
        return _Match(
            contraction, point, _factor(factor, (*shape_of(contraction.data.type)[:-1], 1) if is_dense else None)
        )

    def emit(self, op: ir.OpView, match: _Match) -> ir.Value:
        scale, weight_scales = match.factor
        return dynamic_product(match.contraction, weight_scales, scale, match.zero_point)


def dynamic_product(
    contraction: Contraction, weight_scales: Sequence[float], scale: ir.Value, zero_point: ir.Value | None = None
) -> ir.Value:
    """The f32 values of a contraction's product; without a `zero_point` it is the contraction's own, a constant."""
    point = zero_point or constant(np.array(contraction.input_zero_point, dtype_of(contraction.data.type)))
    how: dict[str, Any] = {"weight_scales": weight_scales, "weight_zero_points": contraction.weight_zero_points}
    if isinstance(contraction, qnn.Conv2DOp):
        how |= {name: getattr(contraction, name) for name in ("strides", "padding", "dilation", "groups")}
    op_class = qnn.DynamicDenseOp if isinstance(contraction, qnn.DenseOp) else qnn.DynamicConv2DOp
    operands = (contraction.data, contraction.weight, scale, point)
    return qnn.build(op_class, *operands, element="f32", **how).output


class FuseDynamicBias(Replacement[tuple[qnn.AnyDynamic, NDArray[np.float32]]]):
    """A constant of the channels that is added to a product's f32 values becomes its bias."""

    roots = ("arith.addf",)

    def check(self, op: ir.OpView) -> tuple[qnn.AnyDynamic, NDArray[np.float32]] | None:
        for value, addend in _either_way(op):
            product = pattern.producer(value)
            if isinstance(product, qnn.AnyDynamic):
                return _with_bias(product, addend)
        return None

    def emit(self, op: ir.OpView, match: tuple[qnn.AnyDynamic, NDArray[np.float32]]) -> ir.Value:
        product, bias = match
        operands = (product.data, product.weight, product.scale, product.zero_point)
        return pattern.rebuilt(product, *operands, constant(bias)).output


class FuseDynamicActivation(Replacement[_Activated]):
    """An activation of a product's f32 values, written as its float ops, becomes its own."""

    roots = tuple(sorted({tree.op for tree in _FUNCTIONS.values()}))

    def check(self, op: ir.OpView) -> _Activated | None:
        found = match_function(op.operation.results[0], _FUNCTIONS)
        product = None if found is None else pattern.producer(found.source)
        if found is None or not isinstance(product, qnn.AnyDynamic):
            return None
        require(product.activation is Activation.NONE, "must be of a product without activation")
        found.require_closed()
        require(abs(found.alpha) <= LARGEST_SCALE, f"must have alpha in [-2^30, 2^30], but got {found.alpha}")
        return product, found.activation, found.alpha

    def emit(self, op: ir.OpView, match: _Activated) -> ir.Value:
        product, activation, alpha = match
        return pattern.rebuilt(product, activation=activation, alpha=alpha).output


def _with_bias(product: qnn.AnyDynamic, addend: ir.Value) -> tuple[qnn.AnyDynamic, NDArray[np.float32]]:
    require(product.bias is None, "must add to a product without bias")
    require(product.activation is Activation.NONE, "must add to a product without activation")
    refuse(pattern.second_use(product.output))
    bias = channel_values(addend)
    if bias is None or not np.all(np.isfinite(bias)):
        raise MatchFailure("must add finite constants that depend on the channel alone")
    return product, bias


def _either_way(op: ir.OpView) -> Iterator[tuple[ir.Value, ir.Value]]:
    lhs, rhs = op.operation.operands
    yield lhs, rhs
    yield rhs, lhs


def _behind(accumulators: ir.Value) -> tuple[Contraction, ir.Value | None] | None:
    """The contraction and its zero point, if that is dynamic and its compensation is subtracted afterwards."""
    found = pattern.producer(accumulators)
    if isinstance(found, Contraction):
        return found, None
    if found is None or found.operation.name != "arith.subi":
        return None
    contraction, share = (pattern.producer(value) for value in found.operation.operands)
    point = None if share is None else _zero_point(share, contraction)
    return (contraction, point) if isinstance(contraction, Contraction) and point is not None else None


def _zero_point(share: ir.OpView, contraction: ir.OpView | None) -> ir.Value | None:
    """The 8-bit zero point in ``broadcast(sums * broadcast(extended zero point))``."""
    product = pattern.producer(_source(share.operation.results[0]))
    if product is None or product.operation.name != "arith.muli" or not isinstance(contraction, Contraction):
        return None
    sums = _weight_sums(contraction)
    for value, factor in _either_way(product):
        known = constant_value(value)
        if known is not None and sums is not None and np.array_equal(known, sums):
            return _narrow(_source(factor), element_of(contraction.data.type))
    return None


def _weight_sums(contraction: Contraction) -> NDArray[np.int32] | None:
    weight = constant_value(contraction.weight)
    if weight is None:
        return None
    rows = weight.reshape(weight.shape[0], -1).astype(np.int64)
    return (rows.sum(axis=1) - rows.shape[1] * np.array(contraction.weight_zero_points)).astype(np.int32)


def _narrow(wide: ir.Value, element: str) -> ir.Value | None:
    """The one 8-bit number of type `element` that was extended to i32."""
    extended = pattern.producer(wide)
    wanted = "arith.extui" if element == "ui8" else "arith.extsi"
    if extended is None or extended.operation.name != wanted or prod(shape_of(wide.type)) != 1:
        return None
    value = extended.operation.operands[0]
    owner = pattern.producer(value)
    if owner is not None and owner.operation.name == "tensor.bitcast":
        value = owner.operation.operands[0]
    return value if element_of(value.type) == element else None


def _source(value: ir.Value) -> ir.Value:
    """The operand of a broadcast, also through reshapes of one number."""
    while isinstance(owner := pattern.producer(value), qnn.BroadcastOp) or (
        owner is not None and owner.operation.name == "qnn.reshape" and prod(shape_of(value.type)) == 1
    ):
        value = owner.operation.operands[0]
    return value


def _require_scaled_alone(contraction: Contraction, point: ir.Value | None, dequantize: qnn.DequantizeOp) -> None:
    require(contraction.bias is None, "must scale accumulators without bias")
    own = contraction.input_zero_point
    is_one = point is None or own == 0
    require(is_one, f"must have input_zero_point 0 if there is another one at run time, but got {own}")
    padding = contraction.padding if isinstance(contraction, qnn.Conv2DOp) else ()
    require(not any(padding), f"must have a convolution without padding, but got {list(padding)}")
    for value in (contraction.output, dequantize.input, dequantize.output):
        refuse(pattern.second_use(value))
    refuse(pattern.not_constant(contraction))


def _factor(factor: ir.Value, rows: tuple[int, ...] | None) -> _Factor:
    """`factor` as a scale of all rows or, of the shape `rows`, of each, and constants of the channels."""
    inner = _source(factor)
    product = pattern.producer(inner)
    if product is not None and product.operation.name == "arith.mulf":
        for value, other in _either_way(product):
            scales, scale = _scales(other), _source(value)
            if scales is not None and _is_scale(scale, rows):
                return scale, scales
    if _is_scale(inner, rows):
        return inner, (1.0,)
    raise MatchFailure("must multiply by one number or one of each row, times constants of the channels")


def _is_scale(value: ir.Value, rows: tuple[int, ...] | None) -> bool:
    shape = shape_of(value.type)
    return prod(shape) == 1 or shape == rows


def _scales(value: ir.Value) -> tuple[float, ...] | None:
    """A constant as scales of the channels: of one number or along the last dimension, in the range of scales."""
    array = constant_value(_source(value))
    if array is None or array.size not in (1, *array.shape[-1:]):
        return None
    flat = tuple(float(number) for number in array.ravel())
    return flat if all(0 < number <= LARGEST_SCALE for number in flat) else None


@register
class FuseDynamicEpiloguePass(GraphPass):
    """Fuse the scale of dynamically quantized data, its zero point, an f32 bias and an activation into the product."""

    name: ClassVar[str] = "qnn-fuse-dynamic-epilogue"
    rewrites = (FuseDynamicScale, FuseDynamicBias, FuseDynamicActivation)
