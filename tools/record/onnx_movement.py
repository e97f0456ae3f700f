"""ONNX operators that move elements: between quantizations, on quantized values (`_codes`) and on f32 (`_float`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tools.record import onnx_runtime
from tools.record.drawing import Draw, Type
from tools.record.family import Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, alone, between

_SCALE = 0.05
_ZERO_POINTS: dict[Type, int] = {np.uint8: 117, np.int8: -3}
Shape = tuple[int, ...]


def _integers(*values: int | list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


_SLICE = (_integers(1, -1, 0), _integers(2, -100, 9), _integers(0, 1, -1), _integers(1, -2, 2))
_BACK = (_integers(-100, 3), _integers(-100, -5), _integers(0, 1), _integers(-1, -1))
# Recorded in all three forms.
_IN_EVERY_FORM: dict[str, tuple[Node, Shape]] = {
    "split": (Node("Split", attributes={"axis": 1}, outputs=3), (2, 6, 5)),
    "slice": (Node("Slice", _SLICE), (2, 7, 5, 6)),
    "gather": (Node("Gather", [_integers([1, -1, 0], [3, 3, 6])], {"axis": 1}), (3, 7, 5)),
    "gather_scalar": (Node("Gather", [np.array(-2)], {"axis": -1}), (3, 7, 5)),
    "tile": (Node("Tile", [_integers(1, 3, 2)]), (2, 3, 4)),
    "expand": (Node("Expand", [_integers(2, 1, 5, 1)]), (3, 1, 4)),
    "depth_to_space": (Node("DepthToSpace", attributes={"blocksize": 2, "mode": "DCR"}), (1, 8, 2, 3)),
    "depth_to_space_crd": (Node("DepthToSpace", attributes={"blocksize": 3, "mode": "CRD"}), (2, 18, 2, 3)),
    "space_to_depth": (Node("SpaceToDepth", attributes={"blocksize": 2}), (2, 3, 4, 6)),
}
# ONNX Runtime has no kernel of these for 8-bit integers.
_FLOATS_ONLY = {"depth_to_space", "depth_to_space_crd", "space_to_depth"}
_QUANTIZED: dict[str, tuple[Node, Shape]] = {
    "split_uneven": (Node("Split", attributes={"axis": 0, "num_outputs": 3}, outputs=3, version=18), (7, 3)),
    "split_sizes": (Node("Split", [_integers(2, 4, 1)], {"axis": -2}, outputs=3), (2, 7, 3)),
    "split_attribute": (Node("Split", attributes={"axis": 1, "split": [6, 1]}, outputs=2, version=11), (2, 7, 3)),
    "slice_requantized": (Node("Slice", [_integers(1), _integers(6), _integers(1)]), (2, 7, 5)),
    "slice_back": (Node("Slice", _BACK), (5, 4)),
    "pad_reflect": (Node("Pad", [_integers(0, 1, 2, 0, 3, 1)], {"mode": "reflect"}), (2, 5, 3)),
    "pad_edge": (Node("Pad", [_integers(1, 2, 0, 0, 0, 4)], {"mode": "edge"}), (2, 5, 3)),
    "pad_constant": (Node("Pad", [_integers(1, -1, 2, 0, 3, -1), 0.4], {"mode": "constant"}), (2, 5, 3)),
    "pad_wrap": (Node("Pad", [_integers(1, 2, 0, 0, 3, 4)], {"mode": "wrap"}, version=19), (2, 5, 3)),
    "pad_axes": (Node("Pad", [_integers(1, 2), 0.0, _integers(-1)], {"mode": "constant"}, version=18), (2, 5, 3)),
}
_SIGNED = {"split_uneven"}
_ALONE: dict[str, tuple[Node, Shape, Type]] = {
    "slice_attributes": (
        Node("Slice", attributes={"axes": [1, 2], "ends": [100, 3], "starts": [-3, 1]}, version=9),
        (4, 7, 3),
        np.uint8,
    ),
    "pad_float": (Node("Pad", [_integers(0, 1, 0, 2, 0, 1), -3.0]), (2, 5, 3), np.float32),
}


def _draw() -> Iterator[Case]:
    for name, (node, shape) in (_IN_EVERY_FORM | _QUANTIZED).items():
        yield _between(name, node, shape, np.int8 if name in _SIGNED else np.uint8)
    for name, (node, shape) in _IN_EVERY_FORM.items():
        if name not in _FLOATS_ONLY:
            yield _alone(f"{name}_codes", node, shape, np.uint8)
        yield _alone(f"{name}_float", node, shape, np.float32)
    for name, (node, shape, dtype) in _ALONE.items():
        yield _alone(name, node, shape, dtype)


def _between(name: str, node: Node, shape: Shape, dtype: Type) -> Case:
    """With the same quantization before and after, but where the name says otherwise."""
    result = Result(dtype, _SCALE, _ZERO_POINTS[dtype])
    data = Operand(Draw(name).values(shape, dtype), result.scale, result.zero_point)
    is_other = name.endswith("_requantized")
    return between(name, node, [data], replace(result, scale=0.03, zero_point=90) if is_other else result)


def _alone(name: str, node: Node, shape: Shape, dtype: Type) -> Case:
    draw = Draw(name)
    values = draw.normal(shape) if dtype is np.float32 else draw.values(shape, dtype)
    return alone(name, node, [Operand(values)], dtype)


FAMILY = Family("onnx_movement", _draw, onnx_runtime.optimized)
