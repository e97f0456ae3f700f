"""Split and Slice: parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from qdialect.frontends.budget import Budget
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.operators.data_movement import integers_of, moved, normalized_axes
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.movement import Slicing
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.slices import Slice, check_indices


@imports("Split")
def _split(call: Call) -> tuple[Tensor, ...]:
    """Sizes are an attribute in old operator sets, an input in later ones; else parts are even."""
    call.count(1, 2)
    shape, count = call.tensor(0).shape, len(call.node.outputs)
    (axis,) = normalized_axes([call.attribute("axis", 0)], len(shape))
    sizes = integers_of(call, 1, "split") or _even(shape[axis], call.attribute("num_outputs", count))
    require(len(sizes) == count, f"must have {len(sizes)} outputs, but got {count}")
    holds = min(sizes) >= 1 and sum(sizes) == shape[axis]
    require(holds, f"sizes must be at least 1 and add up to {shape[axis]}, but got {list(sizes)}")
    whole = [Slice(0, 1, extent) for extent in shape]
    parts: list[Tensor] = []
    for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        slices = (*whole[:axis], Slice(start, 1, size), *whole[axis + 1 :])
        parts.append(moved(call, Slicing.of(slices)))
    return tuple(parts)


def _even(extent: int, count: int) -> tuple[int, ...]:
    require(1 <= count <= extent, f"number of outputs must be in [1, {extent}], but got {count}")
    size = -(-extent // count)
    return (*(size for _ in range(count - 1)), extent - size * (count - 1))


@imports("Slice")
def _slice(call: Call) -> Tensor:
    """Starts, ends and axes are attributes in old operator sets, inputs in later ones, which have steps as well."""
    call.count(1, 5)
    shape = call.tensor(0).shape
    starts, ends = integers_of(call, 1, "starts"), integers_of(call, 2, "ends")
    if starts is None or ends is None:
        raise UnsupportedError("starts and ends must be given")
    axes = normalized_axes(integers_of(call, 3, "axes") or range(len(starts)), len(shape))
    steps = integers_of(call, 4, "steps") or (1,) * len(starts)
    lengths = [len(entries) for entries in (starts, ends, axes, steps)]
    require(len(set(lengths)) == 1, f"starts, ends, axes and steps must have as many entries, but got {lengths}")
    require(len(set(axes)) == len(axes), f"axes must name a dimension once, but got {axes}")
    slices = [Slice(0, 1, extent) for extent in shape]
    for axis, *entry in zip(axes, starts, ends, steps, strict=True):
        slices[axis] = _slice_of(shape[axis], entry, call.plan.budget)
    return moved(call, Slicing.of(slices))


def _slice_of(extent: int, entry: Sequence[int], budget: Budget) -> Slice:
    start, end, step = entry
    require(step != 0, "step must not be 0")
    # Backwards, an end before the first element cannot be written as an index.
    last = None if step < 0 and end < -extent else end
    taken = range(extent)[slice(max(start, -extent), last, step)]
    require(len(taken) >= 1, f"result must not be empty, but takes [{start}, {end}) of {extent}")
    check_indices(len(taken) if step < 0 else 0, budget)
    return Slice(taken.start, step, len(taken))
