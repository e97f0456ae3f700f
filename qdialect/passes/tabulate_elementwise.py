"""`qnn-tabulate-elementwise`: upstream ops from one 8-bit tensor to another become the table that they are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from qdialect.arithmetic import QuantParams, Table, clamp_of_table, table_values
from qdialect.dialect import QnnOp
from qdialect.dialect.type_constraints import dtype_of
from qdialect.ir._mlir import ir
from qdialect.passes.elementwise.graph import UPSTREAM_OPS, ElementwiseGraph, graph_of
from qdialect.passes.elementwise.sources import is_reinterpreted
from qdialect.passes.pattern import GraphPass, producer, require, users
from qdialect.passes.registry import register
from qdialect.passes.tabulate import LutMatch, LutPattern, is_eight_bit

_UNKNOWN: QuantParams = QuantParams(1.0, 0)


class TabulateElementwise(LutPattern):
    """A graph of element-wise ops from one 8-bit tensor, constants aside, to an 8-bit result."""

    roots = (*UPSTREAM_OPS, "qnn.clip", "qnn.quantize")

    def check(self, op: ir.OpView) -> LutMatch | None:
        result = op.operation.results[0]
        if not is_eight_bit(result) or is_reinterpreted(result):
            return None
        graph = graph_of(result)
        if graph is None:
            return None
        is_left_alone = all(isinstance(one, QnnOp) or one.operation.name == "tensor.bitcast" for one in graph.ops)
        if not is_eight_bit(graph.source) or is_left_alone:
            return None
        require(graph.channels == 1, "needs constants whose elements are all equal")
        table = _table_of(graph)
        before = _meaning_of(graph.source)
        return LutMatch(graph.source, table, before, _meaning_after(graph, table, before))


def _table_of(graph: ElementwiseGraph) -> Table:
    """The table, indexed by the bits of the source."""
    evaluation = graph.evaluate(table_values(dtype_of(graph.source.type))[:, None])
    require(not evaluation.is_undefined(graph.result), "has no defined value for every number it depends on")
    entries = np.broadcast_to(evaluation.values[graph.result], (256, 1))
    return np.ascontiguousarray(entries[:, 0]).view(np.uint8)


def _meaning_of(source: ir.Value) -> QuantParams:
    """Scale and zero point that the producer states for its result."""
    owner = producer(source)
    values = owner.attribute_values() if isinstance(owner, QnnOp) else {}
    if "output_scale" in values and "output_zero_point" in values:
        return QuantParams(values["output_scale"], values["output_zero_point"])
    return _UNKNOWN


def _meaning_after(graph: ElementwiseGraph, table: Table, before: QuantParams) -> QuantParams:
    """Scale and zero point of the result: unchanged by a clamp, else those that its readers assume."""
    types = graph.source.type, graph.result.type
    if types[0] == types[1] and clamp_of_table(table, dtype_of(types[0]), dtype_of(types[1])) is not None:
        return before
    for user in users(graph.result):
        values = user.attribute_values() if isinstance(user, QnnOp) else {}
        is_first = user.operation.operands[0] == graph.result
        if is_first and "input_scale" in values and "input_zero_point" in values:
            return QuantParams(values["input_scale"], values["input_zero_point"])
    return _UNKNOWN


@register
class TabulateElementwisePass(GraphPass):
    """Turn element-wise ops of upstream dialects between 8-bit tensors into tables.

    The ops may be on integers of any width or on floats; they are evaluated for each of the 256 values.
    """

    name: ClassVar[str] = "qnn-tabulate-elementwise"
    rewrites = (TabulateElementwise,)
