"""Every network of PyTorch, by name."""

from __future__ import annotations

from tools.zoo.networks import decoders, detection, language, segmentation, sequences, vision

TORCH_NETWORKS = {
    network.name: network
    for module in (vision, detection, segmentation, sequences, language, decoders)
    for network in module.NETWORKS
}
