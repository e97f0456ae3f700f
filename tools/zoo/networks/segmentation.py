"""U-Nets, one for each way to enlarge an image and one that takes noise from it, and an auto-encoder."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.zoo.networks.inputs import images
from tools.zoo.networks.network import Array, Built, Network
from tools.zoo.networks.settle import settle
from tools.zoo.tensors import seed

_TIME, _TEXT = 128, 64
"""Widths of what a diffusion network knows beside the image."""


class _UNet(nn.Module):
    """Three levels; `enlarge` is ``bilinear`` or ``transpose``."""

    def __init__(self, enlarge: str, width: int = 16) -> None:
        super().__init__()
        levels = [width << level for level in range(4)]
        self.down = nn.ModuleList(map(_block, [3, *levels], levels))
        self.up = nn.ModuleList(_block(low + high, low) for low, high in pairwise(levels))
        self.enlarge = nn.ModuleList(_enlarger(enlarge, channels) for channels in levels[1:])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        skipped: list[Tensor] = []
        for block in self.down:
            image = block(functional.max_pool2d(skipped[-1], 2) if skipped else image)
            skipped.append(image)
        for up, enlarge, skip in zip(reversed(self.up), reversed(self.enlarge), skipped[-2::-1], strict=True):
            image = up(torch.cat([enlarge(image), skip], 1))
        return self.last(image)


def _block(channels: int, filters: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs in (channels, filters):
        layers += [nn.Conv2d(inputs, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]
    return nn.Sequential(*layers)


def _enlarger(kind: str, channels: int) -> nn.Module:
    if kind == "transpose":
        return nn.ConvTranspose2d(channels, channels, 2, 2)
    return nn.Upsample(scale_factor=2, mode=kind, align_corners=False)


class _TimedBlock(nn.Module):
    """Two convolutions behind group norms, between which the time is added; then attention to itself and to a text."""

    def __init__(self, channels: int, filters: int, *, attends: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, channels), nn.GroupNorm(8, filters)])
        self.first, self.second = (nn.Conv2d(n, filters, 3, padding=1) for n in (channels, filters))
        self.time = nn.Linear(_TIME, filters)
        self.shortcut = nn.Conv2d(channels, filters, 1) if channels != filters else nn.Identity()
        widths = (filters, _TEXT) if attends else ()
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(filters, 4, kdim=width, vdim=width, batch_first=True) for width in widths
        )
        self.rows = nn.ModuleList(nn.LayerNorm(filters) for _ in widths)

    def forward(self, image: Tensor, time: Tensor, text: Tensor) -> Tensor:
        x = self.first(functional.silu(self.norms[0](image))) + self.time(functional.silu(time))[:, :, None, None]
        x = self.shortcut(image) + self.second(functional.silu(self.norms[1](x)))
        batch, channels, height, width = x.shape
        tokens = x.flatten(2).transpose(1, 2)
        for norm, attention, other in zip(self.rows, self.attentions, (None, text), strict=False):
            own = norm(tokens)
            read = own if other is None else other
            tokens = tokens + attention(own, read, read, need_weights=False)[0]
        return tokens.transpose(1, 2).reshape(batch, channels, height, width)


class _DiffusionUNet(nn.Module):
    """The noise in an image at a time, given the rows of a text."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        levels = [width, 2 * width, 4 * width]
        self.time = nn.Sequential(nn.Linear(width, _TIME), nn.SiLU(), nn.Linear(_TIME, _TIME))
        self.first = nn.Conv2d(4, width, 3, padding=1)
        downs = zip([width, *levels], levels, strict=False)
        self.down = nn.ModuleList(_TimedBlock(*pair, attends=pair[1] > width) for pair in downs)
        self.shrink = nn.ModuleList(nn.Conv2d(n, n, 3, 2, 1) for n in levels[:-1])
        self.middle = _TimedBlock(levels[-1], levels[-1], attends=True)
        self.up = nn.ModuleList(
            _TimedBlock(low + high, low, attends=low > width) for low, high in pairwise([*levels, levels[-1]])
        )
        self.last = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, image: Tensor, time: Tensor, text: Tensor) -> Tensor:
        half = self.first.out_channels // 2
        angles = time[:, None] * torch.exp(torch.arange(half) * (-math.log(10000) / half))
        at = self.time(torch.cat([angles.cos(), angles.sin()], 1).to(image.dtype))
        x, skipped = self.first(image), list[Tensor]()
        for index, block in enumerate(self.down):
            x = block(self.shrink[index - 1](x) if index else x, at, text)
            skipped.append(x)
        x = self.middle(x, at, text)
        for index, block in reversed(list(enumerate(self.up))):
            x = block(torch.cat([skipped[index], x], 1), at, text)
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest") if index else x
        return self.last(x)


class _AutoEncoder(nn.Module):
    """Strided convolutions, PReLU and leaky ReLU; a transposed convolution and a pixel shuffle back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.PReLU(32), nn.Conv2d(32, 64, 3, 2, 1), nn.LeakyReLU(0.1)
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 12, 3, 1, 1), nn.PixelShuffle(2), nn.Tanh()
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.decoder(self.encoder(image))


def _unet(enlarge: str, is_small: bool) -> Built:
    seed()
    return settle(_UNet(enlarge), images(32 if is_small else 128))


def _diffusion(is_small: bool) -> Built:
    seed()
    size, length = (16, 7) if is_small else (32, 77)

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        random = np.random.default_rng(seed)
        times = random.integers(0, 1000, batch).astype(np.float32)
        (image,) = images(size, 4)(batch, seed)
        return image, times, random.standard_normal((batch, length, _TEXT), np.float32)

    return settle(_DiffusionUNet(), draw)


def _autoencoder(is_small: bool) -> Built:
    seed()
    return settle(_AutoEncoder(), images(32 if is_small else 64))


NETWORKS = (
    Network("unet_bilinear", partial(_unet, "bilinear")),
    Network("unet_transpose", partial(_unet, "transpose")),
    Network("diffusion_unet", _diffusion),
    Network("autoencoder", _autoencoder),
)
