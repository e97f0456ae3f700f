"""Plans operators that move elements: new shapes, transposes, padding, blocks of pixels, CONCATENATION and PACK."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic import FloatRounding, Scaling, encode_table, round_f32, scale_factors, table_values
from qdialect.dialect import ConcatOp, LutOp, ReshapeOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.slices import Slice, framed, spaced, take_slices
from qdialect.frontends.planning.tensors import mapping
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, built, imports, imports_i16
from qdialect.frontends.tflite.operators.slicing import axis_of
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
    return built(ReshapeOp, data, element=data.element, shape=target)


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
    return emitter.build(ConcatOp, *values, element=output.element, axis=axis, **how)


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
    return emitter.build(LutOp, value, element=output.element, table=table, **mapping(part, output))


# PACK: tensors side by side along a new dimension.


@imports("PACK")
def _pack(operator: Operator) -> Building:
    count, axis = operator.options("ValuesCount", "Axis")
    parts = checks.operands(operator, 1, max(1, len(operator.inputs)))
    require(len(parts) == count, f"must have {count} inputs, but got {len(parts)}")
    output = operator.outputs[0]
    shape = parts[0].shape
    dimension = axis_of([axis], len(shape) + 1)
    for part in parts:
        checks.same_content(part, output)
        require(part.shape == shape, f"inputs must have the shape {list(shape)}, but got {list(part.shape)}")
    emitter = yield
    layer = (*shape[:dimension], 1, *shape[dimension:])
    values = [emitter.reshape(emitter.value(part), layer) for part in parts]
    is_bytes = output.element in checks.EIGHT_BIT
    return joined(emitter, values, dimension, output) if is_bytes else emitter.concatenate(values, dimension)
