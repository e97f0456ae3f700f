"""`vector.gather` from a 256-byte table -> `vpermi2b`.

The table stands in four registers.  One `vpermi2b` looks 64 bytes up in 128 entries by the low 7 bits of each index;
two of them and a select on the top bit make 256 entries.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b

PERMUTE = "llvm.x86.avx512.vpermi2var.qi.512"
"""(vector<64xi8>, indices, vector<64xi8>) -> vector<64xi8>."""

_WIDTH = 64


class Table:
    """A 256-byte table in registers."""

    def __init__(self, buffer: ir.Value) -> None:
        index = ir.IndexType.get()
        self._quarters = [b.load(_WIDTH, buffer, [arith.constant(index, _WIDTH * q)]) for q in range(4)]
        self._zero = b.splat(b.vector_type(_WIDTH, 8), 0)

    def look_up(self, indices: ir.Value) -> ir.Value:
        """64 entries by 64 unsigned bytes."""
        first, second, third, fourth = self._quarters
        low = b.intrinsic(PERMUTE, indices.type, first, indices, second)
        high = b.intrinsic(PERMUTE, indices.type, third, indices, fourth)
        top_bit = arith.cmpi(arith.CmpIPredicate.slt, indices, self._zero)
        return arith.select(top_bit, high, low)


def is_table(value: ir.Value) -> bool:
    """Whether a gather's base is a 256-byte table."""
    return isinstance(value.type, ir.MemRefType) and str(value.type) == "memref<256xi8>"


def index_source(gather: ir.Operation) -> ir.Value | None:
    """The integers a gather's indices were cast from."""
    cast = b.defining(gather.operands[2], "arith.index_cast") or b.defining(gather.operands[2], "arith.index_castui")
    return cast.operands[0] if cast else None


def gather_to_permute(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one gather; truthy where it does not read a 256-byte table."""
    source = index_source(op)
    if not is_table(op.operands[0]) or source is None:
        return True
    shape = b.shape_of(op.results[0])
    with rewriter.ip, op.location:
        table = Table(op.operands[0])
        codes = _as_bytes(source)
        # Any register will do to insert into: every position is written.
        result = b.splat(ir.VectorType(op.results[0].type), 0)
        for position in np.ndindex(*shape[:-1]):
            row = b.extract(codes, position) if position else codes
            found = _look_up_any(table, row, shape[-1])
            result = b.insert(found, result, position) if position else found
    rewriter.replace_op(op, [result])
    return None


def _as_bytes(source: ir.Value) -> ir.Value:
    extended = b.defining(source, "arith.extui")
    if extended and str(ir.VectorType(extended.operands[0].type).element_type) == "i8":
        return extended.operands[0]
    shape = b.shape_of(source)
    return arith.trunci(ir.VectorType.get(shape, ir.IntegerType.get_signless(8)), source)


def _look_up_any(table: Table, indices: ir.Value, lanes: int) -> ir.Value:
    """Look up a 1-d vector of any length, 64 bytes at a time, the last part filled up."""
    if lanes == _WIDTH:
        return table.look_up(indices)
    total = math.ceil(lanes / _WIDTH) * _WIDTH
    parts = [
        table.look_up(shuffle(indices, indices, [min(start + i, lanes - 1) for i in range(_WIDTH)]))
        for start in range(0, total, _WIDTH)
    ]
    joined = parts[0]
    for count, part in enumerate(parts[1:], start=1):
        joined = insert_slice(part, b.splat(b.vector_type((count + 1) * _WIDTH, 8), 0), joined, count * _WIDTH)
    return shuffle(joined, joined, list(range(lanes)))


def insert_slice(part: ir.Value, fresh: ir.Value, head: ir.Value, offset: int) -> ir.Value:
    """`head` followed by `part`, in the type of `fresh`."""
    return _strided(part, _strided(head, fresh, 0), offset)


def _strided(value: ir.Value, destination: ir.Value, offset: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "offsets": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, offset)]),
        "strides": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, 1)]),
    }
    operands = [value, destination]
    name = "vector.insert_strided_slice"
    return ir.Operation.create(name, results=[destination.type], operands=operands, attributes=attributes).result


def shuffle(first: ir.Value, second: ir.Value, mask: list[int]) -> ir.Value:
    """Lanes of two vectors in the order of `mask`."""
    return vector.shuffle(first, second, ir.DenseI64ArrayAttr.get(mask))
