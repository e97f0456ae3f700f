"""Plans operators that move elements: new shapes, transposes, padding, blocks of pixels, CONCATENATION and PACK."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import FloatRounding, Scaling, encode_table, round_f32, scale_factors, table_values
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import MAX_INDICES, Slice, check_indices, framed, spaced, take_slices
from qdialect.frontends.planning.tensors import mapping
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, built, imports, imports_i16
from qdialect.ir._mlir import ir

# RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, PAD and PADV2: the quantized values stay what they are.


@imports("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(operator: Operator) -> Emission:
    data, *shape = checks.operands(operator, 1, 2)
    checks.same_content(data, operator.outputs[0])
    for tensor in shape:
        checks.integers(tensor, "shape")
    target = operator.outputs[0].shape
    found, wanted = math.prod(target), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")
    return built(qnn.ReshapeOp, data, element=data.element, shape=target)


@imports("TRANSPOSE")
def _transpose(operator: Operator) -> Emission:
    data, permutation = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    order = checks.integers(permutation, "permutation")
    return lambda emitter: emitter.transpose(emitter.value(data), order)


@imports("PAD", "PADV2")
def _pad(operator: Operator) -> Emission:
    """PAD fills with the quantized zero, PADV2 with an element of its own."""
    data, paddings, *fill = checks.operands(operator, 2, 3)
    checks.same_content(data, operator.outputs[0])
    low, high = amounts_of(paddings, len(data.shape))
    require(min(*low, *high, 0) >= 0, f"paddings must be at least 0, but got {min(*low, *high, 0)}")
    value = fill_of(fill[0], operator.outputs[0]) if fill else (data.zero_point if data.scales else 0)
    return lambda emitter: framed(emitter, emitter.value(data), low, high, fill=value)


def amounts_of(paddings: Tensor, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cells before and after each dimension."""
    amounts = checks.integers(paddings, "paddings")
    require(len(amounts) == 2 * rank, f"paddings must have {2 * rank} entries, but got {len(amounts)}")
    return amounts[0::2], amounts[1::2]


def fill_of(tensor: Tensor, output: Tensor) -> float:
    """The one element of a constant that fills what is padded."""
    checks.same_content(tensor, output)
    entries = checks.constant(tensor, "padding value").ravel()
    require(entries.size == 1, f"padding value must have 1 entry, but got {entries.size}")
    return float(entries[0]) if tensor.element == "f32" else int(entries[0])


# SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks of pixels become images of their own, and back.


def _blocks_and_amounts(operator: Operator) -> tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The data, the block's extents, and the amounts before and after each of the dimensions that it spans."""
    data, block, amounts = checks.operands(operator, 3)
    checks.same_content(data, operator.outputs[0])
    extents = checks.integers(block, "block shape")
    holds = 1 <= len(extents) < len(data.shape) and min(extents) >= 1
    require(holds, f"block shape must be 1 to {len(data.shape) - 1} integers of at least 1, but got {list(extents)}")
    low, high = amounts_of(amounts, len(extents))
    require(min(*low, *high) >= 0, f"paddings and crops must be at least 0, but got {min(*low, *high)}")
    return data, extents, low, high


@imports("SPACE_TO_BATCH_ND")
def _space_to_batch(operator: Operator) -> Building:
    """The border is filled with the quantized zero; images are numbered [position in the block, image]."""
    data, block, low, high = _blocks_and_amounts(operator)
    count, rest = len(block), data.shape[1 + len(block) :]
    grown = [sum(entry) for entry in zip(data.shape[1:], low, high, strict=False)]
    fits = all(extent % size == 0 for extent, size in zip(grown, block, strict=True))
    require(fits, f"padded extents must be multiples of {list(block)}, but got {grown}")
    blocks = [extent // size for extent, size in zip(grown, block, strict=True)]
    split = (data.shape[0], *_interleaved(blocks, block), *rest)
    inner, outer = [2 + 2 * i for i in range(count)], [1 + 2 * i for i in range(count)]
    order = (*inner, 0, *outer, *range(1 + 2 * count, len(split)))
    shape = (data.shape[0] * math.prod(block), *blocks, *rest)
    zeros = (0,) * len(rest)
    value = data.zero_point if data.scales else 0
    emitter = yield
    padded = framed(emitter, emitter.value(data), (0, *low, *zeros), (0, *high, *zeros), fill=value)
    return emitter.rearranged(padded, split, order, shape)


@imports("BATCH_TO_SPACE_ND")
def _batch_to_space(operator: Operator) -> Building:
    data, block, low, high = _blocks_and_amounts(operator)
    count, blocks = len(block), math.prod(block)
    require(data.shape[0] % blocks == 0, f"batch must be a multiple of {blocks}, but got {data.shape[0]}")
    images, spatial, rest = data.shape[0] // blocks, data.shape[1 : 1 + count], data.shape[1 + count :]
    split = (*block, images, *spatial, *rest)
    order = (count, *_interleaved(range(count + 1, 2 * count + 1), range(count)), *range(2 * count + 1, len(split)))
    grown = [extent * size for extent, size in zip(spatial, block, strict=True)]
    kept = [extent - before - after for extent, before, after in zip(grown, low, high, strict=True)]
    require(min(kept) >= 1, f"crops must leave something of {grown}, but leave {kept}")
    whole = (images, *grown, *rest)
    starts, sizes = (0, *low, *(0 for _ in rest)), (images, *kept, *rest)
    slices = [Slice(first, 1, size) for first, size in zip(starts, sizes, strict=True)]
    emitter = yield
    return take_slices(emitter, emitter.rearranged(emitter.value(data), split, order, whole), slices)


def _interleaved(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(entry for pair in zip(first, second, strict=True) for entry in pair)


# DILATE: elements moved apart, a number between them.


@imports("DILATE")
def _dilate(operator: Operator) -> Emission:
    """Between two elements along a dimension there is one cell less than its dilation."""
    data, dilations, padding = checks.operands(operator, 3)
    counts, output = checks.integers(dilations, "dilations"), operator.outputs[0]
    rank = len(data.shape)
    holds = len(counts) == rank and min(counts, default=1) >= 1
    require(holds, f"dilations must be {rank} integers of at least 1, but got {list(counts)}")
    checks.same_type(operator, data)
    value = fill_of(padding, output)

    # Behind the last element there is nothing.
    cut = [1 - count for count in counts]
    return lambda emitter: framed(emitter, spaced(emitter, emitter.value(data), counts, value), [0] * rank, cut)


# CONCATENATION; `ui8` inputs may have parameters of their own, those of 16 bits one scale, integers and booleans none.

_PLAIN_TYPES = ("i1", "i32", "i64")


@imports("CONCATENATION")
@imports_i16("CONCATENATION")
def _concatenation(operator: Operator) -> Emission:
    checks.check_plain(operator)
    (parts, axis), output = checks.parts_of(operator), operator.outputs[0]
    if output.element in (*_PLAIN_TYPES, "i16"):
        for part in parts if output.element == "i16" else ():
            checks.same_scale(checks.sixteen_bit(part, "input"), checks.output_of(operator))
        checks.same_type(operator, *parts)
        return lambda emitter: emitter.concatenate([emitter.value(part) for part in parts], axis)
    checks.eight_bit(output, "output")
    for part in parts:
        require(checks.eight_bit(part, "input").element == output.element, "inputs and output must have one type")
        if output.element == "i8":
            checks.same_quantization(operator, part)
    return lambda emitter: joined(emitter, [_rescaled_input(emitter, part, output) for part in parts], axis, output)


def joined(emitter: Emitter, values: Sequence[ir.Value], axis: int, output: Tensor) -> ir.Value:
    """Quantized values with the parameters of `output` side by side along `axis`, any number of them."""
    if len(values) > MAX_VARIADIC:
        return emitter.concatenate(values, axis)
    scale, point, count = output.scale, output.zero_point, len(values)
    inputs = {"input_scales": [scale] * count, "input_zero_points": [point] * count}
    how = {**inputs, "output_scale": scale, "output_zero_point": point}
    return emitter.build(qnn.ConcatOp, *values, element=output.element, axis=axis, **how)


def _rescaled_input(emitter: Emitter, part: Tensor, output: Tensor) -> ir.Value:
    value = emitter.value(part)
    if (part.scale, part.zero_point) == (output.scale, output.zero_point):
        return value
    # half_away(x * r - z_x * r) + z_y with r = s_x * (1 / s_y), in float32 (TFLite ConcatenationWithScaling).
    ratio = np.float32(part.scale) * np.float32(scale_factors(output.scale, Scaling.RECIPROCAL_F32))
    shift = np.float32(-part.zero_point) * ratio
    scaled = table_values(np.uint8).astype(np.float32) * ratio + shift
    values = round_f32(scaled, FloatRounding.HALF_AWAY).astype(np.int64) + output.zero_point
    table = encode_table(np.clip(values, 0, 255), np.uint8)
    return emitter.build(qnn.LutOp, value, element=output.element, table=table, **mapping(part, output))


# PACK: tensors side by side along a new dimension.


@imports("PACK")
def _pack(operator: Operator) -> Building:
    count, axis = operator.options("ValuesCount", "Axis")
    parts = checks.operands(operator, 1, max(1, len(operator.inputs)))
    require(len(parts) == count, f"must have {count} inputs, but got {len(parts)}")
    output = operator.outputs[0]
    shape = parts[0].shape
    dimension = checks.axis_of([axis], len(shape) + 1)
    for part in parts:
        checks.same_content(part, output)
        require(part.shape == shape, f"inputs must have the shape {list(shape)}, but got {list(part.shape)}")
    emitter = yield
    layer = (*shape[:dimension], 1, *shape[dimension:])
    values = [emitter.reshape(emitter.value(part), layer) for part in parts]
    is_bytes = output.element in checks.EIGHT_BIT
    return joined(emitter, values, dimension, output) if is_bytes else emitter.concatenate(values, dimension)


@imports("SPLIT")
def _split(operator: Operator) -> Building:
    count = operator.option("NumSplits")
    axis, data = checks.operands_of_many(operator, 2)
    dimension = checks.axis_of(checks.integers(axis, "axis"), len(data.shape))
    require(count == len(operator.outputs), f"must have {count} outputs, but got {len(operator.outputs)}")
    extent = data.shape[dimension]
    require(extent % count == 0, f"extent must be a multiple of {count}, but got {extent}")
    return _parts(operator, data, dimension, [extent // count] * count)


@imports("SPLIT_V")
def _split_v(operator: Operator) -> Building:
    """One size may be -1: whatever the others leave."""
    data, sizes, axis = checks.operands_of_many(operator, 3)
    check_indices(math.prod(sizes.shape), operator.budget)
    dimension, given = (
        checks.axis_of(checks.integers(axis, "axis"), len(data.shape)),
        list(checks.integers(sizes, "sizes", MAX_INDICES)),
    )
    require(len(given) == len(operator.outputs), f"must have {len(given)} outputs, but got {len(operator.outputs)}")
    extent = data.shape[dimension]
    if given.count(-1) == 1:
        given[given.index(-1)] = extent - sum(given) - 1
    holds = min(given) >= 1 and sum(given) == extent
    require(holds, f"sizes must be at least 1 and add up to {extent}, but got {given}")
    return _parts(operator, data, dimension, given)


def _parts(operator: Operator, data: Tensor, axis: int, extents: Sequence[int], *, keeps_axis: bool = True) -> Building:
    """A slice along `axis` for each output, of the lengths `extents`."""
    for output in operator.outputs:
        checks.same_content(data, output)
    starts = list(accumulate(extents[:-1], initial=0))
    emitter = yield
    values: list[ir.Value] = []
    for output, start, extent in zip(operator.outputs, starts, extents, strict=True):
        emitter.enter(output.name)
        slices = [Slice(start, 1, extent) if i == axis else Slice(0, 1, n) for i, n in enumerate(data.shape)]
        shape = tuple(one.count for i, one in enumerate(slices) if keeps_axis or i != axis)
        values.append(emitter.reshape(take_slices(emitter, emitter.value(data), slices), shape))
    return values


def _selection(operator: Operator, data: Tensor, slices: Sequence[Slice], shape: Shape) -> Emission:
    checks.same_content(data, operator.outputs[0])
    return lambda emitter: emitter.reshape(take_slices(emitter, emitter.value(data), slices), shape)


@imports("SLICE")
def _slice(operator: Operator) -> Emission:
    """A size of -1 reaches to the end."""
    data, begin, size = checks.operands(operator, 3)
    firsts, counts, rank = checks.integers(begin, "begin"), checks.integers(size, "size"), len(data.shape)
    require(len(firsts) == len(counts) == rank, f"begin and size must have {rank} entries")
    slices: list[Slice] = []
    for first, count, extent in zip(firsts, counts, data.shape, strict=True):
        taken = extent - first if count == -1 else count
        holds = 0 <= first < extent and 1 <= taken <= extent - first
        require(holds, f"slice must lie in {extent} elements and not be empty, but takes {count} from {first} on")
        slices.append(Slice(first, 1, taken))
    return _selection(operator, data, slices, tuple(one.count for one in slices))


@imports("STRIDED_SLICE")
def _strided_slice(operator: Operator) -> Emission:
    data, begin, end, strides = checks.operands(operator, 4)
    begins, ends, steps = (
        checks.integers(begin, "begin"),
        checks.integers(end, "end"),
        checks.integers(strides, "strides"),
    )
    selection = select(operator, data.shape, begins, ends, steps)
    return _selection(operator, data, selection.slices, selection.shape)


@imports("UNPACK")
def _unpack(operator: Operator) -> Building:
    number, axis = operator.options("Num", "Axis")
    (data,) = checks.operands_of_many(operator, 1)
    dimension, count = checks.axis_of([axis], len(data.shape)), len(operator.outputs)
    require(data.shape[dimension] == number, f"extent along axis must be {number}, but got {data.shape[dimension]}")
    require(count == number, f"must have {number} outputs, but got {count}")
    return _parts(operator, data, dimension, [1] * number, keeps_axis=False)


# The part that STRIDED_SLICE takes: begins, ends and strides under five masks, as one index for each dimension.


@dataclass(frozen=True)
class Masks:
    """Bit i speaks of entry i: it has no begin or end, stands for all dimensions left, is new, or goes away."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int


@dataclass(frozen=True)
class Selection:
    """A slice of every dimension, and the shape of the result."""

    slices: tuple[Slice, ...]
    shape: Shape


def masks_of(operator: Operator) -> Masks:
    """The options of a STRIDED_SLICE node; `offset`, which makes ends relative to begins, is refused."""
    require(not operator.option("Offset"), "ends relative to begins are not supported")
    return Masks(*operator.options("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"))


class _Kind(Enum):
    """The kind of an entry."""

    SLICE = 0
    NEW = 1
    REST = 2


def select(
    operator: Operator, shape: Shape, begins: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Selection:
    """Resolve the entries against `shape` as NumPy's basic indexing does (tf.strided_slice).

    Raises `UnsupportedError` where they do not fit.
    """
    masks = masks_of(operator)
    counts = {len(begins), len(ends), len(strides)}
    require(len(counts) == 1, f"begin, end and strides must have as many entries, but got {sorted(counts)}")
    kinds = [_kind(i, masks) for i in range(len(begins))]
    if _Kind.REST not in kinds:
        kinds.append(_Kind.REST)
    require(kinds.count(_Kind.REST) == 1, f"ellipsis must stand at most once, but got {kinds.count(_Kind.REST)}")
    left = len(shape) - kinds.count(_Kind.SLICE)
    require(left >= 0, f"entries must index at most {len(shape)} dimensions, but got {kinds.count(_Kind.SLICE)}")
    slices: list[Slice] = []
    result: list[int] = []
    for i, kind in enumerate(kinds):
        if kind is _Kind.NEW:
            result.append(1)
            continue
        if kind is _Kind.REST:
            require(left > 0 or i == len(begins), "ellipsis must stand for a dimension, as LiteRT takes one for it")
            found = [Slice(0, 1, extent) for extent in shape[len(slices) : len(slices) + left]]
        else:
            found = [_slice_of(shape[len(slices)], begins[i], ends[i], strides[i], i, masks)]
        check_indices(sum(one.count for one in found if one.step < 0), operator.budget)
        slices += found
        result += [one.count for one in found if not one.is_shrunk]
    return Selection(tuple(slices), tuple(result))


def _kind(position: int, masks: Masks) -> _Kind:
    if masks.ellipsis >> position & 1:
        return _Kind.REST
    return _Kind.NEW if masks.new_axis >> position & 1 else _Kind.SLICE


def _slice_of(extent: int, begin: int, end: int, step: int, position: int, masks: Masks) -> Slice:
    require(step != 0, "stride must not be 0")
    if masks.shrink >> position & 1:
        holds = -extent <= begin < extent
        require(holds, f"begin must be in [-{extent}, {extent}), but got {begin}")
        return Slice(begin % extent, 1, 1, is_shrunk=True)
    first = None if masks.begin >> position & 1 else begin
    last = None if masks.end >> position & 1 else end
    taken = range(extent)[slice(first, last, step)]
    require(len(taken) >= 1, f"result must not be empty, but takes [{begin}, {end}) of {extent}")
    return Slice(taken.start, step, len(taken))


# FILL, ZEROS_LIKE and RANGE: numbers that the model's shapes and constants give.

_ZERO_TYPES = ("f32", "i8", "i16", "i32", "i64", "i1")
_RANGES = ("f32", "i32", "i64")


@imports("FILL")
def _fill(operator: Operator) -> Emission:
    """One element repeated; its number is known when the network runs."""
    extents, value = checks.operands(operator, 2)
    checks.same_content(value, operator.outputs[0])
    shape = checks.integers(extents, "dimensions")
    require(min(shape, default=1) >= 1, f"dimensions must be at least 1, but got {list(shape)}")
    found = math.prod(value.shape)
    require(found == 1, f"value must have 1 element, but got {found}")
    return lambda emitter: emitter.broadcast(emitter.reshape(emitter.value(value), (1,) * len(shape)), shape)


@imports("ZEROS_LIKE")
def _zeros(operator: Operator) -> Emission:
    (data,) = checks.operands(operator, 1)
    checks.same_type(operator, data)
    require(data.element in _ZERO_TYPES, f"input must be {', '.join(_ZERO_TYPES)}, but got {data.element}")
    zero = np.zeros((), NUMPY_DTYPES[data.element])
    return lambda emitter: emitter.constant(np.broadcast_to(zero, data.shape))


@imports("RANGE")
def _range(operator: Operator) -> Building:
    """``start + i * delta`` in the type of the numbers, as the kernel adds them up."""
    numbers = checks.operands(operator, 3)
    element = operator.outputs[0].element
    require(element in _RANGES, f"output must be {', '.join(_RANGES)}, but got {element}")
    checks.same_type(operator, *numbers)
    parts = [checks.constant(tensor, what) for tensor, what in zip(numbers, ("start", "limit", "delta"), strict=True)]
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
    (data,), output = checks.operands(operator, 1), operator.outputs[0]
    _check_diagonal(operator, data.shape, (*data.shape, *data.shape[-1:]))
    checks.same_type(operator, data)
    return lambda emitter: _spread_diagonal(emitter, emitter.value(data), output.shape)


@imports("MATRIX_SET_DIAG")
def _set_diagonal(operator: Operator) -> Building:
    data, diagonal = checks.operands(operator, 2)
    shape = data.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    wanted = (*shape[:-2], min(shape[-2:]))
    require(diagonal.shape == wanted, f"diagonal must be {list(wanted)}, but got {list(diagonal.shape)}")
    _check_diagonal(operator, diagonal.shape, shape)
    checks.same_type(operator, data, diagonal)
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
    positions, depth, on, off = checks.operands(operator, 4)
    checks.check_index_type(positions, "indices")
    depths, element = checks.integers(depth, "depth"), operator.outputs[0].element
    holds = len(depths) == 1 and 1 <= depths[0] <= _MAX_DEPTH
    require(holds, f"depth must be in [1, {_MAX_DEPTH}], but got {list(depths)}")
    require(element in _ONE_HOT_TYPES, f"output must be {', '.join(_ONE_HOT_TYPES)}, but got {element}")
    numbers = [_number(one, what, element) for one, what in ((on, "on value"), (off, "off value"))]
    rank = len(positions.shape)
    along = rank if axis == -1 else checks.axis_of([axis], rank + 1)
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
    entries = checks.constant(tensor, what)
    require(entries.size == 1, f"{what} must have 1 entry, but got {entries.size}")
    return entries.reshape(())
