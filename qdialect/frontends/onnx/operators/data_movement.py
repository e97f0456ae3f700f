"""Transpose, Reshape, Expand, Split, Slice, Concat and others: numbers stay what they are; and known tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Budget, UnsupportedError, axes_in, axis_in, require, required
from qdialect.frontends.building.slices import Slice, check_indices, taken_by_slice
from qdialect.frontends.onnx.model import element_name
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, imports_integers, value_of
from qdialect.frontends.planning import movement
from qdialect.frontends.planning.elementwise import INTEGERS, broadcast_shape, common_element, element_type
from qdialect.frontends.planning.tensors import Constant, Tensor, is_known, known

# Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Identity and Dropout: numbers stay what they are.


def moved(call: Call, way: movement.Movement) -> Tensor:
    """Input 0 of a node, moved."""
    return movement.move(call.plan, call.name, call.tensor(0), way)


def _reshaped(call: Call, shape: Sequence[int]) -> Tensor:
    found = call.tensor(0).shape
    holds = math.prod(shape) == math.prod(found)
    require(holds, f"shape must have {math.prod(found)} elements, but got {list(shape)}")
    return moved(call, movement.Reshaping(tuple(shape)))


def integers_of(call: Call, index: int, name: str) -> tuple[int, ...] | None:
    """A list of integers that is a constant input in later operator sets and an attribute in old ones."""
    if call.optional(index) is not None:
        return call.integers(index)
    found = call.node.attributes.get(name)
    return None if found is None else tuple(call.attribute(name, [0]))


@imports("Transpose")
def _transpose(call: Call) -> Tensor:
    shape = call.tensor(0).shape
    order: tuple[int, ...] = tuple(call.attribute("perm", list(range(len(shape)))[::-1]))
    holds = sorted(order) == list(range(len(shape)))
    require(holds, f"perm must order {len(shape)} dimensions, but got {list(order)}")
    return moved(call, movement.Transposition.of(shape, order))


@imports("Reshape")
def _reshape(call: Call) -> Tensor:
    """A zero keeps the extent, -1 stands for whatever is left."""
    wanted = required(integers_of(call, 1, "shape"), "shape must be given")
    source = call.tensor(0).shape
    keeps = not call.flag("allowzero", 0)
    kept = [source[i] if extent == 0 and keeps and i < len(source) else extent for i, extent in enumerate(wanted)]
    holds = kept.count(-1) <= 1 and min(kept, default=1) >= -1
    require(holds, f"shape must have at most one unknown extent, but got {list(wanted)}")
    known_part = math.prod(extent for extent in kept if extent != -1)
    require(-1 not in kept or known_part >= 1, f"shape must not be empty, but got {list(wanted)}")
    return _reshaped(call, [math.prod(source) // known_part if extent == -1 else extent for extent in kept])


@imports("Flatten")
def _flatten(call: Call) -> Tensor:
    shape = call.tensor(0).shape
    axis: int = call.attribute("axis", 1)
    rank = len(shape)
    require(-rank <= axis <= rank, f"axis must be in [-{rank}, {rank}], but got {axis}")
    normalized_axis = axis + rank if axis < 0 else axis
    return _reshaped(call, (math.prod(shape[:normalized_axis]), math.prod(shape[normalized_axis:])))


@imports("Squeeze")
def _squeeze(call: Call) -> Tensor:
    shape = call.tensor(0).shape
    axes = integers_of(call, 1, "axes")
    removed = [i for i, extent in enumerate(shape) if extent == 1] if axes is None else axes_in(axes, len(shape))
    holds = all(shape[i] == 1 for i in removed)
    require(holds, f"axes must name extents of 1 in {list(shape)}, but got {removed}")
    return _reshaped(call, [extent for i, extent in enumerate(shape) if i not in removed])


@imports("Unsqueeze")
def _unsqueeze(call: Call) -> Tensor:
    axes = required(integers_of(call, 1, "axes"), "axes must be given")
    shape = list(call.tensor(0).shape)
    for normalized_axis in sorted(axes_in(axes, len(shape) + len(axes))):
        shape.insert(normalized_axis, 1)
    return _reshaped(call, shape)


@imports("Expand")
def _expand(call: Call) -> Tensor:
    """An extent of 1 in the wanted shape keeps the input's."""
    shape = broadcast_shape(call.tensor(0).shape, integers_of(call, 1, "shape") or ())
    require(0 not in shape, f"result must have elements, but has the shape {list(shape)}")
    return moved(call, movement.Broadcasting(shape))


@imports("Identity")
def _identity(call: Call) -> Tensor:
    return call.tensor(0)


@imports("Dropout")
def _dropout(call: Call) -> tuple[Tensor, ...]:
    """Inference drops nothing; the mask of what is kept is true."""
    call.ignore("ratio", "seed")
    trains = call.optional(2) is not None and call.number(2) != 0
    require(not trains, "training_mode must be 0, but got 1")
    shape = call.tensor(0).shape
    if not any(call.node.outputs[1:]):
        return (call.tensor(0),)
    call.plan.budget.spend_constant(shape, 1)
    return call.tensor(0), Constant(np.ones(shape, np.bool_))


# Split and Slice: parts of a tensor.


@imports("Split")
def _split(call: Call) -> tuple[Tensor, ...]:
    """Sizes are an attribute in old operator sets, an input in later ones; else parts are even."""
    shape, count = call.tensor(0).shape, len(call.node.outputs)
    axis = axis_in(call.attribute("axis", 0), len(shape))
    sizes = integers_of(call, 1, "split") or _even(shape[axis], call.attribute("num_outputs", count))
    require(len(sizes) == count, f"must have {len(sizes)} outputs, but got {count}")
    holds = min(sizes) >= 1 and sum(sizes) == shape[axis]
    require(holds, f"sizes must be at least 1 and add up to {shape[axis]}, but got {list(sizes)}")
    whole = [Slice(0, 1, extent) for extent in shape]
    parts: list[Tensor] = []
    for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        slices = (*whole[:axis], Slice(start, 1, size), *whole[axis + 1 :])
        parts.append(moved(call, movement.Slicing.of(slices)))
    return tuple(parts)


def _even(extent: int, count: int) -> tuple[int, ...]:
    require(1 <= count <= extent, f"number of outputs must be in [1, {extent}], but got {count}")
    size = -(-extent // count)
    return (*(size for _ in range(count - 1)), extent - size * (count - 1))


@imports("Slice")
def _slice(call: Call) -> Tensor:
    """Starts, ends and axes are attributes in old operator sets, inputs in later ones, which have steps as well."""
    shape = call.tensor(0).shape
    starts, ends = (
        required(integers_of(call, index, name), "starts and ends must be given")
        for index, name in ((1, "starts"), (2, "ends"))
    )
    axes = axes_in(integers_of(call, 3, "axes") or range(len(starts)), len(shape))
    steps = integers_of(call, 4, "steps") or (1,) * len(starts)
    lengths = [len(entries) for entries in (starts, ends, axes, steps)]
    require(len(set(lengths)) == 1, f"starts, ends, axes and steps must have as many entries, but got {lengths}")
    require(len(set(axes)) == len(axes), f"axes must name a dimension once, but got {axes}")
    slices = [Slice(0, 1, extent) for extent in shape]
    for axis, *entry in zip(axes, starts, ends, steps, strict=True):
        slices[axis] = _slice_of(shape[axis], entry, call.plan.budget)
    kept = tuple(one.count for one in slices)
    # The package's inference of shapes takes ends for indices.
    return (
        Constant(np.empty(kept, NUMPY_DTYPES[element_type(call.tensor(0))]))
        if 0 in kept
        else moved(call, movement.Slicing.of(slices))
    )


def _slice_of(extent: int, entry: Sequence[int], budget: Budget) -> Slice:
    start, end, step = entry
    require(step != 0, "step must not be 0")
    taken = taken_by_slice(extent, start, end, step)
    check_indices(len(taken) if step < 0 else 0, budget)
    return Slice(taken.start, step, len(taken))


# Concat and QLinearConcat: every input gets the output's parameters by a table of its own.


@imports("Concat")
def _concat(call: Call) -> Tensor:
    """Known parts stay known, and quantized ones quantized if they agree in their parameters."""
    parts = [call.f32(index) for index in range(len(call.inputs))]
    axis = _axis(call, 0)
    whole = movement.joined(parts, axis)
    if not all(map(is_known, call.inputs)):
        return movement.concatenation(call.plan, call.name, whole)
    call.plan.budget.spend_constant(whole.shape, 4)
    quantized = [part for part in parts if isinstance(part, Quantized)]
    kinds = {(part.values.element, part.scales, part.zero_points, part.axis) for part in quantized}
    if len(quantized) < len(parts) or len(kinds) > 1 or (len(quantized[0].scales) > 1 and quantized[0].axis == axis):
        return Constant(np.concatenate([call.constant(index) for index in range(len(parts))], axis))
    values = np.concatenate([part.values.data for part in quantized if part.values.data is not None], axis)
    return quantized[0].with_values(known(call.name, values))


@imports("com.microsoft.QLinearConcat")
def _qlinear_concat(call: Call) -> Tensor:
    count = len(call.inputs)
    require(count >= 5 and count % 3 == 2, f"must have 2 inputs and 3 for each part, but got {count}")
    parts = [f32_values_of(call, index, index + 1) for index in range(2, count, 3)]
    whole = movement.joined(parts, _axis(call, 2))
    return quantized_by(call, whole, 0, call.value(2).element)


@imports_integers("Concat")
def _concat_integers(call: Call) -> Tensor:
    """Any number of them: what lies side by side stays what it is."""
    parts = [value_of(call, index) for index in range(len(call.inputs))]
    element = common_element(parts, ("i1", *INTEGERS))
    axis = _axis(call, 0)
    shape = movement.joined_shape([part.shape for part in parts], axis)
    return call.plan.ordered(call.name, shape, element, parts, lambda emitter, held: emitter.concatenate(held, axis))


def _axis(call: Call, first: int) -> int:
    """The dimension along which tensors of the rank of input `first` lie side by side."""
    require("axis" in call.node.attributes, "attribute 'axis' is missing")
    return axis_in(call.attribute("axis", 0), len(call.tensor(first).shape))


# CenterCropPad: dimensions cut or filled with zeros on both sides until they have the wanted extents.


@imports("CenterCropPad")
def _center_crop_pad(call: Call) -> Tensor:
    """Of an odd number of elements one more is cut, or filled, at the end."""
    source, wanted = call.tensor(0), call.integers(1)
    rank = len(source.shape)
    axes = axes_in(call.attribute("axes", list(range(rank))), rank)
    holds = len(wanted) == len(axes) == len(set(axes)) and all(extent >= 1 for extent in wanted)
    require(holds, f"shape must be {len(axes)} extents of at least 1, but got {list(wanted)}")
    extents = dict(zip(axes, wanted, strict=True))
    slices, low, high = [Slice(0, 1, extent) for extent in source.shape], [0] * rank, [0] * rank
    for axis, extent in extents.items():
        surplus = source.shape[axis] - extent
        slices[axis] = Slice(max(surplus, 0) // 2, 1, min(extent, source.shape[axis]))
        low[axis], high[axis] = max(-surplus, 0) // 2, -(min(surplus, 0) // 2)
    shape = tuple(extents.get(axis, extent) for axis, extent in enumerate(source.shape))
    cut = movement.Slicing.of(slices)
    movements: list[movement.Movement] = [cut] if cut.shape != source.shape else []
    movements += [movement.Padding(shape, tuple(low), tuple(high), 0.0)] if shape != cut.shape else []
    for way in movements:
        source = movement.move(call.plan, call.name, source, way)
    return source


# EyeLike, Compress and Range: operators that depend on a shape, or on something that is known when the model is read.


@imports("EyeLike")
def _eye_like(call: Call) -> Tensor:
    """Ones on the k-th diagonal of a matrix that is as large as input 0."""
    shape = call.tensor(0).shape
    require(len(shape) == 2, f"input must have 2 dimensions, but got {len(shape)}")
    given = call.attribute("dtype", 0)
    element = element_name(given) if given else element_type(call.tensor(0))
    require(element in NUMPY_DTYPES, f"dtype must be one of {', '.join(NUMPY_DTYPES)}, but is {element}")
    diagonal = min(max(call.attribute("k", 0), -shape[0]), shape[1])
    call.plan.budget.spend_constant(shape, NUMPY_DTYPES[element].itemsize)
    return Constant(np.eye(*shape, k=diagonal, dtype=NUMPY_DTYPES[element]))


@imports("Compress")
def _compress(call: Call) -> Tensor:
    """The elements along an axis, or of all, for which a known condition holds."""
    condition, source = call.constant(1), call.tensor(0)
    require(condition.dtype == np.bool_, f"condition must be i1, but got {condition.dtype}")
    axis = 0
    if "axis" in call.node.attributes:
        axis = axis_in(call.attribute("axis", 0), len(source.shape))
    else:
        source = moved(call, movement.Reshaping((math.prod(source.shape),)))
    extent, indices = source.shape[axis], np.flatnonzero(condition.ravel())
    require(condition.size <= extent, f"condition must have at most {extent} entries, but got {condition.size}")
    require(indices.size >= 1, "condition must hold for at least 1 element")
    call.plan.budget.spend_indices(indices.size)
    return movement.move(call.plan, call.name, source, movement.Gathering.of(source.shape, axis, indices.tolist()))


@imports("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Range")
def _evaluated(call: Call) -> Tensor:
    """Evaluated when the model is read: what comes here reads something that is not known then."""
    for index in range(len(call.inputs)):
        call.constant(index)
    raise UnsupportedError(f"must have 1 output, but got {len(call.node.outputs)}")
