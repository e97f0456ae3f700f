"""Prefetches: loads whose values nobody waits for."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir

FIRST_LEVEL, SECOND_LEVEL = 3, 2
"""Localities of `memref.prefetch`: the cache that the line is fetched to."""


def prefetch(buffer: ir.Value, indices: Sequence[ir.Value], level: int) -> None:
    """Prefetch the cache line with the element at `indices` of a memref, before the current insertion point."""
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), level)
    yes, no = ir.BoolAttr.get(True), ir.BoolAttr.get(False)
    attributes = {"isWrite": no, "localityHint": hint, "isDataCache": yes}
    ir.Operation.create("memref.prefetch", operands=[buffer, *indices], attributes=attributes)
