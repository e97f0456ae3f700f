"""Windows of convolutions and pools: strides, dilation and padding of each dimension."""

from __future__ import annotations

from dataclasses import replace

from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.window import Window, effective_kernel_extent
from qdialect.frontends.torch.operators.registry import Call


def window_of(call: Call, size: Shape, kernel: Shape, *, dilated: bool) -> Window:
    """The window of a node's arguments over an image of `size`, which it fits at least once.

    In ceil mode a last window may begin within the image or before it and end beyond the padding: `after` grows then.
    """
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
    output = tuple(rest // stride + 1 for rest, stride in zip(available, strides, strict=True))
    window = Window(kernel, strides, dilation, before, after, output)
    return _with_last_windows(window, size) if call.argument("ceil_mode") else window


def _with_last_windows(window: Window, size: Shape) -> Window:
    """With the windows that ceil mode adds, which begin at an element or before the first."""
    output: list[int] = []
    after: list[int] = []
    for i, extent in enumerate(size):
        begin = window.output[i] * window.strides[i] - window.before[i]
        covered = begin - window.strides[i] + window.kernel_extent[i] >= extent + window.after[i]
        output.append(window.output[i] + (0 if covered or begin >= extent else 1))
        end = (output[i] - 1) * window.strides[i] - window.before[i] + window.kernel_extent[i]
        after.append(max(window.after[i], end - extent))
    return replace(window, output=tuple(output), after=tuple(after))


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
