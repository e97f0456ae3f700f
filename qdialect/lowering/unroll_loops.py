"""Short innermost loops are unrolled, so that counting and branching cost little beside what they do.

LLVM's own unrolling is part of optimizations that take as long as generating code, and find nothing else to do in
loops that are vector code already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qdialect._mlir import ir, loop_transform, structured_transform, transform
from qdialect.lowering.functions import ops_named
from qdialect.lowering.ir.loops import constant
from qdialect.lowering.upstream import apply_schedule, load_kernel_dialects

_LOOP = "scf.for"
_FACTOR = "qnn.unroll"
# Ops of an unrolled body, and the copies that it has at most.
_MAX_OPS = 32
_MAX_COPIES = 16


def unroll_loops(module: ir.Module, name: str) -> None:
    """Unroll the innermost loops of few ops, in place, for the pass `name`.

    A loop of T iterations with B ops in its body becomes one with F copies of the body, where F is the largest divisor
    of T with F * B <= 32 and F <= 16: no iteration is left over.
    """
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        factors = set(_tag(loop for loop in ops_named(module, _LOOP) if _is_short(loop)))
        if factors:
            apply_schedule(module.operation, lambda target: _unroll(target, sorted(factors)), name)


def _tag(loops: Iterable[ir.Operation]) -> Iterator[int]:
    """Say on each loop how often its body is to be written; the factors."""
    for loop in loops:
        factor = _factor(loop)
        if factor > 1:
            loop.attributes[_FACTOR] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), factor)
            yield factor


def _is_short(loop: ir.Operation) -> bool:
    """Whether the body is so short that two copies may be written, and has no op with a region."""
    ops = loop.regions[0].blocks[0].operations
    return 2 * len(ops) <= _MAX_OPS and not any(len(op.operation.regions) for op in ops)


def _factor(loop: ir.Operation) -> int:
    """How often the body is to be written."""
    first, last, step = (constant(operand) for operand in list(loop.operands)[:3])
    if first is None or last is None or step is None:
        return 1
    trips = -(-(last - first) // step)
    most = min(_MAX_COPIES, _MAX_OPS // len(loop.regions[0].blocks[0].operations))
    return next((factor for factor in range(most, 1, -1) if trips % factor == 0), 1) if trips > 0 else 1


def _unroll(module: ir.Value, factors: Iterable[int]) -> None:
    """Write that each tagged loop is unrolled by its factor."""
    for factor in factors:
        tag = ir.DictAttr.get({_FACTOR: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), factor)})
        # The name is compared first: all attributes of an op are collected to look for one.
        loops = structured_transform.MatchOp(transform.AnyOpType.get(), module, ops=[_LOOP], op_attrs=tag).result
        loop_transform.LoopUnrollOp(loops, factor=factor)
