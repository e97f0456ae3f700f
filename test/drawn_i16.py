"""Drawn modules of 16-bit activations: contractions, alone and requantized, pools and tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from drawing import Draw, drawn_module, tensor
from drawn_ops import Drawn, drawn_shape

from qdialect.arithmetic.choices import I16Rounding
from qdialect.dialect import (
    AvgPool2DOp,
    I16Conv2DOp,
    I16DenseOp,
    I16MatmulOp,
    I16RequantizeOp,
    InterpolatedLutOp,
    MaxPool2DOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir


def _weights(d: Draw, shape: Sequence[int]) -> ir.Value:
    """Small ones, whose sums fit, or those of the whole range, many of which do not."""
    largest = d.one_of((1, 20, 127))
    return constant(d.rng.integers(-largest - 1, largest + 1, shape).astype(np.int8))


def _biases(d: Draw, channels: int, element: str) -> list[ir.Value]:
    dtype = np.int32 if element == "i32" else np.int64
    return [constant(d.rng.integers(-(2**28), 2**28, channels).astype(dtype))] if d.flag() else []


def _requantized(d: Draw, acc: ir.Value, element: str) -> ir.Value:
    channels = ir.RankedTensorType(acc.type).shape[-1]
    rounding = d.one_of((I16Rounding.F64_NEAREST, I16Rounding.FIXED16_UP))
    attributes: dict[str, Any] = {"input_scale": d.scale(), "output_scale": d.scale()}
    attributes["rounding"] = I16Rounding.FIXED32_DOUBLE if element == "i32" and d.flag() else rounding
    attributes["weight_scales"] = d.scales(channels) if d.flag() else (d.scale(),)
    return build(I16RequantizeOp, acc, element="i16", **attributes).output


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
        return _results(d, build(I16Conv2DOp, *operands, element=element, **attributes).output, element)

    return [tensor((d.integer(1, 2), *sizes, groups * depth), "i16")], body


def _dense(d: Draw) -> Drawn:
    shape, channels, element = drawn_shape(d, minimum=1), d.channels(), d.one_of(("i32", "i64"))
    deep = (*shape[:-1], d.one_of((shape[-1], 2 * shape[-1] + 1, d.integer(500, 1200))))

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        operands = [v[0], _weights(d, (channels, deep[-1])), *_biases(d, channels, element)]
        return _results(d, build(I16DenseOp, *operands, element=element).output, element)

    return [tensor(deep, "i16")], body


def _matmul(d: Draw) -> Drawn:
    leading, element = tuple(d.integer(1, 3) for _ in range(d.integer(0, 2))), d.one_of(("i32", "i64"))
    rows, depth, columns = d.integer(1, 9), d.channels(), d.channels()
    matrix = (*(tuple(d.one_of((1, n)) for n in leading) if d.flag() else ()), depth, columns)
    types = [tensor((*leading, rows, depth), "i16"), tensor(matrix, d.one_of(("i8", "i16")))]
    return types, lambda v: _results(d, build(I16MatmulOp, *v, element=element).output, element)


def _pool(d: Draw) -> Drawn:
    kernel = d.integer(1, 3), d.integer(1, 3)
    data = (d.integer(1, 2), kernel[0] + d.integer(0, 5), kernel[1] + d.integer(0, 5), d.channels())
    padding = tuple(d.integer(0, kernel[i % 2] - 1) for i in range(4))
    window: dict[str, Any] = {"kernel": kernel, "strides": (d.integer(1, 2), d.integer(1, 2)), "padding": padding}
    window |= dict(zip(("output_min", "output_max"), sorted(d.integer(-(2**15), 2**15 - 1) for _ in "ab"), strict=True))
    extra: dict[str, Any] = {"zero_point": d.integer(-9, 9), "count_include_pad": d.flag()}
    op: Any = AvgPool2DOp if d.flag() else MaxPool2DOp
    window |= extra if op is AvgPool2DOp else {}
    return [tensor(data, "i16")], lambda v: build(op, v[0], element="i16", **window).output


def _table(d: Draw) -> Drawn:
    entries, fraction = d.integer(1, 300), d.integer(0, 9)
    bases, slopes = (tuple(d.rng.integers(-(2**20), 2**20, entries).tolist()) for _ in range(2))
    how: dict[str, Any] = {"bases": bases, "slopes": slopes, "fraction": fraction}

    def body(v: Sequence[ir.Value]) -> ir.Value:
        wide = ir.RankedTensorType.get(ir.RankedTensorType(v[0].type).shape, ir.IntegerType.get_signless(32))
        index = ir.Operation.create("arith.extsi", [wide], [v[0]]).result
        return build(InterpolatedLutOp, index, element="i32", **how).output

    return [tensor(drawn_shape(d), "i16")], body


I16_VALUES = {
    "i16_conv2d": drawn_module(_conv2d),
    "i16_dense": drawn_module(_dense),
    "i16_matmul": drawn_module(_matmul),
    "i16_pool": drawn_module(_pool),
    "i16_table": drawn_module(_table),
}
