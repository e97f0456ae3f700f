"""Folds integers that are all known into constants, and puts what loops and composites compute in their place.

Shapes of tensors are known, so SHAPE is the usual start of a chain of known integers; it ends where a shape is an
operand.  All of it is done before anything is planned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tflite

from qdialect.frontends.building.checks import Array, UnsupportedError, converting
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import LOOP
from qdialect.frontends.tflite.operators import plan
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, check_plain
from qdialect.frontends.tflite.operators.movement import select
from qdialect.frontends.tflite.shapes import with_shapes
from qdialect.ir.context import make_context
from qdialect.support.diagnostics import ImportModelError

Folder = Callable[[Operator, Sequence[Array]], Array]

_INTEGERS = {"i1": np.dtype(np.bool_), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64)}
# Shapes have few entries; weights are not folded.
_MAX_ENTRIES = 1024


def fold_constants(graph: Graph, *, unrolls: bool = True) -> Graph:
    """`graph` without the nodes that only compute integers from known ones; their outputs are constants.

    On the way, tensors whose shape the file leaves out get the one that their operator gives them, and loops whose trip
    count is known are replaced by what their trips compute and composites by their decomposition, unless `unrolls` is
    false.

    A node that does not fit its inputs stays, to be refused with the others.
    """
    folding = Folding(graph)
    for operator in graph.operators:
        is_replaced = unrolls and ((operator.kind == LOOP and unroll(folding, operator)) or inline(folding, operator))
        if not is_replaced:
            folding.add(operator)
    return folding.graph()


class Folding:
    """The nodes of a graph as they are folded one after another."""

    def __init__(self, graph: Graph) -> None:
        self.source = graph
        self.row_slices = RowSlices()
        self.kept: list[Operator] = []
        self._added: list[Tensor] = []
        self._known: dict[int, Tensor] = {}
        self._context = make_context()

    def add(self, operator: Operator) -> None:
        """Fold a node, or keep it."""
        inputs = tuple(None if tensor is None else self.known(tensor) for tensor in operator.inputs)
        current = with_shapes(replace(operator, inputs=inputs), self._context)
        array = _folded(current)
        if array is not None:
            output, source = current.outputs[0], current.inputs[0]
            is_dequantized = array.dtype == np.float32 and source is not None and source.element in EIGHT_BIT
            narrow = source if is_dequantized else None
            self.define(output, replace(output, shape=array.shape, data=array, narrow=narrow))
            return
        self.kept.append(current)
        for tensor in current.outputs:
            self.define(tensor, tensor)

    def known(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for one of the file."""
        return self._known.get(tensor.index, tensor)

    def define(self, tensor: Tensor, value: Tensor) -> None:
        """`value` stands for `tensor`."""
        self._known[tensor.index] = value

    def fresh(self, tensor: Tensor) -> Tensor:
        """A new tensor like `tensor`."""
        copy = replace(tensor, index=len(self.source.tensors) + len(self._added))
        self._added.append(copy)
        return copy

    def graph(self) -> Graph:
        """What is left."""
        outputs = tuple(self.known(tensor) for tensor in self.source.outputs)
        tensors = tuple(self.known(tensor) for tensor in (*self.source.tensors, *self._added))
        return replace(self.source, tensors=tensors, operators=tuple(self.kept), outputs=outputs)


def _folded(operator: Operator) -> Array | None:
    numbers = _narrow_numbers(operator)
    if numbers is not None:
        return numbers
    folder = _FOLDERS.get(operator.kind)
    if folder is None or len(operator.outputs) != 1 or None in operator.inputs or not operator.inputs:
        return None
    output = operator.outputs[0]
    arrays = [_array(operator.kind, tensor) for tensor in operator.inputs if tensor is not None]
    present = [array for array in arrays if array is not None]
    if output.element not in _INTEGERS or len(present) < len(arrays) or output.data is not None:
        return None
    if max(math.prod(output.shape), *(array.size for array in present)) > _MAX_ENTRIES:
        return None
    try:
        result = np.asarray(folder(operator, present)).astype(_INTEGERS[output.element])
    except (ValueError, IndexError, TypeError, ArithmeticError, UnsupportedError):
        return None
    return result if output.is_open or result.shape == output.shape else None


def _narrow_numbers(operator: Operator) -> Array | None:
    """Weights that the file holds as float16 or in 8 bits, as the float32 numbers that a node makes of them."""
    source = operator.inputs[0] if operator.inputs else None
    if operator.kind != "DEQUANTIZE" or source is None or source.data is None or len(operator.outputs) != 1:
        return None
    if source.element != "f16" and (source.element not in EIGHT_BIT or not source.scales):
        return None
    if (operator.outputs[0].element, operator.outputs[0].shape) != ("f32", source.shape):
        return None
    try:
        operator.budget.spend_constant(source.shape, 4)
    except UnsupportedError:
        return None
    if source.element == "f16":
        return source.data.astype(np.float32)
    along = [-1 if axis == source.axis and len(source.scales) > 1 else 1 for axis in range(source.data.ndim)]
    scales, zero_points = (np.array(values).reshape(along) for values in (source.scales, source.zero_points))
    return ((source.data.astype(np.float64) - zero_points) * scales).astype(np.float32)


def _array(kind: str, tensor: Tensor) -> Array | None:
    if kind in ("RANK", "SHAPE"):
        return np.array(tensor.shape, dtype=np.int64)
    return tensor.data if tensor.element in _INTEGERS else None


def _strided_slice(operator: Operator, arrays: Sequence[Array]) -> Array:
    data, *entries = arrays
    begins, ends, strides = ([int(value) for value in entry.ravel()] for entry in entries)
    selection = select(operator, data.shape, begins, ends, strides)
    indices = [one.indices for one in selection.slices]
    return data[np.ix_(*indices)].reshape(selection.shape) if indices else data.reshape(selection.shape)


def _concatenation(operator: Operator, arrays: Sequence[Array]) -> Array:
    check_plain(operator)
    return np.concatenate(arrays, axis=operator.option("Axis"))


def _gather(operator: Operator, arrays: Sequence[Array]) -> Array:
    axis, dims = operator.options("Axis", "BatchDims")
    if dims or arrays[1].min() < 0:
        raise ValueError
    return np.take(arrays[0], arrays[1], axis=axis)


def _reduced(function: Callable[..., Array]) -> Folder:
    def fold(operator: Operator, arrays: Sequence[Array]) -> Array:
        keep = operator.option("KeepDims")
        return function(arrays[0], axis=tuple(int(axis) for axis in arrays[1].ravel()), keepdims=bool(keep))

    return fold


def _shape(operator: Operator, arrays: Sequence[Array]) -> Array:
    """The option decides its type, not the type of the tensor."""
    kind = operator.option("OutType")
    if kind != {"i32": tflite.TensorType.INT32, "i64": tflite.TensorType.INT64}.get(operator.outputs[0].element):
        raise TypeError
    return arrays[0]


def _slice(_: Operator, arrays: Sequence[Array]) -> Array:
    """A size of -1 reaches to the end."""
    data, begins, sizes = arrays
    ends = np.where(sizes.ravel() == -1, data.shape, begins.ravel() + sizes.ravel())
    if (begins < 0).any() or (ends > data.shape).any() or (ends < begins.ravel()).any():
        raise IndexError
    return data[tuple(slice(int(begin), int(end)) for begin, end in zip(begins.ravel(), ends, strict=True))]


def _select(_: Operator, arrays: Sequence[Array]) -> Array:
    """A condition for each row is left."""
    condition, *sides = arrays
    if condition.size != 1 and any(side.shape != condition.shape for side in sides):
        raise ValueError
    return np.where(condition, *sides)


def _of_integers(function: Callable[[Array], Array]) -> Folder:
    return lambda _, arrays: function(arrays[0].astype(np.int64))


def _reshape(operator: Operator, arrays: Sequence[Array]) -> Array:
    return arrays[0].reshape(operator.outputs[0].shape)


def _pointwise(function: Callable[[Array, Array], Array]) -> Folder:
    def fold(operator: Operator, arrays: Sequence[Array]) -> Array:
        check_plain(operator)
        lhs, rhs = (array.astype(np.int64) for array in arrays)
        return function(lhs, rhs)

    return fold


def _quotient(function: Callable[[Array, Array], Array]) -> Folder:
    def divide(lhs: Array, rhs: Array) -> Array:
        if not rhs.all():
            raise ZeroDivisionError
        return function(lhs, rhs)

    return _pointwise(divide)


_FOLDERS: dict[str, Folder] = {
    "ABS": _of_integers(np.abs),
    "EQUAL": _pointwise(np.equal),
    "GREATER": _pointwise(np.greater),
    "GREATER_EQUAL": _pointwise(np.greater_equal),
    "LESS": _pointwise(np.less),
    "LESS_EQUAL": _pointwise(np.less_equal),
    "LOGICAL_AND": _pointwise(np.logical_and),
    "LOGICAL_NOT": lambda _, arrays: np.logical_not(arrays[0]),
    "LOGICAL_OR": _pointwise(np.logical_or),
    "NOT_EQUAL": _pointwise(np.not_equal),
    "ADD": _pointwise(np.add),
    "BROADCAST_ARGS": lambda _, arrays: np.array(np.broadcast_shapes(*(tuple(map(int, array)) for array in arrays))),
    "CAST": lambda _, arrays: arrays[0],
    "CONCATENATION": _concatenation,
    # Towards zero.
    "DIV": _quotient(lambda lhs, rhs: np.sign(lhs) * np.sign(rhs) * (np.abs(lhs) // np.abs(rhs))),
    "EXPAND_DIMS": _reshape,
    "FLOOR_DIV": _quotient(np.floor_divide),
    "FLOOR_MOD": _quotient(np.mod),
    "GATHER": _gather,
    "MAXIMUM": _pointwise(np.maximum),
    "MINIMUM": _pointwise(np.minimum),
    "NEG": _of_integers(np.negative),
    "MUL": _pointwise(np.multiply),
    "PACK": lambda operator, arrays: np.stack(arrays, axis=operator.option("Axis")),
    "RANGE": lambda _, arrays: np.arange(*(int(array.reshape(())) for array in arrays)),
    "RANK": lambda _, arrays: np.array(arrays[0].size),
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "REDUCE_PROD": _reduced(np.prod),
    "RESHAPE": _reshape,
    "SELECT": _select,
    "SELECT_V2": lambda _, arrays: np.where(*arrays),
    "SIGN": _of_integers(np.sign),
    "SLICE": _slice,
    "SUM": _reduced(np.sum),
    "SHAPE": _shape,
    "SQUEEZE": _reshape,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _pointwise(np.subtract),
}


# STABLEHLO_COMPOSITE: an operator with a name of its own, and a subgraph that computes it.
#
# Exporters of PyTorch models write them for normalizations and attention.  The nodes of the subgraph take its location.

_MAX_COMPOSITES = 8
"""Of composites within composites."""


def inline(folding: Folding, operator: Operator, depth: int = 0) -> bool:
    """Fold the nodes of a decomposition instead of its composite; false, with nothing done, for any other node."""
    body = None if operator.decomposition is None else folding.source.others.get(operator.decomposition)
    if body is None or depth > _MAX_COMPOSITES or not _fits_composite(operator, body):
        return False
    own = {tensor.index: folding.fresh(tensor) for tensor in body.tensors if tensor.data is not None}
    given = (tensor for tensor in operator.inputs if tensor is not None)
    own.update(zip((tensor.index for tensor in body.inputs), given, strict=True))
    # A result that the body passes on is defined at the end.
    pairs = list(zip(body.outputs, operator.outputs, strict=True))
    own.update((inner.index, outer) for inner, outer in reversed(pairs) if inner.index not in own)

    def tensor_of(tensor: Tensor) -> Tensor:
        if tensor.index not in own:
            own[tensor.index] = folding.fresh(tensor)
        return own[tensor.index]

    for part in body.operators:
        inputs = tuple(None if tensor is None else folding.known(tensor_of(tensor)) for tensor in part.inputs)
        moved = replace(part, index=operator.index, inputs=inputs, outputs=tuple(map(tensor_of, part.outputs)))
        if not inline(folding, moved, depth + 1):
            folding.add(moved)
    for inner, outer in pairs:
        if own[inner.index] is not outer:
            folding.define(outer, folding.known(own[inner.index]))
    return True


def _fits_composite(operator: Operator, body: Graph) -> bool:
    """Whether the node gives and takes what its decomposition does."""
    counts = (len(operator.inputs), len(operator.outputs)) == (len(body.inputs), len(body.outputs))
    shapes = [(outer.shape, outer.element) for outer in operator.inputs if outer is not None]
    return counts and shapes == [(inner.shape, inner.element) for inner in body.inputs]


# WHILE whose trip count is known: its condition reads integers that are all known before every trip.
#
# Such are the loops that Keras makes of recurrent layers.  What the trips compute takes the loop's place, node by node.

MAX_TRIPS = 256
_MAX_LOOP_NODES = 20_000
"""Of all trips of a loop."""


def unroll(folding: Folding, operator: Operator) -> bool:
    """Fold the trips of a loop instead of the loop; false, with nothing done, where that cannot be."""
    graph = folding.source
    try:
        subgraphs = operator.options("CondSubgraphIndex", "BodySubgraphIndex")
    except ImportModelError:
        return False
    condition, body = (graph.others.get(index) for index in subgraphs)
    if condition is None or body is None or not _fits_loop(graph, operator, condition, body):
        return False
    trial = len(folding.kept)
    parts = _Part.of(folding, operator, condition), _Part.of(folding, operator, body)
    start = [folding.known(tensor) for tensor in operator.inputs if tensor is not None]
    try:
        with converting():
            values = _trips(folding, *parts, start)
    except (UnsupportedError, ImportModelError):
        values = None
    needed = [] if values is None else _needed(folding.kept[trial:], values)
    if values is None or not all(map(_is_supported, needed)):
        del folding.kept[trial:]
        return False
    folding.kept[trial:] = needed
    for output, value in zip(operator.outputs, values, strict=True):
        folding.define(output, value)
    return True


def _fits_loop(graph: Graph, operator: Operator, condition: Graph, body: Graph) -> bool:
    """Whether every value goes around, none of them is a result of the graph, and no loop is inside."""
    count = len(operator.inputs)
    counts = (len(operator.outputs), len(condition.inputs), len(body.inputs), len(body.outputs))
    results = {tensor.index for tensor in graph.outputs}
    return (
        None not in operator.inputs
        and set(counts) == {count}
        and len(condition.outputs) == 1
        and not any(tensor.index in results for tensor in operator.outputs)
        and not any(inner.kind == LOOP for part in (condition, body) for inner in part.operators)
        and len(body.operators) * 2 <= _MAX_LOOP_NODES
    )


@dataclass(frozen=True)
class _Part:
    """A subgraph of a loop, and the tensors that stand for its constants in every trip."""

    graph: Graph
    loop: int
    """The index of the loop's node, under which its trips are reported."""
    constants: Mapping[int, Tensor]

    @classmethod
    def of(cls, folding: Folding, operator: Operator, graph: Graph) -> _Part:
        """That of a loop's node."""
        held = (tensor for tensor in graph.tensors if tensor.data is not None)
        return cls(graph, operator.index, {tensor.index: folding.fresh(tensor) for tensor in held})


def _is_supported(operator: Operator) -> bool:
    try:
        with converting():
            plan(operator)
    except (UnsupportedError, ImportModelError):
        return False
    return True


def _trips(folding: Folding, condition: _Part, body: _Part, values: list[Tensor]) -> list[Tensor] | None:
    """The values after the last trip; None where there are too many, or nobody knows how many."""
    limit = min(MAX_TRIPS, _MAX_LOOP_NODES // max(len(body.graph.operators), 1))
    for _ in range(limit + 1):
        before = len(folding.kept)
        verdict = _inlined(folding, condition, values)[0]
        if verdict.data is None or verdict.data.size != 1 or len(folding.kept) > before:
            return None
        if not verdict.data.all():
            return values
        values = _inlined(folding, body, values)
    return None


def _inlined(folding: Folding, part: _Part, values: Sequence[Tensor]) -> list[Tensor]:
    """Fold the nodes of a subgraph with `values` for its inputs; its outputs."""
    given = {tensor.index: value for tensor, value in zip(part.graph.inputs, values, strict=True)}
    own = {**part.constants, **given}

    def tensor_of(tensor: Tensor) -> Tensor:
        if tensor.index not in own:
            own[tensor.index] = folding.fresh(tensor)
        return folding.known(own[tensor.index])

    for operator in part.graph.operators:
        inputs = tuple(None if tensor is None else tensor_of(tensor) for tensor in operator.inputs)
        outputs = tuple(tensor_of(tensor) for tensor in operator.outputs)
        arguments = replace(operator, index=part.loop, inputs=inputs, outputs=outputs)
        taken = folding.row_slices.taken(arguments, folding.fresh)
        if taken is not None:
            folding.add(taken)
    return [tensor_of(tensor) for tensor in part.graph.outputs]


def _needed(operators: Sequence[Operator], values: Sequence[Tensor]) -> list[Operator]:
    """The nodes that `values` depend on."""
    read = {tensor.index for tensor in values}
    kept: list[Operator] = []
    for operator in reversed(operators):
        if any(tensor.index in read for tensor in operator.outputs):
            read.update(tensor.index for tensor in operator.inputs if tensor is not None)
            kept.append(operator)
    return kept[::-1]


# Lists of rows that loops keep in one tensor: written back as a whole, every row costs a copy of all of them.

Fresh = Callable[[Tensor], Tensor]

_MAX_SLICES = 1024


class RowSlices:
    """The slices that tensors consist of, by index of the tensor."""

    def __init__(self) -> None:
        self._of: dict[int, list[Tensor]] = {}

    def taken(self, operator: Operator, fresh: Fresh) -> Operator | None:
        """A node of a loop, its inputs known, in terms of slices; None where nothing is left to compute.

        `fresh` gives a new tensor like another.
        """
        if operator.kind == "CONCATENATION":
            return self._joined(operator)
        return self._sliced(operator, fresh) if operator.kind == "SLICE" else operator

    def _joined(self, operator: Operator) -> Operator:
        parts = [self._of.get(tensor.index, [tensor]) for tensor in operator.inputs if tensor is not None]
        flat = [one for part in parts for one in part]
        fields = ("Axis", "FusedActivationFunction")
        is_plain = operator.options(*fields) == (0, 0)
        has_rows = len(parts) == len(operator.inputs) and all(one.shape for one in flat)
        if not is_plain or not has_rows or not 1 <= len(flat) <= _MAX_SLICES:
            return operator
        self._of[operator.outputs[0].index] = flat
        return replace(operator, inputs=tuple(flat))

    def _sliced(self, operator: Operator, fresh: Fresh) -> Operator | None:
        bounds = _rows_of(operator)
        if bounds is None:
            return operator
        data, output = operator.inputs[0], operator.outputs[0]
        assert data is not None
        slices = _between(self._of.get(data.index, [data]), *bounds, fresh)
        if slices is None:
            return operator
        self._of[output.index] = slices
        shape = (bounds[1] - bounds[0], *data.shape[1:])
        # Rows that are there are cut out as well, for whoever reads them other than to join them.
        return replace(operator, outputs=(replace(output, shape=shape),)) if slices else None


def _between(slices: Sequence[Tensor], begin: int, end: int, fresh: Fresh) -> list[Tensor] | None:
    found: list[Tensor] = []
    first = 0
    for one in slices:
        extent = one.shape[0]
        low, high = max(begin - first, 0), min(end - first, extent)
        first += extent
        if low >= high:
            continue
        if high - low < extent and one.data is None:
            return None
        found.append(one if high - low == extent else _part(one, low, high, fresh))
    return found


def _part(one: Tensor, low: int, high: int, fresh: Fresh) -> Tensor:
    assert one.data is not None
    return replace(fresh(one), shape=(high - low, *one.shape[1:]), data=one.data[low:high])


def _rows_of(operator: Operator) -> tuple[int, int] | None:
    """The rows [begin, end) of a SLICE that takes all of every dimension but the first."""
    if len(operator.inputs) != 3 or len(operator.outputs) != 1 or None in operator.inputs:
        return None
    data, begin, size = (tensor for tensor in operator.inputs if tensor is not None)
    if begin.data is None or size.data is None or not data.shape:
        return None
    firsts, counts = begin.data.ravel().tolist(), size.data.ravel().tolist()
    if len(firsts) != len(data.shape) or len(counts) != len(data.shape):
        return None
    ends = [
        extent if count == -1 else first + count
        for first, count, extent in zip(firsts, counts, data.shape, strict=True)
    ]
    is_whole = all(first == 0 for first in firsts[1:]) and tuple(ends[1:]) == data.shape[1:]
    return (firsts[0], ends[0]) if is_whole and 0 <= firsts[0] <= ends[0] <= data.shape[0] else None
