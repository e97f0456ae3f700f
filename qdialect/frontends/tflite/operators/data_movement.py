"""RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, PAD and PADV2: the quantized values stay what they are."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.dialect import PadOp, ReshapeOp, TransposeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import constant, integers, operands, same_content
from qdialect.frontends.tflite.operators.registry import Emission, imports

_LARGEST_WHOLE = 2**24


@imports("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(operator: Operator) -> Emission:
    data, *shape = operands(operator, 1, 2)
    same_content(data, operator.outputs[0])
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
    same_content(data, operator.outputs[0])
    order = integers(permutation, "permutation")

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(TransposeOp, emitter.value(data), element=data.element, permutation=order)

    return emit


@imports("PAD", "PADV2")
def _pad(operator: Operator) -> Emission:
    """PAD fills with the quantized zero, PADV2 with an element of its own."""
    data, paddings, *fill = operands(operator, 2, 3)
    same_content(data, operator.outputs[0])
    low, high = amounts_of(paddings, len(data.shape))
    value = fill_of(fill[0], operator.outputs[0]) if fill else (data.zero_point if data.scales else 0)

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(PadOp, emitter.value(data), element=data.element, low=low, high=high, value=value)

    return emit


def amounts_of(paddings: Tensor, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cells before and after each dimension."""
    amounts = integers(paddings, "paddings")
    require(len(amounts) == 2 * rank, f"paddings must have {2 * rank} entries, but got {len(amounts)}")
    return amounts[0::2], amounts[1::2]


def fill_of(tensor: Tensor, output: Tensor) -> int:
    """The one element of a constant that fills what is padded."""
    same_content(tensor, output)
    entries = constant(tensor, "padding value").ravel()
    require(entries.size == 1, f"padding value must have 1 entry, but got {entries.size}")
    value = float(entries[0]) if tensor.element == "f32" else int(entries[0])
    holds = isinstance(value, int) or (value.is_integer() and abs(value) <= _LARGEST_WHOLE)
    require(holds, f"padding value must be a whole number of at most 2^24, but got {value}")
    return int(value)
