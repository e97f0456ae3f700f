"""CUMSUM and TOPK_V2: what depends on where an element stands in its row."""

from __future__ import annotations

import math

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import CumSumOp, DynamicGatherOp, TopKOp
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import Array, require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, operands_of_many, same_content
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options

_SUMMED, _RANKED = ("f32", "i32", "i64"), ("f32", "i8", "ui8", "i32", "i64")
_ALL_BUT_SIGN = 2**31 - 1


@imports("CUMSUM")
def _cumsum(operator: Operator) -> Emission:
    is_exclusive, is_reverse = read_options(operator, tflite.CumsumOptions, lambda o: (o.Exclusive(), o.Reverse()))
    data, axis = operands(operator, 2)
    require(data.element in _SUMMED, f"input must be {', '.join(_SUMMED)}, but got {data.element}")
    same_content(data, operator.outputs[0])
    how = {"exclusive": bool(is_exclusive), "reverse": bool(is_reverse)}
    along = axis_of(integers(axis, "axis"), len(data.shape))
    return lambda emitter: emitter.build(CumSumOp, emitter.value(data), element=data.element, axis=along, **how)


@imports("TOPK_V2")
def _top_k(operator: Operator) -> Emission:
    """The k largest of each row in descending order, equal ones in their own, and where they stand."""
    data, count = operands_of_many(operator, 2)
    require(data.element in _RANKED, f"input must be {', '.join(_RANKED)}, but got {data.element}")
    counts, found = integers(count, "k"), len(operator.outputs)
    require(found == 2, f"must have 2 outputs, but got {found}")
    same_content(data, operator.outputs[0])
    element = operator.outputs[1].element
    require(element in ("i32", "i64"), f"indices must be i32 or i64, but got {element}")
    extent = data.shape[-1] if data.shape else 0
    holds = len(counts) == 1 and 1 <= counts[0] <= extent
    require(holds, f"k must be in [1, {extent}], but got {list(counts)}")
    rows, k = math.prod(data.shape[:-1]), counts[0]

    def emit(emitter: Emitter) -> list[ir.Value]:
        value = emitter.reshape(emitter.value(data), (rows, extent))
        first = emitter.build(TopKOp, _keys(emitter, value, data), element="i64", axis=1, count=k)
        s = Arithmetic(emitter)
        at = s.op("arith.addi", first, emitter.constant(_starts(rows, extent, k)))
        flat = emitter.reshape(value, (rows * extent,))
        values = emitter.build(DynamicGatherOp, flat, at, element=data.element, axis=0)
        shape = (*data.shape[:-1], k)
        return [emitter.reshape(values, shape), emitter.reshape(s.resize(first, element), shape)]

    return emit


def _keys(emitter: Emitter, value: ir.Value, data: Tensor) -> ir.Value:
    """Integers in the order of the numbers: the bits of floats, those of negative ones inverted."""
    s = Arithmetic(emitter, is_unsigned=data.element == "ui8")
    if element_of(value.type) in ("i32", "i64"):
        return value
    if data.element != "f32":
        return s.resize(s.convert("tensor.bitcast", value, "i8") if data.element == "ui8" else value, "i32")
    bits = s.convert("arith.bitcast", s.op("arith.addf", value, 0.0), "i32")
    return s.select(s.compare("lt", bits, 0), s.op("arith.xori", bits, _ALL_BUT_SIGN), bits)


def _starts(rows: int, extent: int, width: int) -> Array:
    """Where each row starts, for `width` elements of it."""
    first = np.arange(rows, dtype=np.int64).reshape(rows, 1) * extent
    return np.ascontiguousarray(np.broadcast_to(first, (rows, width)))
