"""Windows of convolutions and pools: strides, dilation and explicit padding of each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.building.windows import Window, effective_kernel_extent
from qdialect.frontends.onnx.operators.registry import Call

NOTSET, VALID, SAME_UPPER, SAME_LOWER = "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"
"""Modes of padding."""


def window_of(call: Call, size: Shape, kernel: Shape) -> Window:
    """The window that a node's attributes describe over an image of `size`, which it fits at least once."""
    window = declared_window(call, size, kernel)
    require(min(window.output) >= 1, f"kernel must fit into the padded input {list(size)}, but is {list(kernel)}")
    return window


def declared_window(call: Call, size: Shape, kernel: Shape) -> Window:
    """The window that a node's attributes describe, whether it fits or not."""
    strides, dilation, kernel_extent = steps_of(call, len(size), kernel)
    before, after = _padding(call, size, kernel_extent, strides)
    available = [
        extent + low + high - r for extent, low, high, r in zip(size, before, after, kernel_extent, strict=True)
    ]
    output = tuple(rest // stride + 1 for rest, stride in zip(available, strides, strict=True))
    return Window(kernel, strides, dilation, before, after, output)


def steps_of(call: Call, rank: int, kernel: Shape) -> tuple[Shape, Shape, Shape]:
    """Strides, dilation and the extent of the dilated kernel, of each dimension."""
    require(len(kernel) == rank, f"kernel must have {rank} dimensions, but got {len(kernel)}")
    declared = tuple(call.attribute("kernel_shape", list(kernel)))
    require(declared == kernel, f"kernel_shape must be {list(kernel)}, but got {list(declared)}")
    strides = _positive(call, "strides", rank)
    dilation = _positive(call, "dilations", rank)
    kernel_extent = effective_kernel_extent(kernel, dilation)
    return strides, dilation, kernel_extent


def pool_window(call: Call, shape: Shape) -> Window:
    """The window of a pool over one to three dimensions of channels-first data; `ceil_mode` may grow its padding."""
    require(len(shape) in (3, 4, 5), f"input must have 3 to 5 dimensions, but got {len(shape)}")
    size, rank = shape[2:], len(shape) - 2
    kernel: Shape = tuple(call.attribute("kernel_shape", [0] * rank))
    holds = len(kernel) == rank and min(kernel) >= 1
    require(holds, f"kernel_shape must be {rank} integers of at least 1, but got {list(kernel)}")
    window = declared_window(call, size, kernel)
    if call.attribute("auto_pad", NOTSET) in (SAME_UPPER, SAME_LOWER):
        # ONNX Runtime takes another padding where windows are dilated or leave elements out.
        found = f"but got {list(window.dilation)}"
        require(set(window.dilation) == {1}, f"dilations must be 1 where auto_pad is SAME, {found}")
        dimensions = zip(size, window.output, window.strides, window.kernel, strict=True)
        covers = all((windows - 1) * stride + kernel >= extent for extent, windows, stride, kernel in dimensions)
        require(covers, f"windows must reach the end of {list(size)} where auto_pad is SAME")
    if call.flag("ceil_mode", 0):
        window = _rounded_up(window, size)
    require(min(window.output) >= 1, f"kernel must fit into the padded input {list(size)}, but is {list(kernel)}")
    return window


def _rounded_up(window: Window, size: Shape) -> Window:
    """The windows that start in the padded image before its end, with the padding grown for the last of them.

    A window that starts in the padding after the image is not counted.
    """
    output: list[int] = []
    after: list[int] = []
    for i, extent in enumerate(size):
        stride, before = window.strides[i], window.before[i]
        kernel_extent = window.kernel_extent[i]
        windows = math.ceil((extent + before + window.after[i] - kernel_extent) / stride) + 1
        windows -= (windows - 1) * stride >= extent + before
        output.append(windows)
        after.append(max(window.after[i], (windows - 1) * stride + kernel_extent - extent - before))
    return Window(window.kernel, window.strides, window.dilation, window.before, tuple(after), tuple(output))


def _positive(call: Call, name: str, rank: int) -> Shape:
    values: Sequence[int] = call.attribute(name, [1] * rank)
    holds = len(values) == rank and all(value >= 1 for value in values)
    require(holds, f"{name} must be {rank} integers of at least 1, but got {list(values)}")
    return tuple(values)


def padding_mode(call: Call) -> str:
    """How a node specifies its padding."""
    mode: str = call.attribute("auto_pad", NOTSET)
    known = (NOTSET, VALID, SAME_UPPER, SAME_LOWER)
    require(mode in known, f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, but got {mode}")
    if mode != NOTSET:
        call.ignore("pads")
    return mode


def explicit_padding(call: Call, rank: int) -> tuple[Shape, Shape]:
    """The padding before and after, of each dimension."""
    pads: Sequence[int] = call.attribute("pads", [0] * (2 * rank))
    holds = len(pads) == 2 * rank and all(pad >= 0 for pad in pads)
    require(holds, f"pads must be {2 * rank} integers of at least 0, but got {list(pads)}")
    return tuple(pads[:rank]), tuple(pads[rank:])


def _padding(call: Call, size: Shape, kernel_extent: Shape, strides: Shape) -> tuple[Shape, Shape]:
    rank, mode = len(size), padding_mode(call)
    if mode == VALID:
        return (0,) * rank, (0,) * rank
    if mode == NOTSET:
        return explicit_padding(call, rank)
    dimensions = zip(size, kernel_extent, strides, strict=True)
    added = [max((math.ceil(extent / stride) - 1) * stride + r - extent, 0) for extent, r, stride in dimensions]
    small, large = tuple(a // 2 for a in added), tuple(a - a // 2 for a in added)
    # Of an odd number of elements, the mode sets on which side the larger half is.
    return (small, large) if mode == SAME_UPPER else (large, small)


def cropping(call: Call, size: Shape, strides: Shape, full: Shape) -> tuple[Shape, Shape]:
    """The elements cropped before the output, and its extents, as ONNX Runtime finds them.

    `output_shape`, and ``size * stride`` with a mode SAME, say what is left of the full extent; of an odd number of
    cropped elements, the larger half lies before the output, behind it with SAME_UPPER.
    """
    rank, mode = len(size), padding_mode(call)
    extra: Sequence[int] = call.attribute("output_padding", [0] * rank)
    fits = len(extra) == rank and min(extra) >= 0
    require(fits, f"output_padding must be {rank} integers of at least 0, but got {list(extra)}")
    whole = tuple(extent + more for extent, more in zip(full, extra, strict=True))
    wanted: Sequence[int] = call.attribute("output_shape", [])
    if not wanted and mode in (NOTSET, VALID):
        before, after = explicit_padding(call, rank) if mode == NOTSET else ((0,) * rank, (0,) * rank)
        output = tuple(extent - low - high for extent, low, high in zip(whole, before, after, strict=True))
    else:
        call.ignore("pads")
        spread = tuple(extent * stride for extent, stride in zip(size, strides, strict=True))
        target = tuple(wanted[-rank:]) if wanted else spread
        require(len(target) == rank, f"output_shape must have {rank} extents, but got {len(target)}")
        cropped = [max(extent - kept, 0) for extent, kept in zip(whole, target, strict=True)]
        before = tuple(total // 2 if mode == SAME_UPPER else total - total // 2 for total in cropped)
        smallest = tuple(extent - total for extent, total in zip(whole, cropped, strict=True))
        output = target if wanted else smallest
    require(min(output) >= 1, f"output shape must not be empty, but got {list(output)}")
    return before, output
