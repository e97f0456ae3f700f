"""vector -> x86: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir, transform_interpreter
from qdialect.lowering.unit_contraction import UnitContraction
from qdialect.lowering.x86.byte_store import ByteStore
from qdialect.lowering.x86.byte_table import ByteTable
from qdialect.lowering.x86.dot_product import DotProduct
from qdialect.lowering.x86.flat_lanes import flatten_lanes
from qdialect.lowering.x86.high_word import HighWord
from qdialect.lowering.x86.instruction_pattern import InstructionPattern, apply_instructions
from qdialect.lowering.x86.interleaved_dot import InterleavedDot
from qdialect.lowering.x86.round_convert import RoundConvert
from qdialect.target import Target

_OP = "!transform.any_op"

_LOWER_GATHERS = f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%module: {_OP}) {{
    %funcs = transform.structured.match ops{{["func.func"]}} in %module : ({_OP}) -> {_OP}
    transform.apply_patterns to %funcs {{
      transform.apply_patterns.vector.lower_gather
    }} : {_OP}
    transform.yield
  }}
}}"""


def to_x86(module: ir.Module, target: Target) -> None:
    """Use the target's instructions in place; what has none stays vector code that LLVM makes fit."""
    with module.context, ir.Location.unknown():
        apply_instructions(module, _contractions(target))
        # What stores and converts vectors looks for those that fill registers.
        flatten_lanes(module)
        apply_instructions(module, _conversions(target))
        script = ir.Module.parse(_LOWER_GATHERS)
        transform_interpreter.apply_named_sequence(module.operation, script.body.operations[0], script)


def instruction_patterns(target: Target) -> list[InstructionPattern[Any]]:
    """The patterns for `target`."""
    return [*_contractions(target), *_conversions(target)]


def _contractions(target: Target) -> list[InstructionPattern[Any]]:
    return [UnitContraction(), *([DotProduct(), InterleavedDot()] if target.has_vnni else [])]


def _conversions(target: Target) -> list[InstructionPattern[Any]]:
    patterns: list[InstructionPattern[Any]] = [HighWord(), RoundConvert()] if target.has_vnni else []
    return [*patterns, ByteStore(), ByteTable()] if target.has_vbmi else patterns
