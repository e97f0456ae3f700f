"""The levels that a module passes through."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Levels a module passes through, in order; each can be printed, stopped at, and started from."""

    QNN = "qnn"
    """The quantized graph as it was imported."""
    FUSED = "fused"
    """One op per kernel."""
    LINALG = "linalg"
    """Kernels on strided views, calls over planned memory."""
    VECTOR = "vector"
    """Kernels as loops over vectors: `vector.contract`, `vector.gather`."""
    X86 = "x86"
    """The target's instructions in place."""
    LLVM = "llvm"
    """The LLVM dialect."""

    @property
    def number(self) -> int:
        """Its position in the order."""
        return list(Phase).index(self)

    def up_to(self, last: Phase) -> list[Phase]:
        """The phases after this one, as far as `last`."""
        return list(Phase)[self.number + 1 : last.number + 1]
