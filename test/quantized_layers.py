"""Builders of the layers that the tests of passes are about."""

from typing import Any

import numpy as np
from drawn_graphs import graph

from qdialect.arithmetic import AddArithmetic, Rounding, Table
from qdialect.dialect import AddOp, ClipOp, Conv2DOp, FusedConv2DOp, LutOp, RequantizeOp, SigmoidOp, UnaryOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import RequantizeStage
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.float_chains import uniform_constant

CHANNELS = 5
WEIGHT_SCALES = (0.01, 0.02, 0.015, 0.008, 0.03)
SCALE, ZERO_POINT = 0.05, 7


def conv(x: ir.Value, *, weight: ir.Value | None = None, bias: ir.Value | None = None, **changes: Any) -> ir.Value:
    """A 3x3 convolution to `CHANNELS` channels with padding, per-channel scales and, unless given, random weights."""
    if weight is None:
        rng = np.random.default_rng(1)
        shape = (CHANNELS, 3, 3, shape_of(x.type)[3])
        weight = constant(rng.integers(-127, 127, size=shape, dtype=np.int8))
    attributes: dict[str, Any] = {
        "input_scale": 0.02,
        "input_zero_point": 3,
        "weight_scales": WEIGHT_SCALES,
        "padding": (1, 1, 1, 1),
        **changes,
    }
    return build(Conv2DOp, x, weight, bias, element="i32", **attributes).output


def bias_of(seed: int = 3) -> ir.Value:
    return constant(np.random.default_rng(seed).integers(-2000, 2000, size=CHANNELS, dtype=np.int32))


def requantize(accumulators: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    """The requantization that belongs to `conv`."""
    attributes: dict[str, Any] = {
        "input_scale": 0.02,
        "weight_scales": WEIGHT_SCALES,
        "output_scale": SCALE,
        "output_zero_point": ZERO_POINT,
        "axis": len(shape_of(accumulators.type)) - 1,
        "rounding": Rounding.FIXED64_UP,
        **changes,
    }
    return build(RequantizeOp, accumulators, element=element, **attributes).output


def fused(x: ir.Value, element: str = "ui8", *stages: Stage, **changes: Any) -> ir.Value:
    """The fused convolution that `requantize(conv(x))` becomes, with more `stages`."""
    rng = np.random.default_rng(1)
    weight = constant(rng.integers(-127, 127, size=(CHANNELS, 3, 3, shape_of(x.type)[3]), dtype=np.int8))
    attributes: dict[str, Any] = {
        "input_scale": 0.02,
        "input_zero_point": 3,
        "weight_scales": WEIGHT_SCALES,
        "padding": (1, 1, 1, 1),
        "output_scale": SCALE,
        "output_zero_point": ZERO_POINT,
        "epilogue": (RequantizeStage(rounding=Rounding.FIXED64_UP), *stages),
    }
    return build(FusedConv2DOp, x, weight, bias_of(), element=element, **{**attributes, **changes}).output


def clip(x: ir.Value, low: int, high: int) -> ir.Value:
    return build(ClipOp, x, element=element_of(x.type), min=low, max=high).output


def unary(op_class: type[UnaryOp], x: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "input_scale": SCALE,
        "input_zero_point": ZERO_POINT,
        "output_scale": 1 / 256,
        "output_zero_point": 0 if element == "ui8" else -128,
        **changes,
    }
    return build(op_class, x, element=element, **attributes).output


def sigmoid(x: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    return unary(SigmoidOp, x, element, **changes)


def lut(x: ir.Value, table: Table, element: str = "ui8", **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "input_scale": SCALE,
        "input_zero_point": ZERO_POINT,
        "output_scale": 0.125,
        "output_zero_point": 11,
        **changes,
    }
    return build(LutOp, x, element=element, table=table, **attributes).output


def add(lhs: ir.Value, rhs: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    low, high = (0, 255) if element == "ui8" else (-128, 127)
    attributes: dict[str, Any] = {
        "lhs_scale": SCALE,
        "lhs_zero_point": ZERO_POINT,
        "rhs_scale": SCALE,
        "rhs_zero_point": ZERO_POINT,
        "output_scale": 0.09,
        "output_zero_point": 20,
        "output_min": low,
        "output_max": high,
        "arithmetic": AddArithmetic.REQUANTIZE_EACH,
        **changes,
    }
    return build(AddOp, lhs, rhs, element=element, **attributes).output


def random_table(seed: int = 4) -> Table:
    return np.random.default_rng(seed).permutation(256).astype(np.uint8)


def clamp(value: ir.Value, low: float, high: float) -> ir.Value:
    """`value` limited to [`low`, `high`] as float ops."""
    lower, upper = (uniform_constant(bound, value.type) for bound in (low, high))
    value = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, lower, value), lower, value)
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, value, upper), upper, value)


def chain() -> ir.Module:
    """Two convolutions with padding, an activation between them, a residual sum at the end."""

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        return add(fused(sigmoid(requantize(conv(x)))), y)

    return graph(["tensor<1x6x5x3xi8>", f"tensor<1x6x5x{CHANNELS}xui8>"], body)
