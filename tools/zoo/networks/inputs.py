"""Seeded inputs: images, sequences of features, token ids."""

from __future__ import annotations

import numpy as np

from tools.zoo.networks.network import Array, Draw

# Cells of noise along a side and their amplitude: large shapes, parts, texture.
_SCALES = ((4, 1.0), (16, 0.6), (0, 0.25))
_SHORTENED = 9


def images(size: int, channels: int = 3, *, channels_last: bool = False) -> Draw:
    """Draws f32 images of shape (batch, `channels`, `size`, `size`), standard deviation about 1."""

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        random = np.random.default_rng(seed)
        drawn = sum(amplitude * _noise(random, batch, channels, cells or size, size) for cells, amplitude in _SCALES)
        found = np.asarray(drawn, np.float32)
        return (np.ascontiguousarray(found.transpose(0, 2, 3, 1)) if channels_last else found,)

    return draw


def _noise(random: np.random.Generator, batch: int, channels: int, cells: int, size: int) -> Array:
    """Independent numbers in a grid of `cells`, interpolated linearly to `size`."""
    values = random.standard_normal((batch, channels, cells, cells))
    at = (np.arange(size) + 0.5) * cells / size - 0.5
    weights = np.stack([np.interp(at, np.arange(cells), row) for row in np.eye(cells)], axis=1)
    return weights @ values @ weights.T


def features(*shape: int) -> Draw:
    """Draws f32 tensors of shape (batch, *`shape`), smooth along the last axis."""

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        drawn = np.random.default_rng(seed).standard_normal((batch, *shape))
        smooth = (drawn + np.roll(drawn, 1, -1) + np.roll(drawn, 2, -1)) / np.sqrt(3)
        return (smooth.astype(np.float32),)

    return draw


def tokens(vocabulary: int, length: int, *, masked: bool) -> Draw:
    """Draws i64 token ids of shape (batch, `length`) and, where `masked`, an attention mask that hides the last few."""

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        ids = np.random.default_rng(seed).integers(0, vocabulary, (batch, length), np.int64)
        if not masked:
            return (ids,)
        mask = np.ones((batch, length), np.int64)
        mask[:, length - seed % _SHORTENED :] = 0 if seed % _SHORTENED else 1
        return ids, mask

    return draw
