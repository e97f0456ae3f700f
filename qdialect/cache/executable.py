"""A network of the cache: the code of an entry, with its constants and working memory."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from pathlib import Path

import numpy as np

from qdialect.aot import record
from qdialect.cache import loading
from qdialect.cache.entry import Sections
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime.bound_call import BoundCall, packed_call
from qdialect.runtime.native import NativeExecutable, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

RECORD, CONSTANTS, MODULE = "record", "constants", "module"
"""Sections beside the code: the description, the constants, and the module at phase `vector` without them."""

DIVIDED = "divided"
"""A section without content, of code that runs on several threads and takes how many it may ask for."""


class CachedExecutable(NativeExecutable):
    """A network as machine code that was compiled before, by this process or another one."""

    def __init__(self, key: str, path: Path, sections: Sections) -> None:
        """Load the entry `key` at `path`, which has been read.

        Raises `UnloadableError` where the system does not load it, `LoadError` for a description that this version does
        not read, and `CompileError` where there is no memory or no OpenMP runtime.
        """
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
        is_divided = DIVIDED in sections
        self._address = loading.address_of_entry(path, sections, threads=network.threads, is_divided=is_divided)
        constants = allocated("constants", version.constants_bytes)
        constants[: version.constants_bytes] = np.frombuffer(sections[CONSTANTS], np.uint8)
        arena = allocated("working memory", version.workspace_bytes)
        self._blocks = [constants, arena]
        self._limits = [addressof(TEAM_LIMIT)] if is_divided else []
        self._prepare()

    def save(self, path: str | Path) -> None:
        with LATE_IMPORTS:
            from qdialect.runtime.saving import save

        save(self._module, self._blocks[0][: self.constants_bytes], Path(path))

    def _bound(self, starts: Sequence[int], keep: Sequence[object] = ()) -> BoundCall:
        values = [*starts, *(block.ctypes.data for block in self._blocks), *self._limits]
        return packed_call(self._address, values, (*self._blocks, *keep))
