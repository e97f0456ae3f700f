"""vector -> llvm without instructions of a target: what any CPU runs, by rules that know no instruction.

None of the patterns that replace vector ops by a target's instructions takes part, so that their results can be
compared with it.
"""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.lowering.to_llvm import to_llvm
from qdialect.lowering.to_x86 import lower_gathers
from qdialect.lowering.unit_contraction import UnitContraction
from qdialect.lowering.upstream import load_kernel_dialects
from qdialect.lowering.x86.instruction_pattern import apply_instructions


def vector_to_plain_code(module: ir.Module) -> None:
    """Lower a module at phase `vector` to the LLVM dialect in place, for whatever target its tiles were made."""
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        apply_instructions(module, [UnitContraction()])
        lower_gathers(module)
    to_llvm(module)
