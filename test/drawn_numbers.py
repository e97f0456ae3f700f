"""Drawn modules of f32 values: fusion groups of element-wise ops, reductions and contractions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from drawn_ops import Draw, Drawn, broadcast_to, channel_parameters, drawn_module, drawn_shape, tensor
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic.choices import I16Rounding
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.program.program import Lifetime

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
        results = [qnn.build(qnn.QuantizeOp, values[-1], element=to, **attributes).output]
        return [*results, values[d.integer(0, len(values) - 1)]] if d.flag() else results

    return types, body


def _f32_reduction(d: Draw) -> Drawn:
    shape, op = drawn_shape(d, minimum=1), d.one_of((qnn.F32SumOp, qnn.F32MaxOp, qnn.F32MinOp))
    axes = tuple(axis for axis in range(len(shape)) if d.flag()) or (d.integer(0, len(shape) - 1),)
    attributes: dict[str, Any] = {"axes": axes, "keep_dims": d.flag()}
    if op is not qnn.F32SumOp:
        attributes |= {"from_zero": d.flag(), "nan_as_zero": d.flag()}
    return [tensor(shape, "f32")], lambda v: qnn.build(op, v[0], element="f32", **attributes).output


def _f32_matmul(d: Draw) -> Drawn:
    leading = tuple(d.integer(1, 3) for _ in range(d.integer(0, 2)))
    rows, depth, columns = d.integer(1, 9), d.channels(), d.channels()
    matrix = (*(leading if d.flag() else ()), depth, columns)
    types = [tensor((*leading, rows, depth), "f32"), tensor(matrix, "f32")]
    rounded, bias = d.flag(), [_bias(d, columns)] if d.flag() else []

    def emit(v: Sequence[ir.Value]) -> ir.Value:
        operands = (*v, *map(constant, bias))
        return qnn.build(qnn.F32MatmulOp, *operands, element="f32", rounded_products=rounded).output

    return types, emit


def _bias(d: Draw, channels: int) -> NDArray[np.float32]:
    return d.rng.normal(size=channels).astype(np.float32)


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
    arrays = [weight, *([_bias(d, len(weight))] if groups == 1 and d.flag() else [])]
    return types, lambda v: qnn.build(qnn.F32Conv2DOp, v[0], *map(constant, arrays), element="f32", **attributes).output


def _f32_recurrence(d: Draw) -> Drawn:
    op, hidden = d.one_of((qnn.F32GruOp, qnn.F32LstmOp, qnn.F32RnnOp)), d.channels()
    steps, batch, width = d.integer(1, 5), d.integer(1, 10), op.gate_count * hidden
    weights = (d.rng.normal(size=(hidden, width)) / hidden).astype(np.float32)
    attributes: dict[str, Any] = {"reverse": d.flag(), "clip": d.one_of((0.0, 0.5))}
    if op is qnn.F32GruOp:
        attributes["reset_after"] = d.flag()
    types = [tensor((steps, batch, width), "f32"), tensor((batch, op.state_count * hidden), "f32")]
    types += [tensor((hidden,), "f32")] * attributes.get("reset_after", False)

    def body(v: Sequence[ir.Value]) -> ir.Value:
        return qnn.build(op, v[0], constant(weights), *v[1:], element="f32", **attributes).output

    return types, body


def _dynamic_lstm(d: Draw) -> Drawn:
    steps, batch, hidden, weight = d.integer(1, 5), d.integer(1, 10), d.channels(), d.element()
    scales = d.rng.uniform(0.002, 0.01, 4 * hidden).astype(np.float32)
    attributes: dict[str, Any] = {"reverse": d.flag(), "clip": d.one_of((0.0, 0.5))}
    attributes["weight_zero_points"] = d.zero_points(weight, 4 * hidden)
    types = [tensor((steps, batch, 4 * hidden), "f32"), tensor((batch, 2 * hidden), "f32")]

    def body(v: Sequence[ir.Value]) -> ir.Value:
        weights = d.values_constant(weight, (hidden, 4 * hidden))
        return qnn.build(qnn.DynamicLstmOp, v[0], weights, v[1], constant(scales), element="f32", **attributes).output

    return types, body


def _leaf(d: Draw, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    element = element_of(value.type)
    if element != "f32":
        attributes = channel_parameters(d, shape_of(value.type), element)
        value = qnn.build(qnn.DequantizeOp, value, element="f32", **attributes).output
    is_full = shape_of(value.type) == tuple(shape)
    return value if is_full else qnn.build(qnn.BroadcastOp, value, element="f32", shape=shape).output


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


# Drawn modules of 16-bit activations: contractions, alone and requantized, pools and tables.


def _weights(d: Draw, shape: Sequence[int]) -> ir.Value:
    """Small ones, whose sums fit, or those of the whole range, many of which do not."""
    largest = d.one_of((1, 20, 127))
    return constant(d.rng.integers(-largest - 1, largest + 1, shape).astype(np.int8))


def _biases(d: Draw, channels: int, element: str) -> list[ir.Value]:
    dtype = np.int32 if element == "i32" else np.int64
    return [constant(d.rng.integers(-(2**28), 2**28, channels).astype(dtype))] if d.flag() else []


def _requantized(d: Draw, acc: ir.Value, element: str) -> ir.Value:
    channels = ir.RankedTensorType(acc.type).shape[-1]
    rounding = d.one_of((I16Rounding.F64_NEAREST, I16Rounding.F64_EVEN, I16Rounding.FIXED16_UP))
    attributes: dict[str, Any] = {"input_scale": d.scale(), "output_scale": d.scale()}
    attributes["rounding"] = I16Rounding.FIXED32_DOUBLE if element == "i32" and d.flag() else rounding
    attributes["weight_scales"] = d.scales(channels) if d.flag() else (d.scale(),)
    attributes["output_zero_point"] = d.integer(-(2**15), 2**15 - 1) if d.flag() else 0
    return qnn.build(qnn.I16RequantizeOp, acc, element="i16", **attributes).output


def _results(d: Draw, acc: ir.Value, element: str) -> list[ir.Value]:
    """The accumulators, or 16-bit values of them, or both."""
    values = [acc] if d.flag() else []
    return [*values, _requantized(d, acc, element)] if d.flag() or not values else values


def _conv2d(d: Draw) -> Drawn:
    groups, depth, across, element = 1, d.channels(), d.channels(), d.one_of(("i32", "i64"))
    if d.flag():
        groups, depth, across = d.one_of(((d.channels(), 1, 1), (d.integer(2, 5), d.integer(1, 9), d.integer(1, 9))))
    kernel, dilation = (d.integer(1, 3), d.integer(1, 3)), (d.integer(1, 2), d.integer(1, 2))
    sizes = [(kernel[i] - 1) * dilation[i] + d.integer(1, 6) for i in range(2)]
    attributes: dict[str, Any] = {"strides": (d.integer(1, 2), d.integer(1, 2)), "dilation": dilation, "groups": groups}
    attributes["padding"] = tuple(d.integer(0, 2) for _ in range(4)) if d.flag() else (0, 0, 0, 0)

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        channels = groups * across
        operands = [v[0], _weights(d, (channels, *kernel, depth)), *_biases(d, channels, element)]
        return _results(d, qnn.build(qnn.I16Conv2DOp, *operands, element=element, **attributes).output, element)

    return [tensor((d.integer(1, 2), *sizes, groups * depth), "i16")], body


def _dense(d: Draw) -> Drawn:
    shape, channels, element = drawn_shape(d, minimum=1), d.channels(), d.one_of(("i32", "i64"))
    deep = (*shape[:-1], d.one_of((shape[-1], 2 * shape[-1] + 1, d.integer(500, 1200))))

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        operands = [v[0], _weights(d, (channels, deep[-1])), *_biases(d, channels, element)]
        return _results(d, qnn.build(qnn.I16DenseOp, *operands, element=element).output, element)

    return [tensor(deep, "i16")], body


def _matmul(d: Draw) -> Drawn:
    leading, element = tuple(d.integer(1, 3) for _ in range(d.integer(0, 2))), d.one_of(("i32", "i64"))
    rows, depth, columns = d.integer(1, 9), d.channels(), d.channels()
    matrix = (*(tuple(d.one_of((1, n)) for n in leading) if d.flag() else ()), depth, columns)
    types = [tensor((*leading, rows, depth), "i16"), tensor(matrix, d.one_of(("i8", "i16")))]
    return types, lambda v: _results(d, qnn.build(qnn.I16MatmulOp, *v, element=element).output, element)


def _pool(d: Draw) -> Drawn:
    kernel = d.integer(1, 3), d.integer(1, 3)
    data = (d.integer(1, 2), kernel[0] + d.integer(0, 5), kernel[1] + d.integer(0, 5), d.channels())
    padding = tuple(d.integer(0, kernel[i % 2] - 1) for i in range(4))
    window: dict[str, Any] = {"kernel": kernel, "strides": (d.integer(1, 2), d.integer(1, 2)), "padding": padding}
    window |= dict(zip(("output_min", "output_max"), sorted(d.integer(-(2**15), 2**15 - 1) for _ in "ab"), strict=True))
    extra: dict[str, Any] = {"zero_point": d.integer(-9, 9), "count_include_pad": d.flag()}
    op: Any = qnn.AvgPool2DOp if d.flag() else qnn.MaxPool2DOp
    window |= extra if op is qnn.AvgPool2DOp else {}
    return [tensor(data, "i16")], lambda v: qnn.build(op, v[0], element="i16", **window).output


def _table(d: Draw) -> Drawn:
    entries, fraction = d.integer(1, 300), d.integer(0, 9)
    bases, slopes = (tuple(d.rng.integers(-(2**20), 2**20, entries).tolist()) for _ in range(2))
    how: dict[str, Any] = {"bases": bases, "slopes": slopes, "fraction": fraction}

    def body(v: Sequence[ir.Value]) -> ir.Value:
        wide = ir.RankedTensorType.get(ir.RankedTensorType(v[0].type).shape, ir.IntegerType.get_signless(32))
        index = ir.Operation.create("arith.extsi", [wide], [v[0]]).result
        return qnn.build(qnn.InterpolatedLutOp, index, element="i32", **how).output

    return [tensor(drawn_shape(d), "i16")], body


I16_VALUES = {
    "i16_conv2d": drawn_module(_conv2d),
    "i16_dense": drawn_module(_dense),
    "i16_matmul": drawn_module(_matmul),
    "i16_pool": drawn_module(_pool),
    "i16_table": drawn_module(_table),
}


# Buffers of an arena, drawn, and what every plan of one must keep to.


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    """Up to twelve buffers of up to 300 bytes in ten steps."""
    steps = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
    drawn = draw(st.lists(st.tuples(st.integers(1, 300), steps), max_size=12))
    return [Lifetime(size, first, last) for size, (first, last) in drawn]


def check_plan(buffers: Sequence[Lifetime], alignment: int, offsets: Sequence[int], size: int) -> None:
    """Assert that buffers that live at the same time are apart, and all aligned and inside the block."""
    placed = list(zip(offsets, buffers, strict=True))
    assert all(offset >= 0 and offset % alignment == 0 and offset + own.size <= size for offset, own in placed)
    for index, (low, own) in enumerate(placed):
        for other_low, other in placed[:index]:
            together = own.first <= other.last and other.first <= own.last
            assert not together or low + own.size <= other_low or other_low + other.size <= low
