"""topk, sort, kthvalue and median: elements in order.

Of equal numbers the first comes first, as in a stable sort; NaN is larger than every number.
"""

from __future__ import annotations

import math

from qdialect.frontends.common import require
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.ordering import top_indices
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import F32Tensor, Tensor
from qdialect.frontends.torch.operators.indexing import axis_of, elements_along
from qdialect.frontends.torch.operators.movement import moved, part_of
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.run_time import RunTimeQuantized
from qdialect.frontends.torch.tensors import Quantized

# So few numbers are in a stable order whether they must be or not.
_SORTED_STABLY = 16


@imports("topk.default")
def _top_k(call: Call) -> Result:
    """In order, whether they must be or not."""
    source = call.tensor("self")
    axis, (count,) = axis_of(call, len(source.shape)), call.integers("k", 1)
    _check_ties(call, source)
    return _part_of_order(call, source, axis, (0, count), is_largest=bool(call.argument("largest")))


@imports("sort.default", "sort.stable")
def _sort(call: Call) -> Result:
    source = call.tensor("self")
    axis = axis_of(call, len(source.shape))
    count = source.shape[axis] if source.shape else 1
    if not call.argument("stable") and count > _SORTED_STABLY:
        _check_ties(call, source)
    return _part_of_order(call, source, axis, (0, count), is_largest=bool(call.argument("descending")))


@imports("kthvalue.default", "median.dim")
def _kth(call: Call) -> Result:
    """The number of a rank; the median is the lower one of two."""
    source = call.tensor("self")
    axis = axis_of(call, len(source.shape))
    if is_kth := call.node.kind.startswith("aten.kthvalue"):
        _check_ties(call, source)
    count = call.integers("k", 1)[0] if is_kth else (source.shape[axis] + 1) // 2
    found = _part_of_order(call, source, axis, (count - 1, count), is_largest=False)
    if call.argument("keepdim"):
        return found
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return tuple(moved(call, one, Reshaping(shape)) for one in found)


@imports("median.default")
def _median(call: Call) -> Result:
    flat = moved(call, call.tensor("self"), Reshaping((math.prod(call.tensor("self").shape),)))
    middle = (flat.shape[0] + 1) // 2
    return moved(call, _part_of_order(call, flat, 0, (middle - 1, middle), is_largest=False)[0], Reshaping(()))


def _check_ties(call: Call, source: Tensor) -> None:
    """Where equal numbers are likely, nobody reads where they stood: PyTorch does not say which of them comes first."""
    is_read = call.taken is None or 1 in call.taken
    is_quantized = isinstance(source, Quantized | RunTimeQuantized)
    has_ties = not isinstance(source, F32Tensor) or is_quantized or source.table() is not None
    require(not (is_read and has_ties), "must be stable where indices of integers or quantized values are read")


def _part_of_order(
    call: Call, source: Tensor, axis: int, part: tuple[int, int], *, is_largest: bool
) -> tuple[Tensor, Tensor]:
    """The elements of some ranks along `axis`, and where they stood."""
    shape = source.shape
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
    begin, end = part
    require(0 <= begin < end <= shape[axis], f"rank must be in [1, {shape[axis]}], but got {end}")
    first = top_indices(call, source, axis, end, is_largest=is_largest)
    indices = part_of(call, first, axis, begin, end)
    return elements_along(call, source, indices, axis), indices
