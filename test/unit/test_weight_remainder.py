"""Weights of which a few are more than a signed byte: compiled, they give what the reference gives."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, ends, tensor
from graphs import convolution, graph
from together import variants_together

from qdialect.dialect import DenseOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import remainder_groups
from qdialect.targets import TARGETS

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


def test_k_groups_lie_where_the_strides_say() -> None:
    taps = np.zeros((2, 3, 2, 6), np.int8)
    taps[1, 2, 1, 5] = 7
    taps[0, 0, 1, 0] = -9
    found = remainder_groups(taps, (100, 10))
    assert [k_group.offset for k_group in found] == [10, 214]
    assert [k_group.taps.tolist() for k_group in found] == [[[-9, 0, 0, 0], [0] * 4], [[0] * 4, [0, 7, 0, 0]]]
