"""embedding_bag: sums, means or maxima of rows of a table, of as many rows for each result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder, reduced
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant
from qdialect.frontends.torch.operators.indexing import taken
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports

_SUM, _MEAN, _MAX = range(3)
"""PyTorch's numbers of the modes."""


@imports(
    "embedding_bag.default",
    "embedding_bag.padding_idx",
    "_embedding_bag.default",
    "_embedding_bag_forward_only.default",
)
def _embedding_bag(call: Call) -> Result:
    """The results, and beside them what only a gradient needs: as many zeros."""
    count, size = _bags(call)
    mode, padding = call.argument("mode") or _SUM, call.argument("padding_idx")
    require(mode in (_SUM, _MEAN, _MAX), f"mode must be 0, 1 or 2, but got {mode}")
    require(padding in (None, -1), f"padding_idx must be -1, but got {padding}")
    rows = as_f32("weight", taken(call, call.tensor("weight"), call.tensor("indices"), 0))
    width = rows.shape[-1]
    is_weighted = call.given("per_sample_weights") is not None
    operands = (rows, call.f32("per_sample_weights")) if is_weighted else (rows,)

    def build(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        bags = emitter.reshape(values[0], (count, size, width))
        if is_weighted:
            weights = emitter.reshape(values[1], (count, size, 1))
            bags = F32Builder(emitter, (count, size, width))("mulf", bags, weights)
        found = reduced(emitter, F32MaxOp if mode == _MAX else F32SumOp, bags, (1,), keep_dims=False)
        return F32Builder(emitter, shape_of(found.type))("divf", found, float(size)) if mode == _MEAN else found

    zeros = (Constant(np.zeros(output.shape, np.int64)) for output in call.node.outputs[1:])
    return Computation((count, width), operands, build, name=call.name), *zeros


def _bags(call: Call) -> tuple[int, int]:
    """How many bags there are, and how many indices each one has."""
    offsets, indices = call.constant("offsets").ravel(), call.tensor("indices").shape
    require(len(indices) == 1, f"indices must have 1 dimension, but got {len(indices)}")
    ends = offsets[1:] if call.argument("include_last_offset") else np.append(offsets[1:], indices[0])
    sizes = sorted({int(size) for size in ends - offsets[: len(ends)]})
    require(len(sizes) == 1, f"bags must have the same number of indices, but got {sizes}")
    require(len(offsets) > 0 and offsets[0] == 0 and sizes[0] >= 1, "bags must begin at index 0 and must not be empty")
    require(len(ends) * sizes[0] == indices[0], f"bags must hold all {indices[0]} indices")
    return len(ends), sizes[0]
