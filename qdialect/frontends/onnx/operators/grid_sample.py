"""GridSample: an image read at positions that are computed, between its elements too.

It is made of arithmetic on the positions and one GatherElements for each neighbour of a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.parts import part_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.tensors import Computed, Constant, Tensor

_INT64 = 7
_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest"}
_PADDINGS = ("zeros", "border")
_LARGEST_WHOLE = 2**24
"""Numbers of elements up to this one are exact in float32."""


@imports("GridSample")
def _grid_sample(call: Call) -> Tensor:
    """Of images [N, C, H, W] at positions [N, P, Q, 2], x before y: [N, C, P, Q]."""
    call.count(2)
    image, grid = call.f32(0).shape, call.f32(1).shape
    require(len(image) == 4, f"input 0 must have 4 dimensions, but got {len(image)}")
    fits = len(grid) == 4 and grid[0] == image[0] and grid[3] == 2
    require(fits, f"input 1 must have the shape {[image[0], 'P', 'Q', 2]}, but got {list(grid)}")
    require(image[2] * image[3] <= _LARGEST_WHOLE, f"images must have at most 2^24 elements, but got {list(image)}")
    mode, padding = call.attribute("mode", "linear"), call.attribute("padding_mode", "zeros")
    require(mode in _MODES, f"mode must be {', '.join(_MODES)}, but got {mode}")
    require(padding in _PADDINGS, f"padding_mode must be {' or '.join(_PADDINGS)}, but got {padding}")
    sampling = _Sampling(call, image, grid, padding == "zeros")
    found = sampling.nearest() if _MODES[mode] == "nearest" else sampling.linear()
    return sampling.part("Reshape", found, _integers(image[0], image[1], *grid[1:3]))


def _integers(*entries: int) -> Constant:
    return Constant(np.array(entries, np.int64))


@dataclass(frozen=True)
class _Sampling:
    """The parts of a node; a position is [N, 1, P * Q] along each dimension of the image."""

    call: Call
    image: Shape
    grid: Shape
    has_zeros: bool
    """Whether there are zeros around the image; otherwise its border goes on."""

    def part(self, kind: str, *operands: Tensor | float, **attributes: object) -> Tensor:
        """What an operator gives; numbers are constants."""
        tensors = [Constant(np.array(one, np.float32)) if isinstance(one, int | float) else one for one in operands]
        return part_of(self.call, kind, tensors, **attributes)

    def nearest(self) -> Tensor:
        """[N, C, P * Q]: the element next to each position."""
        return self._elements([self.part("Round", self._position(axis)) for axis in range(2)])

    def linear(self) -> Tensor:
        """[N, C, P * Q]: the four elements around each position, each by the distance of the other ones."""
        positions = [self._position(axis) for axis in range(2)]
        lows = [self.part("Floor", position) for position in positions]
        ends = [(low, self.part("Add", low, 1)) for low in lows]
        shares = [
            (self.part("Sub", high, position), self.part("Sub", position, low))
            for position, (low, high) in zip(positions, ends, strict=True)
        ]
        rows = [
            self._sum([self.part("Mul", shares[0][x], self._elements([ends[0][x], ends[1][y]])) for x in range(2)])
            for y in range(2)
        ]
        return self._sum([self.part("Mul", share, row) for share, row in zip(shares[1], rows, strict=True)])

    def _sum(self, pair: Sequence[Tensor]) -> Tensor:
        return self.part("Add", *pair)

    def _position(self, axis: int) -> Tensor:
        """From [-1, 1] to elements; x, of the last dimension of the image, is the first entry of the grid."""
        extent, rank = self.image[3 - axis], len(self.grid)
        own = self.part("Slice", self.call.tensor(1), _integers(axis), _integers(axis + 1), _integers(rank - 1))
        flat = self.part("Reshape", own, _integers(self.grid[0], 1, self.grid[1] * self.grid[2]))
        moved = self.part("Add", flat, 1)
        if self.call.flag("align_corners", 0):
            return self.part("Mul", self.part("Div", moved, 2), extent - 1)
        return self.part("Div", self.part("Sub", self.part("Mul", moved, extent), 1), 2)

    def _elements(self, at: Sequence[Tensor]) -> Tensor:
        """[N, C, P * Q]: those at whole numbers x and y."""
        batch, channels, height, width = self.image
        inside = [self.part("Clip", one, 0, extent - 1) for one, extent in zip(at, (width, height), strict=True)]
        numbers = self.part("Cast", self.part("Add", self.part("Mul", inside[1], width), inside[0]), to=_INT64)
        shape = _integers(batch, channels, self.grid[1] * self.grid[2])
        flat = self.part("Reshape", self._plain_image(), _integers(batch, channels, height * width))
        found = self.part("GatherElements", flat, self.part("Expand", numbers, shape), axis=2)
        if not self.has_zeros:
            return found
        x, y = (self.part("Equal", one, own) for one, own in zip(at, inside, strict=True))
        return self.part("Where", self.part("And", x, y), found, 0)

    def _plain_image(self) -> Tensor:
        return Computed(self.image, self.call.f32(0).f32(self.call.plan, self.call.name))
