"""A network that was compiled in this process."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.pipeline import Lowered
from qdialect.lowering.to_gomp import is_divided
from qdialect.runtime import memory, openmp, saving
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.jit import MachineCode
from qdialect.runtime.native import NativeExecutable, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

_ENTRY = "main"


class CompiledExecutable(NativeExecutable):
    """A network as machine code of this process, with its constants and working memory."""

    def __init__(self, lowered: Lowered, allocate: memory.Allocate = memory.allocate) -> None:
        """`lowered` is at phase `llvm`; `allocate` gives the memory for the constants and the working memory.

        Raises `CompileError` where the machine does not have it.
        """
        self.inputs = lowered.inputs
        self.outputs = lowered.outputs
        self.kernels = lowered.kernels
        self.calls = lowered.calls
        self.threads = lowered.threads
        self.constants_bytes = lowered.constants.size
        self.working_memory = lowered.arena_bytes
        self.regions = (compiled_region(self),)
        self.ticks: NDArray[np.int64] = np.zeros(len(lowered.calls) + 1 if lowered.clocked else 0, np.int64)
        """Of clocked code, the cycle counter before each kernel call of the last run and at its end; else empty."""
        clock = [self.ticks] if lowered.clocked else []
        constants = allocated("constants", lowered.constants.size, allocate)
        arena = allocated("working memory", lowered.arena_bytes, allocate)
        constants[: lowered.constants.size] = lowered.constants
        self._constants = constants
        self._blocks = [constants, arena, *clock]
        self._kept = saving.kept(lowered.module)
        self._is_divided = is_divided(lowered.module)
        self._code = MachineCode(lowered.module, openmp.addresses() if lowered.threads > 1 else {})
        self._prepare()

    def save(self, path: str | Path) -> None:
        saving.save(self._kept, self._constants[: self.constants_bytes], Path(path))

    def _bound(self, starts: Sequence[int], keep: Sequence[object] = ()) -> BoundCall:
        values = [*starts, *(block.ctypes.data for block in self._blocks)]
        if self._is_divided:
            values.append(addressof(TEAM_LIMIT))
        return self._code.bind(_ENTRY, values, (*self._blocks, *keep))
