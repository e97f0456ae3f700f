"""Drawn modules of f32 values: fusion groups of element-wise ops, reductions and contractions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from drawing import Draw, drawn_module, tensor
from drawn_ops import Drawn, broadcast_to, channel_parameters, drawn_shape

from qdialect.dialect import (
    BroadcastOp,
    DequantizeOp,
    DynamicLstmOp,
    F32Conv2DOp,
    F32GruOp,
    F32LstmOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32RnnOp,
    F32SumOp,
    QuantizeOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir

_F32_BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf")
_F32_UNARY = ("arith.negf", "math.absf", "math.erf", "math.exp", "math.floor", "math.log", "math.sqrt", "math.tanh")


def _fusion_group(d: Draw) -> Drawn:
    """f32 values of quantized values and of arrays, combined at random, some of them returned as quantized values."""
    shape = drawn_shape(d)
    elements = [d.one_of(("i8", "ui8", "f32")) for _ in range(d.integer(1, 3))]
    types = [tensor(broadcast_to(d, shape), element) for element in elements]
    to = d.element()

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        values = [_leaf(d, value, shape) for value in v]
        for _ in range(d.integer(1, 8)):
            values.append(_combined(d, values))
        attributes = channel_parameters(d, shape, to)
        results = [build(QuantizeOp, values[-1], element=to, **attributes).output]
        return [*results, values[d.integer(0, len(values) - 1)]] if d.flag() else results

    return types, body


def _f32_reduction(d: Draw) -> Drawn:
    shape, op = drawn_shape(d, minimum=1), d.one_of((F32SumOp, F32MaxOp, F32MinOp))
    axes = tuple(axis for axis in range(len(shape)) if d.flag()) or (d.integer(0, len(shape) - 1),)
    attributes: dict[str, Any] = {"axes": axes, "keep_dims": d.flag()}
    if op is not F32SumOp:
        attributes |= {"from_zero": d.flag(), "nan_as_zero": d.flag()}
    return [tensor(shape, "f32")], lambda v: build(op, v[0], element="f32", **attributes).output


def _f32_matmul(d: Draw) -> Drawn:
    leading = tuple(d.integer(1, 3) for _ in range(d.integer(0, 2)))
    rows, depth, columns = d.integer(1, 9), d.channels(), d.channels()
    matrix = (*(leading if d.flag() else ()), depth, columns)
    types = [tensor((*leading, rows, depth), "f32"), tensor(matrix, "f32")]
    rounded = d.flag()
    return types, lambda v: build(F32MatmulOp, *v, element="f32", rounded_products=rounded).output


def _f32_conv2d(d: Draw) -> Drawn:
    groups, depth, across = d.integer(1, 6), d.integer(1, 4), d.integer(1, 5)
    if d.flag():
        groups, depth, across = d.channels(), 1, 1
    kernel, dilation = (d.integer(1, 3), d.integer(1, 3)), (d.integer(1, 2), d.integer(1, 2))
    sizes = [(kernel[i] - 1) * dilation[i] + d.integer(1, 6) for i in range(2)]
    weight = d.rng.normal(size=(groups * across, *kernel, depth)).astype(np.float32)
    attributes: dict[str, Any] = {"strides": (d.integer(1, 2), d.integer(1, 2)), "dilation": dilation, "groups": groups}
    attributes["rounded_products"] = d.flag()
    types = [tensor((d.integer(1, 2), *sizes, groups * depth), "f32")]
    return types, lambda v: build(F32Conv2DOp, v[0], constant(weight), element="f32", **attributes).output


def _f32_recurrence(d: Draw) -> Drawn:
    op, hidden = d.one_of((F32GruOp, F32LstmOp, F32RnnOp)), d.channels()
    steps, batch, width = d.integer(1, 5), d.integer(1, 10), op.gate_count * hidden
    weights = (d.rng.normal(size=(hidden, width)) / hidden).astype(np.float32)
    attributes: dict[str, Any] = {"reverse": d.flag(), "clip": d.one_of((0.0, 0.5))}
    if op is F32GruOp:
        attributes["reset_after"] = d.flag()
    types = [tensor((steps, batch, width), "f32"), tensor((batch, op.state_count * hidden), "f32")]
    types += [tensor((hidden,), "f32")] * attributes.get("reset_after", False)

    def body(v: Sequence[ir.Value]) -> ir.Value:
        return build(op, v[0], constant(weights), *v[1:], element="f32", **attributes).output

    return types, body


def _dynamic_lstm(d: Draw) -> Drawn:
    steps, batch, hidden, weight = d.integer(1, 5), d.integer(1, 10), d.channels(), d.element()
    scales = d.rng.uniform(0.002, 0.01, 4 * hidden).astype(np.float32)
    attributes: dict[str, Any] = {"reverse": d.flag(), "clip": d.one_of((0.0, 0.5))}
    attributes["weight_zero_points"] = d.zero_points(weight, 4 * hidden)
    types = [tensor((steps, batch, 4 * hidden), "f32"), tensor((batch, 2 * hidden), "f32")]

    def body(v: Sequence[ir.Value]) -> ir.Value:
        weights = d.values_constant(weight, (hidden, 4 * hidden))
        return build(DynamicLstmOp, v[0], weights, v[1], constant(scales), element="f32", **attributes).output

    return types, body


def _leaf(d: Draw, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    element = element_of(value.type)
    if element != "f32":
        attributes = channel_parameters(d, shape_of(value.type), element)
        value = build(DequantizeOp, value, element="f32", **attributes).output
    is_full = shape_of(value.type) == tuple(shape)
    return value if is_full else build(BroadcastOp, value, element="f32", shape=shape).output


def _combined(d: Draw, values: Sequence[ir.Value]) -> ir.Value:
    name = d.one_of((*_F32_BINARY, *_F32_UNARY, "arith.select"))
    lhs, rhs = d.one_of(values), d.one_of(values)
    if name == "arith.select":
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), d.integer(1, 14))
        bits = ir.RankedTensorType.get(shape_of(lhs.type), ir.IntegerType.get_signless(1))
        holds = ir.Operation.create("arith.cmpf", [bits], [lhs, rhs], attributes={"predicate": predicate}).result
        return ir.Operation.create(name, [lhs.type], [holds, rhs, lhs]).result
    operands = [lhs, rhs] if name in _F32_BINARY else [lhs]
    return ir.Operation.create(name, [lhs.type], operands).result


F32_VALUES = {
    "fusion-group": drawn_module(_fusion_group),
    "f32_reduction": drawn_module(_f32_reduction),
    "f32_matmul": drawn_module(_f32_matmul),
    "f32_conv2d": drawn_module(_f32_conv2d),
    "f32_recurrence": drawn_module(_f32_recurrence),
    "dynamic_lstm": drawn_module(_dynamic_lstm),
}
