"""QDQ groups of ONNX's pools and concatenations, in both layouts and in their QLinear forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from onnx_graphs import CONTRIB

from tools.record.drawing import BYTES, Draw
from tools.record.family import Case
from tools.record.onnx_nodes import Node, Operand, Result, between, qlinear

Shape = tuple[int, ...]
_CHANNELS = (1, 2, 5, 16, 17)


def pools() -> Iterator[Case]:
    """Every case of this module."""
    yield from (_pool(f"maxpool_{index}", "MaxPool") for index in range(2))
    yield from (_pool(f"averagepool_{index}", "AveragePool") for index in range(2))
    yield from (_qlinear_average(f"qlinearaveragepool_{index}", channels_last=0) for index in range(2))
    yield _qlinear_average("qlinearaveragepool_last_0", channels_last=1)
    for kind in ("GlobalAveragePool", "GlobalMaxPool"):
        draw = Draw(f"{kind.lower()}_0")
        yield between(f"{kind.lower()}_0", Node(kind), *_quantized(draw, _image(draw, draw.integer(1, 2)), kind))
    yield _qlinear_global("qlineargap_0", channels_last=0)
    yield _qlinear_global("qlineargap_last_0", channels_last=1)
    yield from (_concatenation(f"concat_{index}") for index in range(2))
    yield _concatenation("qlinearconcat_0")


def _image(draw: Draw, rank: int, low: int = 3) -> Shape:
    return (draw.integer(1, 2), draw.one_of(*_CHANNELS), *(draw.integer(low, 9) for _ in range(rank)))


def _quantized(draw: Draw, shape: Shape, kind: str) -> tuple[list[Operand], Result]:
    """Averages have another scale than their data: with the same one, the order of ONNX Runtime's f32 sums decides many
    ties, which `onnx_float_sums` records.
    """
    dtype = draw.one_of(*BYTES)
    scale, point = draw.scale(0.02, 0.08), draw.inner_point(dtype)
    result = Result(dtype, draw.scale(0.02, 0.08), draw.inner_point(dtype))
    operand = Operand(draw.values(shape, dtype), scale, point)
    return [operand], result if "Average" in kind else draw.one_of(result, Result(dtype, scale, point))


def _window(draw: Draw, rank: int) -> dict[str, Any]:
    """Pads are smaller than the kernel, as the operators demand."""
    kernel = [draw.integer(1, 3) for _ in range(rank)]
    padding = draw.one_of("", "pads", "SAME_UPPER", "SAME_LOWER")
    if padding.startswith("SAME"):
        # With larger strides the last elements would be in no window, which the front end refuses.
        return {"kernel_shape": kernel, "strides": [draw.integer(1, extent) for extent in kernel], "auto_pad": padding}
    window: dict[str, Any] = {"kernel_shape": kernel, "strides": [draw.integer(1, 3) for _ in kernel]}
    if padding == "pads":
        window["pads"] = [draw.integer(0, extent - 1) for extent in (*kernel, *kernel)]
    return window


def _pool(name: str, kind: str) -> Case:
    draw = Draw(name)
    attributes = _window(draw, 2)
    is_explicit = "auto_pad" not in attributes
    if is_explicit:
        attributes["ceil_mode"] = draw.integer(0, 1)
    if kind == "AveragePool":
        attributes["count_include_pad"] = draw.integer(0, 1)
    elif is_explicit:
        attributes["dilations"] = [2, 2]
    return between(name, Node(kind, attributes=attributes), *_quantized(draw, _image(draw, 2, low=5), kind))


def _channels_last(shape: Shape) -> Shape:
    return (shape[0], *shape[2:], shape[1])


def _qlinear_average(name: str, channels_last: int) -> Case:
    draw = Draw(name)
    rank = draw.integer(1, 2)
    shape = _image(draw, rank)
    attributes = _window(draw, rank) | {"channels_last": channels_last, "count_include_pad": draw.integer(0, 1)}
    node = Node(f"{CONTRIB}.QLinearAveragePool", attributes=attributes)
    operands, result = _quantized(draw, _channels_last(shape) if channels_last else shape, node.kind)
    return qlinear(name, node, [*operands, result], result.dtype)


def _qlinear_global(name: str, channels_last: int) -> Case:
    draw = Draw(name)
    shape = _image(draw, 2)
    node = Node(f"{CONTRIB}.QLinearGlobalAveragePool", attributes={"channels_last": channels_last})
    operands, result = _quantized(draw, _channels_last(shape) if channels_last else shape, node.kind)
    return qlinear(name, node, [*operands, result], result.dtype)


def _concatenation(name: str) -> Case:
    """Parts with one quantization, or each with its own."""
    draw = Draw(name)
    dtype, rank = draw.one_of(*BYTES), draw.integer(1, 4)
    shape, axis = draw.shape(rank, 5), draw.integer(0, rank - 1)
    parts = [_part(draw, shape, axis, dtype) for _ in range(draw.integer(2, 4))]
    if draw.one_of(True, False):
        parts = [replace(part, scale=parts[0].scale, zero_point=parts[0].zero_point) for part in parts]
    result = Result(dtype, draw.scale(0.02, 0.08), draw.inner_point(dtype))
    if name.startswith("qlinear"):
        node = Node(f"{CONTRIB}.QLinearConcat", attributes={"axis": axis})
        return qlinear(name, node, [result, *parts], dtype)
    return between(name, Node("Concat", attributes={"axis": axis - draw.one_of(0, rank)}), parts, result)


def _part(draw: Draw, shape: Shape, axis: int, dtype: type[np.generic]) -> Operand:
    own = tuple(draw.integer(1, 6) if k == axis else extent for k, extent in enumerate(shape))
    return Operand(draw.values(own, dtype), draw.scale(0.02, 0.08), draw.zero_point(dtype))
