"""ONNX operators of one and of two tensors, chains of functions, ArgMax and ArgMin, and reductions.

Functions see every quantized value.  `mix` names operands of two types, `r` reductions whose axes are an attribute
(`A`) or an input (`I`), `u` a function of ONNX's own, `c` one of ONNX Runtime's; `_a` gives it an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx_graphs import CONTRIB, ModelBuilder

from tools.record import onnx_chains, onnx_runtime
from tools.record.drawing import BYTES, Draw, Type
from tools.record.family import Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, between, chain, operand, qlinear

_TABLE = (4, 64)
_PAIR = (2, 3, 8, 16)
# Among these few values every row has several equal ones.
_FEW = 4
_BROADCAST = ((1,), (3, 1, 1), (3, 8, 1), _PAIR)

_WITHOUT_ATTRIBUTES = (
    *("Abs", "Ceil", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Selu", "Sign", "Softplus"),
    *("Softsign", "Sqrt"),
)
_FUNCTIONS: dict[str, Node] = {
    **{f"u{kind}": Node(kind) for kind in _WITHOUT_ATTRIBUTES},
    "uCelu_a": Node("Celu", attributes={"alpha": 1.7}),
    "uElu_a": Node("Elu", attributes={"alpha": 0.7}),
    "uGelu": Node("Gelu", version=20),
    "uGeluT": Node("Gelu", attributes={"approximate": "tanh"}, version=20),
    "uMish": Node("Mish", version=20),
    "uSwish_a": Node("Swish", attributes={"alpha": 1.3}, version=24),
    "uThr_a": Node("ThresholdedRelu", attributes={"alpha": 0.3}),
    "cFastGelu": Node(f"{CONTRIB}.FastGelu"),
    "cGelu": Node(f"{CONTRIB}.Gelu"),
    "cQGelu1": Node(f"{CONTRIB}.QuickGelu", attributes={"alpha": 1.0}),
    "cQuickGelu": Node(f"{CONTRIB}.QuickGelu", attributes={"alpha": 1.702}),
}


_CHAINS: list[Callable[[ModelBuilder, str], str]] = [
    *(onnx_chains.silu, onnx_chains.hard_swish, onnx_chains.hard_sigmoid_product, onnx_chains.gelu),
    *(onnx_chains.mish, onnx_chains.exp_neg_sqrt_abs),
]


def _draw() -> Iterator[Case]:
    for kind in ("ArgMax", "ArgMin"):
        yield from (_arg(f"{kind}_{index}", kind) for index in range(4))
    yield from (_pair(f"{kind}_0", kind) for kind in ("Div", "Max", "Min", "Sub"))
    yield _prelu("PRelu_0")
    yield from (_qlinear(f"Q{kind}_0", kind) for kind in ("Add", "Mul"))
    yield _pair("mixAdd6_0", "Add", (np.uint8, np.int8, np.int8))
    yield _pair("mixMul1_0", "Mul", (np.int8, np.uint8, np.uint8))
    yield from (_function(f"{name}_0", node) for name, node in _FUNCTIONS.items())
    yield from (_chain(f"chain{index}_0", add) for index, add in enumerate(_CHAINS))
    for kind in ("Max", "Mean", "Min", "Sum"):
        yield from (_reduction(f"r{form}{kind}_{index}", f"Reduce{kind}", form) for form in "AI" for index in range(2))


def _arg(name: str, kind: str) -> Case:
    draw = Draw(name)
    shape = draw.shape(draw.integer(1, 4), 7)
    axis = draw.integer(-len(shape), len(shape) - 1)
    attributes = {"axis": axis, "keepdims": draw.integer(0, 1), "select_last_index": draw.integer(0, 1)}
    dtype = draw.one_of(*BYTES)
    values = draw.rng.integers(0, _FEW, shape).astype(dtype)
    data = Operand(values, draw.scale(0.003, 0.3), draw.zero_point(dtype))
    return between(name, Node(kind, attributes=attributes), [data], np.int64)


def _pair(name: str, kind: str, types: tuple[Type, Type, Type] | None = None) -> Case:
    draw = Draw(name)
    first, second, to = types or (draw.one_of(*BYTES),) * 3
    other = _PAIR if types else draw.one_of(*_BROADCAST)
    left, right = draw.scale(0.01, 0.3), draw.scale(0.01, 0.3)
    data = operand(draw, _PAIR, first, left), operand(draw, other, second, right)
    scale = {"Mul": left * right * 60, "Div": left / right / 20}.get(kind, max(left, right)) * draw.scale(0.6, 2)
    return between(name, Node(kind), data, Result(to, float(np.float32(scale)), draw.inner_point(to)))


def _prelu(name: str) -> Case:
    """Every element has its own slope."""
    draw = Draw(name)
    dtype = draw.one_of(*BYTES)
    data = operand(draw, _PAIR, dtype, draw.scale(0.05, 0.2))
    slopes = operand(draw, _PAIR, dtype, draw.scale(0.005, 0.02), is_constant=True)
    return between(name, Node("PRelu"), [data, slopes], Result(dtype, draw.scale(0.05, 0.2), draw.inner_point(dtype)))


def _qlinear(name: str, kind: str) -> Case:
    draw = Draw(name)
    dtype = draw.one_of(*BYTES)
    left, right = draw.power_of_two(-8, -4), draw.power_of_two(-6, -3)
    data = operand(draw, _PAIR, dtype, left), operand(draw, draw.one_of(*_BROADCAST), dtype, right)
    scale = max(left, right) if kind == "Add" else left * right * 64
    return qlinear(
        name, Node(f"{CONTRIB}.QLinear{kind}"), [*data, Result(dtype, scale, draw.inner_point(dtype))], dtype
    )


def _every_value(draw: Draw, shape: tuple[int, ...]) -> tuple[Operand, Result]:
    """Every quantized value of a drawn type, and a drawn quantization of functions of them."""
    dtype = draw.one_of(*BYTES)
    data = Operand(draw.every_value(shape, dtype), draw.scale(0.01, 0.05), draw.zero_point(dtype))
    return data, Result(dtype, draw.scale(0.005, 0.05), draw.inner_point(dtype))


def _function(name: str, node: Node) -> Case:
    data, result = _every_value(Draw(name), _TABLE)
    return between(name, node, [data], result)


def _chain(name: str, add: Callable[[ModelBuilder, str], str]) -> Case:
    data, result = _every_value(Draw(name), (1, 4, 8, 8))
    return chain(name, add, data, result)


def _reduction(name: str, kind: str, form: str) -> Case:
    draw = Draw(name)
    shape = draw.shape(4, 8)
    count = draw.integer(1, 3)
    axes = [int(axis) - draw.one_of(0, 4) for axis in draw.rng.permutation(4)[:count]]
    attributes: Mapping[str, Any] = {"keepdims": draw.integer(0, 1)}
    # The axes of ReduceSum became an input before those of the other reductions did.
    is_attribute = form == "A" and kind != "ReduceSum"
    node = Node(kind, [] if is_attribute else [np.array(axes)], attributes, version=17 if form == "A" else 18)
    if is_attribute:
        node = replace(node, attributes={**attributes, "axes": axes})
    elif draw.integer(0, 1):
        node = replace(node, attributes={**attributes, "noop_with_empty_axes": 1})
    dtype, scale = draw.one_of(*BYTES), draw.scale(0.003, 0.3)
    terms = int(np.prod([shape[axis] for axis in axes]))
    ratio = draw.scale(1, 2) * (terms**0.5 if kind == "ReduceSum" else 1)
    data = Operand(draw.values(shape, dtype), scale, draw.inner_point(dtype))
    result = Result(dtype, float(np.float32(scale * ratio)), draw.inner_point(dtype))
    return between(name, node, [data], result)


FAMILY = Family("onnx_elementwise", _draw, onnx_runtime.optimized)
