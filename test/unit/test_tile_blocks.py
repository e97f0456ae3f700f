"""How pixels are cut into blocks of matrix tiles."""

import math
from collections.abc import Sequence

import pytest

from qdialect.lowering.cost.matrix_tiles import tile_blocks
from qdialect.lowering.ir.strides import Axis


@pytest.mark.parametrize(
    "extents",
    [
        *((1,), (16,), (17,), (49,), (61,), (62,), (112,), (2, 2), (3, 3), (4, 4), (3, 4, 4)),
        *((3, 7), (5, 14), (7, 7), (9, 7, 7), (2, 5, 6), (2, 3, 35)),
    ],
)
@pytest.mark.parametrize("pads", [0, 2])
@pytest.mark.parametrize("are_far", [False, True])
def test_blocks_have_every_pixel_once(extents: tuple[int, ...], pads: int, are_far: bool) -> None:
    found: list[tuple[int, int]] = []
    data = strides_of([extents[0], *(extent + pads for extent in extents[1:])])
    axes = [Axis(*pair) for pair in zip(extents, zip(data, strides_of(extents), strict=True), strict=True)]
    for block in tile_blocks(axes, are_far=are_far):
        assert block.tiles.size <= 4
        assert block.rows.size <= 16
        loops = [(axis.size, axis.strides) for axis in block.axes]
        pixels = positions(
            [(axis.size, (*axis.strides, 0)) for axis in block.axes]
            + [(axis.size, (*axis.strides, step)) for axis, step in zip(block.pixels, block.steps, strict=True)],
            (*block.offsets, 0),
        )
        rows = positions(
            [(size, (strides[0], 0)) for size, strides in loops]
            + [(block.tiles.size, (block.tiles.strides[0], block.step)), (block.rows.size, (block.rows.strides[0], 1))],
            (block.offsets[0], 0),
        )
        # Where the sums of a pixel stand, the products of its window were summed up.
        assert {(place, row) for place, _, row in pixels} <= set(rows)
        assert len({row for _, row in rows}) <= 64
        # Nothing behind the last pixel is read.
        assert max(place for place, _ in rows) <= max(place for place, _, _ in pixels)
        found.extend((place, stored) for place, stored, _ in pixels)
    assert sorted(found) == sorted(positions([(axis.size, axis.strides) for axis in axes], (0, 0)))


@pytest.mark.parametrize(("height", "width"), [(2, 2), (3, 3), (4, 4), (3, 5), (2, 8)])
def test_a_plane_of_a_few_pixels_is_one_tile(height: int, width: int) -> None:
    (block,) = tile_blocks([Axis(height, (width,)), Axis(width, (1,))])
    assert (block.tiles.size, block.rows.size) == (1, height * width)


def strides_of(extents: Sequence[int]) -> list[int]:
    """Those of an array in order."""
    return [math.prod(extents[i + 1 :]) for i in range(len(extents))]


def positions(axes: Sequence[tuple[int, tuple[int, ...]]], start: tuple[int, ...]) -> list[tuple[int, ...]]:
    """From `start`, along axes with their sizes and strides."""
    found = [start]
    for size, strides in axes:
        steps = [[i * stride for stride in strides] for i in range(size)]
        found = [tuple(map(sum, zip(at, step, strict=True))) for at in found for step in steps]
    return found
