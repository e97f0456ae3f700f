"""Windows of convolutions and pools: strides, dilation and explicit padding of each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.registry import Call

_NONE, _VALID, _UPPER, _LOWER = "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"


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
        """Top, left, bottom and right, of a window over two dimensions."""
        return (*self.before, *self.after)

    def two_dimensional(self) -> Window:
        """The same over an image of height 1 where there is one dimension."""
        if len(self.kernel) == 2:
            return self
        ones, zeros = (1,), (0,)
        return Window(
            ones + self.kernel,
            ones + self.strides,
            ones + self.dilation,
            zeros + self.before,
            zeros + self.after,
            ones + self.output,
        )

    def transposed(self, size: Shape, extra: Shape) -> Window:
        """The window over stuffed data that a transposed convolution is, `extra` cells longer at the end.

        Every cell of the data is followed by stride - 1 zeros, also the last one; they count as padding after it.
        """
        reach = [(kernel - 1) * dilation for kernel, dilation in zip(self.kernel, self.dilation, strict=True)]
        before = tuple(r - cut for r, cut in zip(reach, self.before, strict=True))
        rests = zip(reach, self.after, extra, self.strides, strict=True)
        after = tuple(r - cut + more - (stride - 1) for r, cut, more, stride in rests)
        smallest = min(*before, *after)
        require(smallest >= 0, f"padding must leave the kernel's reach, but it exceeds it by {-smallest}")
        stuffed = zip(size, self.strides, before, after, reach, strict=True)
        output = tuple(extent * stride + low + high - r for extent, stride, low, high, r in stuffed)
        require(min(output) >= 1, f"output shape must not be empty, but got {list(output)}")
        return Window(self.kernel, (1,) * len(size), self.dilation, before, after, output)


def window_of(call: Call, size: Shape, kernel: Shape) -> Window:
    """The window that a node's attributes describe over an image of `size`, which it fits at least once."""
    window = declared_window(call, size, kernel)
    require(min(window.output) >= 1, f"kernel must fit into the padded input {list(size)}, but is {list(kernel)}")
    return window


def declared_window(call: Call, size: Shape, kernel: Shape) -> Window:
    """The window that a node's attributes describe, whether it fits or not."""
    rank = len(size)
    require(len(kernel) == rank, f"kernel must have {rank} dimensions, but got {len(kernel)}")
    declared = tuple(call.attribute("kernel_shape", list(kernel)))
    require(declared == kernel, f"kernel_shape must be {list(kernel)}, but got {list(declared)}")
    strides = _positive(call, "strides", rank)
    dilation = _positive(call, "dilations", rank)
    reach = tuple((extent - 1) * step + 1 for extent, step in zip(kernel, dilation, strict=True))
    before, after = _padding(call, size, reach, strides)
    room = [extent + low + high - r for extent, low, high, r in zip(size, before, after, reach, strict=True)]
    if call.attribute("ceil_mode", 0):
        divides = all(rest % stride == 0 for rest, stride in zip(room, strides, strict=True))
        require(divides, "ceil_mode must not add a window")
    output = tuple(rest // stride + 1 for rest, stride in zip(room, strides, strict=True))
    return Window(kernel, strides, dilation, before, after, output)


def _positive(call: Call, name: str, rank: int) -> Shape:
    values: Sequence[int] = call.attribute(name, [1] * rank)
    holds = len(values) == rank and all(value >= 1 for value in values)
    require(holds, f"{name} must be {rank} integers of at least 1, but got {list(values)}")
    return tuple(values)


def _padding(call: Call, size: Shape, reach: Shape, strides: Shape) -> tuple[Shape, Shape]:
    mode: str = call.attribute("auto_pad", _NONE)
    rank = len(size)
    if mode == _VALID:
        return (0,) * rank, (0,) * rank
    if mode == _NONE:
        pads: Sequence[int] = call.attribute("pads", [0] * (2 * rank))
        holds = len(pads) == 2 * rank and all(pad >= 0 for pad in pads)
        require(holds, f"pads must be {2 * rank} integers of at least 0, but got {list(pads)}")
        return tuple(pads[:rank]), tuple(pads[rank:])
    require(mode in (_UPPER, _LOWER), f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, but got {mode}")
    cells = zip(size, reach, strides, strict=True)
    added = [max((math.ceil(extent / stride) - 1) * stride + r - extent, 0) for extent, r, stride in cells]
    small, large = tuple(a // 2 for a in added), tuple(a - a // 2 for a in added)
    # Of an odd number of cells, the mode says on which side the larger half lies.
    return (small, large) if mode == _UPPER else (large, small)
