"""Reads and writes of vectors of several dimensions -> loads and stores of their rows.

Upstream's pattern does the same. It needs a driver that looks at all ops several times, and leaves each row its own
address, of all indices and strides. Here a row is a constant distance away from the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import mul

import numpy as np

from qdialect._mlir import ir
from qdialect.lowering.functions import ops_named
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.flat_address import FlatAddress, flat_address
from qdialect.lowering.x86.memory import transfer_problem

READ, WRITE = "vector.transfer_read", "vector.transfer_write"
_EXTRACT = "vector.extract"

_Row = tuple[tuple[int, ...], int]


def unroll_transfers(module: ir.Module) -> list[ir.Operation]:
    """Replace transfers of several dimensions, in place; those that are left, which are not of contiguous rows.

    A transfer of one such row stays, and is not among them.
    """
    left: list[ir.Operation] = []
    pointers: dict[ir.Value, ir.Value] = {}
    for op in ops_named(module, READ, WRITE):
        vector = ir.VectorType((op.results[0] if op.name == READ else op.operands[0]).type)
        buffer = op.operands[0 if op.name == READ else 1]
        if vector.rank == 0 or not _has_rows(op, buffer):
            left.append(op)
            continue
        if vector.rank == 1:
            continue
        with ir.InsertionPoint(op), op.location:
            if op.name == READ:
                _read(op, vector, flat_address(buffer, list(op.operands)[1:-1], pointers))
            else:
                _write(op, vector, flat_address(buffer, list(op.operands)[2:], pointers))
        op.erase()
    return left


def _has_rows(op: ir.Operation, buffer: ir.Value) -> bool:
    """Whether the rows are all there, each side by side in memory."""
    if not isinstance(buffer.type, ir.MemRefType) or buffer.type.memory_space is not None:
        return False
    element = buffer.type.element_type
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width % 8:
        return False
    strides = static_strides(buffer.type)
    if strides is None or strides[-1] != 1 or min(strides) < 0:
        return False
    return transfer_problem(op, buffer, others=2) is None


def _rows(buffer: ir.Value, vector: ir.VectorType) -> Sequence[_Row]:
    strides = static_strides(ir.MemRefType(buffer.type)) or ()
    return _placed(tuple(vector.shape)[:-1], strides[-vector.rank : -1])


@cache
def _placed(extents: tuple[int, ...], strides: tuple[int, ...]) -> Sequence[_Row]:
    """The position of each row in a vector, and how far it is from the first one."""
    return [(position, sum(map(mul, position, strides))) for position in np.ndindex(extents)]


def _read(op: ir.Operation, vector: ir.VectorType, address: FlatAddress) -> None:
    lanes, read = vector.shape[-1], op.results[0]
    rows = {position: address.further(distance).load(lanes) for position, distance in _rows(op.operands[0], vector)}
    for user in {use.owner.operation for use in read.uses}:
        row = rows.get(_position(user)) if user.name == _EXTRACT else None
        if row is not None:
            user.results[0].replace_all_uses_with(row)
            user.erase()
    if any(True for _ in read.uses):
        whole = b.emit("ub.poison", vector)
        for position, row in rows.items():
            whole = b.insert(row, whole, position)
        read.replace_all_uses_with(whole)


def _position(extract: ir.Operation) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(extract.attributes["static_position"]))


def _write(op: ir.Operation, vector: ir.VectorType, address: FlatAddress) -> None:
    for position, distance in _rows(op.operands[1], vector):
        address.further(distance).store(b.extract(op.operands[0], position))
