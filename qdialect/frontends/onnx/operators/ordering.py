"""TopK: the largest or smallest numbers along a dimension."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.indexing import elements_along
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.ordering import top_indices
from qdialect.frontends.planning.tensors import Tensor


@imports("TopK")
def _top_k(call: Call) -> tuple[Tensor, ...]:
    """In order, equal numbers in their own."""
    call.count(1, 2)
    source = call.tensor(0)
    (axis,) = normalized_axes([call.attribute("axis", -1)], len(source.shape))
    counts = call.integers(1) if call.optional(1) is not None else (call.attribute("k", 0),)
    require(len(counts) == 1, f"k must have 1 entry, but got {len(counts)}")
    count, extent = counts[0], source.shape[axis]
    require(1 <= count <= extent, f"k must be in [1, {extent}], but got {count}")
    indices = top_indices(call, source, axis, count, is_largest=call.flag("largest", 1))
    return elements_along(call, source, indices, axis), indices
