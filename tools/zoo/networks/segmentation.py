"""U-Nets, one for each way to enlarge an image, and an auto-encoder."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.zoo.networks.inputs import images
from tools.zoo.networks.network import Built, Network
from tools.zoo.networks.settle import settle
from tools.zoo.tensors import seed


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


def _autoencoder(is_small: bool) -> Built:
    seed()
    return settle(_AutoEncoder(), images(32 if is_small else 64))


NETWORKS = (
    Network("unet_bilinear", partial(_unet, "bilinear")),
    Network("unet_transpose", partial(_unet, "transpose")),
    Network("autoencoder", _autoencoder),
)
