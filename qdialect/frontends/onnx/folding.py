"""Nodes whose inputs are known: shape arithmetic, constants and casts are done when the model is read.

The package `onnx` evaluates them, as its reference implementation of the operator set defines them.  Only operators
that compute elements from elements are handed to it, and only where their result is small enough for the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building import checks
from qdialect.frontends.building.checks import Array, Budget, Shape, UnsupportedError, axes_in, axis_in, require
from qdialect.frontends.building.slices import taken_by_slice
from qdialect.frontends.onnx.model import Node
from qdialect.frontends.onnx.schema import attributes_of, integer_attribute

if TYPE_CHECKING:
    import onnx

Operands = Sequence[Array]
ResultShape = Callable[[Node, Operands], Sequence[int]]

_LARGEST_ITEM = 8
_MAX_DIMENSIONS = 32
# Booleans, integers and floats; no strings, whose elements have any size.
_NUMBERS = "biuf"


def _broadcast(_: Node, operands: Operands) -> Sequence[int]:
    return np.broadcast_shapes(*(operand.shape for operand in operands))


def _first(_: Node, operands: Operands) -> Sequence[int]:
    return operands[0].shape


def _over_axes(node: Node, operands: Operands) -> Sequence[int]:
    """Of input 0, with axes in an attribute in old operator sets and in input 1 in later ones."""
    data, *given = operands
    axes = _listed(node, given) if given else node.attributes.get("axes", [])
    rank = data.ndim + (len(axes) if node.kind == "Unsqueeze" else 0)
    axes_in(axes, rank)
    return data.shape


def _listed(_: Node, operands: Operands) -> Sequence[int]:
    require(operands[0].dtype.kind in "iu", f"extents and axes must be integers, but got {operands[0].dtype}")
    return operands[0].ravel().tolist()


def _gathered(node: Node, operands: Operands) -> Sequence[int]:
    data, indices = operands
    axis = axis_in(integer_attribute(node, "axis", 0), data.ndim)
    return (*data.shape[:axis], indices.size, *data.shape[axis + 1 :])


def _ranged(_: Node, operands: Operands) -> Sequence[int]:
    require(all(operand.size == 1 for operand in operands), "start, limit and delta must have 1 entry each")
    start, limit, delta = (float(operand.ravel()[0]) for operand in operands)
    count = (limit - start) / delta if delta else math.nan
    require(math.isfinite(count), f"start, limit and delta must span a range, but got {start}, {limit} and {delta}")
    return (max(math.ceil(count), 0),)


def _counted(_: Node, operands: Operands) -> Sequence[int]:
    """The elements of a window function: their number is the operand."""
    require(operands[0].size == 1, f"size must have 1 entry, but got {operands[0].size}")
    return (max(int(operands[0].ravel()[0]), 0),)


def _one_hot(_: Node, operands: Operands) -> Sequence[int]:
    indices, depth = operands[0], operands[1]
    require(depth.size == 1, f"depth must have 1 entry, but got {depth.size}")
    return (*indices.shape, max(int(depth.ravel()[0]), 0))


def _rows(_: Node, operands: Operands) -> Sequence[int]:
    """Of GatherND: at most a row of all of the data's elements for each index."""
    data, indices = operands
    return (*indices.shape[:-1], *data.shape[indices.shape[-1] if indices.ndim else 0 :])


_POINTWISE = (
    *("Abs", "Ceil", "Cos", "Exp", "Floor", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Round", "Sign", "Sin", "Sqrt"),
    *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"),
    *("Mod", "Mul", "Or", "Pow", "Sub", "Where", "Xor"),
)
_SHAPES: dict[str, ResultShape] = {
    **dict.fromkeys(_POINTWISE, _broadcast),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _counted),
    **dict.fromkeys(("Cast", "CumSum", "ScatterElements", "ScatterND", "Slice", "Trilu"), _first),
    "Concat": lambda _, operands: (sum(operand.size for operand in operands),),
    "ConstantOfShape": _listed,
    "Gather": _gathered,
    "GatherElements": lambda _, operands: operands[1].shape,
    "GatherND": _rows,
    "OneHot": _one_hot,
    "Range": _ranged,
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Squeeze", "Unsqueeze"), _over_axes),
}
"""The operators that are evaluated, with a shape that has at least the elements of the result."""

MOVEMENTS = ("Concat", "Gather", "Slice", "Squeeze", "Unsqueeze")
"""Those that give elements of their inputs, quantized ones too."""

_FLAGS = ("exclusive", "fmod", "keepdims", "noop_with_empty_axes", "periodic", "reverse", "upper")
"""Attributes of these that ONNX Runtime compares with 1, the package with 0."""
_VALUES: dict[str, type[np.generic]] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def is_evaluated(kind: str) -> bool:
    """Whether an operator is one of those that `folded` evaluates."""
    return kind in _SHAPES


def folded(node: Node, operands: Sequence[Array | None], budget: Budget) -> Array | None:
    """The results of a node on known inputs, None if it is not evaluated here or an input is not known.

    Raises `UnsupportedError` where the inputs do not fit the operator, and where the result exceeds `budget`.
    """
    if len(node.outputs) != 1:
        return None
    if node.kind == "Constant":
        return _constant(node, budget)
    present = [operand for operand in operands if operand is not None]
    if not is_evaluated(node.kind) or not operands or len(present) < len(operands):
        return None
    for index, operand in enumerate(present):
        require(operand.dtype.kind in _NUMBERS, f"constant input {index} must hold numbers, but got {operand.dtype}")
        require(operand.ndim <= _MAX_DIMENSIONS, f"constant input {index} must have at most 32 dimensions")
    try:
        shape = _SHAPES[node.kind](node, present)
    except ValueError as error:
        shapes = " and ".join(str(list(operand.shape)) for operand in present)
        raise UnsupportedError(f"constant inputs must broadcast, but have the shapes {shapes}") from error
    budget.spend_constant(shape, _LARGEST_ITEM)
    evaluate = {"GatherElements": _elements, "OneHot": _hot, "Slice": _sliced}.get(node.kind, _evaluated)
    return evaluate(node, present)


def folded_shape(node: Node, shape: Shape) -> Array:
    """The result of a Shape or Size node."""
    if node.kind == "Size":
        return np.array(math.prod(shape), dtype=np.int64)
    start, end = integer_attribute(node, "start", 0), integer_attribute(node, "end", len(shape))
    return np.array(shape[start:end], dtype=np.int64)


_SUMS_OF_NOTHING = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "ReduceMean", "ReduceSum"), 0.0),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), 0.0),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), -math.inf),
}
"""ONNX Runtime's results for sums without terms: means are 0, and so are products of matrices."""


def sum_of_nothing(node: Node, result: checks.Interface) -> Array | None:
    """The result of a node that sums up no terms; None for other operators."""
    if node.kind not in _SUMS_OF_NOTHING:
        return None
    value, dtype = _SUMS_OF_NOTHING[node.kind], NUMPY_DTYPES[result.element]
    is_float = dtype.kind == "f" or math.isfinite(value)
    return np.full(result.shape, value if is_float else np.iinfo(dtype.name).min, dtype)


def _elements(node: Node, operands: Operands) -> Array:
    """GatherElements, of which the package's implementation is wrong for more than 32 elements along the axis."""
    data, indices = operands
    rank = data.ndim
    axis = axis_in(integer_attribute(node, "axis", 0), rank)
    require(indices.dtype.kind in "iu", f"indices must be integers, but got {indices.dtype}")
    pairs = enumerate(zip(indices.shape, data.shape, strict=False))
    fits = indices.ndim == rank and all(i == axis or own <= extent for i, (own, extent) in pairs)
    require(fits, f"constant indices must lie in a tensor of shape {list(data.shape)}, but are {list(indices.shape)}")
    kept = tuple(slice(None) if i == axis else slice(extent) for i, extent in enumerate(indices.shape))
    extent = data.shape[axis]
    holds = bool((indices >= -extent).all() and (indices < extent).all())
    require(holds, f"constant indices must be in [-{extent}, {extent})")
    return np.take_along_axis(data[kept], indices.astype(np.int64), axis)


def _hot(node: Node, operands: Operands) -> Array:
    """OneHot, whose values the package's implementation multiplies: infinite ones become NaN."""
    indices, depth, values = operands
    extent, rank = int(depth.ravel()[0]), indices.ndim + 1
    axis = axis_in(integer_attribute(node, "axis", -1), rank)
    require(values.shape == (2,), f"values must have the shape [2], but got {list(values.shape)}")
    along = np.arange(extent).reshape(-1, *[1] * (rank - axis - 1))
    from_start: Array = indices + extent * (indices < 0)
    is_hot = np.expand_dims(from_start, axis) == along
    return values.take(is_hot.astype(np.int64))


def _sliced(node: Node, operands: Operands) -> Array:
    """Slice, whose ends the package's implementation takes for indices."""
    if len(operands) == 1:
        return _evaluated(node, operands)
    data, *given = operands
    starts, ends, *others = (_listed(node, [entries]) for entries in given)
    axes = axes_in(others[0] if others else range(len(starts)), data.ndim)
    steps = others[1] if len(others) > 1 else [1] * len(starts)
    fits = len(starts) == len(ends) == len(axes) == len(steps) and len(set(axes)) == len(axes) and 0 not in steps
    require(fits, "constant starts, ends, axes and steps must have an entry each for a dimension, and steps not be 0")
    for axis, *entry in zip(axes, starts, ends, steps, strict=True):
        data = data.take(np.array(taken_by_slice(data.shape[axis], *entry), np.int64), axis)
    return data


_IN_FLOAT64 = ("Mod", "Pow", "ReduceProd", "ReduceSum")
"""Operators that ONNX Runtime computes in float64 where integers are given; the package computes in the integers."""
_LARGEST_WHOLE = 2.0**53


def _evaluated(node: Node, operands: Operands) -> Array:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    for name in _FLAGS:
        flag = node.attributes.get(name, 0)
        require(flag in (0, 1), f"attribute '{name}' must be 0 or 1, but is {flag}")
    is_extreme = node.kind in ("ReduceMax", "ReduceMin") or node.attributes.get("reduction") in ("max", "min")
    has_nan = is_extreme and any(operand.dtype.kind == "f" and np.isnan(operand).any() for operand in operands)
    require(not has_nan, "constant inputs must not hold NaN: where it stands decides on ONNX Runtime's extremes")
    if _is_integer_product(node, operands):
        operands = [one.astype(operands[0].dtype) for one in operands]
    names = [str(index) for index in range(len(operands))]
    proto = helper.make_node(node.kind, names, ["result"])
    proto.attribute.extend(attributes_of(node))
    graph = helper.make_graph([proto], "node", [], [helper.make_empty_tensor_value_info("result")])
    try:
        evaluator: Any = ReferenceEvaluator(graph, opsets={"": node.version})
        with np.errstate(all="ignore"):
            (result,) = evaluator.run(None, dict(zip(names, operands, strict=True)))
            floats = result
            is_integer = node.kind in _IN_FLOAT64 and operands[0].dtype.kind in "iu"
            if is_integer and not _is_integer_product(node, operands):
                (floats,) = evaluator.run(None, dict(zip(names, _widened(node, operands), strict=True)))
    # The package raises many exceptions where inputs do not fit, assertions and bare exceptions among them.
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UnsupportedError(f"constant inputs must fit the operator: {reason}") from error
    array = np.asarray(result)
    is_exact = floats is result or (np.array_equal(floats, array) and bool(np.all(np.abs(floats) <= _LARGEST_WHOLE)))
    require(is_exact, f"constant result of {array.dtype} must be exact in float64, in which ONNX Runtime computes")
    require(array.dtype.kind in _NUMBERS, f"constant result must hold numbers, but got {array.dtype}")
    return array


def _is_integer_product(node: Node, operands: Operands) -> bool:
    """Squares and cubes of integers are products that wrap around in ONNX Runtime, for every type of the exponent.

    Of several integers, that is.
    """
    is_power = node.kind == "Pow" and operands[0].dtype.kind in "iu" and operands[0].size > 1
    return is_power and operands[1].size == 1 and operands[1].item() in (2, 3)


def _widened(node: Node, operands: Operands) -> Operands:
    """The numbers among the operands as float64; axes stay integers."""
    numbers = 1 if node.kind.startswith("Reduce") else len(operands)
    return [*(one.astype(np.float64) for one in operands[:numbers]), *operands[numbers:]]


def _constant(node: Node, budget: Budget) -> Array:
    if "value" in node.attributes:
        value = node.attributes["value"]
        require(isinstance(value, np.ndarray), "constant must hold numbers")
        return value
    if "sparse_value" in node.attributes:
        return _dense(node.attributes["sparse_value"], budget)
    name = next((name for name in _VALUES if name in node.attributes), None)
    if name is None:
        raise UnsupportedError("constant must be a tensor, numbers or a number")
    return np.array(node.attributes[name], dtype=_VALUES[name])


def _dense(sparse: onnx.SparseTensorProto, budget: Budget) -> Array:
    """A sparse constant with its zeros; an element is at one index of all elements, or at one of each dimension."""
    from onnx import numpy_helper

    shape = tuple(sparse.dims)
    budget.spend_constant(shape, _LARGEST_ITEM)
    try:
        values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        dense = np.zeros(shape, values.dtype)
        dense[np.unravel_index(indices, shape) if indices.ndim == 1 else tuple(indices.T)] = values
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise UnsupportedError(f"sparse constant must hold elements of {list(shape)}: {error}") from error
    return dense
