"""The meaning of a piece of graph between 8-bit tensors, found by running it on every code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import OPS, ClipOp, LutOp, RequantizeOp, UnaryOp
from qdialect.dialect.constants import constant_value, is_repeated
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import EIGHT_BIT, NUMPY_DTYPES, dtype_of, element_of, shape_of
from qdialect.passes.matching import producer
from qdialect.quant_math import Table, table_codes
from qdialect.reference import interpreter

Array = NDArray[Any]

BINARY_NAMES = tuple(op_class.OPERATION_NAME for op_class in OPS if issubclass(op_class, BinaryOp))
"""Names of the functions of two 8-bit tensors."""

_DTYPES = {**NUMPY_DTYPES, "i1": np.dtype(np.bool_)}
_EVALUATORS = interpreter.evaluators.EVALUATORS


def codes_of(type_: ir.Type) -> Array:
    """Every code of an 8-bit tensor type in table order, as an array of its rank (at least 1) and dtype."""
    codes = table_codes(dtype_of(type_)).astype(dtype_of(type_))
    return codes.reshape(256, *[1] * (len(shape_of(type_)) - 1))


def evaluated(value: ir.Value, known: Mapping[ir.Value, Array]) -> Array:
    """`value` by the reference meaning of the ops between it and the values of `known`.

    The ops must be element-wise, their other inputs uniform constants: shapes are then free.
    """
    return _evaluated(value, dict(known))


def table_of(value: ir.Value, source: ir.Value) -> Table:
    """The 256-entry table from the codes of `source` to those of `value`, by `evaluated`."""
    codes = evaluated(value, {source: codes_of(source.type)})
    return np.ascontiguousarray(codes.reshape(256)).view(np.uint8)


def uniform_value(value: ir.Value) -> Array | None:
    """The one element that fills the constant `value`, as an array without dimensions; None where there is none."""
    array = constant_value(value)
    if array is None or not (is_repeated(array) or np.all(array == array.flat[0])):
        return None
    return array.flat[0].reshape(())


def is_eight_bit(value: ir.Value) -> bool:
    """Whether `value` is a tensor of 8-bit codes."""
    return EIGHT_BIT.problem(value.type) is None


def is_eight_bit_function(op: ir.OpView | None) -> bool:
    """Whether `op` takes each code of its one 8-bit operand to a code: a table could stand in its place."""
    if isinstance(op, LutOp | UnaryOp):
        return True
    if isinstance(op, RequantizeOp):
        per_tensor = op.weight_scales == (1.0,) and len(op.input_zero_points) == 1
        return per_tensor and is_eight_bit(op.input) and is_eight_bit(op.output)
    return isinstance(op, ClipOp) and is_eight_bit(op.input)


def _evaluated(value: ir.Value, results: dict[ir.Value, Array]) -> Array:
    """`value`, and in `results` all that it depends on; operands first, without recursion over a long chain."""
    waiting = [value]
    while waiting:
        current = waiting[-1]
        missing = [] if current in results else _missing(current, results)
        waiting += missing
        if not missing:
            waiting.pop()
    return results[value]


def _missing(value: ir.Value, results: dict[ir.Value, Array]) -> list[ir.Value]:
    """The operands that must be known before `value` is; without any, `value` is put into `results`."""
    op = producer(value)
    if op is None:
        raise AssertionError(f"{value} is outside the piece of graph to evaluate")
    uniform = uniform_value(value)
    if uniform is not None:
        results[value] = uniform
        return []
    operands = list(op.operation.operands)
    missing = [operand for operand in operands if operand not in results]
    if not missing:
        known = [results[operand] for operand in operands]
        results[value] = _EVALUATORS[op.operation.name](op, known).astype(_DTYPES[element_of(value.type)])
    return missing
