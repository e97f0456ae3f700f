"""QDQ groups of ONNX's operators of two tensors: both computed, one constant, one an f32 constant, QLinear forms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx_graphs import CONTRIB

from tools.record.drawing import BYTES, Draw
from tools.record.family import Array, Case
from tools.record.onnx_nodes import Node, Operand, Result, between, qlinear

_EXTENTS = (1, 2, 3, 5, 8, 17)
Shape = tuple[int, ...]
_KINDS = ("Add", "Mul", "Sub", "Div", "Max", "Min", "PRelu", "Pow")


def pairs() -> Iterator[Case]:
    """Every case of this module."""
    for kind in ("Add", "Mul"):
        for index in range(2):
            yield _qlinear(f"qlinear{kind.lower()}_{index}", kind)
        yield _pair(f"{kind.lower()}_const_0", kind, is_constant=True)
        yield _qlinear(f"qlinear{kind.lower()}_const_0", kind, is_constant=True)
    for kind in _KINDS:
        yield _pair(f"{kind.lower()}_0", kind)
    for kind in _KINDS:
        yield _with_f32(f"{kind.lower()}_float_0", kind)


def _operands(draw: Draw, kind: str, *, is_constant: bool) -> tuple[Operand, Operand, Result]:
    dtype = draw.one_of(*BYTES)
    left, right = (draw.one_of(draw.power_of_two(-7, -4), draw.scale(0.008, 0.08)) for _ in range(2))
    # Two shapes that broadcast; either may have fewer dimensions. The slopes of PRelu broadcast to its data alone.
    full = tuple(draw.one_of(*_EXTENTS) for _ in range(draw.integer(1, 3)))
    other = tuple(draw.one_of(1, extent, extent) for extent in full)[draw.integer(0, len(full) - 1) :]
    shapes = (full, other) if kind == "PRelu" or draw.one_of(True, False) else (other, full)
    first = Operand(draw.values(shapes[0], dtype), left, draw.zero_point(dtype))
    second = Operand(draw.values(shapes[1], dtype), right, draw.zero_point(dtype), is_constant=is_constant)
    ranges = {"Mul": left * right * 60, "PRelu": left, "Div": left / right / 20, "Pow": 0.02}
    scale = ranges.get(kind, max(left, right)) * draw.one_of(1, draw.scale(0.7, 2))
    return first, second, Result(dtype, float(np.float32(scale)), draw.inner_point(dtype))


def _pair(name: str, kind: str, *, is_constant: bool = False) -> Case:
    first, second, result = _operands(Draw(name), kind, is_constant=is_constant)
    return between(name, Node(kind), [first, second], result)


def _qlinear(name: str, kind: str, *, is_constant: bool = False) -> Case:
    first, second, result = _operands(Draw(name), kind, is_constant=is_constant)
    return qlinear(name, Node(f"{CONTRIB}.QLinear{kind}"), [first, second, result], result.dtype)


def _with_f32(name: str, kind: str) -> Case:
    """The second operand is an f32 constant that never enlarges the shape."""
    draw = Draw(name)
    dtype = draw.one_of(*BYTES)
    shape = tuple(draw.one_of(*_EXTENTS[2:]) for _ in range(draw.integer(1, 3)))
    data = Operand(draw.values(shape, dtype), draw.scale(0.008, 0.08), draw.zero_point(dtype))
    constant = _f32_constant(draw, kind, tuple(draw.one_of(1, extent, extent) for extent in shape))
    result = Result(dtype, draw.one_of(draw.power_of_two(-6, -4), draw.scale(0.02, 0.08)), draw.inner_point(dtype))
    return between(name, Node(kind, [constant]), [data], result)


def _f32_constant(draw: Draw, kind: str, shape: Shape) -> Array:
    """Divisors and exponents are not negative."""
    if kind in ("Div", "Pow"):
        return draw.rng.uniform(0.5, 4, shape).astype(np.float32)
    return draw.normal(shape)
