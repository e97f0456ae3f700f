"""Parts of networks of `tosa` ops, and a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tosa_text import TosaText

Array = NDArray[Any]

LARGER = (2**30, 11)
"""The multiplier of the larger operand of a sum: 2^19."""


def convolution(text: TosaText, kind: str, data: str, weights: Array, result: str, attributes: str, bias: Any) -> str:
    operands = [data, text.constant(weights, "int8"), text.constant(bias, "int32")]
    operands += [text.constant(-9, "int8"), text.constant(0, "int8")]
    return text.op(kind, operands, f"acc_type = i32, {attributes}", result)


def random_values(shape: Sequence[int]) -> Array:
    return np.random.default_rng(sum(shape)).integers(-127, 128, shape)


def random_pairs(count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(count)
    shifts = rng.integers(36, 41, count).tolist()
    return list(zip(rng.integers(2**30, 2**31, count).tolist(), shifts, strict=True))


def operand(text: TosaText, name: str, multiplier: tuple[int, int], zero_point: int) -> str:
    return text.rescale(name, text.types[name].replace("i8", "i32"), [multiplier], (zero_point, 0))


def network(mode: str) -> TosaText:
    """A residual block, a mean, a matrix product as a convolution, and a table."""
    text = TosaText("tensor<1x8x8x3xi8>")
    dense = "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
    stem = convolution(
        text,
        "conv2d",
        "%x0",
        random_values((8, 3, 3, 3)),
        "tensor<1x8x8x8xi32>",
        f"pad = array<i64: 1, 1, 1, 1>, {dense}",
        [5],
    )
    stem = text.rescale(stem, "tensor<1x8x8x8xi8>", random_pairs(8), (0, -9), mode)
    inner = convolution(
        text,
        "depthwise_conv2d",
        stem,
        random_values((3, 3, 8, 1)),
        "tensor<1x8x8x8xi32>",
        f"pad = array<i64: 1, 1, 1, 1>, {dense}",
        [-300],
    )
    inner = text.rescale(inner, "tensor<1x8x8x8xi8>", random_pairs(8), (0, -4), mode)
    operands = [operand(text, inner, (1518500250, 12), -4), operand(text, stem, LARGER, -9)]
    total = text.op("add", operands, "", "tensor<1x8x8x8xi32>")
    total = text.rescale(total, "tensor<1x8x8x8xi8>", [(1400000000, 50)], (0, -9), mode)
    total = text.op("clamp", [total], "min_val = -9 : i8, max_val = 127 : i8", "tensor<1x8x8x8xi8>")
    points = [text.constant(-9, "int8")] * 2
    window = "kernel = array<i64: 8, 8>, stride = array<i64: 8, 8>, pad = array<i64: 0, 0, 0, 0>"
    mean = text.op("avg_pool2d", [total, *points], f"acc_type = i32, {window}", "tensor<1x1x1x8xi8>")
    sums = convolution(
        text,
        "conv2d",
        mean,
        random_values((10, 1, 1, 8)),
        "tensor<1x1x1x10xi32>",
        f"pad = array<i64: 0, 0, 0, 0>, {dense}",
        [9],
    )
    logits = text.rescale(sums, "tensor<1x1x1x10xi8>", [(1518500250, 38)], (0, 10), mode)
    flat = text.op("reshape", [logits, text.shape(1, 10)], "", "tensor<1x10xi8>")
    entries = text.constant(np.random.default_rng(3).permutation(256) - 128, "int8")
    text.op("table", [flat, entries], "", "tensor<1x10xi8>")
    return text
