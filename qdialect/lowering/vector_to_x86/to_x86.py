"""`qnn-to-x86`: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.lowering.instructions.instruction_set import instruction_set_of
from qdialect.lowering.ir import phase_pass
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.lowered import Phase, error_at_module, target_name_of
from qdialect.lowering.ir.phase_pass import PhasePass
from qdialect.lowering.vector_to_x86.byte_tables import is_table_read
from qdialect.lowering.vector_to_x86.integer_products import factors_of
from qdialect.lowering.vector_to_x86.patterns import instruction_patterns, to_x86
from qdialect.passes.pattern import reasons
from qdialect.passes.registry import register
from qdialect.targets import Target

_MUST_BE_INSTRUCTIONS = ("vector.contract", "vector.gather")
"""What is a dot product or a table read, where its elements and operands are those of one."""


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
    patterns, instructions = instruction_patterns(target), instruction_set_of(target)

    def problem(op: ir.Operation) -> str | None:
        is_left = instructions is not None and instructions.looks_up_tables and is_table_read(op)
        factors = factors_of(op)
        is_narrow = factors is not None and instructions is not None and factors.dots(instructions)
        if not is_left and not is_narrow:
            return None
        return "; ".join(["is left", *(f"[{pattern}] {found.reason}" for pattern, found in reasons(op, patterns))])

    if instructions is not None:
        phase_pass.check_ops(ops_named(module, *_MUST_BE_INSTRUCTIONS), "x86", problem)
