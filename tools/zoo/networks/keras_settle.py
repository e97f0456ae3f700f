"""Weights and statistics of Keras networks as a trained network might have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.zoo.networks.network import Built, Draw

_SEED = 3
_SETTLING = (1000, 1001)
_BATCH = 8
# The second of two batches then counts for most of the moving mean.
_MOMENTUM = 0.2


def settle(model: Any, draw: Draw) -> Built:
    """Draw biases, gammas and betas, and take the statistics of batch norms from inputs."""
    random = np.random.default_rng(_SEED)
    has_norms = [_vary(layer, random) for layer in model._flatten_layers()]
    if any(has_norms):
        for seed in _SETTLING:
            model(*draw(_BATCH, seed), training=True)
    return Built(model, draw)


def _vary(layer: Any, random: np.random.Generator) -> bool:
    """Whether the layer is a batch norm."""
    if type(layer).__name__ != "BatchNormalization":
        bias: Any = getattr(layer, "bias", None)
        if hasattr(bias, "assign"):
            bias.assign(_normal(random, bias.shape))
        return False
    layer.momentum = _MOMENTUM
    if layer.gamma is not None:
        layer.gamma.assign(np.asarray(random.uniform(0.6, 1.4, tuple(layer.gamma.shape)), np.float32))
    if layer.beta is not None:
        layer.beta.assign(_normal(random, layer.beta.shape) * 2)
    return True


def _normal(random: np.random.Generator, shape: Any) -> NDArray[np.float32]:
    return np.asarray(random.standard_normal(tuple(shape)) * 0.05, np.float32)
