"""Which ops read a user's array otherwise than kernels read the arena: past its end, as words, or as signed bytes."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, DenseOp, DynamicConv2DOp, FusedConv2DOp, FusedDenseOp, I16Conv2DOp, TransposeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.kernels.groups import group_blocks
from qdialect.lowering.operands.transposed_operands import is_read_through
from qdialect.lowering.paddings import Convolution


def reads_past_end(op: Any) -> bool:
    """Whether a contiguous reduction ends inside a K group: bytes past the data are read, which only the arena has."""
    if not isinstance(op, Convolution | DynamicConv2DOp | I16Conv2DOp):
        return False
    channels, results = shape_of(op.data.type)[3], shape_of(op.operation.results[0].type)[3]
    k_group = 2 if isinstance(op, I16Conv2DOp) else 4
    return any(block.channels_in % k_group for block in group_blocks(op.groups, channels, results))


def reads_words(op: Any) -> bool:
    """Whether products read the input of `op` through it, as 32-bit numbers, which only the arena's bytes are."""
    return isinstance(view := op.opview, TransposeOp) and is_read_through(view)


def multiplies_signed(use: ir.OpOperand) -> bool:
    """Whether a use is the data of a contraction with constant weights whose channels are all summed up."""
    op = use.owner.opview
    if not isinstance(op, Conv2DOp | FusedConv2DOp | DenseOp | FusedDenseOp):
        return False
    groups = op.groups if isinstance(op, Conv2DOp | FusedConv2DOp) else 1
    return use.operand_number == 0 and groups == 1 and constant_value(op.weight) is not None
