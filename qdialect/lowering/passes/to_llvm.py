"""`qnn-to-llvm`: the rest of the way, to the LLVM dialect alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir
from qdialect.lowering import contracts
from qdialect.lowering.passes.phase_pass import PhasePass
from qdialect.lowering.phase import Phase
from qdialect.lowering.to_llvm import to_llvm
from qdialect.passes.registry import register


@register
@dataclass(frozen=True)
class ToLlvmPass(PhasePass):
    """Convert all remaining ops to the LLVM dialect; functions take bare pointers, as functions in C do."""

    name: ClassVar[str] = "qnn-to-llvm"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.X86,)
    end: ClassVar[Phase] = Phase.LLVM

    def lower(self, module: ir.Module) -> None:
        contracts.check_products(module)
        to_llvm(module)
        contracts.check_llvm(module)
