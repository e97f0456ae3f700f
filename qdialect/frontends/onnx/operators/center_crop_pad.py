"""CenterCropPad: dimensions cut or filled with zeros on both sides until they have the wanted extents."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.movement import Movement, Padding, Slicing, move
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.slices import Slice


@imports("CenterCropPad")
def _center_crop_pad(call: Call) -> Tensor:
    """Of an odd number of elements one more is cut, or filled, at the end."""
    call.count(2)
    source, wanted = call.tensor(0), call.integers(1)
    rank = len(source.shape)
    axes = normalized_axes(call.attribute("axes", list(range(rank))), rank)
    holds = len(wanted) == len(axes) == len(set(axes)) and all(extent >= 1 for extent in wanted)
    require(holds, f"shape must be {len(axes)} extents of at least 1, but got {list(wanted)}")
    extents = dict(zip(axes, wanted, strict=True))
    slices, low, high = [Slice(0, 1, extent) for extent in source.shape], [0] * rank, [0] * rank
    for axis, extent in extents.items():
        surplus = source.shape[axis] - extent
        slices[axis] = Slice(max(surplus, 0) // 2, 1, min(extent, source.shape[axis]))
        low[axis], high[axis] = max(-surplus, 0) // 2, -(min(surplus, 0) // 2)
    shape = tuple(extents.get(axis, extent) for axis, extent in enumerate(source.shape))
    cut = Slicing.of(slices)
    movements: list[Movement] = [cut] if cut.shape != source.shape else []
    movements += [Padding(shape, tuple(low), tuple(high), 0.0)] if shape != cut.shape else []
    for movement in movements:
        source = move(call.plan, call.name, source, movement)
    return source
