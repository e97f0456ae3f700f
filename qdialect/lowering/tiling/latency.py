"""The cycles that a loop waits for itself: from what an iteration takes over from the one before to what it hands on.

  chain = max over carried values of (latencies of the ops from a carried value to what the loop yields)

An iteration cannot end before the chain through the one before it has, however many units are idle: a loop of n trips
takes n * chain at least.  What is taken from a vector of sums and put back at another place is no link of the chain.
"""

from __future__ import annotations

from collections.abc import Callable

from qdialect._mlir import ir

_LOOP = "scf.for"


class Chains:
    """The chains of loops, given the latency of an op and the trips of a loop."""

    def __init__(self, latency: Callable[[ir.Operation], float], trips: Callable[[ir.Operation], float]) -> None:
        self._latency, self._trips = latency, trips

    def cycles(self, loop: ir.Operation) -> float:
        """From the values that an iteration of `loop` takes over to those that it yields."""
        block = loop.regions[0].blocks[0]
        carried = list[ir.Value](block.arguments)[1:]
        depths = dict.fromkeys(carried, 0.0)
        if not depths:
            return 0.0
        *body, last = (op.operation for op in block.operations)
        for op in body:
            self._follow(op, depths)
        return max((depths.get(value, 0.0) for value in last.operands), default=0.0)

    def _follow(self, op: ir.Operation, depths: dict[ir.Value, float]) -> None:
        """Add how deep the results of `op` are, where they depend on a carried value."""
        sources = [_found(op)] if op.name == "vector.extract" else list(op.operands)
        found = [depths[value] for value in sources if value in depths]
        if not found:
            return
        longer = self._trips(op) * self.cycles(op) if op.name == _LOOP else self._latency(op)
        for result in op.results:
            depths[result] = max(found) + longer


def _found(extract: ir.Operation) -> ir.Value:
    """What `vector.extract` finds: the value that was put there, or the vector into which none was."""
    position, source = extract.attributes["static_position"], extract.operands[0]
    while not isinstance(source.owner, ir.Block) and source.owner.name == "vector.insert":
        insert = source.owner.operation
        if insert.attributes["static_position"] == position:
            return insert.operands[0]
        source = insert.operands[1]
    return source
