"""Tabulates subgraphs between 8-bit tensors by evaluating them for every quantized value, for patterns of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams, Table, table_values
from qdialect.dialect import ClipOp, LutOp, QnnOp, RequantizeOp, UnaryOp, build
from qdialect.dialect.constants import constant_value, is_repeated
from qdialect.dialect.type_constraints import EIGHT_BIT, NUMPY_DTYPES, dtype_of, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import Replacement, producer
from qdialect.reference import interpreter

Array = NDArray[Any]

Function = ClipOp | LutOp | RequantizeOp | UnaryOp

_EVALUATORS = interpreter.evaluators.EVALUATORS


def every_value_of(type_: ir.Type) -> Array:
    """Every quantized value of an 8-bit tensor type in table order, as an array of its rank (at least 1) and dtype."""
    quantized = table_values(dtype_of(type_)).astype(dtype_of(type_))
    return quantized.reshape(256, *[1] * (len(shape_of(type_)) - 1))


def evaluated(value: ir.Value, known: Mapping[ir.Value, Array]) -> Array:
    """`value` by the reference meaning of the ops between it and the values of `known`.

    The ops must be element-wise, their other inputs uniform constants: shapes are then free.
    """
    results = dict(known)
    pending = [value]
    while pending:
        open_ = _open_operands(pending[-1], results)
        if open_:
            pending += open_
        else:
            _evaluate(pending.pop(), results)
    return results[value]


def table_of(value: ir.Value, source: ir.Value) -> Table:
    """The 256-entry table from the quantized values of `source` to those of `value`, by `evaluated`."""
    quantized = evaluated(value, {source: every_value_of(source.type)})
    return np.ascontiguousarray(quantized.reshape(256)).view(np.uint8)


def uniform_value(value: ir.Value) -> Array | None:
    """The one element that fills the constant `value`, as an array of rank 0; None where its elements differ."""
    array = constant_value(value)
    if array is None or not (is_repeated(array) or np.all(array == array.flat[0])):
        return None
    return array.flat[0].reshape(())


def is_eight_bit(value: ir.Value) -> bool:
    """Whether `value` is a tensor of 8-bit quantized values."""
    return EIGHT_BIT.problem(value.type) is None


def is_eight_bit_function(op: ir.OpView | None) -> TypeGuard[Function]:
    """Whether `op` maps each quantized value of its one 8-bit operand to one: a table could replace it."""
    if isinstance(op, LutOp | UnaryOp):
        return True
    if isinstance(op, RequantizeOp):
        per_tensor = op.weight_scales == (1.0,) and len(op.input_zero_points) == 1
        return per_tensor and is_eight_bit(op.input) and is_eight_bit(op.output)
    return isinstance(op, ClipOp) and is_eight_bit(op.input)


def _open_operands(value: ir.Value, results: Mapping[ir.Value, Array]) -> list[ir.Value]:
    """The operands without a result, which must be evaluated before `value`."""
    if value in results or uniform_value(value) is not None:
        return []
    op = producer(value)
    if op is None:
        raise AssertionError(f"{value} is outside the subgraph to evaluate")
    return [operand for operand in op.operation.operands if operand not in results]


def _evaluate(value: ir.Value, results: dict[ir.Value, Array]) -> None:
    if value in results:
        return
    uniform, op = uniform_value(value), producer(value)
    if uniform is None and op is not None:
        operands = [results[operand] for operand in op.operation.operands]
        uniform = _EVALUATORS[op.operation.name](op, operands).astype(NUMPY_DTYPES[element_of(value.type)])
    assert uniform is not None
    results[value] = uniform


@dataclass(frozen=True)
class LutMatch:
    """A table of `source`, and what its indices and entries mean."""

    source: ir.Value
    table: Table
    input: QuantParams
    output: QuantParams


class LutPattern(Replacement[LutMatch]):
    """A pattern whose root becomes a `qnn.lut`."""

    def emit(self, op: QnnOp, match: LutMatch) -> ir.Value:
        return lut(match, element_of(op.operation.results[0].type))


def lut(match: LutMatch, element: str) -> ir.Value:
    """A `qnn.lut`, whose result is of type `element`."""
    return build(
        LutOp,
        match.source,
        element=element,
        table=match.table,
        input_scale=match.input.scale,
        input_zero_point=match.input.zero_point,
        output_scale=match.output.scale,
        output_zero_point=match.output.zero_point,
    ).output


def tabulated(op: QnnOp, source: ir.Value, before: QuantParams, after: QuantParams) -> LutMatch:
    """The match for the result of `op` as a function of `source`."""
    return LutMatch(source, table_of(op.operation.results[0], source), before, after)
