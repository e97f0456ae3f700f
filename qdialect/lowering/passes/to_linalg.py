"""`qnn-to-linalg`: a network becomes kernels over planned memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.heap import return_free_memory
from qdialect.lowering import contracts
from qdialect.lowering.passes.phase_pass import PhasePass
from qdialect.lowering.phase import Phase
from qdialect.lowering.qnn_to_linalg import qnn_to_linalg
from qdialect.passes.registry import register
from qdialect.threads import checked


@register
@dataclass(frozen=True)
class ToLinalgPass(PhasePass):
    """Lower the one function of a `qnn` module to kernels of `linalg` and a `main` that calls them.

    Constants, inputs, outputs and the target are attributes of the module. `target` is the CPU to lower for; with
    `clocked`, `main` writes the cycle counter before each call and at its end. Memory is planned for as many `threads`
    as `qnn-to-threads` will divide the network among. Fuse first, as `fuse-qnn` does: an op that is not fused becomes
    a kernel of its own.
    """

    name: ClassVar[str] = "qnn-to-linalg"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.QNN, Phase.FUSED)
    end: ClassVar[Phase] = Phase.LINALG
    target: str = "host"
    clocked: bool = False
    threads: int = 1

    def lower(self, module: ir.Module) -> None:
        qnn_to_linalg(module, targets.resolve(self.target), self.clocked, checked(self.threads))
        return_free_memory()
        contracts.check_linalg(module)
