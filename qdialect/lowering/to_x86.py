"""vector -> x86: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir, structured_transform, vector_transform
from qdialect.lowering.functions import ops_named
from qdialect.lowering.unit_contraction import UnitContraction
from qdialect.lowering.upstream import apply_patterns, apply_schedule, load_kernel_dialects
from qdialect.lowering.x86.byte_plane_table import BytePlaneTable
from qdialect.lowering.x86.byte_store import ByteStore
from qdialect.lowering.x86.byte_table import ByteTable
from qdialect.lowering.x86.constant_division import ConstantDivision
from qdialect.lowering.x86.dot_product import DotProduct
from qdialect.lowering.x86.exact_multiply_add import ExactMultiplyAdd
from qdialect.lowering.x86.flat_lanes import flatten_lanes
from qdialect.lowering.x86.high_word import HighWord
from qdialect.lowering.x86.instruction_pattern import InstructionPattern, apply_instructions
from qdialect.lowering.x86.instruction_set import instruction_set_of
from qdialect.lowering.x86.instructions.instruction import portable_emission
from qdialect.lowering.x86.interleaved_dot import InterleavedDot
from qdialect.lowering.x86.invariant_reads import hoist_invariant_reads
from qdialect.lowering.x86.number_table import NumberTable
from qdialect.lowering.x86.pixel_write import PixelWrite
from qdialect.lowering.x86.register_table import RegisterTable
from qdialect.lowering.x86.round_convert import RoundConvert
from qdialect.lowering.x86.row_division import RowDivision
from qdialect.lowering.x86.scale_bound import ScaleBound
from qdialect.lowering.x86.scale_exponent import ScaleExponent
from qdialect.lowering.x86.strided_read import StridedRead
from qdialect.lowering.x86.tile_chain import contract_in_tiles
from qdialect.lowering.x86.transpose_pair import TransposePair
from qdialect.lowering.x86.transposed_gather import TransposedGather
from qdialect.lowering.x86.transposed_square import TransposedSquare
from qdialect.lowering.x86.unpacked_lanes import Tile
from qdialect.lowering.x86.vector_rounding import RoundDown, RoundEven, RoundToZero, RoundUp
from qdialect.lowering.x86.widened_dot import WidenedDot
from qdialect.target import Target


def to_x86(module: ir.Module, target: Target) -> None:
    """Use the target's instructions in place; other vector ops are left to LLVM's legalization."""
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown(), portable_emission(target.is_portable):
        contract_in_tiles(module, target)
        apply_instructions(module, _contractions(target))
        # What stores and converts vectors looks for those that fill registers.
        if instructions := instruction_set_of(target):
            flatten_lanes(module, Tile(instructions.vector_bytes))
        apply_instructions(module, _conversions(target))
        apply_instructions(module, _functions(target))
        hoist_invariant_reads(module)
        lower_gathers(module)


def lower_gathers(module: ir.Module) -> None:
    """Take every `vector.gather` that is left apart into loads, in place; needs a current context and location."""
    # A schedule looks at every op.
    if ops_named(module, "vector.gather"):
        apply_schedule(module.operation, _gathers_to_loads, "qnn-to-x86")


def instruction_patterns(target: Target) -> list[InstructionPattern[Any]]:
    """The patterns for `target`."""
    return [*_contractions(target), *_conversions(target), *_functions(target)]


def _gathers_to_loads(module: ir.Value) -> None:
    """Write that gathers of several dimensions become rows."""
    functions = structured_transform.MatchOp.match_op_names(module, ["func.func"]).result
    apply_patterns(functions, vector_transform.ApplyLowerGatherPatternsOp)


def _contractions(target: Target) -> list[InstructionPattern[Any]]:
    instructions = instruction_set_of(target)
    if instructions is None:
        return [UnitContraction()]
    dots = [DotProduct(instructions), WidenedDot(instructions), InterleavedDot(instructions)]
    return [UnitContraction(), *dots, TransposedGather(), TransposePair()]


def _conversions(target: Target) -> list[InstructionPattern[Any]]:
    instructions = instruction_set_of(target)
    if instructions is None:
        return []
    conversions = instructions.rounding_conversions
    rounding = [RoundConvert(conversions)] if conversions else []
    masks = instructions.masks_scaling
    scaling = [*([ScaleBound()] if masks else []), ScaleExponent(masks)] if instructions.scales_by_exponents else []
    rows = [RowDivision(not instructions.divides_slowly)] if instructions.divides_slowly_in_place else []
    divisions = [*rows, *([ConstantDivision()] if instructions.divides_slowly else [])]
    tables = [ByteTable(instructions)] if instructions.looks_up_tables else []
    numbers = [RegisterTable(instructions.permuted_lanes)] if instructions.permuted_lanes else []
    long_tables = [NumberTable()] if instructions.permutes_pairs else []
    words = [HighWord(), *rounding, *scaling, *divisions]
    bytes_ = [StridedRead(), PixelWrite(), BytePlaneTable()] if instructions.has_byte_permutes else []
    return [*words, ByteStore(instructions), *tables, *numbers, *long_tables, *bytes_]


def _functions(target: Target) -> list[InstructionPattern[Any]]:
    """What stands for instructions that the target lacks."""
    instructions = instruction_set_of(target)
    has_roundings = instructions is None or instructions.has_roundings
    roundings = [] if has_roundings else [RoundEven(), RoundDown(), RoundUp(), RoundToZero()]
    multiply_add = [] if "fma" in target.code_features else [ExactMultiplyAdd()]
    squares = [TransposedSquare(instructions.lanes)] if instructions else []
    return [*multiply_add, *roundings, *squares]
