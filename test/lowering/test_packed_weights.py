"""Taps that meet padding alone, and weights of which some are more than a signed byte."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, ends, tensor, variants_together
from drawn_graphs import Window, convolution, graph, ops_of, run_both
from hypothesis import given
from hypothesis import strategies as st

from qdialect.dialect import Conv2DOp, DenseOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.passes.trim_taps import TrimTapsPass
from qdialect.targets import TARGETS

# Kernels without the taps that meet padding alone give the same numbers, and keep every other tap.

SIZES, STEPS, BORDERS = st.integers(1, 6), st.integers(1, 3), st.integers(0, 12)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Images as small as kernels, with enough padding for an output; its sides need not be equal."""
    kernel, dilation, strides = (draw(st.tuples(sizes, sizes)) for sizes in (SIZES, STEPS, STEPS))
    image = draw(st.tuples(SIZES, SIZES))
    before = draw(st.tuples(BORDERS, BORDERS))
    missing = [dilation[i] * (kernel[i] - 1) + 1 - image[i] - before[i] for i in range(2)]
    behind = [max(0, missing[i]) + draw(st.integers(0, 4)) for i in range(2)]
    return (1, *image, 2), kernel, strides, (*before, behind[0], behind[1]), dilation, 1


def met(conv: Conv2DOp, axis: int) -> set[int]:
    """The rows or columns of taps that any output multiplies by an element of the image, by trying them all."""
    extent, outputs, taps = (shape_of(value.type)[1 + axis] for value in (conv.data, conv.output, conv.weight))
    starts = {tap: tap * conv.dilation[axis] - conv.padding[axis] for tap in range(taps)}
    return {
        tap
        for tap, start in starts.items()
        if any(0 <= start + out * conv.strides[axis] < extent for out in range(outputs))
    }


@given(windows(), st.integers(0, 99))
def test_taps_at_the_edges_meet_the_image_where_the_padding_reaches(window: Window, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (3, *window[1], 2)).astype(np.int8)
    before = convolution(window, "ui8", values, (3,))
    (old,) = ops_of(before, Conv2DOp.OPERATION_NAME)
    after = run_both(before, TrimTapsPass())
    (new,) = ops_of(after, Conv2DOp.OPERATION_NAME)
    for axis in range(2):
        found = met(new, axis)
        assert len(found) == len(met(old, axis))
        if found:
            assert min(found) == 0 or new.padding[axis] < new.dilation[axis]
            assert max(found) == shape_of(new.weight.type)[1 + axis] - 1 or new.padding[2 + axis] < new.dilation[axis]


# Weights of which a few are more than a signed byte: compiled, they give what the reference gives.

# Input, weights, strides, padding, dilation, groups.
WINDOWS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((2, 4, 9, 12), (17, 1, 1, 12), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 6, 6, 6), (33, 2, 3, 6), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((1, 3, 5, 36), (72, 1, 1, 18), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 4, 4, 12), (24, 3, 3, 2), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 1, 1, 132), (200, 1, 1, 132), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


def outlying(shape: tuple[int, ...], element: str, points: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Weights near their zero point, but for two taps that are as far from it as quantized values go."""
    rng = np.random.default_rng(4)
    low, high = ends(element)
    near = np.array(points).reshape(-1, *[1] * (len(shape) - 1)) + rng.integers(-60, 60, shape)
    values = near.clip(low, high)
    flat = values.reshape(shape[0], -1)
    flat[-1, -1] = flat[0, flat.shape[1] // 2] = high if points[0] < (low + high) / 2 else low
    return values.astype(np.uint8 if element == "ui8" else np.int8)


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_convolutions(number: int, data: str) -> None:
    taps = WINDOWS[number][1]
    weight = EIGHT_BIT[number % 2]
    low, high = ends(weight)
    points = tuple((low + 90, high - 90)[(number + k) % 2] for k in range(taps[0] if number % 3 == 1 else 1))
    values = outlying(taps, weight, points)

    module = convolution(WINDOWS[number], data, values, points)
    assert 'qnn.role = "remainder0"' in str(lower(module, TARGETS["generic"], Phase.LINALG).module)
    check(module)


def test_layers_that_differ_in_the_position_of_an_outlier_share_a_kernel() -> None:
    weights = [np.full((16, 16), 100, np.uint8) for _ in range(2)]
    weights[0][3, 2] = weights[1][5, 13] = 250
    scales: dict[str, Any] = {"input_scale": 0.5, "weight_scales": (0.25,)}

    def body(operand: ir.Value) -> list[ir.Value]:
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (100,)}
        return [
            build(DenseOp, operand, constant(values), element="i32", **scales, **points).output for values in weights
        ]

    module = graph([tensor((5, 16), "ui8")], body)
    assert lower(module, TARGETS["generic"], Phase.LINALG).kernels == 1
    check(module)
