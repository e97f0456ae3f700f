"""Loops that add up products of words -> loops that add them up as floats, where the weights say that this is exact.

`qdialect.lowering.tiling.float_sums` has the proof: a run of K groups is added up from zero, and what there was before
is added to its sums as integers.  The numbers are subnormal, which a thread may flush to zero; so a function with such
loops sets the control register to its default, and restores at its end what it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect._mlir import arith, ir, memref
from qdialect.lowering.functions import function_of, ops_named
from qdialect.lowering.ir.loops import LOOP, constant
from qdialect.lowering.ir.views import start_of
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.text.kernel_text import FLOAT_RUN
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.memory import Read, note_of
from qdialect.lowering.x86.narrow_contraction import WORDS, NarrowContraction, factors_of, narrow_contraction

AS_FLOATS = "qnn.as_floats"
"""An attribute of a contraction: its accumulators are sums of floats."""
_CONTRACT = "vector.contract"
_CARRIED = 3
"""Operands of a loop before what it carries: its bounds and its step."""
_K_GROUP = -4
"""The dimension of the weights that counts K groups, before vectors, lanes and taps."""
_WORDS = 2
_WORD_BYTES = 2
_DEFAULT = 0x1F80
"""The control register: no exceptions, numbers rounded to the nearest, none flushed to zero."""


@dataclass(frozen=True)
class _Run:
    """A contraction in a loop that adds up a run from what it carries at `place`."""

    op: ir.Operation
    loop: ir.Operation
    place: int


def sum_as_floats(module: ir.Module) -> None:
    """Let loops of `module` over noted weights start at zero, in place, and note their contractions."""
    runs = [run for op in ops_named(module, _CONTRACT) if factors_of(op) is WORDS and (run := _run_of(op))]
    for run in runs:
        with run.op.location:
            _start_at_zero(run)
    for function in dict.fromkeys(function_of(run.op) for run in runs):
        with function.location:
            _run_with_default(function)


def _run_of(op: ir.Operation) -> _Run | None:
    """The run that `op` is one step of, where its weights say that floats add it up exactly."""
    found = narrow_contraction(op)
    loop = op.parent.operation if op.parent else None
    if not isinstance(found, NarrowContraction) or loop is None or loop.name != LOOP:
        return None
    block = loop.regions[0].blocks[0]
    place = next((i for i, value in enumerate(_yielded(block)) if value == op.results[0]), None)
    if place is None or found.start != block.arguments[1 + place]:
        return None
    is_alone = len(list(found.start.uses)) == 1 and len(list(op.results[0].uses)) == 1
    return _Run(op, loop, place) if is_alone and _is_exact(found, loop) else None


def _yielded(block: ir.Block) -> Sequence[ir.Value]:
    return list(list(block.operations)[-1].operation.operands)


def _is_exact(found: NarrowContraction, loop: ir.Operation) -> bool:
    """Whether `loop` adds up no more than one run of K groups, each of its steps the next one."""
    weights, note = found.weights.read, note_of(found.weights.read.buffer, FLOAT_RUN)
    if note is None or len(weights.indices) < -_K_GROUP:
        return False
    run, terms = ir.IntegerAttr(note).value, math.prod(found.loops.extents[loop] for loop in found.loops.reduced)
    first, last, step = (constant(operand) for operand in list(loop.operands)[:_CARRIED])
    if not _starts_with_run(weights, run):
        return False
    is_along = weights.indices[_K_GROUP] == loop.regions[0].blocks[0].arguments[0]
    is_whole = (first, last, step) == (0, run, 1) and b.shape_of(weights.buffer)[_K_GROUP] == run
    return is_along and is_whole and terms == _WORDS


def _starts_with_run(weights: Read, run: int) -> bool:
    """Whether the K groups of each read are one run of the argument: it lies in them row by row, from its start on."""
    inner = b.shape_of(weights.buffer)[_K_GROUP:]
    size, start = math.prod(inner[1:]), start_of(weights.buffer)
    if start is None or weights.strides[_K_GROUP:] != row_major(inner):
        return False
    steps = (start.constant, *start.factors.values())
    whole = run * size
    return all(step % (_WORD_BYTES * whole) == 0 for step in steps) and all(
        n % whole == 0 for n in weights.strides[:_K_GROUP]
    )


def _start_at_zero(run: _Run) -> None:
    """Add what the loop started from to what it gives."""
    at = _CARRIED + run.place
    start, result = run.loop.operands[at], run.loop.results[run.place]
    with ir.InsertionPoint(run.loop):
        run.loop.operands[at] = b.splat(ir.VectorType(start.type), 0)
    with ir.InsertionPoint.after(run.loop):
        total = ir.Operation.create("arith.addi", results=[start.type], operands=[start, result])
    result.replace_all_uses_except(total.result, total)
    run.op.attributes[AS_FLOATS] = ir.UnitAttr.get()


def _run_with_default(function: ir.Operation) -> None:
    """Set the control register where `function` begins, and restore it where it ends."""
    block = function.regions[0].blocks[0]
    i32 = ir.IntegerType.get_signless(32)
    type_ = ir.MemRefType.get([1], i32)
    with ir.InsertionPoint.at_block_begin(block):
        before, own = (memref.alloca(type_, [], []) for _ in range(2))
        _call("stmxcsr", before)
        memref.store(arith.constant(i32, _DEFAULT), own, [b.index(0)])
        _call("ldmxcsr", own)
    with ir.InsertionPoint(list(block.operations)[-1]):
        _call("ldmxcsr", before)


def _call(name: str, memory: ir.Value) -> None:
    """Store or load the control register."""
    start = b.emit("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), memory)
    at = arith.index_cast(ir.IntegerType.get_signless(64), start)
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.x86.sse.{name}"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    pointer = b.emit("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), at)
    ir.Operation.create("llvm.call_intrinsic", operands=[pointer], attributes=attributes)
