"""Quantization and dequantization in one operator: the same bits as PyTorch, and integer layers of what is between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_functions import Function, check, drawn

from qdialect.frontends.torch import import_torch
from qdialect.support.diagnostics import ImportModelError

ATEN: Any = torch.ops.aten
# No float32 number, so that the order of rounding shows.
SCALE = 0.0371
SCALES, POINTS = torch.tensor([0.037, 0.011, 0.3, 0.05]), torch.tensor([0, 3, -2, 7], dtype=torch.int32)


def near_ties() -> Tensor:
    """Around what lies halfway between two quantized values, and what no quantized value stands for."""
    halves = (torch.arange(-150, 150) + 0.5) * float(np.float32(SCALE))
    steps = [torch.nextafter(halves, torch.full_like(halves, end)) for end in (9.0, -9.0)]
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 0.0, -0.0, 1e-45])
    return torch.cat([halves, *steps, special])


def test_of_tensors() -> None:
    scale, point = torch.tensor([SCALE]), torch.tensor([3], dtype=torch.int32)
    on, off = torch.tensor([1]), torch.tensor([0])

    def functions(x: Tensor) -> list[Tensor]:
        affine, learnable = torch.fake_quantize_per_tensor_affine, ATEN._fake_quantize_learnable_per_tensor_affine
        with_mask = ATEN._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return [
            *(affine(x, SCALE, 3, low, high) for low, high in ((-128, 127), (0, 255), (-8, 7), (0, 15), (-300, 300))),
            affine(x, scale, point, -127, 127),
            ATEN.fake_quantize_per_tensor_affine_cachemask(x, SCALE, 3, -128, 127)[0],
            *(with_mask(x, scale, point, enabled, -128, 127)[0] for enabled in (on, off)),
            *(learnable(x, scale, torch.tensor([z]), -128, 127, 1.5) for z in (3.4, -2.5, 200.0)),
        ]

    check(functions, near_ties())


def test_of_channels_of_constants() -> None:
    weight = torch.cat([drawn(1, 4, 50) * 5, (torch.arange(50) - 25 + 0.5) * SCALES[:, None]], 1)

    def functions(x: Tensor) -> list[Tensor]:
        learnable = ATEN._fake_quantize_learnable_per_channel_affine
        return [
            x + torch.fake_quantize_per_channel_affine(weight, SCALES, POINTS, 0, -128, 127),
            x + ATEN.fake_quantize_per_channel_affine_cachemask(weight, SCALES, POINTS, 0, -8, 7)[0],
            x + torch.fake_quantize_per_channel_affine(weight.T.contiguous(), SCALES, POINTS, 1, -128, 127).T,
            x + learnable(weight, SCALES, POINTS + 0.4, 0, -128, 127, 1.0),
        ]

    check(functions, torch.zeros(4, 100))


def test_layers_between_are_of_integers() -> None:
    weight, bias = drawn(2, 4, 16), drawn(3, 4)

    def layer(x: Tensor) -> Tensor:
        held = torch.fake_quantize_per_tensor_affine(x, 0.02, 120, 0, 255)
        weights = torch.fake_quantize_per_channel_affine(weight, SCALES, torch.zeros_like(POINTS), 0, -127, 127)
        found = torch.relu(torch.nn.functional.linear(held, weights, bias))
        return torch.fake_quantize_per_tensor_affine(found, 0.05, 0, 0, 255)

    check(layer, drawn(4, 3, 16))
    module = import_torch(torch.export.export(Function(layer), (drawn(4, 3, 16),)))
    assert "qnn.dense" in str(module)


class Observed(torch.nn.Module):
    """As quantization-aware training leaves a layer."""

    def __init__(self, *, observes: bool, fakes: bool, by_rows: bool) -> None:
        super().__init__()
        count = 4 if by_rows else 1
        self.on = torch.nn.Buffer(torch.tensor([int(observes)]))
        self.fakes = torch.nn.Buffer(torch.tensor([int(fakes)]))
        self.low, self.high = torch.nn.Buffer(torch.zeros(count)), torch.nn.Buffer(torch.ones(count))
        self.scale = torch.nn.Buffer(SCALES[:count].clone())
        self.point = torch.nn.Buffer(torch.zeros(count, dtype=torch.int32))
        self.weight = torch.nn.Buffer(drawn(5, 4, 16))
        self.by_rows = by_rows

    def forward(self, x: Tensor) -> Tensor:
        ranges = (self.low, self.high, self.scale, self.point)
        operand = self.weight if self.by_rows else x
        bounds = (0.01, -128, 127, 0, self.by_rows, False)
        # The operand is read again as it was.
        return x @ torch.fused_moving_avg_obs_fake_quant(operand, self.on, self.fakes, *ranges, *bounds).T + x.sum()


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("fakes", [False, True])
def test_what_observes_no_more(by_rows: bool, fakes: bool) -> None:
    model, x = Observed(observes=False, fakes=fakes, by_rows=by_rows), drawn(6, 16, 16)
    check(model, x)


def test_what_is_refused() -> None:
    with pytest.raises(ImportModelError, match="argument 'observer_on' must be 0"):
        import_torch(torch.export.export(Observed(observes=True, fakes=True, by_rows=False), (drawn(6, 16, 16),)))
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, POINTS, 0, -128, 127), "'self' must be constant"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -(2**20), 2**20), "must lie in 16 bits"),
        (
            lambda x: x + torch.fake_quantize_per_channel_affine(drawn(7, 4, 4), SCALES, POINTS + 0.5, 0, -128, 127),
            "'zero_point' must be integers",
        ),
    ]
    for function, reason in cases:
        with pytest.raises(ImportModelError, match=reason):
            import_torch(torch.export.export(Function(function), (drawn(8, 4, 4),)))
