"""Detectors of the YOLO kind with decoupled heads and their decoding inside the network, and a transformer."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.zoo.networks.blocks import AttendedHalf, Called, ConvNormSilu, PyramidPooling, SplitBottlenecks
from tools.zoo.networks.inputs import images
from tools.zoo.networks.language import transformer
from tools.zoo.networks.network import Built, Network
from tools.zoo.networks.settle import settle
from tools.zoo.packages import vision_package
from tools.zoo.tensors import seed

_BINS = 16
_STRIDES = (8, 16, 32)


class _Detector(nn.Module):
    """Boxes (x, y, width, height) and class scores of shape (batch, 4 + classes, anchors).

    With `is_attended` the smallest level has an attention, and heads of scores are depthwise, as in YOLO11.
    """

    def __init__(self, width: int = 16, classes: int = 20, *, is_attended: bool = False) -> None:
        super().__init__()
        first, second, third, fourth, fifth = (width << level for level in range(5))
        self.stem = nn.Sequential(
            ConvNormSilu(3, first, 3, 2), ConvNormSilu(first, second, 3, 2), SplitBottlenecks(second, second, 1)
        )
        self.to_third = nn.Sequential(ConvNormSilu(second, third, 3, 2), SplitBottlenecks(third, third, 2))
        self.to_fourth = nn.Sequential(ConvNormSilu(third, fourth, 3, 2), SplitBottlenecks(fourth, fourth, 2))
        self.to_fifth = nn.Sequential(
            ConvNormSilu(fourth, fifth, 3, 2), SplitBottlenecks(fifth, fifth, 1), PyramidPooling(fifth)
        )
        self.attention = AttendedHalf(fifth, 2) if is_attended else nn.Identity()
        self.up_fourth = SplitBottlenecks(fifth + fourth, fourth, 1, is_residual=False)
        self.up_third = SplitBottlenecks(fourth + third, third, 1, is_residual=False)
        self.shrink_third, self.shrink_fourth = ConvNormSilu(third, third, 3, 2), ConvNormSilu(fourth, fourth, 3, 2)
        self.down_fourth = SplitBottlenecks(third + fourth, fourth, 1, is_residual=False)
        self.down_fifth = SplitBottlenecks(fourth + fifth, fifth, 1, is_residual=False)
        self.boxes = nn.ModuleList(_head(channels, 4 * _BINS) for channels in (third, fourth, fifth))
        head = _depthwise_head if is_attended else _head
        self.scores = nn.ModuleList(head(channels, classes) for channels in (third, fourth, fifth))

    def forward(self, image: Tensor) -> Tensor:
        levels = self._levels(image)
        boxes = torch.cat([head(level).flatten(2) for head, level in zip(self.boxes, levels, strict=True)], 2)
        scores = torch.cat([head(level).flatten(2) for head, level in zip(self.scores, levels, strict=True)], 2)
        return torch.cat([_decoded(boxes, levels), scores.sigmoid()], 1)

    def _levels(self, image: Tensor) -> list[Tensor]:
        third: Tensor = self.to_third(self.stem(image))
        fourth: Tensor = self.to_fourth(third)
        fifth: Tensor = self.attention(self.to_fifth(fourth))
        up_fourth: Tensor = self.up_fourth(torch.cat([_doubled(fifth), fourth], 1))
        up_third: Tensor = self.up_third(torch.cat([_doubled(up_fourth), third], 1))
        down_fourth: Tensor = self.down_fourth(torch.cat([self.shrink_third(up_third), up_fourth], 1))
        down_fifth: Tensor = self.down_fifth(torch.cat([self.shrink_fourth(down_fourth), fifth], 1))
        return [up_third, down_fourth, down_fifth]


def _head(channels: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(ConvNormSilu(channels, 64, 3), ConvNormSilu(64, 64, 3), nn.Conv2d(64, outputs, 1))


def _depthwise_head(channels: int, outputs: int) -> nn.Sequential:
    layers = [ConvNormSilu(channels, channels, 3, groups=channels), ConvNormSilu(channels, 64)]
    layers += [ConvNormSilu(64, 64, 3, groups=64), ConvNormSilu(64, 64)]
    return nn.Sequential(*layers, nn.Conv2d(64, outputs, 1))


def _doubled(image: Tensor) -> Tensor:
    return functional.interpolate(image, scale_factor=2, mode="nearest")


def _decoded(boxes: Tensor, levels: list[Tensor]) -> Tensor:
    """Each side of a box is the mean of a distribution over distances from its anchor."""
    batch, _, anchors = boxes.shape
    shares = boxes.view(batch, 4, _BINS, anchors).transpose(1, 2).softmax(1)
    sides = (shares * torch.arange(float(_BINS)).view(1, _BINS, 1, 1)).sum(1)
    left_top, right_bottom = sides.chunk(2, 1)
    centers, strides = _anchors(levels)
    low, high = centers - left_top, centers + right_bottom
    return torch.cat([(low + high) / 2, high - low], 1) * strides


def _anchors(levels: list[Tensor]) -> tuple[Tensor, Tensor]:
    centers: list[Tensor] = []
    strides: list[Tensor] = []
    for level, stride in zip(levels, _STRIDES, strict=True):
        height, width = level.shape[2:]
        down, right = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
        centers.append(torch.stack([right, down]).view(2, -1))
        strides.append(torch.full((1, height * width), float(stride)))
    return torch.cat(centers, 1)[None], torch.cat(strides, 1)[None]


def _build(is_attended: bool, is_small: bool) -> Built:
    seed()
    return settle(_Detector(is_attended=is_attended), images(128 if is_small else 256))


def _rt_detr(is_small: bool) -> Built:
    """A transformer that chooses queries, and reads the image at points that it computes."""
    size = 96 if is_small else 256
    backbone = vision_package("transformers").RTDetrResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    fields = {
        "backbone_config": backbone,
        "d_model": 32,
        "num_queries": 20,
        "num_denoising": 0,
        "encoder_hidden_dim": 32,
        "encoder_in_channels": [32, 48, 64],
        "encoder_ffn_dim": 64,
        "decoder_in_channels": [32, 32, 32],
        "decoder_ffn_dim": 64,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "anchor_image_size": [size, size],
    }

    def call(model: Any, image: Tensor) -> tuple[Tensor, Tensor]:
        found = model(pixel_values=image)
        return found.logits, found.pred_boxes

    return Built(Called(transformer("RTDetrForObjectDetection", "RTDetrConfig", fields), call).eval(), images(size))


NETWORKS = (
    Network("yolo_decoded", partial(_build, False)),
    Network("yolo11", partial(_build, True)),
    Network("rt_detr", _rt_detr),
)
