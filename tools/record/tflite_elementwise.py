"""TFLite operators of one and of two tensors, ARG_MAX and ARG_MIN, and reductions that are no means.

`i8` and `u8` are the type, `S` in the name an output with the input's scale, `_tie` powers of two as scales.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Case, Family
from tools.record.tflite_models import (
    Tensor,
    activation,
    constant,
    drawn,
    given,
    integers,
    one_operator,
    per_tensor,
    result,
)

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_TYPES: dict[str, Type] = {"i8": np.int8, "u8": np.uint8}
_PAIR = (2, 3, 4, 5)
_BROADCAST = (_PAIR, (1, 1, 1, 5), (2, 1, 4, 1))
# Among these few values every row has several equal ones.
_FEW = 4


@dataclass(frozen=True)
class _Pair:
    code: int
    options_type: int
    types: tuple[str, ...] = ("i8", "u8")
    # Whether an activation may be fused.
    is_clamped: bool = False
    # Whether all three tensors have one quantization.
    is_same: bool = False


_PAIRS: dict[str, _Pair] = {
    "div": _Pair(_OPERATOR.DIV, _OPTIONS.DivOptions, is_clamped=True),
    "max": _Pair(_OPERATOR.MAXIMUM, _OPTIONS.MaximumMinimumOptions, is_same=True),
    "min": _Pair(_OPERATOR.MINIMUM, _OPTIONS.MaximumMinimumOptions, is_same=True),
    "prelu": _Pair(_OPERATOR.PRELU, _OPTIONS.NONE),
    "sqd": _Pair(_OPERATOR.SQUARED_DIFFERENCE, _OPTIONS.SquaredDifferenceOptions, ("i8",)),
    "sub": _Pair(_OPERATOR.SUB, _OPTIONS.SubOptions, is_clamped=True),
}
_TIES = (("prelu", "i8"), ("prelu", "u8"), ("sqd", "i8"), ("sub", "i8"), ("sub", "u8"))


@dataclass(frozen=True)
class _Function:
    code: int
    types: tuple[str, ...] = ("i8", "u8")
    options_type: int = _OPTIONS.NONE
    fields: tuple[int, ...] = ()
    # The reference kernels refuse negative numbers.
    is_of_positive: bool = False
    keeps_scale: bool = False


_FUNCTIONS: dict[str, _Function] = {
    "absS": _Function(_OPERATOR.ABS, ("i8",), keeps_scale=True),
    "abs": _Function(_OPERATOR.ABS, ("i8",)),
    "gelu": _Function(_OPERATOR.GELU, options_type=_OPTIONS.GeluOptions, fields=(0,)),
    "gelua": _Function(_OPERATOR.GELU, options_type=_OPTIONS.GeluOptions, fields=(1,)),
    "negS": _Function(_OPERATOR.NEG, ("i8",), keeps_scale=True),
    "relu_0_to_1": _Function(_OPERATOR.RELU_0_TO_1),
    "rsqrt": _Function(_OPERATOR.RSQRT, ("i8",), is_of_positive=True),
    "sqrt": _Function(_OPERATOR.SQRT, ("i8",), is_of_positive=True),
}


def _draw() -> Iterator[Case]:
    for kind in ("max", "min"):
        yield from (_arg(f"arg{kind}_{key}_{index}", kind, _TYPES[key]) for key in _TYPES for index in range(3))
    for kind, pair in _PAIRS.items():
        yield from (_pair(f"{kind}_{key}_{index}", kind, _TYPES[key]) for key in pair.types for index in range(2))
    yield from (_pair(f"{kind}_{key}_tie_0", kind, _TYPES[key]) for kind, key in _TIES)
    for kind, function in _FUNCTIONS.items():
        yield from (_function(f"{kind}_{key}_0", function, _TYPES[key]) for key in function.types)
    for kind, code in {"rmax": _OPERATOR.REDUCE_MAX, "rmin": _OPERATOR.REDUCE_MIN}.items():
        yield from (_reduction(f"{kind}_{key}_{index}", code, _TYPES[key]) for key in _TYPES for index in range(2))
    yield from (_reduction(f"sum_u8_{index}", _OPERATOR.SUM, np.uint8) for index in range(2))
    yield from (_l2_normalization(name, dtype) for name, dtype in (("l2_i8_0", np.int8), ("l2_u8_1", np.uint8)))


def _arg(name: str, kind: str, dtype: Type) -> Case:
    draw = Draw(name)
    shape = draw.shape(draw.integer(1, 4), 8)
    values = draw.rng.integers(0, _FEW, shape).astype(dtype)
    data = given(values, per_tensor(draw.scale(0.0003, 0.05), draw.zero_point(dtype)))
    axis = draw.integer(-len(shape), len(shape) - 1)
    axes = constant(np.array(axis, dtype=np.int32)) if draw.integer(0, 1) else integers(axis)
    kept = tuple(extent for k, extent in enumerate(shape) if k != axis % len(shape))
    element, field = draw.one_of((np.int32, tflite.TensorType.INT32), (np.int64, tflite.TensorType.INT64))
    is_max = kind == "max"
    code = _OPERATOR.ARG_MAX if is_max else _OPERATOR.ARG_MIN
    options_type = _OPTIONS.ArgMaxOptions if is_max else _OPTIONS.ArgMinOptions
    return one_operator(name, code, [data, axes], [Tensor(kept, element)], options_type, options(field))


def _pair(name: str, kind: str, dtype: Type) -> Case:
    draw, pair = Draw(name), _PAIRS[kind]
    is_tie = "_tie" in name
    left, right = (draw.power_of_two(-6, -3) if is_tie else draw.scale(0.003, 0.3) for _ in range(2))
    data = drawn(draw, _PAIR, dtype, left)
    other = drawn(draw, draw.one_of(*_BROADCAST), dtype, right)
    output = result(draw, _PAIR, dtype, _pair_scale(draw, kind, left, right, is_tie=is_tie))
    if pair.is_same:
        other = Tensor(other.shape, dtype, data.quantization, other.values)
        output = Tensor(_PAIR, dtype, data.quantization)
    if kind == "div":
        # The reference kernel refuses to divide by 0, and shifts by more than 31 bits for quotients below 1 / 2.
        data, other = _away(data, 16), _away(other, 1)
    if kind == "prelu":
        slopes = draw.values(draw.one_of((1,), (1, 1, 5), (3, 4, 5)), dtype)
        other = constant(slopes, other.quantization)
    fields = options(activation(draw, output)) if pair.is_clamped else options()
    return one_operator(name, pair.code, [data, other], [output], pair.options_type, fields)


def _pair_scale(draw: Draw, kind: str, left: float, right: float, *, is_tie: bool) -> float:
    """An output scale that clips few results, a power of two where the scales of the operands are."""
    ratio = 1.0 if is_tie else draw.scale(0.6, 2)
    if kind == "div":
        return left / right / 32 * ratio
    if kind == "prelu":
        return max(left, left * right * 64) * ratio
    return max(left, right) ** 2 * 128 * ratio if kind == "sqd" else max(left, right) * ratio


def _away(operand: Tensor, distance: int) -> Tensor:
    """With the values that are closer to the zero point than `distance` moved there."""
    assert operand.values is not None
    assert operand.quantization is not None
    zero_point, info = operand.quantization.zero_points[0], np.iinfo(np.dtype(operand.dtype).name)
    offsets = operand.values.astype(np.int64) - zero_point
    moved = zero_point + np.where(offsets < 0, -distance, distance)
    moved = np.where((moved < info.min) | (moved > info.max), 2 * zero_point - moved, moved)
    values = np.where(np.abs(offsets) < distance, moved, operand.values)
    return given(values.astype(operand.dtype), operand.quantization)


def _function(name: str, function: _Function, dtype: Type) -> Case:
    """Of every quantized value that the operator takes."""
    draw = Draw(name)
    scale, point = draw.scale(0.01, 0.3), draw.inner_point(dtype)
    info = np.iinfo(np.dtype(dtype).name)
    values = np.arange(info.min, info.max + 1)
    data = given(
        (np.maximum(values, point) if function.is_of_positive else values).astype(dtype), per_tensor(scale, point)
    )
    output = result(draw, (256,), dtype, scale if function.keeps_scale else scale * draw.scale(0.3, 2))
    if function.code == _OPERATOR.NEG:
        # The kernel negates quantized values, and so the zero point.
        output = Tensor((256,), dtype, per_tensor(scale, -point))
    fields = options(*function.fields)
    return one_operator(name, function.code, [data], [output], function.options_type, fields)


def _reduction(name: str, code: int, dtype: Type) -> Case:
    draw = Draw(name)
    shape = draw.shape(4, 8)
    scale = draw.scale(0.001, 0.5)
    data = drawn(draw, shape, dtype, scale)
    axes = sorted(int(axis) for axis in draw.rng.permutation(4)[: draw.integer(1, 4)])
    keeps = draw.integer(0, 1)
    to = [1 if k in axes else extent for k, extent in enumerate(shape) if keeps or k not in axes]
    output = Tensor(tuple(to), dtype, data.quantization)
    if code == _OPERATOR.SUM:
        terms = int(np.prod([shape[axis] for axis in axes]))
        output = result(draw, to, dtype, scale * draw.one_of(1, terms**0.5))
    return one_operator(name, code, [data, integers(*axes)], [output], _OPTIONS.ReducerOptions, options(keeps))


def _l2_normalization(name: str, dtype: Type) -> Case:
    """The operator's own output: 1 / 128 around the middle."""
    draw = Draw(name)
    shape = (8, *draw.shape(draw.integer(0, 1), 12), draw.integer(8, 20))
    data = drawn(draw, shape, dtype, draw.scale(0.0003, 0.1))
    output = Tensor(shape, dtype, per_tensor(1 / 128, 0 if dtype is np.int8 else 128))
    code, kind = _OPERATOR.L2_NORMALIZATION, _OPTIONS.L2NormOptions
    return one_operator(name, code, [data], [output], kind, options())


FAMILY = Family("tflite_elementwise", _draw, litert.reference)
