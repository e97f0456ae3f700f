"""Sums of products of 16-bit data by dot products: accumulators of 32 bits, in as many parts as must be kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import AnyI16Contraction, I16Conv2DOp, I16DenseOp, I16RequantizeOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering
from qdialect.lowering.handlers.maps import AxisArray, Source, Stored
from qdialect.lowering.kernels.contraction import emit_contraction
from qdialect.lowering.kernels.epilogue import Epilogue
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.kernels.word_contraction import Part, WordContraction, channel_parts
from qdialect.lowering.memory.storage import storage_of
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.operands.packing import CenteredWeights
from qdialect.lowering.paddings import padding_of
from qdialect.lowering.program import BufferSlot
from qdialect.lowering.text.scalar_body import Body, Value


@dataclass(frozen=True)
class PartialSums:
    """Stored sums of 32 bits and a bias, which add up to the result of a contraction."""

    op: AnyI16Contraction
    parts: Sequence[Part]

    @classmethod
    def of(cls, op: AnyI16Contraction) -> PartialSums | None:
        """Those of `op`; None for weights of 16 bits, groups of single channels, and where no part is small enough."""
        weight = taps_of(op)
        if weight.dtype != np.int8 or _is_depthwise(op):
            return None
        # What 32 bits do not hold, an i32 result does not have either.
        wraps = element_of(op.output.type) == "i32"
        parts = [(0, weight.shape[3])] if wraps else channel_parts(weight)
        if parts is None or (len(parts) > 1 and groups_of(op) > 1):
            return None
        return cls(op, parts)

    def emit(self, lowering: GraphLowering) -> list[Source]:
        """Append a kernel call for each part; what `total` adds up."""
        shape = shape_of(self.op.output.type)
        slots = [self._emit_part(lowering, *part) for part in self.parts]
        bias = [] if self.op.bias is None else [required_constant("bias", self.op.bias)]
        return [*(Stored(slot, shape) for slot in slots), *(AxisArray(array, len(shape) - 1) for array in bias)]

    def total(self, body: Body, values: Sequence[Value]) -> Value:
        """The result of the contraction, from the values of its sources."""
        element = element_of(self.op.output.type)
        first, *others = (body.cast("arith.extsi", value, element) for value in values)
        for other in others:
            first = body.add(first, other)
        return first

    def _emit_part(self, lowering: GraphLowering, first: int, count: int) -> BufferSlot:
        op, weight = self.op, taps_of(self.op)[..., first : first + count]
        output = lowering.program.buffer(replace(storage_of(op.output.type), element="i32"))
        channels = weight.shape[0]
        zeros = np.zeros(channels, np.int32)
        centered = CenteredWeights(np.ascontiguousarray(weight), zeros)
        data = lowering.slot(op.data, padding_of(op))
        window = window_of(op, data)
        contraction = WordContraction(data, output, Epilogue(), window, centered, zeros, groups_of(op), first=first)
        emit_contraction(lowering.program, contraction, op.operation.name)
        return output


def taps_of(op: AnyI16Contraction) -> NDArray[Any]:
    """The weights as [OC, KH, KW, IC / groups]; the rows of a matrix are taps of a 1x1 kernel."""
    weight = required_constant("weight", op.weight)
    return weight.reshape(weight.shape[0], *(weight.shape[1:-1] or (1, 1)), -1)


def groups_of(op: AnyI16Contraction) -> int:
    """Groups of a contraction."""
    return op.groups if isinstance(op, I16Conv2DOp) else 1


def _is_depthwise(op: AnyI16Contraction) -> bool:
    return isinstance(op, I16Conv2DOp) and op.groups > 1 and shape_of(op.weight.type)[3] == 1


def window_of(op: AnyI16Contraction, data: BufferSlot) -> Window:
    """The window of a convolution; every row of a matrix is a pixel that one tap looks at."""
    if isinstance(op, I16DenseOp):
        images, height, width, _ = data.storage.shape
        return Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))
    images, height, width, _ = shape_of(op.output.type)
    _, rows, columns, _ = shape_of(op.weight.type)
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    return Window(images, (height, width), (rows, columns), strides, dilation, (op.padding[0], op.padding[1]))


def sums_inside(value: ir.Value) -> PartialSums | None:
    """The sums that `value` is, where a requantization is their only user and computes them in its own kernels."""
    owner = value.owner
    op = owner.opview if isinstance(owner, ir.Operation | ir.OpView) else None
    if not isinstance(op, AnyI16Contraction):
        return None
    users = [use.owner for use in value.uses]
    is_alone = len(users) == 1 and isinstance(users[0].opview, I16RequantizeOp)
    return PartialSums.of(op) if is_alone else None
