"""Plans FILL, ZEROS_LIKE, RANGE, ONE_HOT, MATRIX_DIAG and MATRIX_SET_DIAG: tensors filled with a few numbers."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import framed, spaced
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import constant, integers, operands, same_content, same_type
from qdialect.frontends.tflite.operators.indexing import check_index_type
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.ir._mlir import ir

# FILL, ZEROS_LIKE and RANGE: numbers that the model's shapes and constants give.

_PLAIN_TYPES = ("f32", "i8", "i16", "i32", "i64", "i1")
_RANGES = ("f32", "i32", "i64")


@imports("FILL")
def _fill(operator: Operator) -> Emission:
    """One element repeated; its number is known when the network runs."""
    extents, value = operands(operator, 2)
    same_content(value, operator.outputs[0])
    shape = integers(extents, "dimensions")
    require(min(shape, default=1) >= 1, f"dimensions must be at least 1, but got {list(shape)}")
    found = math.prod(value.shape)
    require(found == 1, f"value must have 1 element, but got {found}")
    return lambda emitter: emitter.broadcast(emitter.reshape(emitter.value(value), (1,) * len(shape)), shape)


@imports("ZEROS_LIKE")
def _zeros(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    same_type(operator, data)
    require(data.element in _PLAIN_TYPES, f"input must be {', '.join(_PLAIN_TYPES)}, but got {data.element}")
    zero = np.zeros((), NUMPY_DTYPES[data.element])
    return lambda emitter: emitter.constant(np.broadcast_to(zero, data.shape))


@imports("RANGE")
def _range(operator: Operator) -> Building:
    """``start + i * delta`` in the type of the numbers, as the kernel adds them up."""
    numbers = operands(operator, 3)
    element = operator.outputs[0].element
    require(element in _RANGES, f"output must be {', '.join(_RANGES)}, but got {element}")
    same_type(operator, *numbers)
    parts = [constant(tensor, what) for tensor, what in zip(numbers, ("start", "limit", "delta"), strict=True)]
    require(all(part.size == 1 for part in parts), "start, limit and delta must have 1 element each")
    start, limit, delta = (part.reshape(()).item() for part in parts)
    count = _count(start, limit, delta)
    operator.budget.spend_constant((count,), 8)
    steps = np.full(count, delta, NUMPY_DTYPES[element])
    steps[0] = start
    emitter = yield
    return emitter.constant(np.add.accumulate(steps, dtype=steps.dtype))


def _count(start: float, limit: float, delta: float) -> int:
    ends = f"delta must lead from {start} to {limit}, but got {delta}"
    require(delta != 0 and all(map(math.isfinite, (start, limit, delta))), ends)
    count = math.ceil((limit - start) / delta)
    require(count >= 1, ends)
    return count


# MATRIX_DIAG and MATRIX_SET_DIAG: elements on the diagonal of matrices.

_DIAGONAL_TYPES = ("f32", "i8", "i16", "i32", "i64")


@imports("MATRIX_DIAG")
def _diagonal(operator: Operator) -> Emission:
    """Zeros elsewhere, whatever these stand for."""
    (data,), output = operands(operator, 1), operator.outputs[0]
    _check_diagonal(operator, data.shape, (*data.shape, *data.shape[-1:]))
    same_type(operator, data)
    return lambda emitter: _spread_diagonal(emitter, emitter.value(data), output.shape)


@imports("MATRIX_SET_DIAG")
def _set_diagonal(operator: Operator) -> Building:
    data, diagonal = operands(operator, 2)
    shape = data.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    wanted = (*shape[:-2], min(shape[-2:]))
    require(diagonal.shape == wanted, f"diagonal must be {list(wanted)}, but got {list(diagonal.shape)}")
    _check_diagonal(operator, diagonal.shape, shape)
    same_type(operator, data, diagonal)
    mask = np.eye(*shape[-2:], dtype=np.bool_)
    emitter = yield
    on = _spread_diagonal(emitter, emitter.value(diagonal), shape)
    chosen = emitter.broadcast(emitter.constant(mask), shape)
    return Arithmetic(emitter).select(chosen, on, emitter.value(data))


def _check_diagonal(operator: Operator, diagonal: Shape, shape: Shape) -> None:
    output = operator.outputs[0]
    require(len(diagonal) >= 1, "diagonal must have at least 1 dimension")
    require(output.element in _DIAGONAL_TYPES, f"output must be {', '.join(_DIAGONAL_TYPES)}, but got {output.element}")
    require(output.shape == shape, f"output must be {list(shape)}, but got {list(output.shape)}")


def _spread_diagonal(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    """The elements [..., K] on the diagonals of zeros [..., M, N]: they lie N + 1 apart."""
    *outer, rows, columns = shape
    count = shape_of(value.type)[-1]
    apart = spaced(emitter, emitter.reshape(value, (math.prod(outer), count)), (1, columns + 1))
    missing = rows * columns - count * (columns + 1)
    return emitter.reshape(framed(emitter, apart, (0, 0), (0, missing)), shape)


# ONE_HOT: a number where an index stands, another elsewhere.

_ONE_HOT_TYPES = ("f32", "i8", "i32", "i64", "i1")
_MAX_DEPTH = 1 << 20


@imports("ONE_HOT")
def _one_hot(operator: Operator) -> Building:
    """An index outside of the new dimension has no number of its own there; the kernel reads 32 bits of each."""
    axis = operator.option("Axis")
    positions, depth, on, off = operands(operator, 4)
    check_index_type(positions, "indices")
    depths, element = integers(depth, "depth"), operator.outputs[0].element
    holds = len(depths) == 1 and 1 <= depths[0] <= _MAX_DEPTH
    require(holds, f"depth must be in [1, {_MAX_DEPTH}], but got {list(depths)}")
    require(element in _ONE_HOT_TYPES, f"output must be {', '.join(_ONE_HOT_TYPES)}, but got {element}")
    numbers = [_number(one, what, element) for one, what in ((on, "on value"), (off, "off value"))]
    rank = len(positions.shape)
    along = rank if axis == -1 else axis_of([axis], rank + 1)
    split = (*positions.shape[:along], 1, *positions.shape[along:])
    shape = (*positions.shape[:along], depths[0], *positions.shape[along:])
    index = np.arange(depths[0], dtype=np.int32).reshape(-1, *[1] * (rank - along))
    emitter = yield
    s = Arithmetic(emitter)
    spread = emitter.broadcast(emitter.reshape(s.resize(emitter.value(positions), "i32"), split), shape)
    known = emitter.broadcast(emitter.constant(index), shape)
    chosen, other = (emitter.constant(np.broadcast_to(n, shape)) for n in numbers)
    return s.select(s.compare("eq", spread, known), chosen, other)


def _number(tensor: Tensor, what: str, element: str) -> np.ndarray[tuple[()], np.dtype[np.generic]]:
    require(tensor.element == element, f"{what} must be {element}, but got {tensor.element}")
    entries = constant(tensor, what)
    require(entries.size == 1, f"{what} must have 1 entry, but got {entries.size}")
    return entries.reshape(())
