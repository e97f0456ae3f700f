"""A network whose products are multiplied in matrix tiles where the CPU has them, and what runs where it has."""

import pytest
from strategy_networks import Network

from qdialect.target import host_features

with_tiles = pytest.mark.skipif("amx-int8" not in host_features(), reason="this CPU has no matrix tiles")


def tiled() -> str:
    """Two convolutions, in tiles of several shapes, and large enough to be divided among threads."""
    network = Network(7, (1, 7, 35, 64))
    network.convolution(40, 1)
    network.convolution(9, 3)
    return network.text()
