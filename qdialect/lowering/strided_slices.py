"""Slices of vectors -> shuffles: what upstream's conversion to the LLVM dialect has no pattern for.

A slice of n elements is put into a vector of m from element s on by two shuffles: the first makes the slice as long as
the vector, the second takes element i - s of it for s <= i < s + n, and element i of the vector elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir, rewrite

_INSERT, _EXTRACT = "vector.insert_strided_slice", "vector.extract_strided_slice"


def shuffle_slices(module: ir.Module) -> None:
    """Replace slices of vectors of one dimension, in place."""
    patterns = rewrite.RewritePatternSet(module.context)
    patterns.add(_INSERT, _insert)
    patterns.add(_EXTRACT, _extract)
    rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())


def _insert(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace one op; truthy where it is left alone, as the bindings want it."""
    source, target = op.operation.operands
    start = _start(op, source, target)
    if start is None:
        return True
    count, whole = (ir.VectorType(value.type).shape[0] for value in (source, target))
    with rewriter.ip, op.location:
        longer = _shuffle(source, source, [i if i < count else 0 for i in range(whole)])
        order = [i - start if start <= i < start + count else whole + i for i in range(whole)]
        rewriter.replace_op(op, [_shuffle(longer, target, order)])
    return False


def _extract(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """The same for a slice that is taken."""
    source, result = op.operation.operands[0], op.operation.results[0]
    start = _start(op, source, result)
    if start is None:
        return True
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [_shuffle(source, source, range(start, start + ir.VectorType(result.type).shape[0]))])
    return False


def _start(op: ir.OpView, *vectors: ir.Value) -> int | None:
    """The first element of the slice; None where it is of several dimensions, or of elements apart."""
    if any(ir.VectorType(vector.type).rank != 1 for vector in vectors):
        return None
    offsets, strides = (ir.ArrayAttr(op.attributes[name]) for name in ("offsets", "strides"))
    return ir.IntegerAttr(offsets[0]).value if ir.IntegerAttr(strides[0]).value == 1 else None


def _shuffle(left: ir.Value, right: ir.Value, order: Sequence[int]) -> ir.Value:
    result = ir.VectorType.get([len(order)], ir.VectorType(left.type).element_type)
    attributes = {"mask": ir.DenseI64ArrayAttr.get(list(order))}
    return ir.Operation.create("vector.shuffle", [result], [left, right], attributes).result
