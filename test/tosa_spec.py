"""What a module of `tosa` ops computes: the pseudo-code of the TOSA 1.0 specification on NumPy arrays.

Integers are exact.  Floats are float32: where the specification leaves the last places open, sums are taken in the
order of its loops and functions rounded from float64 once.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import ir

Array = NDArray[Any]

_DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
}


class Node:
    """An op and its attributes as Python values."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    def integer(self, name: str) -> int:
        return int(ir.IntegerAttr(self.op.attributes[name]).value)

    def integers(self, name: str) -> list[int]:
        attribute = self.op.attributes[name]
        is_short = isinstance(attribute, ir.DenseI32ArrayAttr)
        return list(ir.DenseI32ArrayAttr(attribute) if is_short else ir.DenseI64ArrayAttr(attribute))

    def number(self, name: str) -> float:
        attribute = self.op.attributes[name]
        return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else self.integer(name)

    def flag(self, name: str) -> bool:
        return ir.BoolAttr(self.op.attributes[name]).value

    def mode(self, name: str, default: str = "") -> str:
        """The text of an enumeration."""
        found = str(self.op.attributes[name]) if name in self.op.attributes else default
        return re.sub(r".*<(\w+)>", r"\1", found)

    @property
    def element(self) -> str:
        return str(ir.RankedTensorType(self.op.results[0].type).element_type)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_DTYPES[self.element])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(ir.RankedTensorType(self.op.results[0].type).shape)


Compute = Callable[[Node, list[Array]], Array]
FUNCTIONS: dict[str, Compute] = {}


def computes(*names: str) -> Callable[[Compute], Compute]:
    def register(function: Compute) -> Compute:
        FUNCTIONS.update((f"tosa.{name}", function) for name in names)
        return function

    return register


def run(module: ir.Module, inputs: Sequence[Array]) -> list[Array]:
    """The results of the first function of `module`, which has `tosa` ops alone."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    values: dict[ir.Value, Array] = dict(zip(block.arguments, inputs, strict=True))
    *body, last = [op.operation for op in block.operations]
    for op in body:
        node = Node(op)
        with np.errstate(all="ignore"):
            value = FUNCTIONS[op.name](node, [values[operand] for operand in op.operands])
        is_tensor = isinstance(op.results[0].type, ir.RankedTensorType)
        values[op.results[0]] = np.asarray(value).astype(node.dtype) if is_tensor else value
        assert not is_tensor or values[op.results[0]].shape == node.shape, op
    return [values[operand] for operand in last.operands]


@computes("const", "const_shape")
def _const(node: Node, _: list[Array]) -> Array:
    attribute = ir.DenseElementsAttr(node.op.attributes["values"])
    type_ = ir.ShapedType(attribute.type)
    dtype = _DTYPES.get(str(type_.element_type), np.int64)
    if attribute.is_splat:
        splat = attribute.get_splat_value()
        value = ir.FloatAttr(splat).value if dtype is np.float32 else ir.IntegerAttr(splat).value
        return np.full(type_.shape, np.asarray(value).astype(dtype))
    return np.array(attribute).view(dtype).reshape(type_.shape)


# Shapes and data movement.


def _scattered(_: Node, values: list[Array]) -> Array:
    data, indices, updates = values[0].copy(), *values[1:]
    for n, row in enumerate(indices):
        data[n, row] = updates[n]
    return data


def _sliced(_: Node, values: list[Array]) -> Array:
    return values[0][tuple(slice(b, b + n) for b, n in zip(values[1], values[2], strict=True))]


MOVEMENTS: dict[str, Compute] = {
    "tosa.add_shape": lambda _, v: v[0] + v[1],
    "tosa.concat": lambda node, v: np.concatenate(v, node.integer("axis")),
    "tosa.concat_shape": lambda _, v: np.concatenate(v),
    "tosa.dim": lambda node, v: np.array([v[0].shape[node.integer("axis")]]),
    "tosa.div_ceil_shape": lambda _, v: -(-v[0] // v[1]),
    "tosa.div_floor_shape": lambda _, v: v[0] // v[1],
    "tosa.gather": lambda _, v: np.stack([v[0][n, row] for n, row in enumerate(v[1])]),
    "tosa.identity": lambda _, v: v[0],
    "tosa.max_shape": lambda _, v: np.maximum(*v),
    "tosa.min_shape": lambda _, v: np.minimum(*v),
    "tosa.mul_shape": lambda _, v: v[0] * v[1],
    "tosa.pad": lambda _, v: np.pad(v[0], v[1].reshape(-1, 2), constant_values=v[2].item()),
    "tosa.reshape": lambda _, v: v[0].reshape(v[1]),
    "tosa.reverse": lambda node, v: np.flip(v[0], node.integer("axis")),
    "tosa.scatter": _scattered,
    "tosa.slice": _sliced,
    "tosa.slice_shape": lambda _, v: v[0][int(v[1].item()) : int((v[1] + v[2]).item())],
    "tosa.sub_shape": lambda _, v: v[0] - v[1],
    "tosa.tile": lambda _, v: np.tile(v[0], v[1]),
    "tosa.transpose": lambda node, v: v[0].transpose(node.integers("perms")),
}
FUNCTIONS.update(MOVEMENTS)


# Reductions.


@computes("argmax")
def _argmax(node: Node, values: list[Array]) -> Array:
    data, axis = values[0], node.integer("axis")
    if data.dtype == np.float32 and node.mode("nan_mode", "PROPAGATE") == "IGNORE":
        data = np.where(np.isnan(data), -np.inf, data)
    # NumPy takes the first of equal elements, and the first NaN.
    return data.argmax(axis)


@computes("reduce_all", "reduce_any")
def _reduce_bool(node: Node, values: list[Array]) -> Array:
    function = np.all if node.op.name == "tosa.reduce_all" else np.any
    return function(values[0], axis=node.integer("axis"), keepdims=True)


@computes("reduce_max", "reduce_min")
def _reduce_extreme(node: Node, values: list[Array]) -> Array:
    largest, ignores = node.op.name == "tosa.reduce_max", node.mode("nan_mode", "PROPAGATE") == "IGNORE"
    function = (np.fmax if ignores else np.maximum) if largest else (np.fmin if ignores else np.minimum)
    return function.reduce(values[0], axis=node.integer("axis"), keepdims=True)


@computes("reduce_sum", "reduce_product")
def _reduce_sum(node: Node, values: list[Array]) -> Array:
    function = np.add if node.op.name == "tosa.reduce_sum" else np.multiply
    moved = np.moveaxis(values[0], node.integer("axis"), 0)
    total = moved[0]
    for term in moved[1:]:
        total = function(total, term)
    return np.expand_dims(total, node.integer("axis"))
