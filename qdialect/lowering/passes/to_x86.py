"""`qnn-to-x86`: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.lowering import contracts
from qdialect.lowering.lowered import error_at_module, target_name_of
from qdialect.lowering.passes.phase_pass import PhasePass
from qdialect.lowering.phase import Phase
from qdialect.lowering.to_x86 import to_x86
from qdialect.passes.registry import register


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
        contracts.check_x86(module, target)
