"""Windows summed up before the products, for weights with zero points: the same numbers, and only where it pays."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, ends, tensor
from graphs import graph
from together import variants_together

from qdialect.dialect import Conv2DOp, MatMulOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions.windows import overlapping
from qdialect.targets import TARGETS

Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int, int, int], tuple[int, int]]
"""Input, weights, strides, padding, dilation."""
WINDOWS: list[Case] = [
    ((1, 9, 11, 19), (40, 3, 3, 19), (2, 1), (0, 1, 1, 0), (1, 1)),
    ((2, 5, 7, 130), (70, 1, 1, 130), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 8, 8, 64), (64, 3, 3, 64), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((1, 6, 17, 3), (130, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 7, 5, 4), (96, 2, 5, 4), (1, 1), (1, 2, 0, 1), (1, 1)),
    ((1, 1, 1, 256), (200, 1, 1, 256), (1, 1), (0, 0, 0, 0), (1, 1)),
]


def convolution(case: Case, data: str, weight: str, groups: int = 1, point: int | None = None) -> ir.Module:
    shape, taps, strides, padding, dilation = case
    low, high = ends(weight)
    rng, dtype = np.random.default_rng(7), np.dtype(np.uint8 if weight == "ui8" else np.int8)
    values = rng.integers(low, high, size=taps, dtype=dtype, endpoint=True)
    points = tuple((low, high)[k % 2] for k in range(taps[0])) if point is None else (point,)

    def body(operand: ir.Value) -> ir.Value:
        attributes: dict[str, Any] = {
            "input_scale": 0.5,
            "input_zero_point": ends(data)[1],
            "weight_scales": (0.25,),
            "weight_zero_points": points,
            "strides": strides,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
        }
        return build(Conv2DOp, operand, constant(values), element="i32", **attributes).output

    return graph([tensor(shape, data)], body)


def sums(module: ir.Module, target: str = "avx512vnni") -> bool:
    return "window sums" in lower(module, TARGETS[target], Phase.LINALG).labels


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_convolutions(number: int, data: str) -> None:
    module = convolution(WINDOWS[number], data, EIGHT_BIT[number % 2])
    assert sums(module)
    check(module)


def test_products_of_two_tensors() -> None:
    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (77,)}
        scales: dict[str, Any] = {"input_scale": 0.5, "weight_scales": (0.25,)}
        return build(MatMulOp, left, right, element="i32", **points, **scales).output

    module = graph([tensor((9, 128), "ui8"), tensor((128, 70), "ui8")], body)
    assert sums(module)
    check(module)


def test_it_is_done_only_where_it_pays() -> None:
    case = WINDOWS[2]
    assert not sums(convolution(case, "ui8", "i8", point=0))
    assert not sums(convolution(case, "ui8", "ui8"), "generic")
    assert not sums(convolution(((1, 8, 8, 64), (64, 3, 3, 16), *case[2:]), "ui8", "ui8", groups=4))
    assert not sums(convolution(((1, 8, 8, 16), (16, 1, 1, 16), (1, 1), (0, 0, 0, 0), (1, 1)), "ui8", "ui8"))


@variants_together
@pytest.mark.parametrize("channels", [20, 40, 72, 80, 96, 128, 200])
def test_a_users_array_is_not_read_past_its_end(channels: int) -> None:
    case: Case = ((1, 3, 5, channels), (192, 1, 1, channels), (1, 1), (0, 0, 0, 0), (1, 1))
    module = convolution(case, "ui8", "ui8")
    assert sums(module)
    check(module)


@pytest.mark.parametrize("widest", [4, 8, 16])
def test_overlapping_vectors_end_with_the_last_tap(widest: int) -> None:
    for taps in range(24, 700, 8):
        lanes, count, step = overlapping(taps, widest)
        assert 4 <= lanes <= widest
        assert 0 < step <= 4 * lanes
        assert (count - 1) * step + 4 * lanes == taps


@variants_together
@pytest.mark.parametrize("point", [0, 1, 127, 129, 255])
@pytest.mark.parametrize("number", [0, 2, 4])
def test_one_zero_point_of_all_weights(point: int, number: int) -> None:
    """It stands in the ones; the products of the largest data and of the least weights are those of words."""
    check(convolution(WINDOWS[number], "ui8", "ui8", point=point))
