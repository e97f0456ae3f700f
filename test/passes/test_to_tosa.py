"""`qnn` modules as `tosa` ops: by the specification they give what the reference gives, and they read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from drawn_graphs import graph
from numpy.typing import NDArray
from tosa_graphs import check_export, export_notes

from qdialect.arithmetic import AddArithmetic, Division, FloatRounding, NanPolicy, Rounding, Scaling, SubArithmetic
from qdialect.dialect import (
    UNARY_OPS,
    AddOp,
    AvgPool2DOp,
    ClipOp,
    ConcatOp,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    DequantizeOp,
    HardswishOp,
    LutOp,
    MatMulOp,
    MaximumOp,
    MaxPool2DOp,
    MeanOp,
    MinimumOp,
    MulOp,
    QuantizeOp,
    RequantizeOp,
    SubOp,
    SumOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.ir._mlir import ir

Array = NDArray[Any]
Attributes = dict[str, Any]
ROUNDINGS = list(Rounding)
EIGHT_BIT = ("i8", "ui8")


def of(op_class: Any, types: Sequence[str], element: str, **attributes: Any) -> ir.Module:
    def body(*operands: ir.Value) -> ir.Value:
        return build(op_class, *operands, element=element, **attributes).operation.results[0]

    return graph(types, body)


def drawn(*shape: int, dtype: str = "int8", seed: int = 0) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, int(info.max) + 1, shape).astype(dtype)


def names(module: ir.Module) -> list[str]:
    return [op.operation.name for op in module.body.operations[0].operation.regions[0].blocks[0].operations]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("source", "target"), list(product(["i8", "ui8", "i16", "i32"], ["i8", "ui8", "i16"])))
def test_requantization(rounding: Rounding, source: str, target: str) -> None:
    attributes: Attributes = {
        "input_scale": 0.37,
        "output_scale": 0.9 if source != "i32" else 900.0,
        "rounding": rounding,
    }
    points: Attributes = {"input_zero_points": (0 if source == "i32" else 7,), "output_zero_point": 3}
    check_export(of(RequantizeOp, [tensor((7, 300), source)], target, **attributes, **points))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_requantization_of_channels(rounding: Rounding, axis: int) -> None:
    scales = tuple(np.geomspace(1e-4, 0.4, [3, 4, 5][axis]).tolist())
    attributes: Attributes = {
        "input_scale": 0.25,
        "output_scale": 30.0,
        "rounding": rounding,
        "output_zero_point": -9,
    }
    module = of(RequantizeOp, [tensor((3, 4, 5), "i32")], "i8", **attributes, weight_scales=scales, axis=axis)
    check_export(module)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_ties_of_both_signs(rounding: Rounding) -> None:
    near = np.arange(-20_000, 20_000, dtype=np.int32)
    how: Attributes = {"input_scale": 0.75, "output_scale": 12.0, "output_zero_point": 5, "rounding": rounding}
    check_export(of(RequantizeOp, [tensor(near.shape, "i32")], "i16", **how), [near])


def convolution(data: str, weight: Array, groups: int, **window: Any) -> ir.Module:
    points: Attributes = {"input_zero_point": 11, "weight_zero_points": (3,), "groups": groups}

    def body(x: ir.Value) -> ir.Value:
        bias = constant(drawn(len(weight), dtype="int16").astype(np.int32))
        scales: Attributes = {"input_scale": 0.5, "weight_scales": (0.25,)}
        sums = build(Conv2DOp, x, constant(weight), bias, element="i32", **scales, **points, **window).output
        how: Attributes = {
            "input_scale": 0.5,
            "weight_scales": (0.25,),
            "output_scale": 60.0,
            "output_zero_point": 4,
            "axis": 3,
        }
        return build(RequantizeOp, sums, element="ui8", **how, rounding=Rounding.FIXED32_DOUBLE).output

    return graph([data], body)


WINDOWS = [
    {"strides": (1, 1), "padding": (1, 1, 1, 1)},
    {"strides": (2, 3), "padding": (0, 1, 1, 0)},
    {"strides": (3, 2), "padding": (0, 0, 0, 0), "dilation": (2, 1)},
]


@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("groups", "channels"), [(1, 5), (2, 6), (4, 4), (4, 8)])
def test_convolution(element: str, window: Attributes, groups: int, channels: int) -> None:
    weight = drawn(channels, 3, 2, 4 // groups, dtype="uint8" if groups == 1 else "int8")
    check_export(convolution(tensor((2, 9, 10, 4), element), weight, groups, **window))


TRANSPOSED = [
    {"strides": (2, 3), "padding": (1, 0, 0, 1)},
    {"strides": (1, 2), "padding": (0, 0, 2, 1), "output_padding": (1, 0), "dilation": (2, 1)},
    {"strides": (2, 2), "padding": (3, 1, 0, 3)},
]


@pytest.mark.parametrize("window", TRANSPOSED)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(window: Attributes, groups: int) -> None:
    how: Attributes = {
        "input_scale": 0.5,
        "input_zero_point": 9,
        "weight_scales": (0.5,),
        "weight_zero_points": (-4,),
    }

    def body(x: ir.Value) -> ir.Value:
        weight = constant(drawn(6, 3, 2, 4 // groups))
        return build(ConvTranspose2DOp, x, weight, None, element="i32", **how, **window, groups=groups).output

    check_export(graph([tensor((1, 4, 5, 4), "ui8")], body))


@pytest.mark.parametrize("element", EIGHT_BIT)
def test_matrix_products(element: str) -> None:
    points = (3, -4, 0, 9, 1)
    how: Attributes = {"input_scale": 0.5, "input_zero_point": 9, "weight_scales": (0.5,)}

    def body(x: ir.Value) -> ir.Value:
        weight = constant(drawn(5, 6, seed=2) // 2)
        return build(DenseOp, x, weight, None, element="i32", **how, weight_zero_points=points).output

    check_export(graph([tensor((2, 3, 6), element)], body))
    types = [tensor((2, 1, 4, 6), element), tensor((3, 6, 5), "i8")]
    check_export(of(MatMulOp, types, "i32", **how, weight_zero_points=(7,)))


SUMS = [arithmetic for arithmetic in AddArithmetic if arithmetic is not AddArithmetic.FLOAT_ONCE]


def parameters(lhs: str, rhs: str, output: str) -> Attributes:
    low, high = ELEMENT_RANGES[output]
    zero = {"i8": -3, "ui8": 120}
    points: Attributes = {
        "lhs_zero_point": zero[lhs],
        "rhs_zero_point": zero[rhs] + 9,
        "output_zero_point": zero[output] + 4,
    }
    scales: Attributes = {"lhs_scale": 0.037, "rhs_scale": 0.0213, "output_scale": 0.041}
    return {**points, **scales, "output_min": low + 5, "output_max": high}


def every_pair() -> list[Array]:
    return [np.repeat(np.arange(256), 256).astype(np.uint8), np.tile(np.arange(256), 256).astype(np.uint8)]


def pair(op_class: Any, **how: Any) -> ir.Module:
    types = [tensor((65536,), "ui8"), tensor((65536,), "i8")]
    return of(op_class, types, "ui8", **parameters("ui8", "i8", "ui8"), **how)


@pytest.mark.parametrize("arithmetic", SUMS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_sums_of_every_pair(arithmetic: AddArithmetic, rounding: Rounding) -> None:
    if arithmetic is not AddArithmetic.REQUANTIZE_EACH and rounding is not Rounding.FIXED64_UP:
        return
    lhs, rhs = every_pair()
    check_export(pair(AddOp, arithmetic=arithmetic, rounding=rounding), [lhs, rhs.view(np.int8)])


@pytest.mark.parametrize("arithmetic", list(SubArithmetic))
def test_differences_of_every_pair(arithmetic: SubArithmetic) -> None:
    lhs, rhs = every_pair()
    check_export(pair(SubOp, arithmetic=arithmetic), [lhs, rhs.view(np.int8)])


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_products_of_every_pair(rounding: Rounding) -> None:
    lhs, rhs = every_pair()
    check_export(pair(MulOp, rounding=rounding), [lhs, rhs.view(np.int8)])


@pytest.mark.parametrize("op_class", [MaximumOp, MinimumOp])
@pytest.mark.parametrize("same", [False, True])
def test_extremes_of_pairs(op_class: Any, same: bool) -> None:
    attributes = parameters("i8", "i8", "i8")
    if same:
        sides = ("lhs", "rhs", "output")
        attributes |= {f"{side}_scale": 0.5 for side in sides} | {f"{side}_zero_point": 3 for side in sides}
    check_export(of(op_class, [tensor((3, 1, 70), "i8"), tensor((5, 70), "i8")], "i8", **attributes))


@pytest.mark.parametrize("division", list(Division))
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_average_pool(division: Division, include: bool, element: str) -> None:
    low, high = ELEMENT_RANGES[element]
    window: Attributes = {
        "kernel": (3, 2),
        "strides": (2, 2),
        "padding": (1, 0, 1, 1),
        "output_min": low + 1,
        "output_max": high,
    }
    how: Attributes = {"division": division, "count_include_pad": include, "zero_point": 7}
    check_export(of(AvgPool2DOp, [tensor((2, 8, 7, 3), element)], element, **window, **how))


@pytest.mark.parametrize("element", EIGHT_BIT)
def test_max_pool(element: str) -> None:
    low, high = ELEMENT_RANGES[element]
    window: Attributes = {
        "kernel": (3, 2),
        "strides": (2, 2),
        "padding": (1, 0, 1, 1),
        "output_min": low + 9,
        "output_max": high,
    }
    check_export(of(MaxPool2DOp, [tensor((2, 8, 7, 3), element)], element, **window))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("op_class", [MeanOp, SumOp])
def test_means_and_sums(rounding: Rounding, op_class: Any) -> None:
    how: Attributes = {
        "input_scale": 0.5,
        "input_zero_point": 3,
        "output_scale": 0.7 * (9 if op_class is SumOp else 1),
    }
    module = of(
        op_class, [tensor((2, 4, 5, 3), "ui8")], "i8", **how, output_zero_point=-4, rounding=rounding, axes=(1, 2)
    )
    check_export(module)


def test_tables_and_clamps() -> None:
    ends: Attributes = {"input_scale": 0.1, "input_zero_point": 100, "output_scale": 0.08, "output_zero_point": -5}
    last: Attributes = {**ends, "input_zero_point": 0, "output_zero_point": 3}

    def body(x: ir.Value) -> ir.Value:
        first = build(HardswishOp, x, element="i8", **ends).output
        clipped = build(ClipOp, first, element="i8", min=-90, max=77).output
        table = np.random.default_rng(1).permutation(256).astype(np.uint8)
        return build(LutOp, clipped, element="ui8", table=table, **last).output

    exported = check_export(graph([tensor((256,), "ui8")], body), [np.arange(256).astype(np.uint8)])
    assert names(exported).count("tosa.table") == 2


@pytest.mark.parametrize("op_class", UNARY_OPS)
def test_every_function_of_one_tensor_is_a_table(op_class: Any) -> None:
    ends = {"input_scale": 0.05, "input_zero_point": -5, "output_scale": 0.1, "output_zero_point": 7}
    exported = check_export(of(op_class, [tensor((256,), "i8")], "i8", **ends), [np.arange(-128, 128).astype(np.int8)])
    assert names(exported).count("tosa.table") == 1


def test_concatenation_at_other_parameters() -> None:
    how: Attributes = {
        "input_scales": (0.1, 0.2, 0.1),
        "input_zero_points": (3, 0, 3),
        "output_scale": 0.1,
        "output_zero_point": 3,
    }
    types = [tensor((2, 3), "i8"), tensor((2, 5), "i8"), tensor((2, 1), "i8")]
    exported = check_export(of(ConcatOp, types, "i8", axis=1, **how))
    assert names(exported).count("tosa.table") == 1


FLOATS = np.concatenate([np.linspace(-40, 40, 5001), [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40]]).astype(np.float32)


@pytest.mark.parametrize("scale", [0.25, 0.1, 0.0371])
@pytest.mark.parametrize("scaling", list(Scaling))
@pytest.mark.parametrize("rounding", list(FloatRounding))
@pytest.mark.parametrize("element", ["i8", "ui8", "i16"])
def test_quantize(scale: float, scaling: Scaling, rounding: FloatRounding, element: str) -> None:
    # Ties of the quotient, and what is next to them.
    ties = (np.arange(-300, 300) + 0.5) * scale
    near = [np.nextafter(ties.astype(np.float32), np.float32(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([FLOATS, ties.astype(np.float32), *near])
    how: Attributes = {"rounding": rounding, "scaling": scaling, "nan": NanPolicy.MAX}
    module = of(QuantizeOp, [tensor(values.shape, "f32")], element, scales=(scale,), zero_points=(5,), **how)
    check_export(module, [values])


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "i32"])
def test_dequantize_and_quantize_channels(element: str) -> None:
    points = (0, 0, 0) if element == "i32" else (3, 0, 7)
    how: Attributes = {"scales": (0.3, 0.2, 0.7), "zero_points": points, "axis": 1}
    back: Attributes = {"scales": (0.5, 2.0, 0.25), "zero_points": (1, 2, 3), "axis": 1}

    def body(x: ir.Value) -> ir.Value:
        value = build(DequantizeOp, x, element="f32", **how).output
        return build(QuantizeOp, value, element="i8", **back).output

    check_export(graph([tensor((5, 3, 7), element)], body))


def long_rows() -> ir.Module:
    """A dense layer whose accumulators 32 bits do not hold."""
    weight = np.full((1, 70_000), -128, np.int8)

    def body(x: ir.Value) -> ir.Value:
        scales: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (0.25,)}
        return build(DenseOp, x, constant(weight), None, element="i32", **scales).output

    return graph([tensor((1, 70_000), "ui8")], body)


Unsupported = tuple[Callable[[], ir.Module], str]
UNSUPPORTED: list[Unsupported] = [
    (lambda: pair(AddOp, arithmetic=AddArithmetic.FLOAT_ONCE), "'qnn.add' op arithmetic must be one without fused"),
    (
        lambda: of(
            RequantizeOp,
            [tensor((4,), "i32")],
            "i32",
            input_scale=1.0,
            output_scale=2.0,
            output_zero_point=0,
            rounding=Rounding.F32_RNE_ZP_LAST,
        ),
        "'qnn.requantize' op rounding must be a fixed-point mode for results in",
    ),
    (
        lambda: of(
            RequantizeOp,
            [tensor((4,), "i32")],
            "i32",
            input_scale=1.0,
            output_scale=0.5,
            output_zero_point=0,
            rounding=Rounding.FIXED64_UP,
        ),
        "'qnn.requantize' op scales must give a multiplier that RESCALE takes",
    ),
    (
        lambda: of(
            MatMulOp,
            [tensor((2, 3), "i8"), tensor((3, 2), "i8")],
            "i32",
            input_scale=0.5,
            input_zero_point=0,
            weight_scales=(0.25,),
            weight_zero_points=(1, 2),
        ),
        "'qnn.matmul' op weight_zero_points must be equal, but got [1, 2]",
    ),
    (long_rows, "'qnn.dense' op accumulators must have 32 bits, but may reach 2284800000"),
]


@pytest.mark.parametrize(("make", "message"), UNSUPPORTED)
def test_what_tosa_lacks_is_named(make: Callable[[], ir.Module], message: str) -> None:
    module = make()
    before = str(module)
    assert message in export_notes(module)
    assert str(module) == before
