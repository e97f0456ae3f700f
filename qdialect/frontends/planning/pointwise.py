"""Functions element by element of f32 values that broadcast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import UnsupportedError
from qdialect.frontends.planning.broadcasting import operands_of_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, F32Tensor, Plan, Table
from qdialect.quant_math import FloatArray
from qdialect.quant_math.expressions import Expression

_TABLE_SIZE = 256


@dataclass(frozen=True, eq=False)
class Pointwise(F32Tensor):
    """`formula` of `operands` in float32: a table where they are functions of one 8-bit tensor, ops elsewhere."""

    operands: tuple[F32Tensor, ...]
    formula: Expression | None
    """None where no ops compute it."""

    def _table(self) -> Table | None:
        """Of operands that are functions of one tensor, or one number everywhere: ``x * sigmoid(x)`` and the like."""
        tables = [operand.table() for operand in self.operands]
        found = [table for table in tables if table is not None]
        if self.formula is None or len({table.source.key for table in found}) != 1:
            return None
        entries = [_entries_of(*pair) for pair in zip(self.operands, tables, strict=True)]
        known = [one for one in entries if one is not None]
        if len(known) < len(entries) or found[0].source.shape != self.shape:
            return None
        return found[0].of_entries(self.shape, self.formula, *known)

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        table = self.table() if to.element in EIGHT_BIT else None
        return table.quantized(plan, name, to) if table else super()._quantized(plan, name, to)

    def _f32(self, plan: Plan, name: str) -> Value:
        formula = self.formula
        if formula is None:
            raise UnsupportedError("operator is supported as a function of one 8-bit tensor that is quantized")
        values = [operand.f32(plan, name) for operand in self.operands]

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = operands_of_shape(emitter, values, self.shape)
            return emitter.expression(formula, *operands), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def _entries_of(operand: F32Tensor, table: Table | None) -> FloatArray | None:
    """What `operand` is for each quantized value of a source, where it is a function of that or one number."""
    if table is not None:
        return table.entries
    data = operand.value.data if isinstance(operand, Computed) else None
    if data is None or data.size == 0 or np.any(data != data.flat[0]):
        return None
    return np.full(_TABLE_SIZE, np.float32(data.flat[0]))
