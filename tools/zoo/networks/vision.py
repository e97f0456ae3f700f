"""Classifiers of torchvision and timm, and two of torchvision's heads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from tools.zoo.networks.blocks import Called
from tools.zoo.networks.inputs import images
from tools.zoo.networks.network import Built, Network
from tools.zoo.networks.settle import settle
from tools.zoo.packages import vision_package
from tools.zoo.tensors import seed

_SIZE, _SMALL = 224, 64


def _of_torchvision(name: str, is_small: bool, **options: Any) -> Built:
    seed()
    model = getattr(vision_package("torchvision.models"), name)(weights=None, **options)
    return settle(model, images(_SMALL if is_small else _SIZE))


def _of_timm(name: str, size: int, small: int, is_small: bool, **resized: Any) -> Built:
    seed()
    model = vision_package("timm").create_model(name, pretrained=False, **(resized if is_small else {}))
    return settle(model, images(small if is_small else size))


class _SsdHead(nn.Module):
    """Backbone and head of a detector, without the anchors and the selection behind them."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        found = self.head(list(self.backbone(image).values()))
        return found["bbox_regression"], found["cls_logits"]


def _segmented(model: Any, image: Tensor) -> Tensor:
    """torchvision's segmentation networks return a dictionary; exporters want tensors."""
    return model(image)["out"]


def _deeplab(is_small: bool) -> Built:
    seed()
    create = vision_package("torchvision.models.segmentation").deeplabv3_mobilenet_v3_large
    model = Called(create(weights=None, weights_backbone=None), _segmented)
    return settle(model, images(_SMALL if is_small else _SIZE), batch=2)


def _ssdlite(is_small: bool) -> Built:
    seed()
    create = vision_package("torchvision.models.detection").ssdlite320_mobilenet_v3_large
    model = _SsdHead(create(weights=None, weights_backbone=None))
    return settle(model, images(128 if is_small else 320))


def _torchvision_network(name: str, **options: Any) -> Network:
    return Network(name, partial(_of_torchvision, name, **options))


def _timm_network(name: str, model: str, size: int = _SIZE, small: int = _SMALL, **resized: Any) -> Network:
    """`resized` are the options with which the small form is created."""
    build: Callable[[bool], Built] = partial(_of_timm, model, size, small, **resized)
    return Network(name, build)


NETWORKS = (
    *map(
        _torchvision_network,
        ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x1_0"),
    ),
    *map(_torchvision_network, ("squeezenet1_1", "densenet121", "convnext_tiny", "swin_t")),
    _torchvision_network("googlenet", init_weights=False, aux_logits=False),
    _timm_network("resnext50", "resnext50_32x4d"),
    _timm_network("mobilenet_v4_small", "mobilenetv4_conv_small"),
    _timm_network("ghostnet_100", "ghostnet_100"),
    _timm_network("vit_tiny", "vit_tiny_patch16_224", img_size=_SMALL),
    _timm_network("mobilevit_s", "mobilevit_s", 256, _SMALL),
    _timm_network("levit_128s", "levit_128s", _SIZE, 128, img_size=128),
    _timm_network("fastvit_t8", "fastvit_t8", 256, 128),
    Network("deeplab_v3", _deeplab),
    Network("ssdlite320_head", _ssdlite),
)
