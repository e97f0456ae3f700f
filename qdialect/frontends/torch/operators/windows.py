"""Windows of convolutions and pools: strides, dilation and padding of each dimension."""

from __future__ import annotations

from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.window import Window, effective_kernel_extent
from qdialect.frontends.torch.operators.registry import Call


def window_of(call: Call, size: Shape, kernel: Shape, *, dilated: bool) -> Window:
    """The window of a node's arguments over an image of `size`, which it fits at least once."""
    rank = len(size)
    strides = call.integers("stride", rank) if call.argument("stride") else kernel
    dilation = call.integers("dilation", rank) if dilated else (1,) * rank
    kernel_extent = effective_kernel_extent(kernel, dilation)
    before, after = _padding(call, kernel_extent, strides)
    smallest = min(*kernel, *strides, *dilation, *(amount + 1 for amount in before))
    require(smallest >= 1, "kernel, stride and dilation must be at least 1 and padding at least 0")
    available = [
        extent + low + high - r for extent, low, high, r in zip(size, before, after, kernel_extent, strict=True)
    ]
    fits = f"kernel must fit into the padded input {list(size)}, but is {list(kernel)}"
    require(min(available) >= 0, fits)
    if call.argument("ceil_mode"):
        divides = all(rest % stride == 0 for rest, stride in zip(available, strides, strict=True))
        require(divides, "ceil_mode must not add a window")
    output = tuple(rest // stride + 1 for rest, stride in zip(available, strides, strict=True))
    return Window(kernel, strides, dilation, before, after, output)


def _padding(call: Call, kernel_extent: Shape, strides: Shape) -> tuple[Shape, Shape]:
    padding = call.argument("padding")
    if not isinstance(padding, str):
        amounts = call.integers("padding", len(kernel_extent))
        return amounts, amounts
    if padding == "valid":
        return (0,) * len(kernel_extent), (0,) * len(kernel_extent)
    require(padding == "same" and set(strides) == {1}, f"padding must be same with strides of 1, but is {padding}")
    before = tuple((r - 1) // 2 for r in kernel_extent)
    return before, tuple(r - 1 - low for r, low in zip(kernel_extent, before, strict=True))
