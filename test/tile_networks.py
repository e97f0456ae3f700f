"""A network whose products are multiplied in matrix tiles where the CPU has them, and what runs where it has."""

import numpy as np
import pytest
from strategy_networks import Network

from qdialect.ir.context import parse
from qdialect.lowering.cost import variants
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS, host_features, resolve

AMX = resolve("amxint8")
_HAS_TILES = "amx-int8" in host_features()
with_tiles = pytest.mark.skipif(not _HAS_TILES, reason="this CPU has no matrix tiles")


def tiled() -> str:
    """Two convolutions, in tiles of several shapes, and large enough to be divided among threads."""
    drawn = Network(7, (1, 7, 35, 64))
    drawn.convolution(40, 1)
    drawn.convolution(9, 3)
    return drawn.text()


def in_tiles(text: str) -> str:
    """A module with matrix tiles in every kernel that can have them, where the target has tiles."""
    amx, module = TARGETS["amxint8"], parse(text)
    variants.set_wanted_variants(module, amx, {})
    found = [call.tunable for call in lower(module, amx, Phase.LINALG).calls if call.tunable]
    variants.set_wanted_variants(module, amx, {one.kernel: "tiles" for one in found if "tiles" in one.candidates})
    return str(module)


def network(seed: int, shape: tuple[int, ...], *layers: tuple[int, int, int]) -> Network:
    """Convolutions of so many channels, so wide, at such strides."""
    found = Network(seed, shape)
    for number, layer in enumerate(layers):
        found.convolution(*layer, table=number == 0)
    return found


def assert_same_bits(drawn: Network, shape: tuple[int, ...]) -> None:
    """Compare a network in matrix tiles with the reference, on one thread and two, and by vector ops."""
    module = parse(drawn.text())
    assert 'tdpbusd"' in str(lower(module, AMX, Phase.X86).module)
    image = drawn.rng.integers(0, 256, shape).astype(np.uint8)
    wanted = run(module, [image])[0]
    for target in ("amxint8,portable", *(("amxint8",) if _HAS_TILES else ())):
        for threads in (1, 2):
            found = compile_module(module, target=target, threads=threads)(image)
            np.testing.assert_array_equal(found, wanted)
