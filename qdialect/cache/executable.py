"""A network of the cache: the code of an entry, with its constants and workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from pathlib import Path

import numpy as np

from qdialect.aot import record
from qdialect.cache import loading
from qdialect.cache.entry import Sections
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime import memory, workspace_pool
from qdialect.runtime.bound_call import BoundCall, packed_call
from qdialect.runtime.native import NativeExecutable, NetworkCode, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

RECORD, CONSTANTS, MODULE = "record", "constants", "module"
"""Sections beside the code: the description, the constants, and the module at phase `vector` without them."""

DIVIDED = "divided"
"""A section without content, of code that runs on several threads and takes how many it may ask for."""


class CachedExecutable(NativeExecutable):
    """A network as machine code that was compiled before, by this process or another one."""

    def __init__(self, key: str, path: Path, sections: Sections, workspaces: int | None = None) -> None:
        """Load the entry `key` at `path`, which has been read.

        Raises `UnloadableError` where the system does not load it, `LoadError` for a description that this version does
        not read, and `CompileError` where there is no memory or no OpenMP runtime.
        """
        limit = workspace_pool.checked(workspaces)
        network = record.read(bytes(sections[RECORD]))
        version = network.versions[0]
        self.key = key
        """The name of its entry."""
        self.inputs, self.outputs, self.threads = network.inputs, network.outputs, network.threads
        self.calls = version.calls
        self.kernels = len({call.kernel for call in version.calls})
        self.constants_bytes = version.constants_bytes
        self.working_memory = version.workspace_bytes
        self.regions = (compiled_region(self),)
        self._module = bytes(sections[MODULE])
        self._constants = allocated("constants", version.constants_bytes)
        self._constants[: version.constants_bytes] = np.frombuffer(sections[CONSTANTS], np.uint8)
        is_divided = DIVIDED in sections
        address, code = loading.code_of_entry(path, sections, threads=network.threads, is_divided=is_divided)
        self._prepare(_Code(address, code, self._constants, version.workspace_bytes, is_divided), limit)

    def library(self, name: str) -> bytes:
        with LATE_IMPORTS:
            from qdialect.runtime.saving import library

        return library([(self._module, self._constants[: self.constants_bytes])], name)


class _Code(NetworkCode):
    """The function of an entry, and its constants."""

    def __init__(
        self, address: int, code: object, constants: memory.Block, workspace_bytes: int, is_divided: bool
    ) -> None:
        self._address, self._code = address, code
        self._constants, self._workspace_bytes = constants, workspace_bytes
        self._limits = [addressof(TEAM_LIMIT)] if is_divided else []

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._workspace_bytes)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        blocks = self._constants, workspace
        values = [*starts, *(block.ctypes.data for block in blocks), *self._limits]
        return packed_call(self._address, values, (self._code, *blocks, *keep))
