"""`qnn-to-threads`: the calls of a network are divided among threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import ir
from qdialect.lowering.ir import lowered, phase_pass
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.phase_pass import PhasePass
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.passes.registry import register
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import checked


@register
@dataclass(frozen=True)
class ToThreadsPass(PhasePass):
    """Divide `main` among `threads` threads of an OpenMP runtime; kernels of less than `min_cycles` stay whole.

    The results are the same for every number of threads.
    """

    name: ClassVar[str] = "qnn-to-threads"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.VECTOR,)
    end: ClassVar[Phase] = Phase.VECTOR
    threads: int = 2
    min_cycles: int = MIN_CYCLES

    def lower(self, module: ir.Module) -> None:
        known = lowered.read(module)
        if known.threads > 1:
            raise lowered.error_at_module(module, f"module is divided among {known.threads} threads already")
        with LATE_IMPORTS:
            from qdialect.lowering.threads.divided_network import to_threads

        growth = to_threads(module, checked(self.threads), self.min_cycles, is_clocked=known.clocked)
        lowered.divide(module, self.threads, growth)
        phase_pass.check_vector(module)
