"""The inputs of a network: those that calibrate it and those that it is measured on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tools.zoo.networks.network import Array, Draw

CALIBRATION_SEEDS = range(100, 106)
TEST_SEEDS = range(500, 503)

Sample = tuple[Array, ...]


def drawn(draw: Draw, seeds: range) -> list[Sample]:
    """One sample of batch 1 for each seed."""
    return [draw(1, seed) for seed in seeds]


def save(path: Path, samples: list[Sample]) -> None:
    """Write ``s{sample}_{input}`` arrays."""
    arrays = {f"s{i}_{j}": array for i, sample in enumerate(samples) for j, array in enumerate(sample)}
    np.savez(path, allow_pickle=False, **arrays)


def load(path: Path) -> list[Sample]:
    """What `save` wrote."""
    found: dict[int, dict[int, Array]] = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            sample, index = map(int, key.removeprefix("s").split("_"))
            found.setdefault(sample, {})[index] = archive[key]
    return [tuple(inputs[j] for j in sorted(inputs)) for _, inputs in sorted(found.items())]
