"""A network that was compiled in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from qdialect import target as targets
from qdialect.diagnostics import CompileError
from qdialect.lowering.code_attributes import keep_to_target
from qdialect.lowering.lowered import target_name_of
from qdialect.lowering.pipeline import Lowered
from qdialect.lowering.to_gomp import is_divided
from qdialect.runtime import memory, openmp, saving
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.external_bindings import External, ExternalBindings
from qdialect.runtime.jit import MachineCode
from qdialect.runtime.native import NativeExecutable, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

_ENTRY = "main"


class CompiledExecutable(NativeExecutable):
    """A network as machine code of this process, with its constants and working memory."""

    def __init__(
        self,
        lowered: Lowered,
        allocate: memory.Allocate = memory.allocate,
        externals: Mapping[str, External] = MappingProxyType({}),
    ) -> None:
        """`lowered` is at phase `llvm`; `allocate` gives the memory for the constants and the working memory.

        `externals` compute the functions that go to a target. Raises `CompileError` where the machine does not have the
        memory, and where a function of a target is not there.
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
        self._blocks = [constants, arena, *clock]
        self._kept = saving.kept(lowered.module)
        self._is_divided = is_divided(lowered.module)
        keep_to_target(lowered.module, targets.resolve(target_name_of(lowered.module) or targets.GENERIC))
        self._externals = ExternalBindings(lowered.external_functions(), externals)
        self._externals.place([constants.ctypes.data + start for start, _ in lowered.externals])
        runtime = openmp.addresses() if lowered.threads > 1 else {}
        self._code = MachineCode(lowered.module, {**runtime, **self._externals.symbols})
        self._prepare()

    def save(self, path: str | Path) -> None:
        if self._externals.takes_python:
            raise CompileError("network must not call Python functions to be saved, but externals has one")
        saving.save(self._kept, Path(path))

    def _bound(self, starts: Sequence[int], keep: Sequence[object] = ()) -> BoundCall:
        values = [*starts, *(block.ctypes.data for block in self._blocks)]
        if self._is_divided:
            values.append(addressof(TEAM_LIMIT))
        bound = self._code.bind(_ENTRY, values, (*self._blocks, self._externals, *keep))
        return self._externals.checked(bound, self._blocks[1].ctypes.data)
