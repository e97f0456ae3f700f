"""`qnn-to-vector`: kernels of linalg become loops over vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir
from qdialect.lowering import contracts
from qdialect.lowering.passes.phase_pass import PhasePass
from qdialect.lowering.phase import Phase
from qdialect.lowering.to_vector import to_vector
from qdialect.passes.registry import register


@register
@dataclass(frozen=True)
class ToVectorPass(PhasePass):
    """Tile, fuse and vectorize every kernel by the transform dialect, by the tile sizes in its ops' attributes."""

    name: ClassVar[str] = "qnn-to-vector"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.LINALG,)
    end: ClassVar[Phase] = Phase.VECTOR

    def lower(self, module: ir.Module) -> None:
        to_vector(module)
        contracts.check_vector(module)
