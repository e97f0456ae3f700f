"""`qnn-to-x86`: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from qdialect import targets
from qdialect.ir._mlir import ir, structured_transform, vector_transform
from qdialect.lowering.instructions.instruction import portable_emission
from qdialect.lowering.instructions.instruction_set import instruction_set_of
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir import phase_pass
from qdialect.lowering.ir.accesses import effects_of
from qdialect.lowering.ir.functions import LOOP, ops_named
from qdialect.lowering.ir.lowered import Phase, error_at_module, target_name_of
from qdialect.lowering.ir.phase_pass import PhasePass, apply_patterns, apply_schedule, load_kernel_dialects
from qdialect.lowering.ir.views import may_alias
from qdialect.lowering.vector_to_x86 import transpositions
from qdialect.lowering.vector_to_x86.amx.tile_products import contract_in_tiles
from qdialect.lowering.vector_to_x86.byte_store import ByteStore
from qdialect.lowering.vector_to_x86.dot_product import DotProduct, PairDot, WidenedDot
from qdialect.lowering.vector_to_x86.float_division import InvariantDivision
from qdialect.lowering.vector_to_x86.float_rounding import ExactMultiplyAdd, RoundConvert, ScaleExponent, VectorRounding
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern, apply_instructions
from qdialect.lowering.vector_to_x86.integer_products import UnitContraction, factors_of
from qdialect.lowering.vector_to_x86.interleaved_dot import InterleavedDot
from qdialect.lowering.vector_to_x86.lookup_tables import BytePlaneTable, ByteTable, RegisterTable, is_table_read
from qdialect.lowering.vector_to_x86.prefetch import prefetch_float_weights
from qdialect.lowering.vector_to_x86.unpacked_lanes import Tile, flatten_lanes
from qdialect.passes.pattern import reasons
from qdialect.passes.registry import register
from qdialect.targets import Target

_MUST_BE_INSTRUCTIONS = ("vector.contract", "vector.gather")
"""Ops that must not stay where their elements and operands are those of a dot product or a table read."""


@register
@dataclass(frozen=True)
class ToX86Pass(PhasePass):
    """Replace vector ops by instructions of the target that compute the same results.

    The target is the one that the module was lowered for.  For a module without a target, `target` names it, by default
    `host`.
    """

    name: ClassVar[str] = "qnn-to-x86"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.VECTOR,)
    end: ClassVar[Phase] = Phase.X86
    target: str = ""

    def lower(self, module: ir.Module) -> None:
        own = target_name_of(module)
        if own and self.target and targets.resolve(self.target).name != own:
            raise error_at_module(module, f"module was lowered for target '{own}', but got '{self.target}'")
        target = targets.resolve(own or self.target or "host")
        to_x86(module, target)
        check_x86(module, target)


def check_x86(module: ir.Module, target: Target) -> None:
    """x86: every contraction of bytes or words is dot products, every table read an instruction if there is one."""
    patterns, instructions = (
        [*_contractions(target), *_conversions(target), *_functions(target)],
        instruction_set_of(target),
    )

    def problem(op: ir.Operation) -> str | None:
        is_left = instructions is not None and instructions.looks_up_tables and is_table_read(op)
        factors = factors_of(op)
        is_narrow = factors is not None and instructions is not None and factors.dots(instructions)
        if not is_left and not is_narrow:
            return None
        return "; ".join(["is left", *(f"[{pattern}] {found.reason}" for pattern, found in reasons(op, patterns))])

    if instructions is not None:
        phase_pass.check_ops(ops_named(module, *_MUST_BE_INSTRUCTIONS), "x86", problem)


# Vector -> x86: the patterns of a target, in order, and the transformations between and after them.


def to_x86(module: ir.Module, target: Target) -> None:
    """Use the target's instructions in place; other vector ops are left to LLVM's legalization."""
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown(), portable_emission(target.is_portable):
        contract_in_tiles(module, target)
        if instructions := instruction_set_of(target):
            prefetch_float_weights(module, instructions.machine)
        apply_instructions(module, _contractions(target))
        # Patterns of stores and conversions match vectors that fill registers.
        if instructions:
            flatten_lanes(module, Tile(instructions.vector_bytes))
            hoist_numbers(module)
        apply_instructions(module, _conversions(target))
        apply_instructions(module, _functions(target))
        lower_gathers(module)


# Numbers that a loop only reads are read before it: LLVM does not know that nothing in the loop writes them.

_READ = "vector.transfer_read"
_LONGEST = 128
"""Ops of a loop whose numbers are moved; next to those of a longer one a read takes no time."""


def hoist_numbers(module: ir.Module) -> None:
    """Move reads of one number out of innermost loops that do not write it, in place."""
    by_loop: dict[ir.Operation, list[ir.Operation]] = {}
    for read in ops_named(module, _READ):
        if read.parent is not None and read.parent.name == LOOP and prod(b.shape_of(read.results[0])) == 1:
            by_loop.setdefault(read.parent.operation, []).append(read)
    for loop, reads in by_loop.items():
        ops = [op.operation for op in loop.regions[0].blocks[0].operations]
        if len(ops) > _LONGEST or any(len(op.regions) for op in ops):
            continue
        found = [(op, effects_of(op)) for op in ops]
        written = [op.operands[number] for op, effects in found for number in effects.writes]
        if not all(effects.is_known for _, effects in found):
            continue
        for read in reads:
            is_local = any(value.owner in (*ops, loop.regions[0].blocks[0]) for value in read.operands)
            if not is_local and not any(may_alias(read.operands[0], buffer) for buffer in written):
                read.move_before(loop)


def lower_gathers(module: ir.Module) -> None:
    """Lower every remaining `vector.gather` to loads, in place; needs a current context and location."""
    # A schedule visits every op, so it runs only if there is a gather.
    if ops_named(module, "vector.gather"):
        apply_schedule(module.operation, _gathers_to_loads, "qnn-to-x86")


def _gathers_to_loads(module: ir.Value) -> None:
    """Write that gathers of several dimensions become rows."""
    functions = structured_transform.MatchOp.match_op_names(module, ["func.func"]).result
    apply_patterns(functions, vector_transform.ApplyLowerGatherPatternsOp)


def _contractions(target: Target) -> list[InstructionPattern[Any]]:
    instructions = instruction_set_of(target)
    if instructions is None:
        return [UnitContraction()]
    dots = [DotProduct(instructions), WidenedDot(instructions), InterleavedDot(instructions)]
    pairs = [PairDot(instructions)] if instructions.bf16_dots else []
    return [UnitContraction(), *dots, *pairs, transpositions.TransposedGather(), transpositions.TransposePair()]


def _conversions(target: Target) -> list[InstructionPattern[Any]]:
    instructions = instruction_set_of(target)
    if instructions is None:
        return []
    conversions = instructions.rounding_conversions
    rounding = [RoundConvert(conversions)] if conversions else []
    # Lanes whose product with a power of two rounds to zero are left out where they are slow.
    scaling = [ScaleExponent(not instructions.machine.scales_to_zero)] if instructions.has_zmm else []
    tables = [ByteTable(instructions)] if instructions.looks_up_tables else []
    lanes, has_bytes = instructions.permuted_lanes, instructions.has_byte_permutes
    numbers = [RegisterTable(lanes, has_bytes=has_bytes)] if lanes else []
    multiplies = instructions.machine.divides_late and "fma" in target.code_features
    division = [InvariantDivision()] if instructions.has_zmm and multiplies else []
    bytes_ = (
        [transpositions.StridedRead(), transpositions.PixelWrite(), BytePlaneTable()]
        if instructions.has_byte_permutes
        else []
    )
    return [*rounding, *scaling, *division, ByteStore(instructions), *tables, *numbers, *bytes_]


_FEWEST_LANES = 4
"""Of 32 bits, of a vector that every CPU has."""


def _functions(target: Target) -> list[InstructionPattern[Any]]:
    """The patterns that emulate instructions that the target lacks."""
    instructions = instruction_set_of(target)
    has_roundings = instructions is None or instructions.has_roundings
    roundings = [] if has_roundings else [VectorRounding()]
    multiply_add = [] if "fma" in target.code_features else [ExactMultiplyAdd()]
    lanes = instructions.lanes if instructions else _FEWEST_LANES
    return [*multiply_add, *roundings, transpositions.FoldedRows(lanes), transpositions.TransposedSquare(lanes)]
