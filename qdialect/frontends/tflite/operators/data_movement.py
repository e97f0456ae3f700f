"""RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, PAD and PADV2: the codes stay what they are."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.dialect import PadOp, ReshapeOp, TransposeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import constant, eight_bit, integers, operands, same_quantization
from qdialect.frontends.tflite.operators.registry import Emission, imports


@imports("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(operator: Operator) -> Emission:
    data, *shape = operands(operator, 1, 2)
    same_quantization(operator, data)
    for tensor in shape:
        integers(tensor, "shape")
    target = operator.outputs[0].shape
    found, wanted = math.prod(target), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(ReshapeOp, emitter.value(data), element=data.element, shape=target)

    return emit


@imports("TRANSPOSE")
def _transpose(operator: Operator) -> Emission:
    data, permutation = operands(operator, 2)
    same_quantization(operator, data)
    order = integers(permutation, "permutation")

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(TransposeOp, emitter.value(data), element=data.element, permutation=order)

    return emit


@imports("PAD", "PADV2")
def _pad(operator: Operator) -> Emission:
    """PAD fills with the code of zero, PADV2 with a code of its own."""
    data, paddings, *fill = operands(operator, 2, 3)
    same_quantization(operator, data)
    amounts, rank = integers(paddings, "paddings"), len(data.shape)
    require(len(amounts) == 2 * rank, f"paddings must have {2 * rank} entries, but got {len(amounts)}")
    value = data.zero_point
    if fill:
        same_quantization(operator, eight_bit(fill[0], "padding value"))
        codes = constant(fill[0], "padding value")
        require(codes.size == 1, f"padding value must have 1 entry, but got {codes.size}")
        value = int(codes.ravel()[0])

    def emit(emitter: Emitter) -> ir.Value:
        low, high = amounts[0::2], amounts[1::2]
        return emitter.build(PadOp, emitter.value(data), element=data.element, low=low, high=high, value=value)

    return emit
