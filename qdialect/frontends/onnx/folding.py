"""Nodes whose inputs are known: shape arithmetic, constants and casts are done when the model is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import Array, Shape, UnsupportedError
from qdialect.frontends.onnx.model import ELEMENTS, Node

_DTYPES = {
    **{number: NUMPY_DTYPES[element] for number, element in ELEMENTS.items()},
    9: np.dtype(np.bool_),
    11: np.dtype(np.float64),
}

Operands = Sequence[Array]
Folder = Callable[[Operands, Mapping[str, Any]], Array]


def _axes(operands: Operands, attributes: Mapping[str, Any]) -> tuple[int, ...] | None:
    found = operands[1].ravel().tolist() if len(operands) > 1 else attributes.get("axes")
    return None if found is None else tuple(found)


def _cast(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    target = _DTYPES.get(attributes.get("to", 0))
    if target is None:
        raise UnsupportedError(f"cast to element type {attributes.get('to')} is not supported")
    return operands[0].astype(target)


def _unsqueeze(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    return np.expand_dims(operands[0], _axes(operands, attributes) or ())


def _squeeze(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    return np.squeeze(operands[0], _axes(operands, attributes))


def _slice(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    data, *rest = operands
    given = [operand.ravel().tolist() for operand in rest]
    if not given:
        given = [attributes["starts"], attributes["ends"], *([attributes["axes"]] if "axes" in attributes else [])]
    starts, ends = given[:2]
    axes = given[2] if len(given) > 2 else list(range(len(starts)))
    steps = given[3] if len(given) > 3 else [1] * len(starts)
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        # An end before the first element cannot be written as an index.
        index[axis] = slice(start, None if end < -data.shape[axis] else end, step)
    return data[tuple(index)]


def _divide(operands: Operands, _: Mapping[str, Any]) -> Array:
    lhs, rhs = operands
    if lhs.dtype.kind == "f":
        return lhs / rhs
    # Integers are truncated towards zero.
    return (np.sign(lhs) * np.sign(rhs) * (np.abs(lhs) // np.abs(rhs))).astype(lhs.dtype)


def _fill(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    value: Array = attributes.get("value", np.zeros(1, dtype=np.float32))
    return np.full(operands[0].ravel().tolist(), value.ravel()[0], dtype=value.dtype)


def _reduce_product(operands: Operands, attributes: Mapping[str, Any]) -> Array:
    return np.prod(operands[0], axis=_axes(operands, attributes), keepdims=bool(attributes.get("keepdims", 1)))


_FOLDERS: dict[str, Folder] = {
    "Abs": lambda operands, _: np.abs(operands[0]),
    "Add": lambda operands, _: operands[0] + operands[1],
    "Cast": _cast,
    "Ceil": lambda operands, _: np.ceil(operands[0]),
    "Concat": lambda operands, attributes: np.concatenate(operands, axis=attributes["axis"]),
    "ConstantOfShape": _fill,
    "Div": _divide,
    "Equal": lambda operands, _: operands[0] == operands[1],
    "Floor": lambda operands, _: np.floor(operands[0]),
    "Gather": lambda operands, attributes: np.take(operands[0], operands[1], axis=attributes.get("axis", 0)),
    "Max": lambda operands, _: reduce(np.maximum, operands),
    "Min": lambda operands, _: reduce(np.minimum, operands),
    "Mul": lambda operands, _: operands[0] * operands[1],
    "Neg": lambda operands, _: -operands[0],
    "Pow": lambda operands, _: np.power(operands[0], operands[1]).astype(operands[0].dtype),
    "Range": lambda operands, _: np.arange(*(operand.ravel()[0] for operand in operands), dtype=operands[0].dtype),
    "ReduceProd": _reduce_product,
    "Reciprocal": lambda operands, _: 1 / operands[0],
    "Slice": _slice,
    "Sqrt": lambda operands, _: np.sqrt(operands[0]),
    "Squeeze": _squeeze,
    "Sub": lambda operands, _: operands[0] - operands[1],
    "Unsqueeze": _unsqueeze,
    "Where": lambda operands, _: np.where(operands[0], operands[1], operands[2]),
}
_VALUES = ("value_float", "value_floats", "value_int", "value_ints")


def folded(node: Node, operands: Sequence[Array | None]) -> Array | None:
    """What a node gives on known inputs, None where there is no rule for it or an input is not known.

    Raises `UnsupportedError` where the inputs do not fit the operator.
    """
    if len(node.outputs) != 1:
        return None
    if node.kind == "Constant":
        return _constant(node)
    present = [operand for operand in operands if operand is not None]
    folder = _FOLDERS.get(node.kind)
    if folder is None or not operands or len(present) < len(operands):
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(folder(present, node.attributes))
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError, MemoryError) as error:
        raise UnsupportedError(f"constant inputs must fit the operator: {error}") from error
    return result


def folded_shape(node: Node, shape: Shape) -> Array:
    """What a Shape node gives."""
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return np.array(shape[start:end], dtype=np.int64)


def _constant(node: Node) -> Array:
    if "value" in node.attributes:
        return np.asarray(node.attributes["value"])
    name = next((name for name in _VALUES if name in node.attributes), None)
    if name is None:
        raise UnsupportedError("constant must be a tensor, numbers or a number")
    return np.array(node.attributes[name], dtype=np.float32 if "float" in name else np.int64)
