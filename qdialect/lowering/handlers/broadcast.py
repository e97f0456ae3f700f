"""Broadcasting: a copy whose source stands still along the repeated dimensions."""

from __future__ import annotations

from qdialect.dialect import BroadcastOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import map_values


@lowers(BroadcastOp)
def _broadcast(lowering: GraphLowering, op: BroadcastOp) -> None:
    map_values(lowering, op.output, [op.input], lambda _: lambda __, values: values[0], op.operation.name)
