"""Transposition: a copy, vectors along both innermost dimensions; nothing where its readers walk the source."""

from __future__ import annotations

from qdialect.dialect import TransposeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.transposition import emit_transposition
from qdialect.lowering.operands.transposed_operands import is_read_through
from qdialect.lowering.program import Kernel


@lowers(TransposeOp, takes_arrays=True)
def _transpose(lowering: GraphLowering, op: TransposeOp) -> None:
    if not is_read_through(op):
        store_transposed(lowering, op)


def store_transposed(lowering: GraphLowering, op: TransposeOp) -> None:
    """Append the kernel call that stores the result of `op`."""
    data, output = lowering.slot(op.input), lowering.result(op.output)
    before, after = shape_of(op.input.type), shape_of(op.output.type)
    if not after:
        lowering.copy(data, output, after, op.operation.name)
        return
    own = dim_strides(before, data.storage)
    source = MapOperand(data, tuple(own[i] for i in op.permutation), data.storage.origin)
    target = MapOperand(output, dim_strides(after, output.storage), output.storage.origin)
    kernel = Kernel(lowering.program)
    emit_transposition(kernel, after, source, target)
    lowering.program.call(kernel, op.operation.name)
