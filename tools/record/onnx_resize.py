"""ONNX Resize and Upsample: every way to find coordinates, both interpolations, between quantizations or alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.record import onnx_runtime
from tools.record.drawing import Draw, Type
from tools.record.family import Array, Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, alone, between

_COORDINATES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
# Larger, smaller, one way each, and one axis alone; linear interpolation also down to a single pixel.
_NEAREST_SIZES = ((14, 16), (3, 13), (9, 4), (7, 21))
_LINEAR_SIZES = ((14, 16), (3, 13), (1, 1))
_IMAGE = (1, 3, 7, 8)
_SCALE = 0.05
# An interpolation that also requantizes.
_OTHER_SCALE = 0.04
_ZERO_POINTS: dict[Type, int] = {np.uint8: 117, np.int8: -3}


@dataclass(frozen=True)
class _Resize:
    """Of quantized values `shape` to `sizes` or by `scales`."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    version: int = 17

    def node(self) -> Node:
        if self.sizes:
            return Node("Resize", [None, None, np.array(self.sizes)], self.attributes, version=self.version)
        return Node("Resize", [None, np.array(self.scales, np.float32)], self.attributes, version=self.version)


_ONE_AXIS = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "ceil", "axes": [2]}
_THREE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
_QUANTIZED: dict[str, _Resize] = {
    "resize_scales": _Resize(_IMAGE, scales=(1, 1, 2, 2), attributes={"mode": "nearest"}),
    "resize_scales_odd": _Resize(_IMAGE, scales=(1, 1, 1.7, 2.3), attributes={"mode": "nearest"}),
    "resize_scales_linear": _Resize(_IMAGE, scales=(1, 1, 2, 0.5), attributes={"mode": "linear"}),
    "resize_channels": _Resize((2, 3, 4, 5), (2, 6, 4, 7), attributes={"mode": "nearest"}),
    "resize_three": _Resize((2, 3, 5), scales=(1, 1, 2), attributes=_THREE | {"mode": "nearest"}),
    "resize_one_axis": _Resize((1, 3, 4, 5), (9,), attributes=_ONE_AXIS | {"mode": "nearest"}, version=18),
}


def _old(kind: str, scales: tuple[float, ...], mode: str, version: int) -> Node:
    """Scales are the second input, and there is no choice of coordinates."""
    return Node(kind, [np.array(scales, np.float32)], {"mode": mode}, version=version)


_OLD = {
    "resize_old": _old("Resize", (1, 1, 2, 0.5), "nearest", 10),
    "resize_old_linear": _old("Resize", (1, 1, 2, 2), "linear", 10),
    "upsample": _old("Upsample", (1, 1, 2, 2), "nearest", 9),
}


def _draw() -> Iterator[Case]:
    yield from _nearest()
    yield from _linear()
    for name, resize in _QUANTIZED.items():
        yield _between(name, resize.node(), resize.shape, np.uint8)
    for name, node in _OLD.items():
        yield _alone(name, node, Draw(name).values((1, 3, 4, 6), np.uint8))
    floats = _Resize((1, 2, 4, 5), (1, 2, 9, 3), attributes={"mode": "linear"})
    yield _alone("resize_float", floats.node(), Draw("resize_float").normal(floats.shape))


def _nearest() -> Iterator[Case]:
    for coordinates in (*_COORDINATES, "tf_half_pixel_for_nn"):
        for k, (rounding, size) in enumerate(zip(_ROUNDINGS, _NEAREST_SIZES, strict=True)):
            attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "mode": "nearest"}
            node = _Resize(_IMAGE, (1, 3, *size), attributes=attributes).node()
            yield _between(f"resize_nearest_{coordinates}_{rounding}", node, _IMAGE, (np.uint8, np.int8)[k % 2])


def _linear() -> Iterator[Case]:
    for coordinates in _COORDINATES:
        for k, size in enumerate(_LINEAR_SIZES):
            attributes = {"coordinate_transformation_mode": coordinates, "mode": "linear"}
            node, dtype = _Resize(_IMAGE, (1, 3, *size), attributes=attributes).node(), (np.uint8, np.int8)[k % 2]
            name = f"resize_linear_codes_{coordinates}_{k}"
            scale = _OTHER_SCALE if dtype is np.int8 else _SCALE
            yield _between(f"resize_linear_{coordinates}_{k}", node, _IMAGE, dtype, scale)
            yield _alone(name, node, Draw(name).values(_IMAGE, dtype))


def _between(name: str, node: Node, shape: tuple[int, ...], dtype: Type, scale: float = _SCALE) -> Case:
    data = Operand(Draw(name).values(shape, dtype), _SCALE, _ZERO_POINTS[dtype])
    return between(name, node, [data], Result(dtype, scale, _ZERO_POINTS[dtype]))


def _alone(name: str, node: Node, values: Array) -> Case:
    return alone(name, node, [Operand(values)], values.dtype.type)


FAMILY = Family("onnx_resize", _draw, onnx_runtime.optimized)
