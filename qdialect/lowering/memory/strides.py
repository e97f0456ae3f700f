"""Row-major strides, and those of memrefs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of an array of these sizes that lies without gaps."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def static_strides(type_: ir.MemRefType) -> tuple[int, ...] | None:
    """The strides of a memref; None where one is known at run time only, or where its layout is not strided."""
    try:
        strides, _ = type_.get_strides_and_offset()
    except RuntimeError:
        return None
    return None if ir.ShapedType.get_dynamic_stride_or_offset() in strides else tuple(strides)
