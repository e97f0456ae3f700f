"""Ops that move elements: reshape, transpose, slice, concat, pad, gather and scatter.

Where the bytes can stay where they are nothing is copied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import QuantParams, Table, encode_table, identity_table, table_values
from qdialect.arithmetic.choices import ScatterReduction
from qdialect.arithmetic.elementwise import rescale
from qdialect.arithmetic.small_floats import WIDEN
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import NUMPY_DTYPES, SMALL_FLOATS, dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import only_user
from qdialect.lowering.qnn_to_linalg.bodies.quantization import stored_table
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import small_form
from qdialect.lowering.qnn_to_linalg.conversions.maps import table_read
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers, lowers_each, stored_operand
from qdialect.lowering.qnn_to_linalg.kernels import elementwise, gathering
from qdialect.lowering.qnn_to_linalg.kernels.transposition import emit_transposition
from qdialect.lowering.qnn_to_linalg.program import program
from qdialect.lowering.qnn_to_linalg.program.operands import is_read_through, picked_matrices
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body
from qdialect.passes.pattern import producer

# Reshape: the same bytes under another shape wherever they lie close enough, else one or two copies.

Shape = tuple[int, ...]


@lowers(qnn.ReshapeOp, takes_arrays=True)
def _reshape(lowering: GraphLowering, op: qnn.ReshapeOp) -> None:
    if lowering.is_stored(op.output) or _is_read_in_windows(lowering, op.output):
        return
    source, before, after = lowering.slot(op.input), shape_of(op.input.type), shape_of(op.output.type)
    # Kernels may read all lanes of a buffer of the arena, and a little past its end.
    is_safe = source.has_extra_bytes or lowering.can_be_array(op.output)
    seen = _seen_as(source, before, after) if is_safe else None
    if seen is not None and not lowering.is_padded(op.output):
        lowering.define(op.output, seen)
        return
    target = lowering.result(op.output)
    if seen is not None:
        lowering.copy(seen, target, after, op.operation.name)
        return
    common = _common_axes(before, after)
    if common is None:
        image = program.image_shape(before)
        dense = lowering.program.buffer(Storage(image, source.storage.element, image[3]))
        lowering.copy(source, dense, before, op.operation.name)
        source, before, common = dense, (math.prod(before),), after
    operand = elementwise.MapOperand(source, _steps(before, source.storage, common), source.storage.origin)
    output = elementwise.MapOperand(target, _steps(after, target.storage, common), target.storage.origin)
    lowering.move(common, operand, output, op.operation.name)


def _seen_as(slot: BufferSlot, before: Shape, after: Shape) -> BufferSlot | None:
    """The bytes of `slot` as a tensor of shape `after`; None where they are laid out otherwise."""
    storage, image = slot.storage, program.image_shape(after)
    is_dense = storage.pitch == storage.shape[3]
    pitch = image[3] if is_dense else storage.pitch
    fits = is_dense or before[-1:] == after[-1:]
    if storage.pads != program.NO_PADS or not fits:
        return None
    return replace(slot, storage=Storage(image, storage.element, pitch))


def _common_axes(before: Shape, after: Shape) -> Shape | None:
    """The coarsest shape whose dimensions split the dimensions of both; None where no such shape exists."""
    ends = sorted({*_ends(before), *_ends(after)})
    pairs = list(pairwise(ends))
    if any(outer % inner for inner, outer in pairs):
        return None
    return tuple(outer // inner for inner, outer in reversed(pairs))


def _ends(shape: Shape) -> list[int]:
    """Elements inside each dimension, from the innermost: 1, ..., all."""
    return [math.prod(shape[i:]) for i in range(len(shape) + 1)]


def _steps(shape: Shape, storage: Storage, common: Sequence[int]) -> tuple[int, ...]:
    """How far a tensor of `shape` moves along each of the `common` axes."""
    dims = list(zip(shape or (1,), dim_strides(shape or (1,), storage), strict=True))
    steps: list[int] = []
    inside = 1
    for extent in reversed(common):
        while len(dims) > 1 and dims[-1][0] == inside:
            dims.pop()
            inside = 1
        steps.append(inside * dims[-1][1])
        inside *= extent
    return tuple(reversed(steps))


# Transposition: a copy, vectors along both innermost dimensions; nothing where its readers walk the source.


@lowers(qnn.TransposeOp, takes_arrays=True)
def _transpose(lowering: GraphLowering, op: qnn.TransposeOp) -> None:
    if not is_read_through(op):
        store_transposed(lowering, op)


def store_transposed(lowering: GraphLowering, op: qnn.TransposeOp) -> None:
    """Append the kernel call that stores the result of `op`."""
    data, output = lowering.slot(op.input), lowering.result(op.output)
    before, after = shape_of(op.input.type), shape_of(op.output.type)
    if not after:
        lowering.copy(data, output, after, op.operation.name)
        return
    own = dim_strides(before, data.storage)
    source = elementwise.MapOperand(data, tuple(own[i] for i in op.permutation), data.storage.origin)
    kernel = Kernel(lowering.program)
    emit_transposition(kernel, after, source, stored_operand(output, after))
    lowering.program.call(kernel, op.operation.name)


# Slices: the same bytes where they lie in one stretch, else a strided copy.


@lowers(qnn.SliceOp, takes_arrays=True)
def _slice(lowering: GraphLowering, op: qnn.SliceOp) -> None:
    data, before, after = lowering.slot(op.input), shape_of(op.input.type), shape_of(op.output.type)
    strides = dim_strides(before, data.storage) if before else ()
    start = sum(first * stride for first, stride in zip(op.begin, strides, strict=True))
    seen = _stretch(data, start, before, op)
    if seen is not None and not lowering.is_padded(op.output):
        lowering.define(op.output, seen)
        return
    output = lowering.result(op.output)
    if not after:
        lowering.copy(data, output, after, op.operation.name)
        return
    is_whole = before[-1] == after[-1]
    lanes = min(data.storage.pitch, output.storage.pitch) if is_whole else after[-1]
    steps = tuple(stride * step for stride, step in zip(strides, op.strides, strict=True))
    source = elementwise.MapOperand(data, steps, data.storage.origin + start)
    lowering.move((*after[:-1], lanes), source, stored_operand(output, after), op.operation.name)


def _stretch(slot: BufferSlot, start: int, before: tuple[int, ...], op: qnn.SliceOp) -> BufferSlot | None:
    """Where the elements lie already; None where they lie apart, or where a kernel may not read past their end.

    They lie in one stretch where one dimension is cut, all before it have one element left and all after it are whole.
    The last is never cut: its padding lanes would belong to the next elements.
    """
    if (
        not slot.has_extra_bytes
        or slot.storage.pads != program.NO_PADS
        or set(op.strides) - {1}
        or before[-1:] != op.size[-1:]
    ):
        return None
    cut = max((axis for axis, extent in enumerate(before) if op.size[axis] != extent), default=0)
    if any(extent != 1 for extent in op.size[:cut]):
        return None
    return replace(slot, storage=replace(slot.storage, shape=program.image_shape(op.size)), offset=slot.offset + start)


# Concatenation: each input is written into its slice of the result, through a table where its quantized values change.
#
# `tensor.concat` does the same without changing elements.


@lowers(qnn.ConcatOp, takes_arrays=True)
def _concat(lowering: GraphLowering, op: qnn.ConcatOp) -> None:
    values = list(op.inputs)
    _write_parts(lowering, op.operation, op.axis, lambda kernel, i: _emit(kernel, _table(op, i, values[i])))


def _tensor_concat(lowering: GraphLowering, op: ir.OpView) -> None:
    axis = ir.IntegerAttr(op.operation.attributes["dim"]).value
    _write_parts(lowering, op.operation, axis, lambda _, __: None)


lowers_each(("tensor.concat",), _tensor_concat, takes_arrays=True)


def _write_parts(
    lowering: GraphLowering, op: ir.Operation, axis: int, emit_of: Callable[[Kernel, int], elementwise.Emit | None]
) -> None:
    """Write every operand into its slice along `axis`; `emit_of` gives what is done with its elements, if anything."""
    values, result = list(op.operands), op.results[0]
    slots = [lowering.slot(value) for value in values]
    output = lowering.result(result)
    strides = dim_strides(shape_of(result.type), output.storage)
    is_channels_last = axis == len(strides) - 1
    start = 0
    for index, (value, slot) in enumerate(zip(values, slots, strict=True)):
        shape = shape_of(value.type)
        lanes = shape[-1] if is_channels_last else min(slot.storage.pitch, output.storage.pitch)
        source = stored_operand(slot, shape)
        target = elementwise.MapOperand(output, strides, output.storage.origin + start * strides[axis])
        kernel = Kernel(lowering.program)
        emit = emit_of(kernel, index)
        converted = (
            elementwise.on_stored(emit, [slot.signed], is_signed=output.signed)
            if emit
            else elementwise.as_stored(source, target)
        )
        elementwise.emit_map(kernel, (*shape[:-1], lanes), [source], target, converted)
        lowering.program.call(kernel, op.name)
        start += shape[axis]


def _table(op: qnn.ConcatOp, index: int, value: ir.Value) -> Table:
    """The way of an input's stored quantized values to stored quantized values of the result."""
    affine, output = (
        QuantParams(op.input_scales[index], op.input_zero_points[index]),
        QuantParams(op.output_scale, op.output_zero_point),
    )
    quantized = rescale(table_values(dtype_of(value.type)), affine, output, op.rounding, op.multiplier)
    table = encode_table(np.clip(quantized, *range_of(op.output.type)), dtype_of(op.output.type))
    return stored_table(table, program.signed_shift(value.type), program.signed_shift(op.output.type))


def _emit(kernel: Kernel, table: Table) -> elementwise.Emit | None:
    return None if np.array_equal(table, identity_table()) else table_read(table)(kernel)


# Padding with a quantized value: the data in the middle, then one fill for each side of each dimension.
#
# A producer that nothing else reads has written its result there already.


@lowers(qnn.PadOp, takes_arrays=True)
def _pad(lowering: GraphLowering, op: qnn.PadOp) -> None:
    data = lowering.slot(op.input)
    # A producer that wrote into the middle has defined the result.
    is_inside = lowering.is_stored(op.output)
    output = lowering.slot(op.output) if is_inside else lowering.result(op.output)
    inner, outer = shape_of(op.input.type), shape_of(op.output.type)
    if not inner:
        lowering.copy(data, output, inner, op.operation.name)
        return
    strides = dim_strides(outer, output.storage)
    start = output.storage.origin + sum(low * stride for low, stride in zip(op.low, strides, strict=True))
    if not is_inside:
        target = elementwise.MapOperand(output, strides, start)
        lowering.move(inner, stored_operand(data, inner), target, op.operation.name)
    element, quantized = (
        program.STORAGE_ELEMENTS[element_of(op.input.type)],
        op.value + (not output.signed) * program.signed_shift(op.input.type),
    )
    if element_of(op.input.type) in SMALL_FLOATS:
        quantized = int(np.array(op.value, dtype_of(op.input.type)).view(np.int16))
    for offset, extents in _border(op, inner, outer, strides):
        kernel = Kernel(lowering.program)
        value = kernel.number("value", quantized, element)
        target = elementwise.MapOperand(output, strides, output.storage.origin + offset)
        elementwise.emit_map(kernel, extents, [], target, lambda _, __, value=value: value)
        lowering.program.call(kernel, f"{op.operation.name} border")


def _border(
    op: qnn.PadOp, inner: tuple[int, ...], outer: tuple[int, ...], strides: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(offset, extents) of boxes that make up the border: before and after the data along each dimension.

    Along the dimensions before it a box is as long as the data, along those after it as long as the result.
    """
    boxes: list[tuple[int, tuple[int, ...]]] = []
    corner = 0
    for axis, stride in enumerate(strides):
        for first, extent in ((0, op.low[axis]), (op.low[axis] + inner[axis], op.high[axis])):
            if extent:
                boxes.append((corner + first * stride, (*inner[:axis], extent, *outer[axis + 1 :])))
        corner += op.low[axis] * stride
    return boxes


# Gathers by constant indices: a strided copy for each arithmetic progression, or a loop over a table.
#
# Gathers of one another's results are one, and windows that a reduction reads are copied nowhere.


@lowers(qnn.GatherOp, takes_arrays=True)
def _gather(lowering: GraphLowering, op: qnn.GatherOp) -> None:
    if isinstance(only_user(op.output), qnn.GatherOp) or _is_read_in_windows(lowering, op.output):
        return
    first, indices = op, {op.axis: op.indices}
    while isinstance(before := producer(first.input), qnn.GatherOp) and only_user(before.output):
        first, later = before, indices.get(before.axis)
        indices[first.axis] = tuple(first.indices[i] for i in later) if later else first.indices
    data, output = lowering.slot(first.input), lowering.result(op.output)
    before, after = shape_of(first.input.type), shape_of(op.output.type)
    is_channels_last = len(before) - 1 in indices
    lanes = after[-1] if is_channels_last else min(data.storage.pitch, output.storage.pitch)
    sides = stored_operand(data, before), stored_operand(output, after)
    gathering.emit_gather(lowering.program, (*after[:-1], lanes), *sides, indices, op.operation.name)


@dataclass(frozen=True)
class Windows:
    """`count` windows of the `taps` elements first, first + step, ... of a dimension, each `stride` after the last."""

    at: int
    count: int
    first: int
    stride: int
    taps: int
    step: int


_MOST_WINDOWS = 16
"""Groups of windows alike, of which each is code of its own."""


def windows_of(lowering: GraphLowering, op: qnn.F32ReduceOp) -> tuple[qnn.GatherOp, list[Windows]] | None:
    """The gather whose windows along a dimension `op` reduces, if they can be read where they are."""
    split = producer(op.input)
    gathered = producer(split.input) if isinstance(split, qnn.ReshapeOp) else None
    if not isinstance(split, qnn.ReshapeOp) or not isinstance(gathered, qnn.GatherOp):
        return None
    axis, shape, whole = gathered.axis, shape_of(split.output.type), shape_of(gathered.output.type)
    values = [gathered.output, split.output]
    is_split = shape[:axis] + shape[axis + 2 :] == whole[:axis] + whole[axis + 1 :] and axis < len(whole) - 1
    is_alone = all(map(only_user, values)) and not lowering.is_of_rows([*values, op.output])
    if not is_split or not is_alone or tuple(op.axes) != (axis + 1,) or op.keep_dims:
        return None
    found: list[Windows] = []
    for at in range(shape[axis]):
        taps = list(gathered.indices[at * shape[axis + 1] : (at + 1) * shape[axis + 1]])
        # An extreme does not notice that an element counts twice.
        taps = sorted({*taps}) if isinstance(op, qnn.F32MaxOp | qnn.F32MinOp) else taps
        step = max(taps[1] - taps[0], 1) if len(taps) > 1 else 1
        if taps != [*range(taps[0], taps[-1] + 1, step)]:
            return None
        last = found[-1] if found and (found[-1].taps, found[-1].step) == (len(taps), step) else None
        stride = taps[0] - last.first - last.stride * (last.count - 1) if last else 0
        if last and stride >= 0 and last.stride == (stride if last.count > 1 else 0):
            found[-1] = replace(last, count=last.count + 1, stride=stride)
        else:
            found.append(Windows(at, 1, taps[0], 0, len(taps), step))
    return (gathered, found) if len(found) <= _MOST_WINDOWS else None


def _is_read_in_windows(lowering: GraphLowering, value: ir.Value) -> bool:
    reader = only_user(value)
    reader = only_user(reader.output) if isinstance(reader, qnn.ReshapeOp) else reader
    return isinstance(reader, qnn.F32ReduceOp) and windows_of(lowering, reader) is not None


# Gathers and scatters by indices that are known only at run time: a copy of a row for each index.


@lowers(qnn.DynamicGatherOp)
def _dynamic_gather(lowering: GraphLowering, op: qnn.DynamicGatherOp) -> None:
    """The shape with the last dimension's padding lanes, if both sides have them."""
    if picked_matrices(op.output):
        return
    small = _small_table(lowering, op)
    indices, output = lowering.slot(op.indices), lowering.result(op.output)
    if small is None:
        _gather_rows(lowering, op, lowering.slot(op.data), indices, output)
        return
    # What is read is half as large, and widened where it is near.
    table, form = small
    rows = lowering.program.buffer(replace(output.storage, element="i16"))
    _gather_rows(lowering, op, table, indices, rows)
    shape, kernel = shape_of(op.output.type), Kernel(lowering.program)
    source, target = (stored_operand(slot, shape) for slot in (rows, output))
    elementwise.emit_map(kernel, shape, [source], target, lambda body, values: WIDEN[form](body, values[0]))
    lowering.program.call(kernel, f"{op.operation.name} widened")


def _small_table(lowering: GraphLowering, op: qnn.DynamicGatherOp) -> tuple[BufferSlot, str] | None:
    """The f32 constant of which rows are read as floats of 16 bits, if those have all its numbers, and their type."""
    array, storage = constant_value(op.data), program.storage_of(op.data.type)
    is_far = array is not None and array.nbytes > lowering.program.strategy.near_bytes
    if array is None or not is_far or array.dtype != np.float32 or storage.live_bytes() < storage.bytes():
        return None
    form = small_form(array)
    bits = array.astype(NUMPY_DTYPES[form]).view(np.int16) if form else None
    return None if bits is None else (lowering.program.constant_tensor(bits, replace(storage, element="i16")), form)


def _gather_rows(
    lowering: GraphLowering, op: qnn.DynamicGatherOp, data: BufferSlot, indices: BufferSlot, output: BufferSlot
) -> None:
    before, after, axis = shape_of(op.data.type), shape_of(op.output.type), op.axis
    count = len(shape_of(op.indices.type))
    froms, tos = dim_strides(before, data.storage), dim_strides(after, output.storage)
    row = [*before[:axis], *before[axis + 1 :]]
    if axis < len(before) - 1:
        row[-1] = min(data.storage.pitch, output.storage.pitch)
    source = elementwise.MapOperand(data, (*froms[:axis], *froms[axis + 1 :]), data.storage.origin)
    target = elementwise.MapOperand(output, (*tos[:axis], *tos[axis + count :]), output.storage.origin)
    rows, listed = gathering.Rows(source, froms[axis], before[axis]), gathering.Listed(target, tos[axis : axis + count])
    kernel = Kernel(lowering.program)
    places = stored_operand(indices, shape_of(op.indices.type)), shape_of(op.indices.type)
    gathering.emit_rows(kernel, row, *places, rows, listed, is_gather=True)
    lowering.program.call(kernel, op.operation.name)


@lowers(qnn.DynamicScatterOp)
def _dynamic_scatter(lowering: GraphLowering, op: qnn.DynamicScatterOp) -> None:
    indices, updates, shape = lowering.slot(op.indices), lowering.slot(op.updates), shape_of(op.data.type)
    # The rows of a state are written where it is.
    is_in_place = lowering.is_stored(op.output)
    output = lowering.slot(op.output) if is_in_place else lowering.result(op.output)
    if not is_in_place:
        lowering.copy(lowering.slot(op.data), output, shape, f"{op.operation.name} data")
    froms, tos = dim_strides(shape_of(op.updates.type), updates.storage), dim_strides(shape, output.storage)
    source = elementwise.MapOperand(updates, froms[1:], updates.storage.origin)
    target = elementwise.MapOperand(output, tos[1:], output.storage.origin)
    rows, listed = gathering.Rows(target, tos[0], shape[0]), gathering.Listed(source, froms[:1])
    kernel = Kernel(lowering.program)
    reduce = _reduction(op.reduction, element_of(op.data.type))
    places = stored_operand(indices, shape_of(op.indices.type)), shape_of(op.indices.type)
    gathering.emit_rows(kernel, shape[1:], *places, rows, listed, is_gather=False, reduce=reduce)
    lowering.program.call(kernel, op.operation.name)


def _reduction(reduction: ScatterReduction, element: str) -> gathering.Reduce | None:
    """How an update and the element before it become one."""
    if reduction is ScatterReduction.NONE:
        return None
    if reduction is ScatterReduction.ADD:
        return Body.add
    if reduction is ScatterReduction.MUL:
        return Body.multiply
    if reduction in (ScatterReduction.LESS, ScatterReduction.GREATER):
        order, how = "o" if element == "f32" else "s", "lt" if reduction is ScatterReduction.LESS else "gt"
        return lambda body, before, update: body.select(body.compare(order + how, before, update), before, update)
    suffix = "imumf" if element == "f32" else "si"
    return lambda body, before, update: body.binary(f"arith.{reduction}{suffix}", before, update)
