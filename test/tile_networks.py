"""A network whose products are multiplied in matrix tiles where the CPU has them, and what runs where it has."""

import pytest
from strategy_networks import Network

from qdialect.context import parse
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower
from qdialect.lowering.tiling import variant_notes
from qdialect.target import TARGETS, host_features

with_tiles = pytest.mark.skipif("amx-int8" not in host_features(), reason="this CPU has no matrix tiles")


def tiled() -> str:
    """Two convolutions, in tiles of several shapes, and large enough to be divided among threads."""
    network = Network(7, (1, 7, 35, 64))
    network.convolution(40, 1)
    network.convolution(9, 3)
    return network.text()


def in_tiles(text: str) -> str:
    """A module with matrix tiles in every kernel that can have them, where the target has tiles."""
    amx, module = TARGETS["amxint8"], parse(text)
    variant_notes.write(module, amx, {})
    found = [call.tunable for call in lower(module, amx, Phase.LINALG).calls if call.tunable]
    variant_notes.write(module, amx, {one.kernel: "tiles" for one in found if "tiles" in one.candidates})
    return str(module)
