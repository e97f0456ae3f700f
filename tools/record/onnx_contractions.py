"""ONNX transposed convolutions and products of any rank, with constant and computed operands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tools.record import onnx_runtime
from tools.record.drawing import Draw, Type, covering_scale
from tools.record.family import Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, between, qlinear

Shape = tuple[int, ...]
_BIAS_BOUND = 3000
_MIDDLE: dict[Type, int] = {np.uint8: 130, np.int8: 3}


@dataclass(frozen=True)
class _Transposed:
    """A ConvTranspose: IOHW weights, whose scales are one or one for each output channel of a group."""

    data: Shape
    weight: Shape
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    dtype: Type = np.uint8
    is_per_channel: bool = False
    has_bias: bool = True


_IMAGE, _KERNEL = (1, 3, 4, 5), (3, 2, 3, 4)
_TWO = {"strides": [2, 2]}
_TWO_BY_THREE = {"strides": [2, 3]}
_GROUPS = {"group": 2, "strides": [3, 2]}
_TRANSPOSED: dict[str, _Transposed] = {
    "plain": _Transposed((1, 4, 3, 5), (4, 2, 3, 3), {"dilations": [2, 2], "pads": [2, 1, 2, 1], "strides": [2, 1]}),
    "opad": _Transposed(
        (2, 4, 3, 5),
        (4, 6, 3, 3),
        _TWO | {"output_padding": [1, 1], "pads": [1, 1, 1, 1]},
        np.int8,
        is_per_channel=True,
    ),
    "group": _Transposed((1, 6, 4, 3), (6, 3, 2, 3), _GROUPS, np.int8, has_bias=False),
    "group_perch": _Transposed((1, 6, 4, 3), (6, 3, 2, 3), _GROUPS, np.int8, is_per_channel=True),
    "upper": _Transposed(_IMAGE, _KERNEL, _TWO_BY_THREE | {"auto_pad": "SAME_UPPER"}, is_per_channel=True),
    "lower": _Transposed(_IMAGE, (3, 2, 4, 4), _TWO_BY_THREE | {"auto_pad": "SAME_LOWER"}),
    "lower_odd": _Transposed(_IMAGE, _KERNEL, _TWO_BY_THREE | {"auto_pad": "SAME_LOWER"}),
    "upper_small": _Transposed(_IMAGE, (3, 2, 1, 2), _TWO_BY_THREE | {"auto_pad": "SAME_UPPER"}),
    "valid": _Transposed(_IMAGE, _KERNEL, _TWO_BY_THREE | {"auto_pad": "VALID"}),
    "shape": _Transposed(_IMAGE, (3, 2, 3, 3), _TWO | {"output_shape": [8, 10]}),
    "shape_odd": _Transposed(_IMAGE, (3, 2, 4, 3), _TWO | {"output_shape": [7, 10]}),
    "shape_opad": _Transposed(_IMAGE, (3, 2, 3, 3), _TWO | {"output_padding": [1, 0], "output_shape": [8, 9]}),
    "shape_larger": _Transposed(_IMAGE, (3, 2, 3, 3), _TWO | {"output_shape": [10, 12]}),
    "shape_upper": _Transposed(_IMAGE, (3, 2, 4, 3), _TWO | {"auto_pad": "SAME_UPPER", "output_shape": [7, 10]}),
    "one_d": _Transposed((2, 5, 7), (5, 3, 4), {"pads": [1, 2], "strides": [3]}, np.int8, is_per_channel=True),
    "cut_more": _Transposed(_IMAGE, (3, 2, 2, 2), _TWO | {"pads": [2, 1, 3, 0]}),
}


@dataclass(frozen=True)
class _Product:
    """A product of two tensors; `bias` is the shape of an f32 one, `columns` gives every column its own scale."""

    left: Shape
    right: Shape
    dtype: Type = np.uint8
    left_is_constant: bool = False
    right_is_constant: bool = False
    columns: bool = False
    bias: Shape | None = None
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])


_BATCH = _Product((2, 5, 6), (2, 6, 9))
_MATRIX = _Product((5, 6), (6, 9))
_SCALED = {"transA": 1, "transB": 1, "alpha": 0.75}
_MATMUL: dict[str, _Product] = {
    "2d": _Product((5, 7), (7, 9)),
    "batches": _Product((2, 3, 5, 16), (2, 3, 16, 9), np.int8),
    "broadcast": _Product((2, 1, 5, 6), (3, 6, 9)),
    "vector_right": _Product((2, 5, 6), (6,)),
    "vector_left": _Product((6,), (2, 6, 9), np.int8),
    "constant_left": _Product((5, 6), (2, 6, 9), np.int8, left_is_constant=True),
    "constant_batches": replace(_BATCH, right_is_constant=True),
    "constant_vector": _Product((2, 5, 6), (6,), right_is_constant=True),
    "columns": replace(_MATRIX, columns=True),
}
_GEMM: dict[str, _Product] = {
    "turned": _Product((6, 5), (9, 6), right_is_constant=True, bias=(9,), attributes={"transA": 1, "transB": 1}),
    "run_time": _Product((5, 6), (9, 6), np.int8, bias=(1, 9), attributes={"transB": 1}),
    "alpha_beta": replace(_MATRIX, right_is_constant=True, bias=(9,), attributes={"alpha": 0.75, "beta": 1.5}),
    "scalar_bias": replace(_MATRIX, bias=(1,), attributes={"beta": 0.5}),
}


def _draw() -> Iterator[Case]:
    for name, transposed in _TRANSPOSED.items():
        yield _conv_transpose(f"conv_transpose_{name}", transposed)
    for name, product in _MATMUL.items():
        yield _between(f"matmul_{name}", "MatMul", product)
    for name, product in {
        "run_time": _BATCH,
        "signed": _Product((5, 6), (2, 6, 9), np.int8),
        "columns": replace(_MATRIX, columns=True),
    }.items():
        yield _qlinear_matmul(f"qlinear_matmul_{name}", product)
    for name, product in {"run_time": _BATCH, "columns": replace(_MATRIX, columns=True)}.items():
        yield _matmul_integer(f"matmul_integer_{name}", product)
    for name, product in _GEMM.items():
        yield _between(f"gemm_{name}", "Gemm", product)
    for name, product in {
        "run_time": _MATRIX,
        "alpha": _Product((6, 5), (9, 6), right_is_constant=True, attributes=_SCALED),
    }.items():
        yield _qgemm(f"qgemm_{name}", product)


def _conv_transpose(name: str, case: _Transposed) -> Case:
    draw = Draw(name)
    data_scale = draw.scale(0.01, 0.09)
    data = Operand(draw.values(case.data, case.dtype), data_scale, int(draw.values((), case.dtype)))
    channels = case.weight[1]
    scales = (
        draw.scales(channels, 0.008, 0.03) if case.is_per_channel else np.array(draw.scale(0.005, 0.03), np.float32)
    )
    weight = Operand(np.maximum(draw.values(case.weight, np.int8), -127), scales, axis=1, is_constant=True)
    operands = [data, weight]
    if case.has_bias:
        count = channels * case.attributes.get("group", 1)
        each = np.resize(scales * np.float32(data_scale), count).astype(np.float32)
        operands.append(Operand(draw.bias(count, _BIAS_BOUND), each, is_constant=True))
    terms = case.weight[0] * math.prod(case.weight[2:]) / math.prod(case.attributes["strides"])
    step = covering_scale(data_scale, scales, terms)
    result = Result(case.dtype, step, 128 if case.dtype is np.uint8 else 0)
    return between(name, Node("ConvTranspose", attributes=case.attributes), operands, result)


def _operands(draw: Draw, case: _Product) -> tuple[Operand, Operand, Result]:
    values, left_scale = draw.values(case.left, case.dtype), draw.scale(0.01, 0.1)
    left = Operand(values, left_scale, int(draw.values((), case.dtype)), is_constant=case.left_is_constant)
    scale = draw.scales(case.right[-1], 0.02, 0.1) if case.columns else draw.scale(0.01, 0.1)
    points = draw.values(np.shape(scale), case.dtype)
    values = draw.values(case.right, case.dtype)
    right = Operand(values, scale, points, axis=1, is_constant=case.right_is_constant)
    depth = case.left[-2 if case.attributes.get("transA") else -1]
    return left, right, Result(case.dtype, covering_scale(left_scale, scale, 2 * depth), _MIDDLE[case.dtype])


def _between(name: str, kind: str, case: _Product) -> Case:
    draw = Draw(name)
    left, right, result = _operands(draw, case)
    bias = [] if case.bias is None else [draw.normal(case.bias, 20 * result.scale)]
    return between(name, Node(kind, bias, case.attributes), [left, right], result)


def _qlinear_matmul(name: str, case: _Product) -> Case:
    left, right, result = _operands(Draw(name), case)
    return qlinear(name, Node("QLinearMatMul"), [left, right, result], case.dtype)


def _matmul_integer(name: str, case: _Product) -> Case:
    left, right, _ = _operands(Draw(name), case)
    points = [np.asarray(side.zero_point, dtype=case.dtype) for side in (left, right)]
    sides = [replace(side, scale=None) for side in (left, right)]
    return qlinear(name, Node("MatMulInteger"), [*sides, *points], np.int32)


def _qgemm(name: str, case: _Product) -> Case:
    draw = Draw(name)
    left, right, result = _operands(draw, case)
    bias = draw.bias(9, _BIAS_BOUND)
    node = Node("com.microsoft.QGemm", attributes=case.attributes)
    return qlinear(name, node, [left, right, bias, result], case.dtype)


FAMILY = Family("onnx_contractions", _draw, onnx_runtime.unoptimized)
