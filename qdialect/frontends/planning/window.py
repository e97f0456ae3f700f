"""Windows of convolutions and pools: strides, dilation and padding of each dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qdialect.frontends.common import Shape


@dataclass(frozen=True)
class Window:
    """One entry of each for every dimension of the image; `output` is the number of windows."""

    kernel: Shape
    strides: Shape
    dilation: Shape
    before: Shape
    after: Shape
    output: Shape

    @property
    def padding(self) -> Shape:
        """Before all dimensions, then after them: top, left, bottom and right of a window over two dimensions."""
        return (*self.before, *self.after)

    @property
    def kernel_extent(self) -> Shape:
        """The extent of the dilated kernel."""
        return effective_kernel_extent(self.kernel, self.dilation)

    def two_dimensional(self) -> Window:
        """The same over an image of height 1 where there is one dimension, over each image where there are three."""
        if len(self.kernel) == 2:
            return self
        if len(self.kernel) == 3:
            return Window(*(field[1:] for field in self._fields))
        ones, zeros = (1,), (0,)
        return Window(
            ones + self.kernel,
            ones + self.strides,
            ones + self.dilation,
            zeros + self.before,
            zeros + self.after,
            ones + self.output,
        )

    def along_depth(self) -> Window:
        """Of a window over three dimensions what it is along the first, over images whose width is all of a slice."""
        neutral = ((1,), (1,), (1,), (0,), (0,), (math.prod(self.output[1:]),))
        return Window(*(field[:1] + other for field, other in zip(self._fields, neutral, strict=True)))

    @property
    def _fields(self) -> tuple[Shape, ...]:
        return self.kernel, self.strides, self.dilation, self.before, self.after, self.output


def effective_kernel_extent(kernel: Shape, dilation: Shape) -> Shape:
    """The extent of a dilated kernel."""
    return tuple((extent - 1) * rate + 1 for extent, rate in zip(kernel, dilation, strict=True))
