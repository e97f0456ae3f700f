"""Layers that networks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Called(nn.Module):
    """A model by a function of it and the inputs."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *given: Tensor) -> Any:
        return self.call(self.model, *given)


class ConvNormSilu(nn.Module):
    """Convolution without bias, batch norm, SiLU; the padding keeps the size at stride 1."""

    def __init__(self, channels: int, filters: int, window: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, filters, window, stride, window // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(filters, eps=1e-3)

    def forward(self, image: Tensor) -> Tensor:
        return functional.silu(self.norm(self.convolution(image)))


class Bottleneck(nn.Module):
    """Two 3x3 convolutions, with a residual sum where `is_residual`."""

    def __init__(self, channels: int, is_residual: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(ConvNormSilu(channels, channels, 3), ConvNormSilu(channels, channels, 3))
        self.is_residual = is_residual

    def forward(self, image: Tensor) -> Tensor:
        found: Tensor = self.body(image)
        return image + found if self.is_residual else found


class SplitBottlenecks(nn.Module):
    """Half of the channels goes through `count` bottlenecks; every intermediate result is concatenated."""

    def __init__(self, channels: int, filters: int, count: int, *, is_residual: bool = True) -> None:
        super().__init__()
        half = filters // 2
        self.first = ConvNormSilu(channels, filters)
        self.body = nn.ModuleList(Bottleneck(half, is_residual) for _ in range(count))
        self.last = ConvNormSilu((2 + count) * half, filters)

    def forward(self, image: Tensor) -> Tensor:
        parts = list(self.first(image).chunk(2, 1))
        for block in self.body:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class PyramidPooling(nn.Module):
    """Three 5x5 max pools in a row, concatenated with what they pool."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = ConvNormSilu(channels, channels // 2)
        self.last = ConvNormSilu(channels * 2, channels)

    def forward(self, image: Tensor) -> Tensor:
        parts: list[Tensor] = [self.first(image)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class AttendedHalf(nn.Module):
    """Half of the channels goes through an attention over all pixels, with a depthwise convolution of its values."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        half = channels // 2
        self.heads = heads
        self.first, self.last = ConvNormSilu(channels, channels), ConvNormSilu(channels, channels)
        self.joined = nn.Conv2d(half, 2 * half, 1)
        self.places = nn.Conv2d(half, half, 3, padding=1, groups=half)
        self.after = nn.Conv2d(half, half, 1)
        self.layer = nn.Sequential(ConvNormSilu(half, 2 * half), nn.Conv2d(2 * half, half, 1))

    def forward(self, image: Tensor) -> Tensor:
        kept, x = self.first(image).chunk(2, 1)
        batch, channels, height, width = x.shape
        width_of_value = channels // self.heads
        rows = self.joined(x).view(batch, self.heads, 2 * width_of_value, height * width)
        query, key, value = rows.split([width_of_value // 2, width_of_value // 2, width_of_value], 2)
        weights = (query.transpose(2, 3) @ key * (width_of_value // 2) ** -0.5).softmax(-1)
        attended = (value @ weights.transpose(2, 3)).reshape(x.shape)
        x = x + self.after(attended + self.places(value.reshape(x.shape)))
        return self.last(torch.cat([kept, x + self.layer(x)], 1))
