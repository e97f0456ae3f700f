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


# Shapes.


def _div_ceil(lhs: Array, rhs: Array) -> Array:
    return -(-lhs // rhs)


@computes("add_shape", "sub_shape", "mul_shape", "div_floor_shape", "div_ceil_shape", "max_shape", "min_shape")
def _shape_arithmetic(node: Node, values: list[Array]) -> Array:
    functions: dict[str, Callable[..., Array]] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div_floor": np.floor_divide,
        "div_ceil": _div_ceil,
        "max": np.maximum,
        "min": np.minimum,
    }
    return functions[node.op.name.removeprefix("tosa.").removesuffix("_shape")](*values)


@computes("concat_shape")
def _concat_shape(_: Node, values: list[Array]) -> Array:
    return np.concatenate(values)


@computes("slice_shape")
def _slice_shape(_: Node, values: list[Array]) -> Array:
    start, size = int(values[1].item()), int(values[2].item())
    return values[0][start : start + size]


@computes("dim")
def _dim(node: Node, values: list[Array]) -> Array:
    return np.array([values[0].shape[node.integer("axis")]])


# Data movement.


@computes("identity")
def _identity(_: Node, values: list[Array]) -> Array:
    return values[0]


@computes("reshape")
def _reshape(_: Node, values: list[Array]) -> Array:
    return values[0].reshape(values[1])


@computes("transpose")
def _transpose(node: Node, values: list[Array]) -> Array:
    return values[0].transpose(node.integers("perms"))


@computes("pad")
def _pad(_: Node, values: list[Array]) -> Array:
    return np.pad(values[0], values[1].reshape(-1, 2), constant_values=values[2].item())


@computes("slice")
def _slice(_: Node, values: list[Array]) -> Array:
    return values[0][tuple(slice(b, b + n) for b, n in zip(values[1], values[2], strict=True))]


@computes("reverse")
def _reverse(node: Node, values: list[Array]) -> Array:
    return np.flip(values[0], node.integer("axis"))


@computes("tile")
def _tile(_: Node, values: list[Array]) -> Array:
    return np.tile(values[0], values[1])


@computes("concat")
def _concat(node: Node, values: list[Array]) -> Array:
    return np.concatenate(values, node.integer("axis"))


@computes("gather")
def _gather(_: Node, values: list[Array]) -> Array:
    data, indices = values
    return np.stack([data[n, row] for n, row in enumerate(indices)])


@computes("scatter")
def _scatter(_: Node, values: list[Array]) -> Array:
    data, indices, updates = values[0].copy(), *values[1:]
    for n, row in enumerate(indices):
        data[n, row] = updates[n]
    return data


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
