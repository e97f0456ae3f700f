"""linalg and vector -> llvm without instructions of a target: by upstream's loops, or rules that know none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect.ir._mlir import arith, ir, memref, passmanager, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.functions import contraction_of, function_of, ops_named
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.vector_to_x86.instruction_pattern import apply_instructions
from qdialect.lowering.vector_to_x86.integer_products import UnitContraction
from qdialect.lowering.vector_to_x86.to_x86 import lower_gathers
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm

# vector -> llvm without instructions of a target: code for any CPU, by generic rules.
#
# None of the patterns that replace vector ops by a target's instructions takes part, so that their results can be
# compared with it.  Contractions of tiles have hundreds of products, those of matrix tiles tens of thousands, and are
# summed up in loops: LLVM takes six times as long for a network, or minutes, where products are written one by one.

_MOST_PRODUCTS = 256
"""Of a contraction that is written product by product."""


def vector_to_plain_code(module: ir.Module) -> None:
    """Lower a module at phase `vector` to the LLVM dialect in place, for whatever target its tiles were made."""
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        apply_instructions(module, [UnitContraction()])
        for op in ops_named(module, "vector.contract"):
            _sum_in_loops(op)
        lower_gathers(module)
    to_llvm(module)


def _sum_in_loops(op: ir.Operation) -> None:
    """Replace a long sum of products of i32 by loops over memory on the stack."""
    found, accumulator = contraction_of(op), op.operands[2]
    is_long = math.prod(found.extents) > _MOST_PRODUCTS and found.kind == "add"
    is_masked = op.parent is not None and op.parent.name == "vector.mask"
    if not is_long or is_masked or not all(b.is_vector_of(value, 32) for value in op.operands):
        return
    with ir.InsertionPoint.at_block_begin(function_of(op).regions[0].blocks[0]), op.location:
        memory = [
            memref.alloca(ir.MemRefType.get(b.shape_of(one), ir.IntegerType.get_signless(32)), [], [])
            for one in op.operands
        ]
    with ir.InsertionPoint(op), op.location:
        for value, buffer in zip(op.operands, memory, strict=True):
            vector.transfer_write(None, value, buffer, *_whole(value))
        _add_products(memory, [found.lhs, found.rhs, found.result], found.extents, [])
        padding = arith.constant(ir.IntegerType.get_signless(32), 0)
        start, order, inside = _whole(accumulator)
        total = vector.transfer_read(accumulator.type, memory[2], start, order, padding, inside)
    op.results[0].replace_all_uses_with(total)
    op.erase()


def _whole(value: ir.Value) -> tuple[list[ir.Value], ir.AffineMap, list[bool]]:
    """Where a transfer of all of a vector begins, in which order it goes, and that it is in bounds."""
    rank = len(b.shape_of(value))
    return [b.index(0)] * rank, ir.AffineMap.get_identity(rank), [True] * rank


def _add_products(
    memory: Sequence[ir.Value], loops: Sequence[Sequence[int]], extents: Sequence[int], indices: Sequence[ir.Value]
) -> None:
    """Loops over `extents` inside those with `indices`, around the sum of a product."""
    if len(indices) < len(extents):
        with b.loop(0, extents[len(indices)]) as index:
            _add_products(memory, loops, extents, [*indices, index])
        return
    places = [[indices[number] for number in own] for own in loops]
    left, right, total = (memref.load(buffer, place) for buffer, place in zip(memory, places, strict=True))
    memref.store(arith.addi(total, arith.muli(left, right)), memory[2], places[2])


# linalg -> llvm without tiling, vectors or instructions: loops over scalars, as upstream's passes write them.
#
# Nothing of the compiler's own steps after `linalg` takes part, so that their results can be compared with it.

_PASSES = (
    *("one-shot-bufferize", "func.func(convert-linalg-to-loops)", "canonicalize", "cse"),
    # Memory that a kernel allocates is freed at its end.
    "buffer-deallocation-pipeline",
)
_LOOPS = f"builtin.module({','.join(_PASSES)})"


def linalg_to_plain_loops(module: ir.Module) -> None:
    """Lower the kernels of a module at phase `linalg` to the LLVM dialect in place, one element at a time."""
    with module.context, ir.Location.unknown():
        passmanager.PassManager.parse(_LOOPS).run(module.operation)
    to_llvm(module)
