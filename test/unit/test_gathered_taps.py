"""Taps that fill no K group gathered from all rows: the same numbers, and only where it pays."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, drawn_inputs, ends, tensor
from graphs import graph
from together import variants_together

import qdialect
from qdialect.dialect import Conv2DOp, TransposeOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.targets import TARGETS

Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int, int, int], tuple[int, int]]
"""Input, weights, strides, padding, dilation."""
STEM: Case = ((1, 9, 65, 3), (16, 3, 3, 3), (2, 2), (0, 0, 1, 1), (1, 1))
WINDOWS: list[Case] = [
    STEM,
    ((2, 11, 40, 3), (64, 7, 7, 3), (2, 2), (3, 3, 3, 3), (1, 1)),
    ((1, 7, 33, 1), (24, 5, 5, 1), (1, 1), (2, 1, 1, 3), (1, 1)),
    ((1, 6, 32, 6), (72, 3, 3, 6), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((3, 5, 18, 5), (40, 2, 2, 5), (1, 1), (0, 0, 0, 0), (2, 2)),
    ((1, 4, 131, 3), (20, 3, 3, 3), (1, 2), (1, 0, 0, 1), (2, 1)),
]


def convolution(case: Case, data: str, weight: str, point: int = 0, groups: int = 1) -> ir.Module:
    """A convolution whose `weight` zero point is `point`."""
    shape, taps, strides, padding, dilation = case
    rng, dtype = np.random.default_rng(7), np.dtype(np.uint8 if weight == "ui8" else np.int8)
    low, high = ends(weight)
    values = rng.integers(low, high, size=taps, dtype=dtype, endpoint=True)

    def body(operand: ir.Value) -> ir.Value:
        attributes: dict[str, Any] = {
            "input_scale": 0.5,
            "input_zero_point": ends(data)[1] - 5,
            "weight_scales": (0.25,),
            "weight_zero_points": (point,),
            "strides": strides,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
        }
        return build(Conv2DOp, operand, constant(values), element="i32", **attributes).output

    return graph([tensor(shape, data)], body)


def outliers(case: Case) -> ir.Module:
    """A convolution with a few weights that are more than a signed byte less their zero point."""
    shape, taps, strides, padding, dilation = case
    values = np.random.default_rng(3).integers(20, 240, size=taps, dtype=np.uint8)
    values[1, 0, 0, 0], values[2, 1, -1, -1] = 255, 255

    def body(operand: ir.Value) -> ir.Value:
        attributes: dict[str, Any] = {
            "input_scale": 0.5,
            "input_zero_point": 77,
            "weight_scales": (0.25,),
            "weight_zero_points": (120,),
            "strides": strides,
            "padding": padding,
            "dilation": dilation,
        }
        return build(Conv2DOp, operand, constant(values), element="i32", **attributes).output

    return graph([tensor(shape, "ui8")], body)


def gathers(module: ir.Module, target: str = "avx512vbmi") -> bool:
    return "gathered taps" in lower(module, TARGETS[target], Phase.LINALG).labels


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_convolutions(number: int, data: str) -> None:
    module = convolution(WINDOWS[number], data, "i8")
    assert gathers(module)
    check(module)


@pytest.mark.parametrize("number", [0, 1])
def test_clipped_weights(number: int) -> None:
    module = outliers(WINDOWS[number])
    assert gathers(module)
    check(module)


def test_two_threads() -> None:
    module = convolution(((1, 120, 130, 3), *WINDOWS[1][1:]), "ui8", "i8")
    assert gathers(module)
    [data] = drawn_inputs(module)
    [wanted] = interpreter.run(module, [data])
    np.testing.assert_array_equal(qdialect.compile(module, threads=2)(data), wanted)


@pytest.mark.parametrize("data", EIGHT_BIT)
@pytest.mark.parametrize(("planes", "width"), [(3, 70), (2, 33), (3, 5), (1, 20), (4, 64)])
def test_planes_before_a_convolution(data: str, planes: int, width: int) -> None:
    values = np.random.default_rng(5).integers(-127, 127, size=(16, 3, 3, planes), dtype=np.int8)

    def body(operand: ir.Value) -> ir.Value:
        pixels = build(TransposeOp, operand, element=data, permutation=(0, 2, 3, 1)).output
        attributes: dict[str, Any] = {
            "input_scale": 0.5,
            "input_zero_point": ends(data)[0] + 3,
            "weight_scales": (0.25,),
            "padding": (1, 1, 1, 1),
        }
        return build(Conv2DOp, pixels, constant(values), element="i32", **attributes).output

    check(graph([tensor((2, planes, 7, width), data)], body))


def test_it_is_done_only_where_it_pays() -> None:
    assert not gathers(convolution(STEM, "ui8", "i8"), "generic")
    assert not gathers(convolution(STEM, "ui8", "i8"), "avx512vnni")
    assert not gathers(convolution(STEM, "ui8", "i8"), "amxint8")
    # Windows are summed in addition to the products.
    assert not gathers(convolution(STEM, "ui8", "ui8", point=0))
    # Eight channels save half as much.
    assert not gathers(convolution((STEM[0], (8, 3, 3, 3), *STEM[2:]), "ui8", "i8"))
    # Rows of three whole K groups, and of three taps, which are no K group.
    assert not gathers(convolution(((1, 9, 65, 4), (16, 3, 3, 4), *STEM[2:]), "ui8", "i8"))
    assert not gathers(convolution(((1, 9, 65, 1), (64, 3, 3, 1), *STEM[2:]), "ui8", "i8"))
    assert not gathers(convolution(((1, 9, 65, 6), (64, 3, 3, 3), *STEM[2:]), "ui8", "i8", groups=2))
    # Sixteen pixels lie in more than two vectors.
    assert not gathers(convolution(((1, 9, 65, 9), (64, 3, 3, 9), *STEM[2:]), "ui8", "i8"))
