"""Convolutions and pools over three dimensions, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch_functions import check, drawn

import qdialect
from qdialect.frontends.torch import import_torch

EXPORT: Any = import_module("torch.export")


def test_convolutions() -> None:
    first, second, third = drawn(1, 3, 4, 2, 3, 3), drawn(2, 6, 2, 3, 1, 3), drawn(3, 4, 1, 2, 2, 2)

    def convolved(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.conv3d(x, first, drawn(4, 3), padding=1),
            nnf.conv3d(x, second, None, (2, 1, 2), (1, 0, 1), 1, 2),
            nnf.conv3d(x, third, drawn(5, 4), 1, (2, 0, 1), (2, 1, 3), 4),
            nnf.conv3d(x, drawn(6, 3, 4, 3, 3, 3), None, padding="same"),
        )

    check(convolved, drawn(7, 2, 4, 4, 5, 6))


def test_averages() -> None:
    def averaged(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.avg_pool3d(x, 2),
            nnf.avg_pool3d(x, (2, 3, 3), (1, 2, 2), 1),
            nnf.avg_pool3d(x, (2, 3, 3), (1, 2, 2), 1, ceil_mode=True, count_include_pad=False),
            nnf.avg_pool3d(x, (3, 1, 2), divisor_override=4),
            nnf.local_response_norm(x[:, :, 0], 3),
        )

    check(averaged, drawn(8, 2, 4, 4, 5, 6))


def test_transposed_convolutions() -> None:
    first, second, third = drawn(1, 4, 3, 2, 3, 2), drawn(2, 4, 2, 3, 1, 2), drawn(3, 4, 3, 2, 2, 3)

    def spread(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.conv_transpose3d(x, first, drawn(4, 3), 2),
            nnf.conv_transpose3d(x, second, None, (2, 1, 3), (1, 0, 1), (1, 0, 2), 2),
            nnf.conv_transpose3d(x, third, None, (1, 2, 1), (1, 1, 2), 0, 1, (2, 1, 2)),
        )

    check(spread, drawn(5, 2, 4, 3, 4, 5))


def test_maxima() -> None:
    def largest(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.max_pool3d(x, 2),
            nnf.max_pool3d(x, (3, 2, 3), (1, 2, 2), (1, 0, 1), ceil_mode=True),
            nnf.max_pool3d(x, (2, 1, 2), 1, 0, (2, 1, 3)),
            nnf.adaptive_max_pool3d(x, (2, 1, 4)),
            nnf.max_pool2d(x[:, :, 0], 2, 1, 1, (1, 2)),
        )

    check(largest, drawn(6, 2, 3, 4, 5, 6))


class _Quantized(nn.Module):
    """An operator between quantizations, its weights quantized by channel."""

    def __init__(self, function: Callable[..., Tensor], kernel: tuple[int, ...], axis: int) -> None:
        super().__init__()
        generator = np.random.default_rng(7)
        self.function, self.axis = function, axis
        self.weight = torch.tensor(generator.integers(-127, 128, kernel, dtype=np.int8))
        self.scales = torch.linspace(0.01, 0.05, kernel[axis])

    def forward(self, x: Tensor) -> Tensor:
        ops = torch.ops.quantized_decomposed
        points = torch.zeros(len(self.scales), dtype=torch.int64)
        weight = ops.dequantize_per_channel(self.weight, self.scales, points, self.axis, -127, 127, torch.int8)
        data = ops.dequantize_per_tensor(x, 0.043, 7, 0, 255, torch.uint8)
        return ops.quantize_per_tensor(self.function(data, weight), 0.31, 5, 0, 255, torch.uint8)


def _convolved(x: Tensor, w: Tensor) -> Tensor:
    return nnf.conv3d(x, w, None, (1, 2, 1), (1, 0, 1), (2, 1, 1), 2)


def _transposed(x: Tensor, w: Tensor) -> Tensor:
    return nnf.conv_transpose3d(x, w, None, (2, 1, 2), (1, 0, 1), (1, 0, 0), 2)


@pytest.mark.parametrize(
    ("function", "kernel", "axis"), [(_convolved, (6, 2, 2, 3, 2), 0), (_transposed, (4, 3, 3, 2, 2), 1)]
)
def test_products_of_quantized_volumes_are_integers(
    function: Callable[..., Tensor], kernel: tuple[int, ...], axis: int
) -> None:
    """PyTorch adds float32 numbers up, so that a tie may be rounded to the other side."""
    x = np.random.default_rng(8).integers(0, 256, (1, 4, 4, 5, 6), dtype=np.uint8)
    model = _Quantized(function, kernel, axis)
    module = import_torch(EXPORT.export(model, (torch.tensor(x),)))
    assert "xf32>" not in str(module)
    found, wanted = qdialect.compile(module)(x), model(torch.tensor(x)).numpy()
    assert np.count_nonzero(found != wanted) <= wanted.size // 1000
