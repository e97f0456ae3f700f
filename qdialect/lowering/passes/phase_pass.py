"""What the passes of the lowering have in common: the phase they start from and the one they lead to."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir
from qdialect.lowering.errors import error_at
from qdialect.lowering.lowered import PHASE, phase_of, set_phase
from qdialect.lowering.phase import Phase
from qdialect.passes.pass_base import Pass


@dataclass(frozen=True)
class PhasePass(Pass):
    """A pass from one of the phases `starts` to the phase `end`.

    A module that says no phase, as one written by hand, is taken as it is.
    """

    # The steps load what they build: they are called by themselves too.
    dependent_dialects = ()
    starts: ClassVar[tuple[Phase, ...]]
    end: ClassVar[Phase]

    def run(self, module: ir.Module) -> None:
        if PHASE in module.operation.attributes and phase_of(module) not in self.starts:
            wanted = " or ".join(self.starts)
            raise error_at(module.operation.location, f"module must be at phase {wanted}, but is at {phase_of(module)}")
        self.lower(module)
        set_phase(module, self.end)

    @abstractmethod
    def lower(self, module: ir.Module) -> None:
        """Lower `module` in place, and check the contract of the phase it has reached."""
