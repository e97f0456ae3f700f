"""A network that was compiled in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from qdialect import target as targets
from qdialect.diagnostics import CompileError
from qdialect.lowering.code_attributes import keep_to_target
from qdialect.lowering.lowered import target_name_of
from qdialect.lowering.pipeline import Lowered
from qdialect.lowering.to_gomp import is_divided
from qdialect.runtime import memory, openmp, saving, workspace_pool
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.external_bindings import External, ExternalBindings
from qdialect.runtime.jit import MachineCode
from qdialect.runtime.kernel_code import KernelCode, empty
from qdialect.runtime.native import NativeExecutable, NetworkCode, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

_ENTRY = "main"


class CompiledExecutable(NativeExecutable):
    """A network as machine code of this process, with its constants and workspaces."""

    def __init__(
        self,
        lowered: Lowered,
        allocate: memory.Allocate = memory.allocate,
        workspaces: int | None = None,
        externals: Mapping[str, External] = MappingProxyType({}),
        *,
        kept: bytes | None = None,
        empties: bool = False,
        kernels: KernelCode | None = None,
    ) -> None:
        """`lowered` is at phase `llvm`; `allocate` gives the memory for the constants and the workspaces.

        `externals` compute the functions that go to a target. `kept` is the module as `saving.kept` gives it, at this
        phase or an earlier one, and `kernels` are those that were compiled before the rest. Who has no use for the
        module any more lets it be emptied, as `CompiledCode` does. Raises `CompileError` where the machine does not
        have the memory, and where a function of a target is not there.
        """
        limit = workspace_pool.checked(workspaces)
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
        self._kept = saving.kept(lowered.module) if kept is None else kept
        self._constants = constants_of(lowered, allocate)
        clock = [self.ticks] if lowered.clocked else []
        code = CompiledCode(lowered, self._constants, allocate, clock, externals, empties=empties, kernels=kernels)
        self._takes_python = code.takes_python
        self._prepare(code, limit)

    def library(self, name: str) -> bytes:
        if self._takes_python:
            raise CompileError("network must not call Python functions to be saved, but externals has one")
        return saving.library([(self._kept, self._constants[: self.constants_bytes])], name)


class CompiledCode(NetworkCode):
    """The code that the JIT compiler made, and its constants."""

    def __init__(
        self,
        lowered: Lowered,
        constants: memory.Block,
        allocate: memory.Allocate = memory.allocate,
        clock: Sequence[NDArray[np.int64]] = (),
        externals: Mapping[str, External] = MappingProxyType({}),
        *,
        empties: bool = False,
        kernels: KernelCode | None = None,
    ) -> None:
        """With `empties` the module of `lowered` has no ops from now on.

        LLVM has its own form of them, from which it makes machine code at the first `bind`: both of them and the code
        generator's would lie in memory together.
        """
        self._constants, self._clock = constants, clock
        self._arena_bytes, self._allocate = lowered.arena_bytes, allocate
        self._is_divided = is_divided(lowered.module)
        keep_to_target(lowered.module, targets.resolve(target_name_of(lowered.module) or targets.GENERIC))
        self._externals = ExternalBindings(lowered.external_functions(), externals)
        self._externals.set_records([constants.ctypes.data + start for start, _ in lowered.externals])
        runtime = openmp.addresses() if lowered.threads > 1 else {}
        self._kernels = kernels or KernelCode()
        symbols = {**runtime, **self._externals.symbols, **self._kernels.addresses}
        self._machine_code = MachineCode(lowered.module, symbols)
        if empties:
            empty(lowered.module)

    @property
    def takes_python(self) -> bool:
        """Whether a Python function computes a part of it."""
        return self._externals.takes_python

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._arena_bytes, self._allocate)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        blocks = [self._constants, workspace, *self._clock]
        values = [*starts, *(block.ctypes.data for block in blocks)]
        if self._is_divided:
            values.append(addressof(TEAM_LIMIT))
        bound = self._machine_code.bind(_ENTRY, values, (*blocks, self._externals, self._kernels, *keep))
        return self._externals.checked(bound, workspace.ctypes.data)


def constants_of(lowered: Lowered, allocate: memory.Allocate = memory.allocate) -> memory.Block:
    """The constants of a network as its code reads them; raises `CompileError` where there is no memory for them."""
    constants = allocated("constants", lowered.constants.size, allocate)
    constants[: lowered.constants.size] = lowered.constants
    return constants
