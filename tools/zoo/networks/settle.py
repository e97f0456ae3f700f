"""Weights and statistics as a trained network might have them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tools.zoo.networks.network import Built, Draw
from tools.zoo.tensors import tensors

_SEED = 7
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
# Seeds of the images that settle the batch norms; calibration and tests use others.
_SETTLING = (1000, 1001)


def settle(model: nn.Module, draw: Draw, batch: int = 4) -> Built:
    """Draw what initializers leave constant, and take the statistics of batch norms from inputs.

    Layer scales near zero would hide their branch, zero biases and unit gammas would hide faults in their handling, and
    batch norms without statistics let activations grow from layer to layer.
    """
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            _vary(name.rsplit(".", 1)[-1], parameter, generator)
        _settle_norms(model, draw, batch, generator)
    return Built(model.eval(), draw)


def _vary(leaf: str, parameter: Tensor, generator: torch.Generator) -> None:
    if "layer_scale" in leaf or (leaf == "gamma" and float(parameter.abs().max()) < 0.1):
        parameter.copy_(torch.rand(parameter.shape, generator=generator) * 0.5 + 0.25)
    elif (parameter.dim() >= 2 and float(parameter.std()) == 0) or (leaf == "bias" and parameter.dim() == 1):
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)


def _settle_norms(model: nn.Module, draw: Draw, batch: int, generator: torch.Generator) -> None:
    norms: list[Any] = [one for one in model.modules() if isinstance(one, _NORMS)]
    if not norms:
        return
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        # The mean over all batches instead of a moving one.
        norm.momentum = None
        norm.train()
        if norm.affine:
            norm.weight.copy_(torch.rand(norm.weight.shape, generator=generator) * 0.8 + 0.6)
    for seed in _SETTLING:
        model(*tensors(draw(batch, seed)))
